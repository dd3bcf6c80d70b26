"""One turn of a driver: its calls, their results and its limits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from fleet.drivers.desk import FAILURES, Question, Reply
from fleet.events.model import (
    Event,
    MessageDelta,
    MessageDone,
    MessageSaid,
    MessageStarted,
    TurnEnded,
    TurnUsage,
    total_usage,
)
from fleet.runs.call.replies import CUT, refusal
from fleet.runs.desk.model_budget import checked
from fleet.runs.driver_choice import Price, unpriced
from fleet.text import line

MAX_CALLS = 32
"""Maximum calls per turn; the rest are refused and counted at no cost."""
MAX_REJECTIONS = 3
"""Maximum invalid calls per turn (unknown, malformed); one more fails the turn."""
_MESSAGES = (MessageStarted, MessageDelta, MessageDone, MessageSaid)

Answering = Callable[[str, str, Mapping[str, Any] | str], Awaitable[Reply]]
"""Executes one call (call id, tool, arguments); RunOver when a fence ends the run."""
Posing = Callable[[Sequence[Question]], Awaitable[Sequence[Sequence[Mapping[str, Any]] | None]]]
"""Asks an explorer's questions; RunOver when a fence ends the run."""


@dataclass(slots=True)
class TurnRecord:
    """The counts of one turn, recorded in the trajectory when it ends."""

    index: int
    price: Price = unpriced
    probe: str = ""
    """The one that its driver is at; "" for the whole plan."""
    failure: str = ""
    detail: str = ""
    asked: int = 0
    usage: TurnUsage | None = None
    proposed: list[str] = field(default_factory=list)
    rejections: list[dict[str, str]] = field(default_factory=list)
    _digest: Any = field(default_factory=hashlib.sha256)
    _replies: int = 0
    _bytes: int = 0
    _cut: int = 0

    def reject(self, tool: str, pointer: str, error: str) -> None:
        """Count an invalid call; more than MAX_REJECTIONS fail the turn."""
        self.rejections.append(
            {"tool": line(tool, 64), "pointer": line(pointer, 100), "error": line(error, 200)}
        )
        if len(self.rejections) > MAX_REJECTIONS:
            self.fail("invalid_action_exhausted", error)

    def fail(self, failure: str, detail: str = "") -> None:
        """Fail the turn for a reason of FAILURES."""
        self.failure, self.detail = failure, line(detail, 300)

    def count_reply(self, reply: Reply) -> None:
        """Count what was returned to the driver."""
        text = json.dumps(reply.content, sort_keys=True, default=str)
        self._replies += 1
        self._bytes += len(text)
        self._cut += CUT in text
        self._digest.update(text.encode())

    def event(self, executed: tuple[int, ...], seconds: float) -> TurnEnded:
        """The turn's record; `executed` are the numbers of its calls."""
        validation: dict[str, Any] = {"ok": not self.failure and not self.rejections}
        if self.rejections:
            validation |= {"retries": len(self.rejections), "rejections": self.rejections}
        if self.failure:
            validation |= {"reason": self.failure, "detail": self.detail}
        if self.asked > MAX_CALLS:
            validation |= {"ok": False, "over_the_cap": self.asked - MAX_CALLS}
        seen: dict[str, Any] = {}
        if self._replies:
            seen = {"replies": self._replies, "bytes": self._bytes, "sha256": self._digest.hexdigest()}
            seen |= {"cut": self._cut} if self._cut else {}
        return TurnEnded(
            index=self.index,
            observation=seen,
            proposed=tuple(self.proposed),
            validation=validation,
            executed=executed,
            usage=self.usage,
            failure=self.failure,
            seconds=round(seconds, 3),
        )


@dataclass(slots=True)
class OpenTurn:
    """Implements the drivers' Turn port: sequential calls, each counted in the turn's record."""

    record: TurnRecord
    answer: Answering
    posing: Posing
    emit: Callable[[Event], None]
    lock: anyio.Lock
    is_open: bool = True

    async def ask(self, call_id: str, tool: str, args: Mapping[str, Any] | str) -> Reply:
        record = self.record
        async with self.lock:
            if not self.is_open:
                raise RuntimeError("this turn is over")
            record.asked += 1
            if record.asked > MAX_CALLS:
                return refusal(call_id, tool, f"limit reached: more than {MAX_CALLS} calls in one turn")
            record.proposed.append(line(call_id, 128))
            if record.failure == "invalid_action_exhausted":
                return refusal(call_id, tool, "too many invalid calls: this turn is over")
            reply = await self.answer(call_id, tool, args)
            record.count_reply(reply)
            return reply

    async def pose(self, questions: Sequence[Question]) -> Sequence[Sequence[Mapping[str, Any]] | None]:
        async with self.lock:
            if not self.is_open:
                raise RuntimeError("this turn is over")
            return await self.posing(questions)

    def show(self, event: Event) -> None:
        if self.is_open and isinstance(event, _MESSAGES):
            self.emit(event)

    def used(self, usage: TurnUsage) -> None:
        if self.is_open:
            usage = checked(usage)
            if usage.cost_usd is None and (cost := self.record.price(usage)) is not None:
                usage = usage.model_copy(update={"cost_usd": str(cost)})
            self.record.usage = total_usage((self.record.usage, usage))

    def failed(self, failure: str, detail: str = "") -> None:
        if failure not in FAILURES:
            raise ValueError(f"{failure!r} is not a reason why a turn fails")
        if self.is_open:
            self.record.fail(failure, detail)
