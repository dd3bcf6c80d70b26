"""The rows of the journal: frozen, plain, and importable without any database library.

A run is `queued`, then `running`, then `settling`, then `ended`; it only moves forward.
An effect is `open` from the moment it is intended until its result was looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias

RunState = Literal["queued", "running", "settling", "ended"]
EffectKind = Literal["key", "name", "stipend", "tx", "post", "jail", "page", "payment"]
EffectState = Literal["open", "done", "released", "failed"]
FindingState = Literal[
    "raised", "confirmed", "flaky", "dropped", "unverified", "posting", "posted", "repeated"
]

OPEN_RUNS: tuple[RunState, ...] = ("running", "settling")

SEALED = "record."
"""Prefix of the fact where the records of an ended run end."""
TRIAL = "trial"
"""The trigger of a run that tries a persona's file: what it sees is its own, and counts nowhere."""
NEWS: tuple[FindingState, ...] = ("posted", "confirmed", "flaky", "unverified")
"""States of findings that count as new. `repeated` and `dropped` do not."""

MOVING: tuple[FindingState, ...] = ("raised", "unverified", "confirmed", "posting")
"""States of findings that something is still to be done about."""

MISSING = "entries.missing."
"""Fact by platform: posted entries that are not on the chain now (`count`, `since`, `fate`); "" for none."""
READ_BLOCKS = "triage.read."
"""Fact by platform: blocks of the entries that the last pass of triage posted, and has read."""
CLOSING = "budget-exceeded"
"""Stands for the probe in the closing entry of a run that spent its budget, which is no finding."""

BLIND = "blind"
"""The outcome of a run that did all it could but looked at nothing."""

HOLD = "hold"
"""Key of a finding's data: it is proven, and waits until a person releases it."""

_JUDGED: frozenset[FindingState] = frozenset({"confirmed", "flaky", "dropped", "unverified", "repeated"})

FINDING_MOVES: Mapping[FindingState, frozenset[FindingState]] = MappingProxyType(
    {
        "raised": _JUDGED,
        "unverified": _JUDGED,
        "confirmed": frozenset({"posting", "repeated"}),
        "flaky": frozenset({"repeated", "dropped"}),
        "posting": frozenset({"posted", "repeated", "confirmed"}),
        "posted": frozenset(),
        "dropped": frozenset(),
        "repeated": frozenset(),
    }
)
"""Permitted moves of a finding; staying is always allowed. Only the outbox leads to posted."""

EFFECT_MOVES: Mapping[EffectState, frozenset[EffectState]] = MappingProxyType(
    {
        "open": frozenset({"done", "released", "failed"}),
        "done": frozenset({"released", "failed"}),
        "failed": frozenset({"done", "released"}),
        "released": frozenset(),
    }
)
"""Permitted moves of an effect: a later look at the chain can correct `failed`; `released` is final."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """One firing of one persona that is to be queued.

    `due` is when it was due (ISO with microseconds), "" for now. `rung` is "" until the run is claimed.
    """

    run_id: str
    persona: str
    key: str
    platform: str
    trigger: str
    rung: str
    budget: dict[str, Any]
    priority: int = 0
    due: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow(NewRun):
    """A run in the journal. `pid_start` is the process start time, which detects a reused pid.

    `cancel` is who requested its end, and why. `daemon` identifies the process on a shared journal; "" where
    only one uses it. `discovered` is 1 once its explorers met new behaviour of the platform, although
    nothing may be wrong. The table `runs` has these columns (`sql/schema.py`).
    """

    state: RunState
    created: str
    outcome: str = ""
    detail: str = ""
    pid: int = 0
    pid_start: int = 0
    started: str = ""
    ended: str = ""
    cancel: str = ""
    daemon: str = ""
    discovered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipRow:
    """A firing that did not become a run. `key` is the one it would have had."""

    persona: str
    key: str
    reason: str
    at: str


def log_changed(persona: str, block: object) -> str:
    """How the key of a firing begins that a change of the log in this block causes."""
    return f"{persona}@log-changed:{block}:"


def is_news(row: FindingRow) -> bool:
    """Whether a finding counts as new."""
    return row.state in NEWS and row.probe != CLOSING


@dataclass(frozen=True, slots=True)
class RoundsRow:
    """Summary of a persona's ended runs: their number, the last end, how many were `quiet` since one found
    something new, how many of the last in a row looked at nothing, and `why` (of the very last)."""

    ended: int
    last: str
    quiet: int
    blind: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRow:
    """An effect outside the process: recorded before it is tried, resolved after it was observed."""

    effect_id: int
    run_id: str
    kind: EffectKind
    ref: str
    state: EffectState
    data: dict[str, Any]
    at: str
    resolved: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """One defect seen by one run; unique by (run_id, fingerprint).

    `data` holds what verification needs to start over after a crash (JSON); `index` is -1 until the
    entry was read back from the log.
    """

    run_id: str
    fingerprint: str
    state: FindingState = "raised"
    probe: str = ""
    persona: str = ""
    surface: str = ""
    severity: str = ""
    title: str = ""
    repro: str = ""
    envelope: str = ""
    evidence: str = ""
    times: int = 1
    confirmed: int = 0
    tries: int = 0
    tx: str = ""
    index: int = -1
    data: dict[str, Any] = field(default_factory=dict)
    at: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Its fingerprint, then what version 2 called it, in whatever way it was seen."""
        return (self.fingerprint, *map(str, self.data.get("known_as", ())))


class LogRecord(Protocol):
    """One entry as a log's reader returns it: unverified claims. `timestamp` in Unix seconds."""

    @property
    def sender(self) -> str: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredEntry:
    """One entry of the append-only mirror; an epoch ends when the log on chain was cleared."""

    epoch: int
    index: int
    sender: str
    timestamp: int
    text: str
    digest: str = ""
    """SHA-256 over the previous entry's digest and this entry: a changed past is detected."""


RawEntry: TypeAlias = tuple[int, str, int, bytes]
"""(index, sender, timestamp, text as UTF-8 with surrogates): an entry of the mirror, for bulk readers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRow:
    """One stretch of one log, between two times that it was cleared.

    `log` names the log, "" in a journal that is older than the names; `why` says what began the epoch:
    `first`, `cleared`, `another log`. `entries` are mirrored.
    """

    epoch: int
    since: str
    log: str
    why: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindRow:
    """A reorganisation, as the mirror met it: from `index` on, `gone` entries were replaced by `new` ones.

    `index` 0 with `back` set: a clear was undone, and the log went on in the epoch before.
    """

    at: str
    log: str
    epoch: int
    index: int
    gone: int
    new: int
    back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRow:
    """What one healthy look measured: quantiles in ascending order, of a control too if there was one.

    A count (gas, turns, a charge) is one value. `build` is the platform's version where its answer says one.
    """

    measure: str
    own: tuple[float, ...]
    control: tuple[float, ...] = ()
    build: str = ""
    at: str = ""


DecisionKind = Literal[
    "fixed", "dismiss", "snooze", "reopen", "severity", "merge", "split", "link", "unlink", "undo", "release"
]
QUEUED = -2
"""`entry` of a decision that is to be published and is not on the log yet."""
LinkKind = Literal["duplicate", "same-cause", "follows-from", "regression-of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """What a person decided about one item; never changed, reversed only by an `undo`.

    `item` is a fingerprint (12 hex digits), `other` the second one of merge, link and unlink. `until` (ISO,
    "": for good) ends a dismissal or a snooze. `undoes` is the `name` of the reversed decision. `name` is
    made from the content (fleet/findings/records.py), so that the log and the journal agree on it. `entry` is
    its index on the log once published, else -1, or QUEUED.
    """

    item: str
    kind: DecisionKind
    reason: str
    who: str
    at: str
    platform: str = ""
    name: str = ""
    until: str = ""
    severity: str = ""
    other: str = ""
    link: LinkKind | Literal[""] = ""
    undoes: str = ""
    entry: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """One item as the last triage pass left it, for re-runs. `state` is one of fleet/triage/items/life.py.

    `persona` is the one that reported it, `names` all its fingerprints. `repro` is the text of its calls,
    empty when none is runnable or when no entry of the fleet's own has one: a stranger's is never here.
    `trusted`: an address of the fleet reported it; nothing else is ever run again.
    `at` is when the row was written: when the item changed last.
    """

    fingerprint: str
    state: str
    severity: str
    surface: str
    title: str
    persona: str
    repro: str
    names: tuple[str, ...] = ()
    since: str = ""
    trusted: bool = False
    at: str = ""


ProposalState = Literal[
    "begun", "held", "checked", "pushing", "opening", "open", "merged", "closed", "withdrawn"
]
"""Where a proposal is. `held`: the fix gate refused it. `pushing` and `opening` are intents."""

OPEN_PROPOSALS: tuple[ProposalState, ...] = ("begun", "checked", "pushing", "opening", "open")

TRACKED = "propose.tracked."
"""Prefix of the journal's key of what a tracker says of an item; platform and fingerprint follow."""

UNLIKE = "propose.unlike."
"""The same, for what a person has said is not about it: a JSON object of references."""

HELD_AT = "held_at"
"""In a proposal's data: the step at which the gate held it; missing when it was held for another reason."""

PROPOSAL_MOVES: Mapping[ProposalState, frozenset[ProposalState]] = MappingProxyType(
    {
        "begun": frozenset({"held", "checked", "withdrawn"}),
        "checked": frozenset({"pushing", "held", "withdrawn"}),
        "pushing": frozenset({"opening", "checked", "withdrawn"}),
        "opening": frozenset({"open", "pushing", "merged", "closed", "withdrawn"}),
        "open": frozenset({"merged", "closed", "withdrawn"}),
        "held": frozenset(),
        "merged": frozenset(),
        "closed": frozenset({"open"}),
        "withdrawn": frozenset(),
    }
)
"""Permitted moves of a proposal; staying is always allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRow:
    """One proposal of a fix for one item, made by one run; `proposal_id` is that run's id.

    `ref` is where it is (the URL of the pull request, or the branch), `head` the commit of its branch, `why`
    the reason of its state in words. `data` holds the steps of the gate, the checked patch and links (JSON).
    """

    proposal_id: str
    platform: str
    item: str
    repository: str
    branch: str
    state: ProposalState = "begun"
    base: str = ""
    head: str = ""
    ref: str = ""
    why: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    created: str = ""
    updated: str = ""


def fields_of(row: Any) -> dict[str, Any]:  # noqa: ANN401  any dataclass
    """A row as JSON: the id of its run is `run`, as everywhere in what the commands print."""
    return {"run" if name == "run_id" else name: value for name, value in asdict(row).items()}
