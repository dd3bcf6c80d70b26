"""The plan and the counts of a run: `PLAN.md` shows the plan, `runs/<id>/state.json` keeps both.

Neither a restart nor another process can reset the counts: the file is written at every turn and read back
strictly. It must be complete, plausible, and what this run wrote last; anything else ends the run as
`state_invalid`. Whether a run continues depends on this and on the stop conditions (stop_conditions.py), not
on the driver.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, get_args

import pydantic.dataclasses
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleet.drivers.session import RunOver
from fleet.errors import ConfigError
from fleet.events.model import TurnUsage
from fleet.files import UnfitFile, read_bounded, write_atomic
from fleet.gate.model import Rung
from fleet.gate.rules import LOWEST
from fleet.personas.model import Probe
from fleet.text import line, markdown_code
from sandbox.tools import TOOLS

NAME = "state.json"
MAX_BYTES = 1 << 20
MAX_LEFT = 100
"""Most parts that a run records as not looked at."""
MAX_REASON = 1_000

State = Literal["pending", "healthy", "finding", "skipped", "inconclusive", "undecided", "not_applicable"]
"""`healthy` and `finding`: looked at; `skipped`: refused; `inconclusive`: could not look;
`undecided`: the probe's expectation cannot be decided on the answers;
`not_applicable`: the platform lacks the part."""
STATES: tuple[State, ...] = get_args(State)
LOOKED: frozenset[State] = frozenset({"healthy", "finding"})

_MARKS: dict[State, str] = {
    "pending": " ",
    "healthy": "x",
    "finding": "!",
    "skipped": "-",
    "inconclusive": "?",
    "undecided": "E",
    "not_applicable": "~",
}
_STRICT = ConfigDict(extra="forbid", strict=True)
_Count = Annotated[int, Field(ge=0, le=1_000_000_000)]


@pydantic.dataclasses.dataclass(frozen=True, slots=True, config=_STRICT)
class PlanItem:
    """One probe. `tries` counts looks at it; `rung` is the lowest that permits all its calls."""

    id: Annotated[str, Field(max_length=64)]
    state: State = "pending"
    tries: _Count = 0
    reason: Annotated[str, Field(max_length=MAX_REASON)] = ""
    rung: Rung = Rung.OBSERVE


@dataclass(frozen=True, slots=True)
class Plan:
    """All items in working order. Immutable."""

    items: tuple[PlanItem, ...]

    @classmethod
    def of(cls, probes: Iterable[Probe]) -> Plan:
        """The plan of a new run; ConfigError for duplicate ids or a probe without steps."""
        items: list[PlanItem] = []
        for probe in probes:
            if not probe.steps:
                raise ConfigError(f"probe {probe.id!r} has no steps", remedy="give it at least one")
            specs = [(TOOLS.get(step.tool), step.args) for step in probe.steps]
            rungs = [  # an unknown tool needs the highest
                LOWEST.get(spec.effect_of(args), Rung.PROPOSE) if spec else Rung.PROPOSE
                for spec, args in specs
            ]
            items.append(PlanItem(probe.id, rung=max(rungs, key=lambda rung: rung.height)))
        return cls(tuple(items)).born()

    def born(self) -> Plan:
        """This plan, if a run may start with it; ConfigError otherwise."""
        ids = [item.id for item in self.items]
        if "" in ids or len(set(ids)) != len(ids):
            raise ConfigError("an id in the plan is missing or used twice", remedy="give each its own id")
        for item in self.items:
            if (item.state, item.tries) != ("pending", 0):
                raise ConfigError(
                    f"item {item.id!r} begins as {item.state}", remedy="every item of a new plan must be open"
                )
        return self

    def get(self, id_: str) -> PlanItem | None:
        return next((item for item in self.items if item.id == id_), None)

    def with_item(self, id_: str, state: State, reason: str = "", *, tried: bool = False) -> Plan:
        """The plan after a look at one item; KeyError for an unknown id."""
        if (old := self.get(id_)) is None:
            raise KeyError(id_)
        new = replace(old, state=state, reason=reason[:MAX_REASON], tries=old.tries + tried)
        return Plan(tuple(new if item is old else item for item in self.items))

    def open(self, retries: int = 0) -> tuple[PlanItem, ...]:
        """Remaining items in order: untried ones, then those that may be retried, the least tried first."""
        untried = [item for item in self.items if item.state == "pending"]
        again = [item for item in self.items if item.state == "inconclusive"] if retries > 0 else []
        return (*untried, *sorted(again, key=lambda one: one.tries))

    def looked(self) -> int:
        """Number of items looked at, with any result."""
        return sum(item.state in LOOKED for item in self.items)

    def tried(self) -> int:
        """Number of items worked on, without those that are not applicable."""
        return sum(item.state not in ("pending", "not_applicable") for item in self.items)

    def signature(self, retries: int = 0) -> str:
        """A digest of the open items: constant while nothing changes."""
        text = "\n".join(f"{item.id} {item.state} {item.tries}" for item in self.open(retries))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def render(self, run: str, persona: str) -> str:
        """`PLAN.md`: the same bytes for the same plan."""
        lines = [f"# Plan of run {run}, persona {persona}", ""]
        for item in self.items:
            shown = f"- [{_MARKS[item.state]}] {item.id}: {item.state}"
            if item.tries > 1:
                shown += f", {item.tries} tries"
            if item.state == "pending" and item.rung is not Rung.OBSERVE:
                shown += f", needs the rung {item.rung}"
            if item.reason:
                shown += f": {markdown_code(line(item.reason, 300))}"
            lines.append(shown)
        lines += [] if self.items else ["(nothing planned)"]
        count = f"{self.looked()} of {len(self.items)} looked at, {len(self.open())} not tried yet"
        return "\n".join([*lines, "", count, ""])


def complete(plan: Plan, retries: int) -> bool:
    """The completion gate: something was planned, and no item is left to work on."""
    return bool(plan.items) and not plan.open(retries)


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


MAX_PLACES = 40
"""Paths of which it is kept as whom they were looked at."""


class AccountTally(_Strict):
    """Questions for which accounts were made at one place, or not, and why not the last time; and the paths
    that they looked at, with how many of them did."""

    made: _Count = 0
    failed: _Count = 0
    why: Annotated[str, Field(max_length=600)] = ""
    looked: Annotated[dict[str, Annotated[int, Field(ge=1, le=2)]], Field(max_length=MAX_PLACES)] = {}

    def plus(self, why: str, looked: Mapping[str, int]) -> AccountTally:
        """With one question more: why it made no accounts, or what they looked at."""
        found = {path: max(count, self.looked.get(path, count)) for path, count in looked.items()}
        counts = {"failed": self.failed + 1, "why": why[:600]} if why else {"made": self.made + 1}
        both = dict(list({**self.looked, **found}.items())[:MAX_PLACES])
        return self.model_copy(update={**counts, "looked": both})

    @property
    def reason(self) -> str:
        """Why accounts are missing, in words; "" if none is."""
        times = f" for {self.failed} of {self.made + self.failed} questions" if self.made else ""
        return f"no account could be made{times}, because {self.why}" if self.failed else ""


class LeftState(_Strict):
    """One part that the run did not look at, or not fully."""

    part: Annotated[str, Field(min_length=1, max_length=120)]
    reason: Annotated[str, Field(max_length=MAX_REASON)]
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
    items: tuple[PlanItem, ...] = ()
    accounts: dict[str, AccountTally] = {}
    """By the URL where they are made."""
    left: Annotated[tuple[LeftState, ...], Field(max_length=MAX_LEFT)] = ()

    @classmethod
    def begin(cls, run: str, plan: Plan) -> RunState:
        """The state of a new run."""
        return cls(run=run, signature=plan.signature(), items=plan.items)

    @property
    def plan(self) -> Plan:
        return Plan(self.items)


COPY = "state.copy.json"


class Damaged(RunOver):
    """The file is no text of JSON: cut, or with other bytes in it, as no program would leave it."""


class StateFile:
    """The state file, and a copy of it. `save` is atomic and durable; `check` compares the disk with the last
    saved state."""

    def __init__(self, folder: Path, run: str) -> None:
        self.path, self._copy, self._run = folder / NAME, folder / COPY, run
        self.last: RunState | None = None
        """What this run wrote last, or goes on from."""

    def save(self, state: RunState) -> None:
        """Replace the file atomically: a crash leaves the old state or the new one. Raises OSError."""
        text = state.model_dump_json().encode() + b"\n"
        write_atomic(self.path, text)
        write_atomic(self._copy, text, sync_name=False)
        self.last = state

    def load(self) -> RunState:
        """Read the state, or its copy where it is damaged; RunOver `state_invalid` unless it is a complete
        state of this run."""
        try:
            return self._read(self.path)
        except Damaged:
            if self._copy.exists():
                return self._read(self._copy)
            raise

    def _read(self, path: Path) -> RunState:
        try:
            raw = read_bounded(path, MAX_BYTES)
            try:
                json.loads(raw, object_pairs_hook=_unique)
            except (json.JSONDecodeError, UnicodeDecodeError) as error:
                raise Damaged("state_invalid", f"{NAME}: {error}") from None
            state = RunState.model_validate_json(raw, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = "/".join(str(part) for part in first["loc"])
            raise invalid(f"/{where}: {first['msg']}") from None
        except UnfitFile:
            raise invalid("not a small regular file") from None
        except (OSError, ValueError, RecursionError) as error:
            raise invalid(str(getattr(error, "strerror", None) or error)) from None
        ids = {one.id for one in state.items}
        if state.run != self._run or "" in ids or len(ids) != len(state.items):
            raise invalid("it belongs to another run, or names a probe twice")
        return state

    def check(self) -> str:
        """RunOver `state_invalid` unless the file is exactly what this run wrote last. One that is damaged is
        written anew from its copy: how it was, in words, "" for nothing."""
        found = self.load()
        if found != self.last:
            raise invalid("another process changed it")
        try:
            self._read(self.path)
        except Damaged as damage:
            self.save(found)
            return damage.detail
        return ""


def invalid(why: str, name: str = NAME) -> RunOver:
    """The end of a run whose state or brief was changed."""
    return RunOver("state_invalid", f"{name}: {why}")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of its members; a duplicate key would be ambiguous."""
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("duplicate key")
    return dict(pairs)
