"""The daemon's own events, besides its runs: `events.jsonl` in the state directory, one event a line."""

from __future__ import annotations

import hashlib
import logging
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from fleet.clock import Clock, iso_ms
from fleet.events.record import EventRecord, Readers, RecordFile, origin

_LOG = logging.getLogger("fleet.events")
LARGEST = 64 << 20
"""Bytes; a larger file is rotated to `events.1.jsonl`, replacing the previous one."""


class _DaemonEvent(EventRecord):
    at: str = ""  # ISO time, stamped by the feed


class DaemonStarted(_DaemonEvent):
    type: Literal["daemon.started"] = "daemon.started"
    version: str
    pid: int
    platform: str
    rung: str
    personas: int
    next: dict[str, str] = Field(default_factory=dict)
    """When each persona starts next (ISO, UTC), of those that the clock or their own pace starts."""
    page: str = ""
    """The address of the pages, where they have one."""


class DaemonDraining(_DaemonEvent):
    """No new runs start; those in flight are cancelled after `grace_s`."""

    type: Literal["daemon.draining"] = "daemon.draining"
    reason: str
    grace_s: float


class DaemonStopped(_DaemonEvent):
    type: Literal["daemon.stopped"] = "daemon.stopped"
    reason: str


class DaemonLost(_DaemonEvent):
    """The previous daemon of this state directory ended without a stop: a kill, a power failure.

    `last_seen` (ISO) is its last record here, `runs` are those that it had in flight.
    """

    type: Literal["daemon.lost"] = "daemon.lost"
    last_seen: str
    runs: tuple[str, ...] = ()


class ConfigReloaded(_DaemonEvent):
    """`changed` are keys that took effect, `waiting` those that need a restart."""

    type: Literal["config.reloaded"] = "config.reloaded"
    changed: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


class ConfigRefused(_DaemonEvent):
    """The new configuration is invalid; the old one is kept."""

    type: Literal["config.refused"] = "config.refused"
    reason: str


class PersonaAdded(_DaemonEvent):
    type: Literal["persona.added"] = "persona.added"
    persona: str
    sha256: str


class PersonaChanged(_DaemonEvent):
    type: Literal["persona.changed"] = "persona.changed"
    persona: str
    sha256: str


class PersonaRemoved(_DaemonEvent):
    type: Literal["persona.removed"] = "persona.removed"
    persona: str


class PersonaRefused(_DaemonEvent):
    """A persona file is invalid. `kept` is true when its last valid version stays in use."""

    type: Literal["persona.refused"] = "persona.refused"
    file: str
    reason: str
    kept: bool


class TriggerFired(_DaemonEvent):
    type: Literal["trigger.fired"] = "trigger.fired"
    persona: str
    key: str
    why: str
    run: str


class TriggerSkipped(_DaemonEvent):
    type: Literal["trigger.skipped"] = "trigger.skipped"
    persona: str
    key: str
    reason: str


class SubscriptionOpened(_DaemonEvent):
    """New blocks wake the chain triggers from now on."""

    type: Literal["subscription.opened"] = "subscription.opened"


class SubscriptionLost(_DaemonEvent):
    """The subscription to new blocks was lost or refused; chain triggers poll meanwhile."""

    type: Literal["subscription.lost"] = "subscription.lost"
    reason: str


class QueuePaused(_DaemonEvent):
    type: Literal["queue.paused"] = "queue.paused"
    reason: str


class QueueResumed(_DaemonEvent):
    """`who` and `why` are those of `fleet resume`; "" when STOP was removed by hand, or was not set."""

    type: Literal["queue.resumed"] = "queue.resumed"
    who: str = ""
    why: str = ""


class FlightsEnded(_DaemonEvent):
    """Everything that was in flight when STOP was set had ended after `seconds`."""

    type: Literal["flights.ended"] = "flights.ended"
    runs: int
    seconds: float


class BoundaryChecked(_DaemonEvent):
    """A regular look at what bounds the fleet; `fault` is "" while it holds, else what does not, or why
    nothing can be said."""

    type: Literal["boundary.checked"] = "boundary.checked"
    check: str
    fault: str = ""


class DialTurned(_DaemonEvent):
    type: Literal["dial.turned"] = "dial.turned"
    rung: str
    who: str = ""
    why: str = ""


class RunUnsettled(_DaemonEvent):
    """Clean-up of a run has to wait and will be retried."""

    type: Literal["run.unsettled"] = "run.unsettled"
    run: str
    persona: str
    reason: str


class RunSettled(_DaemonEvent):
    """A run of a dead process, or one whose clean-up had to wait, has its outcome now."""

    type: Literal["run.settled"] = "run.settled"
    run: str
    persona: str
    outcome: str


class NameReleased(_DaemonEvent):
    """A name of an ended run was still registered, and was released."""

    type: Literal["name.released"] = "name.released"
    run: str
    name: str


class RunsRemoved(_DaemonEvent):
    """Folders of ended runs that were too old, or too many."""

    type: Literal["runs.removed"] = "runs.removed"
    runs: int
    bytes: int


class StateSealed(_DaemonEvent):
    """A copy of the state after a STOP, and the SHA-256 of its file."""

    type: Literal["state.sealed"] = "state.sealed"
    file: str
    sha256: str


class FaultMet(_DaemonEvent):
    """An internal error that ended one piece of work but not the daemon."""

    type: Literal["fault.met"] = "fault.met"
    where: str
    error_code: str  # the name of the exception, or of the limit
    error_message: str
    stack_trace_hash: str = ""  # SHA-256 of the traceback in the log; "" for one without
    recovery_action: str


DaemonEvent = Annotated[
    DaemonStarted
    | DaemonDraining
    | DaemonStopped
    | DaemonLost
    | ConfigReloaded
    | ConfigRefused
    | PersonaAdded
    | PersonaChanged
    | PersonaRemoved
    | PersonaRefused
    | TriggerFired
    | TriggerSkipped
    | SubscriptionOpened
    | SubscriptionLost
    | QueuePaused
    | QueueResumed
    | FlightsEnded
    | BoundaryChecked
    | DialTurned
    | RunUnsettled
    | RunSettled
    | NameReleased
    | RunsRemoved
    | StateSealed
    | FaultMet,
    Field(discriminator="type"),
]
DAEMON_EVENTS: TypeAdapter[DaemonEvent] = TypeAdapter(DaemonEvent, config=ConfigDict(defer_build=True))
"""Reads one event from JSON; raises pydantic's ValidationError."""
FEED = "events.jsonl"
FeedReader = Callable[[DaemonEvent], None]


class Feed:
    """Appends durably, then calls its readers. A full disk loses the line, not the daemon.

    The journal is the truth about runs and skips; this file is for people.
    """

    def __init__(
        self, path: Path, *, clock: Clock, readers: Iterable[FeedReader] = (), largest: int = LARGEST
    ) -> None:
        self._file, self._largest = RecordFile(path), largest
        self._clock = clock
        self._readers = Readers[DaemonEvent](readers)
        self._file.end_line()
        self._started = f"daemon {self.now()}"

    def now(self) -> str:
        """The time that `publish` writes for an event without one."""
        return iso_ms(self._clock.now())

    def fault(self, where: str, error: BaseException, recovery: str) -> None:
        """Publish an internal error, with the hash of its traceback, which is in the log."""
        trace = "".join(traceback.format_exception(error))
        self.publish(
            FaultMet(
                where=where,
                error_code=type(error).__name__,
                error_message=f"{type(error).__name__}: {error}"[:500],
                stack_trace_hash=hashlib.sha256(trace.encode()).hexdigest(),
                recovery_action=recovery,
            )
        )

    def publish(self, *events: DaemonEvent) -> None:
        """Write these in one go; a daemon runs for months and keeps at most two files of the largest size."""
        at = self.now()
        stamped = [
            event.model_copy(
                update={
                    "at": event.at or at,
                    "correlation_id": str(getattr(event, "run", "")) or self._started,
                    **origin(event.type),
                }
            )
            for event in events
        ]
        try:
            self._file.append(event.model_dump_json().encode() for event in stamped)
            if self._file.size > self._largest:
                self._file.rotate()
        except OSError as error:
            _LOG.error("cannot write events.jsonl: %s", error.strerror)
        for event in stamped:
            self._readers.publish(event)

    def close(self) -> None:
        self._file.close()
