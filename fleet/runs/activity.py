"""What the fleet did and does, act by act, for people and spreadsheets: from the records of runs and daemon.

An act is a call of a run, or another event of it that a person may want to know of, with what it touched and
how it went. Older acts are read from the archive (`activity/` in the state directory), which outlives the
folders of runs: a file a run, written once when its last act is ARCHIVED old.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta
from io import StringIO
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

from fleet.broker.egress_read import OUT_OF_SCOPE
from fleet.broker.egress_record import EGRESS
from fleet.clock import iso, iso_seconds
from fleet.errors import UsageError
from fleet.events import daemon_words, timeline
from fleet.events.chain import unlinked
from fleet.events.daemon_events import DAEMON_EVENTS, FEED
from fleet.events.model import (
    CheckFailed,
    CredentialSealed,
    DialDistrusted,
    Event,
    FindingRaised,
    FindingVerified,
    Footer,
    GateDenied,
    Header,
    InstructionSeen,
    KeysRevoked,
    MessageSaid,
    OutageNoticed,
    PauseWarned,
    PhaseChanged,
    QuestionAnswered,
    QuestionAsked,
    RunContinued,
    RunPaused,
    TargetChecked,
    ToolRequested,
    ToolResponded,
    TurnEnded,
    TurnStarted,
)
from fleet.events.recorded import RecordedLine, Recording, UnknownRecord, lines
from fleet.files import write_atomic
from fleet.runs.call.sealed import FEED_BEFORE, TRAJECTORY
from fleet.severity import WEIGHTS, Severity
from fleet.store.rows import RunRow
from fleet.text import csv_cell

SHOWN = 100
"""Acts of one page."""
ARCHIVE, ARCHIVED = "activity", timedelta(days=30)
DAEMON = "fleet"
"""The type of what the daemon did; of a run's acts it is the phase."""
STATUSES = ("pending", "in progress", "completed", "failed", "refused", "escalated")
_TAIL = 256 << 10
"""Bytes of the daemon's record that the latest acts are read from."""
_LONGEST = 32_000
"""Characters of a cell."""
_QUIET = (MessageSaid, TurnStarted, TurnEnded)
"""Words of a driver: no acts."""


@dataclass(slots=True)
class Activity:
    """One act. `type` is the phase of the run, or DAEMON; `what` a tool, or the type of an event;
    `confidence` the share of looks that showed a finding; `link` a page."""

    at: str
    type: str
    what: str
    words: str
    severity: str = Severity.INFO
    status: str = "completed"
    systems: tuple[str, ...] = ()
    run: str = ""
    persona: str = ""
    call: int = 0
    confidence: float | None = None
    impact: str = ""
    approvals: str = ""
    link: str = ""


COLUMNS = tuple(one.name for one in fields(Activity))


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityFilter:
    """Which acts are wanted; "" for any. `since` and `until` are ISO; an act has each word of `text`."""

    since: str = ""
    until: str = ""
    type: str = ""
    host: str = ""
    status: str = ""
    severity: str = ""
    text: str = ""

    def __post_init__(self) -> None:
        """UsageError for a status or severity that does not exist."""
        for name, value, valid in (
            ("status", self.status, STATUSES),
            ("severity", self.severity, tuple(WEIGHTS)),
        ):
            if value and value not in valid:
                remedy = f"choose one of {', '.join(valid)}"
                raise UsageError(f"{name}: unknown value {value[:40]!r}", remedy=remedy)

    def has(self, one: Activity) -> bool:
        return (
            self.since <= one.at
            and (not self.until or one.at < self.until)
            and self.type in ("", one.type, one.what)
            and self.status in ("", one.status)
            and self.severity in ("", one.severity)
            and (not self.host or any(self.host.casefold() in name.casefold() for name in one.systems))
            and (not self.text or self._says(one))
        )

    def _says(self, one: Activity) -> bool:
        told = " ".join((one.words, one.what, one.run, one.persona, *one.systems)).casefold()
        return all(word in told for word in self.text.casefold().split())


class RunActivity:
    """The acts of one run as its records grow, the oldest first: at most the last `most` of them."""

    def __init__(self, folder: Path, most: int | None = None) -> None:
        self.acts: deque[Activity] = deque(maxlen=most)
        self._folder, self._most = folder, most
        self._recording, self._asked = Recording(folder / TRAJECTORY), 0
        self._calls: dict[int, Activity] = {}
        self._questions: dict[str, Activity] = {}
        self._grave: dict[str, str] = {}
        self._persona, self._phase = "", "initialization"
        self._targets: tuple[str, ...] = ()

    def update(self) -> deque[Activity]:
        """Read what was written since."""
        for record in self._recording.new():
            if not isinstance(record, (UnknownRecord, *_QUIET)):
                self._add(record)
        for line in lines(self._folder / EGRESS, self._asked):
            if line.torn:
                break
            self._asked = line.end
            self._reached(line.text)
        if self._most is not None:
            self._calls = dict(list(self._calls.items())[-self._most :])
        return self.acts

    def _reached(self, text: bytes) -> None:
        """A request says what its calls touched."""
        with suppress(ValueError):
            asked = json.loads(unlinked(text))
            act = self._calls.get(asked.get("call", 0)) if isinstance(asked, dict) else None
            host = str(asked.get("host", "")) if act is not None else ""
            if act is not None and host and host not in act.systems:
                act.systems = (*act.systems, host)
            if act is not None and asked.get("rule") in OUT_OF_SCOPE:
                act.severity = Severity.MEDIUM

    def _add(self, event: Event) -> None:
        match event:
            case ToolResponded():
                if act := self._calls.get(event.call):
                    act.status = "failed" if event.is_error else "completed"
                return
            case QuestionAnswered():
                if asked := self._questions.get(event.question):
                    asked.status = "completed" if event.answer == "approved" else "failed"
                    asked.approvals, asked.link = f"{event.answer} by {event.who}", f"/runs/{event.run}"
            case Header():
                self._persona = event.persona
                self._targets = tuple(
                    host for one in event.targets.values() if (host := urlsplit(one).netloc)
                )
            case PhaseChanged():
                self._phase = event.after
            case Footer():
                for act in self._calls.values():
                    if act.status == "in progress":
                        act.status = "failed"
        self.acts.append(self._act(event))

    def _act(self, event: Event) -> Activity:
        act = Activity(
            event.at,
            self._phase,
            event.type,
            timeline.words(event),
            run=event.run,
            persona=self._persona,
            link=f"/runs/{event.run}",
            severity=_SEVERITY.get(type(event), Severity.INFO),
        )
        match event:
            case ToolRequested() | GateDenied():
                self._of_call(act, event)
            case FindingRaised():
                self._grave[event.fingerprint] = event.severity
                act.severity = event.severity or Severity.MEDIUM
            case FindingVerified():
                act.severity = self._grave.get(event.fingerprint, "") or Severity.MEDIUM
                act.confidence = round(event.confirmed / event.tries, 2) if event.tries else None
                act.status = "completed" if event.state == "confirmed" else "failed"
            case QuestionAsked():
                act.severity, act.status, act.link = event.level, "escalated", "/#questions"
                act.approvals = f"a person, until {event.until}: fleet runs answer {event.question}"
                self._questions[event.question] = act
            case TargetChecked():
                act.systems = (event.target,)
                act.severity = Severity.MEDIUM if event.wrong else Severity.INFO
                act.status = "failed" if event.wrong else "completed"
            case OutageNoticed():
                act.systems, act.status = event.targets, "escalated"
            case RunPaused() | PauseWarned():
                act.status = "pending"
            case CheckFailed():
                act.status = "failed"
            case Header():
                act.systems = self._targets
            case Footer() if event.outcome != "done":
                act.status, act.severity = "failed", Severity.LOW
            case RunContinued() if event.ends:
                act.status = "failed"
        return act

    def _of_call(self, act: Activity, event: ToolRequested | GateDenied) -> None:
        act.what, act.call = event.tool, event.call
        act.systems = tuple(dict.fromkeys(_hosts(event.args)))
        if isinstance(event, ToolRequested):
            act.impact, act.status = event.impact, "in progress"
            self._calls[event.call] = act
        else:
            act.status = "refused"
            act.severity = Severity.MEDIUM if event.rule in OUT_OF_SCOPE | {"scope"} else Severity.LOW


_SEVERITY: Mapping[type, Severity] = {
    CheckFailed: Severity.LOW,
    CredentialSealed: Severity.HIGH,
    DialDistrusted: Severity.HIGH,
    InstructionSeen: Severity.MEDIUM,
    KeysRevoked: Severity.MEDIUM,
    OutageNoticed: Severity.HIGH,
    PauseWarned: Severity.MEDIUM,
    RunPaused: Severity.LOW,
}
"""Of events that are not routine."""
_OF_DAEMON: Mapping[str, tuple[Severity, str]] = {
    "daemon.lost": (Severity.HIGH, "failed"),
    "fault.met": (Severity.HIGH, "failed"),
    "queue.paused": (Severity.CRITICAL, "completed"),
    "config.refused": (Severity.MEDIUM, "refused"),
    "persona.refused": (Severity.MEDIUM, "refused"),
    "trigger.skipped": (Severity.LOW, "refused"),
    "run.unsettled": (Severity.LOW, "pending"),
    "subscription.lost": (Severity.LOW, "failed"),
}


def _hosts(value: object, depth: int = 4) -> Iterator[str]:
    """The hosts of the URLs in a call's arguments."""
    if isinstance(value, str) and value.startswith(("http://", "https://", "ws://", "wss://")):
        with suppress(ValueError):
            yield urlsplit(value).netloc.rpartition("@")[2]
    elif depth and isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _hosts(one, depth - 1)


@dataclass(slots=True)
class ActivityFeed:
    """The acts of one state directory. What it read of the newest runs it keeps, and reads on there."""

    state: Path
    _live: dict[str, RunActivity] = field(default_factory=dict)

    def latest(self, waiting: Iterable[RunRow] = ()) -> list[Activity]:
        """The SHOWN newest acts, newest first; before them the runs that wait."""
        begin = max(0, _size(self.state / FEED) - _TAIL)
        daemon = _of_daemon(lines(self.state / FEED, begin))
        found, seen = self._chosen(daemon, ActivityFilter(), SHOWN, self._known)
        self._live = {name: one for name, one in self._live.items() if name in seen}
        return [*_waiting(waiting), *found][:SHOWN]

    def search(
        self, wanted: ActivityFilter, limit: int | None = None, waiting: Iterable[RunRow] = ()
    ) -> list[Activity]:
        """Every act that is wanted, newest first, at most `limit` of them."""
        first = [one for one in _waiting(waiting) if wanted.has(one)]
        whole = chain(lines(self.state / FEED_BEFORE), lines(self.state / FEED))
        return [*first, *self._chosen(_of_daemon(whole), wanted, limit, RunActivity)[0]][:limit]

    def _known(self, folder: Path) -> RunActivity:
        return self._live.setdefault(folder.name, RunActivity(folder, SHOWN))

    def _chosen(
        self,
        daemon: Iterable[Activity],
        wanted: ActivityFilter,
        limit: int | None,
        reader: Callable[[Path], RunActivity],
    ) -> tuple[list[Activity], set[str]]:
        """The newest acts, and the runs that were read for them."""
        found = _newest((one for one in daemon if wanted.has(one)), limit)
        seen = set[str]()
        for last, source in _sources(self.state):
            full = limit is not None and len(found) >= limit
            if last < wanted.since[:19] or (full and last < found[-1].at[:19]):
                break
            if source.is_dir():
                seen.add(source.name)
                acts: Iterable[Activity] = reader(source).update()
            else:
                acts = _unpacked(source)
            found = _newest((*found, *(one for one in acts if wanted.has(one))), limit)
        return found, seen


def _newest(acts: Iterable[Activity], limit: int | None) -> list[Activity]:
    return sorted(acts, key=lambda one: one.at, reverse=True)[:limit]


def _sources(state: Path) -> list[tuple[str, Path]]:
    """Folders of runs, or for old ones the archive; with the time of the last act, newest first."""
    archived = {one.name[11:].removesuffix(".jsonl.gz"): one for one in state.glob(f"{ARCHIVE}/*.jsonl.gz")}
    found = [(one.name[:10] + "T23:59:59", one) for one in archived.values()]
    for folder in state.glob("runs/*"):
        if folder.name not in archived:
            with suppress(OSError):  # retention removes runs meanwhile
                found.append((iso_seconds(int((folder / TRAJECTORY).stat().st_mtime)), folder))
    return sorted(found, reverse=True)


def _of_daemon(recorded: Iterable[RecordedLine]) -> Iterator[Activity]:
    """What the daemon did; a line of another version is left out."""
    for line in recorded:
        with suppress(ValueError):
            event = DAEMON_EVENTS.validate_json(unlinked(line.text))
            severity, status = _OF_DAEMON.get(event.type, (Severity.INFO, "completed"))
            run = getattr(event, "run", "")
            act = Activity(event.at, DAEMON, event.type, daemon_words.words(event), severity, status)
            act.run, act.persona = run, getattr(event, "persona", "")
            act.link = f"/runs/{run}" if run else "/"
            yield act


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _waiting(rows: Iterable[RunRow]) -> list[Activity]:
    return [
        Activity(
            row.created,
            "initialization",
            "run",
            f"{row.persona} waits to start: {row.trigger}",
            status="pending",
            run=row.run_id,
            persona=row.persona,
            link=f"/runs/{row.run_id}",
        )
        for row in rows
        if row.state == "queued"
    ]


def to_csv(acts: Iterable[Activity]) -> bytes:
    """UTF-8 with a header line; no cell is read as a formula."""
    out = StringIO()
    rows = csv.writer(out)
    rows.writerow(COLUMNS)
    for one in acts:
        values = (asdict(one) | {"systems": " ".join(one.systems)}).values()
        rows.writerow([csv_cell(value, _LONGEST) if isinstance(value, str) else value for value in values])
    return out.getvalue().encode()


def archive(state: Path, now: datetime) -> int:
    """Write the acts of each run that ended ARCHIVED ago into the archive, once; how many runs."""
    old, written = iso(now - ARCHIVED), 0
    for last, folder in _sources(state):
        if folder.is_dir() and last < old:
            acts = RunActivity(folder).update()
            text = "".join(json.dumps(asdict(one), separators=(",", ":")) + "\n" for one in acts)
            (state / ARCHIVE).mkdir(mode=0o700, exist_ok=True)
            packed = gzip.compress(text.encode(), mtime=0)
            write_atomic(state / ARCHIVE / f"{last[:10]}-{folder.name}.jsonl.gz", packed, mode=0o600)
            written += 1
    return written


def prune(state: Path, days: int, now: datetime) -> None:
    """Remove what is older than the records of runs may be; 0 days: nothing is."""
    before = iso(now - timedelta(days=days))[:10] if days else ""
    for one in state.glob(f"{ARCHIVE}/*.jsonl.gz"):
        if one.name[:10] < before:
            one.unlink(missing_ok=True)


def _unpacked(path: Path) -> Iterator[Activity]:
    with suppress(OSError), gzip.open(path, "rt") as file:  # retention removes it meanwhile
        for line in file:
            with suppress(ValueError, TypeError):
                known = json.loads(line)
                yield Activity(**known | {"systems": tuple(known["systems"])})
