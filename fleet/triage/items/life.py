"""The life of an item: one state machine over what was reported, run again, recorded and decided. Pure.

Two things make the state: what the machine knows, and a person's dismissal or snooze that hides it. `open`
below is one of new, confirmed, flaky and needs-repro, by how well the item is proven.

    what happens            open            proposed        fixed        verified-fixed   regression
    reported or shown       open            proposed        regression   regression       regression
    three clean re-runs     verified-fixed  verified-fixed  verified-fixed  verified-fixed  verified-fixed
    a fix is proposed       proposed        proposed        fixed        verified-fixed   proposed
    a build does not show it  needs-repro   proposed        fixed        verified-fixed   needs-repro
    a person: fixed         fixed           fixed           fixed        verified-fixed   fixed
    a person: reopen        open            open            open         open             open
    last looks unreached    unreachable     (each other state stays: "not reached" is never "fixed")

After the last one `reported` makes it open again; `shown` does not: its repro is the same.

A person's `dismiss` and `snooze` are shown instead (dismissed, snoozed) until they end, are undone or are
followed by another decision; what happens meanwhile counts, is not shown, and never ends them. `fixed` and
`reopen` end them. A decision that ended brings no earlier one back.

Entries of the log are ordered by index, records among them; everything else by time, after the entries of
the same second. Clean re-runs of the journal come after the report of the run that they followed (its
`opened` and `run`), for the chain's clock may be ahead of ours. A record of an earlier epoch hides nothing.
Strangers' reports move only an item that has no report of ours: they resolve, reopen and hide nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal

from fleet.findings.proof import TRIES
from fleet.findings.records import ItemRecord
from fleet.findings.recurrence import Recurrence
from fleet.store.rows import DecisionRow
from fleet.triage.items.decisions import STATES
from fleet.triage.items.life_events import EventKind, ItemReport, LifeEvent, counted, events, seconds

ItemState = Literal[
    "new",
    "confirmed",
    "flaky",
    "needs-repro",
    "unreachable",
    "proposed",
    "fixed",
    "verified-fixed",
    "dismissed",
    "snoozed",
    "regression",
]
OPEN: frozenset[ItemState] = frozenset(
    {"new", "confirmed", "flaky", "needs-repro", "unreachable", "proposed", "regression"}
)
"""States of items on the open list, which is the default one."""
STALE = timedelta(days=7)
"""Without a look and without a report for longer than this, an item is stale."""

_Proof = Literal["confirmed", "flaky", "unverified", "needs-repro", "untrusted"]
BEGIN: Mapping[_Proof, ItemState] = MappingProxyType(
    {
        "confirmed": "confirmed",
        "flaky": "flaky",
        "unverified": "new",
        "needs-repro": "needs-repro",
        "untrusted": "new",
    }
)
"""The open state of an item by how well it is proven."""
_UNKNOWN = Recurrence()
_UNREACHABLE: frozenset[ItemState] = frozenset({"new", "confirmed", "flaky"})
_HELD: Mapping[EventKind, ItemState] = MappingProxyType({"dismiss": "dismissed", "snooze": "snoozed"})


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of an item's life: what it became, when (ISO), and by whom or by what."""

    state: ItemState
    at: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Life:
    """`since` is when the present state began (ISO). `until` is the end of a dismissal or snooze.

    `stuck` says in words what the item waits for, `resolved_at` (ISO) when it was last said to be fixed.
    `reason` is that of the decision or of the proposal that made the present state.
    """

    state: ItemState
    since: str
    stages: tuple[Stage, ...] = ()
    stuck: str = ""
    until: str = ""
    resolved_at: str = ""
    stale: bool = False
    reason: str = ""


def life(
    reports: Sequence[ItemReport],
    *,
    proof: _Proof,
    figures: Recurrence | None,
    records: Sequence[ItemRecord],
    decisions: Sequence[DecisionRow],
    now: datetime,
) -> Life:
    """The life of one item until `now`.

    `records` are those of the item on the log, placed; `decisions` those of its decisions that stand
    (`decisions.fold(...).states_of(names)`), published or not.
    """
    known = figures or _UNKNOWN
    decided = [one for one in decisions if one.kind in STATES]
    course = _Course(BEGIN[proof])
    for event in events(reports, known, records, decided, now):
        course.take(event)
    if course.hold is None and course.state in _UNREACHABLE and known.unreached_since:
        course.enter("unreachable", known.unreached_since, "runs without an answer")
    last = max([known.looked, known.last, *(one.at for one in course.sightings)])
    stale = not last or seconds(last) < (now - STALE).timestamp()
    return Life(
        state=course.shown.state,
        since=course.shown.at,
        stages=tuple(course.stages),
        stuck=_stuck(course, reports, known, proof, last if stale else ""),
        until=course.hold.until if course.hold else "",
        resolved_at=course.resolved_at,
        stale=stale,
        reason=course.hold.reason if course.hold else course.reason,
    )


class _Course:
    """Where the item is so far: `state` by the machine, `hold` what a person shows instead."""

    def __init__(self, open_state: ItemState) -> None:
        self._open = self.state = open_state
        self._seen_only = False
        self.hold: LifeEvent | None = None
        self.stages: list[Stage] = []
        self.sightings: list[LifeEvent] = []
        self.resolved_at = self.reason = ""

    @property
    def shown(self) -> Stage:
        return self.stages[-1] if self.stages else Stage(self.state, "")

    def take(self, event: LifeEvent) -> None:
        if event.kind in ("dismiss", "snooze"):
            self.hold = event
        elif event.kind in ("fixed", "reopen"):
            self.hold = None
        elif event.kind == "end":
            self.hold = None if self.hold and self.hold.until == event.until else self.hold
        else:
            self.sightings.append(event)
        after = self._after(event.kind)
        if event.kind in ("fixed", "clean") and after != self.state:
            self.resolved_at = event.at
        if after != self.state or event.kind == "fixed":
            self.reason = event.reason
        back = after == "regression" and after != self.state
        reported = event.kind == "reported" and after == "regression" and self._seen_only
        self._seen_only = event.kind == "shown" if back else self._seen_only and not reported
        self.state = after
        visible = _HELD[self.hold.kind] if self.hold else after
        if reported and self.shown.state == visible == "regression":
            self.stages.pop()  # the log knows it too: what it says of the time holds on every machine
        if visible != self.shown.state or not self.stages or event is self.hold:
            self.enter(visible, event.at, event.by)

    def enter(self, state: ItemState, at: str, by: str) -> None:
        self.stages.append(Stage(state, at, by))

    def _after(self, kind: EventKind) -> ItemState:
        """One row of the table above."""
        if kind == "reported" and self.state == "needs-repro":
            return self._open
        if kind in ("reported", "shown"):
            return "regression" if self.state in ("fixed", "verified-fixed") else self.state
        if kind == "clean":
            return "verified-fixed"
        if kind == "proposed":
            return self.state if self.state in ("fixed", "verified-fixed") else "proposed"
        if kind == "needs-repro":
            return self.state if self.state in ("proposed", "fixed", "verified-fixed") else "needs-repro"
        if kind == "fixed":
            return "verified-fixed" if self.state == "verified-fixed" else "fixed"
        return self._open if kind == "reopen" else self.state


def _stuck(
    course: _Course, reports: Sequence[ItemReport], known: Recurrence, proof: _Proof, unseen_since: str
) -> str:
    """What the item waits for, in words, with the dates that say since when."""
    now = course.shown
    until = course.hold.until if course.hold else ""
    match now.state:
        case "needs-repro":
            return "needs a runnable repro" + (f": {course.reason}" if course.reason else "")
        case "unreachable":
            return _lost(known)
        case "dismissed" | "snoozed":
            return f"{now.state} until {until}" if until else f"{now.state} until it is undone"
        case "proposed":
            return f"waits for your decision about the proposed fix since {now.at}"
        case "verified-fixed":
            told = [one.at for one in reports if not one.trusted and one.at > seconds(now.at)]
            again = proof != "untrusted" and told
            return "a stranger reports it again: waits for a re-run" if again else "waits for nothing"
        case "fixed":
            return f"waits for {TRIES} clean re-runs since {now.at}: {_idle(now, reports, known)}"
        case "new" if proof == "untrusted":
            return f"waits for your decision since {now.at}: a stranger's repro never runs by itself"
        case "new":
            return f"waits for a re-run that confirms it since {now.at}: {_idle(now, reports, known)}"
    waits = f"waits for a fix since {now.at}"
    if known.unreached_since:
        return f"{waits}; {_lost(known)}"
    return f"{waits}; nothing has looked at it since {unseen_since}" if unseen_since else waits


def _idle(now: Stage, reports: Sequence[ItemReport], known: Recurrence) -> str:
    """Why no look has settled it yet."""
    if known.unreached_since:
        return _lost(known)
    if known.looked > now.at:
        return f"it was last run again at {known.looked}"
    source = next((one.source for one in reversed(counted(reports)) if one.trusted), "")
    return f"its persona {source} has not run it" if source else "no persona has run it"


def _lost(known: Recurrence) -> str:
    """A look that did not come about is an outage only where no other reason is known."""
    if known.why:
        return f"could not be run again since {known.unreached_since}: {known.why}"
    return f"its surface has not answered since {known.unreached_since}"
