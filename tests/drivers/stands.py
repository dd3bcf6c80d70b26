"""The desks that the conformance suite stands at: one maker each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from fleet.drivers.desk import Desk
from fleet.events.model import TurnEnded
from fleet.personas.model import PolicySection
from fleet.runs.driver_choice import PLAYBOOK
from tests.doubles.drivers import LOOK, MemoryDesk
from tests.runs.table import look, persona, seated

TOOL, GOOD = "qa_fetch", {"url": "http://site/x"}
Answer = Callable[[], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class Stand:
    """One desk with two open probes, `first` and `second`, and qa_fetch, answering what `answer` says."""

    desk: Desk
    turns: Callable[[], Sequence[TurnEnded]]
    """The records of its turns so far."""
    stop: Callable[[], None]
    """What a person does to stop the run."""


class MakeStand(Protocol):
    def __call__(
        self,
        *,
        answer: Answer = ...,
        max_turns: int = ...,
        turn_timeout_s: float = ...,
        max_continuations: int = ...,
        tokens: int | None = ...,
    ) -> AbstractAsyncContextManager[Stand]: ...


async def healthy() -> dict[str, Any]:
    return {"ok": True, "status": 200, "text": "hello"}


@asynccontextmanager
async def in_memory(
    *,
    answer: Answer = healthy,
    max_turns: int = 50,
    turn_timeout_s: float = 10.0,
    max_continuations: int = 10,
    tokens: int | None = 1_000,
) -> AsyncIterator[Stand]:
    async def act(_: Mapping[str, Any]) -> Mapping[str, Any]:
        return await answer()

    desk = MemoryDesk(
        tools={TOOL: (LOOK, act)},
        max_turns=max_turns,
        turn_timeout_s=turn_timeout_s,
        max_continuations=max_continuations,
        tokens=tokens,
    )

    def stop() -> None:
        desk.stop = "a STOP file"

    yield Stand(desk=desk, turns=lambda: desk.turns, stop=stop)


@asynccontextmanager
async def conducted(
    *,
    answer: Answer = healthy,
    max_turns: int = 50,
    turn_timeout_s: float = 10.0,
    max_continuations: int = 10,
    tokens: int | None = 1_000,
) -> AsyncIterator[Stand]:
    async def said(_tool: str, _args: Mapping[str, Any]) -> dict[str, Any]:
        return await answer()

    policy = PolicySection(max_turns_per_run=max_turns, max_continuations=max_continuations)
    one = persona(look("first"), look("second"), policy=policy, tokens=tokens or 0)
    hand = replace(PLAYBOOK, patience=100, explores=True)
    with TemporaryDirectory() as folder:
        async with seated(Path(folder), one, answer=said, hand=hand, turn_s=turn_timeout_s) as table:
            yield Stand(desk=table.desk, turns=lambda: table.said("turn"), stop=table.stop)


MAKERS: dict[str, MakeStand] = {"memory": in_memory, "conductor": conducted}
