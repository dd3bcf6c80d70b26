"""`runs/<id>/state.json`: a run's counts, written at every turn and read back strictly.

Neither a restart nor another process can reset the counts: the file must be complete, plausible, and what
this run wrote last. Anything else ends the run as `state_invalid`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleet.drivers.session import RunOver
from fleet.events.model import TurnUsage
from fleet.files import UnfitFile, read_bounded, write_atomic
from fleet.gate.model import Rung
from fleet.runs.desk.plan import Plan, PlanItem, State

NAME = "state.json"
MAX_BYTES = 1 << 20
MAX_LEFT = 100
"""Most parts that a run records as not looked at."""

_Count = Annotated[int, Field(ge=0, le=1_000_000_000)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ItemState(_Strict):
    """One stored line of the plan."""

    id: Annotated[str, Field(min_length=1, max_length=64)]
    state: State
    tries: _Count
    reason: Annotated[str, Field(max_length=1_000)]
    rung: Literal["observe", "exercise", "propose"]


class AccountTally(_Strict):
    """Questions for which accounts were made at one place, or not, and why not the last time."""

    made: _Count = 0
    failed: _Count = 0
    why: Annotated[str, Field(max_length=600)] = ""

    @property
    def reason(self) -> str:
        """Why accounts are missing, in words; "" if none is."""
        times = f" for {self.failed} of {self.made + self.failed} questions" if self.made else ""
        return f"no account could be made{times}, because {self.why}" if self.failed else ""


class LeftState(_Strict):
    """One part that the run did not look at, or not fully."""

    part: Annotated[str, Field(min_length=1, max_length=120)]
    reason: Annotated[str, Field(max_length=1_000)]
    kind: Literal["unexplored", "left", "cut"] = "unexplored"


class RunState(_Strict):
    """Every count of a run, as non-negative JSON numbers."""

    version: Literal[1] = 1
    run: str
    turns: _Count = 0
    failed: _Count = 0
    timeouts: _Count = 0
    last_failure: str = ""
    stale: _Count = 0
    signature: str = ""
    retries_used: _Count = 0
    continuations: _Count = 0
    claims: _Count = 0
    usage: TurnUsage | None = None
    withdrawn: tuple[str, ...] = ()
    items: tuple[ItemState, ...] = ()
    accounts: dict[str, AccountTally] = {}
    """By the URL where they are made."""
    left: Annotated[tuple[LeftState, ...], Field(max_length=MAX_LEFT)] = ()

    @classmethod
    def begin(cls, run: str, plan: Plan) -> RunState:
        """The state of a new run."""
        return cls(run=run, signature=plan.signature()).with_plan(plan)

    @property
    def plan(self) -> Plan:
        return Plan(
            tuple(PlanItem(one.id, one.state, one.tries, one.reason, Rung(one.rung)) for one in self.items)
        )

    def with_plan(self, plan: Plan) -> RunState:
        items = tuple(
            ItemState(
                id=one.id, state=one.state, tries=one.tries, reason=one.reason[:1_000], rung=one.rung.value
            )
            for one in plan.items
        )
        return self.model_copy(update={"items": items})


class StateFile:
    """The state file. `save` is atomic and durable; `check` compares the disk with the last saved state."""

    def __init__(self, folder: Path, run: str) -> None:
        self.path, self._run = folder / NAME, run
        self._last: RunState | None = None

    def save(self, state: RunState) -> None:
        """Replace the file atomically: a crash leaves the old state or the new one. Raises OSError."""
        write_atomic(self.path, state.model_dump_json().encode() + b"\n")
        self._last = state

    def adopt(self, state: RunState) -> None:
        """Continue from a state that `load` returned."""
        self._last = state

    def load(self) -> RunState:
        """Read the state; RunOver `state_invalid` unless it is a complete state of this run."""
        try:
            state = RunState.model_validate_json(self._read(), strict=True)
            ids = [one.id for one in state.items]
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = "/".join(str(part) for part in first["loc"])
            raise invalid(f"/{where}: {first['msg']}") from None
        except (OSError, ValueError, RecursionError) as error:
            raise invalid(str(getattr(error, "strerror", None) or error)) from None
        if state.run != self._run or len(set(ids)) != len(ids):
            raise invalid("it belongs to another run, or names a probe twice")
        return state

    def check(self) -> None:
        """RunOver `state_invalid` unless the file is exactly what this run wrote last."""
        if self.load() != self._last:
            raise invalid("another process changed it")

    def _read(self) -> bytes:
        try:
            raw = read_bounded(self.path, MAX_BYTES)
        except UnfitFile:
            raise ValueError("not a small regular file") from None
        json.loads(raw, object_pairs_hook=_unique)  # a duplicate key would be ambiguous
        return raw


def invalid(why: str, name: str = NAME) -> RunOver:
    """The end of a run whose state or brief was changed."""
    return RunOver("state_invalid", f"{name}: {why}")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("duplicate key")
    return dict(pairs)
