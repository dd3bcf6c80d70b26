"""The daemon's events for people: one line per event."""

from __future__ import annotations

from datetime import datetime

from fleet.clock import clock_time, minute, span
from fleet.events.daemon_events import (
    BoundaryChecked,
    ConfigRefused,
    ConfigReloaded,
    DaemonDraining,
    DaemonEvent,
    DaemonLost,
    DaemonStarted,
    DaemonStopped,
    DialTurned,
    FaultMet,
    FlightsEnded,
    NameReleased,
    PersonaAdded,
    PersonaChanged,
    PersonaRefused,
    PersonaRemoved,
    QueuePaused,
    QueueResumed,
    RunSettled,
    RunsRemoved,
    RunUnsettled,
    StateSealed,
    SubscriptionLost,
    SubscriptionOpened,
    TriggerFired,
    TriggerSkipped,
)
from fleet.text import counted, line, spoken

LONGEST = 400
NEXT_SHOWN = 4
"""Next starts in the line of a daemon's start."""


def words(event: DaemonEvent) -> str:
    """One event as a cleaned line, without its time."""
    return line(_words(event), LONGEST)


def soon(now: str, at: str) -> str:
    """When a time (ISO) comes, as in `in 4 min (20:11 UTC)`; on another day with its date."""
    wait = f"in {span(now, at)}" if datetime.fromisoformat(at) > datetime.fromisoformat(now) else "due"
    return f"{wait} ({clock_time(at, now)} UTC)"


def _by(who: str, why: str) -> str:
    return (f" by {who}" if who else "") + (f": {why}" if why else "")


def _words(event: DaemonEvent) -> str:
    match event:
        case DaemonStarted():
            page = f", look at it at {event.page}" if event.page else ""
            first = sorted(event.next.items(), key=lambda one: (one[1], one[0]))[:NEXT_SHOWN]
            starts = ", ".join(f"{name} {soon(event.at, at)}" for name, at in first)
            crew = f"{counted(event.personas, 'persona')} on {event.platform}, dial {event.rung}"
            return f"fleet {event.version} is up{page}: {crew}; next {starts or 'nothing by itself'}"
        case DaemonDraining():
            return f"stopping after {event.reason}: runs in flight have {event.grace_s:g} s"
        case DaemonStopped():
            return f"stopped: {event.reason}"
        case DaemonLost():
            left = f", with {counted(len(event.runs), 'run')} in flight" if event.runs else ""
            return (
                f"the daemon before this one ended without a stop after {minute(event.last_seen)} UTC{left}"
            )
        case DialTurned() | QueuePaused() | QueueResumed() | FlightsEnded():
            return _of_fences(event)
        case TriggerFired():
            return f"{event.persona} is queued ({event.why}): run {event.run}"
        case TriggerSkipped():
            # of all personas (EVERYONE of triggers/model.py) the key says what was due
            due = event.persona.strip("*") or event.key.partition("@")[2]
            return f"{due} does not start: {event.reason}"
        case ConfigReloaded() | ConfigRefused():
            return _of_configuration(event)
        case PersonaAdded() | PersonaChanged() | PersonaRemoved() | PersonaRefused():
            return _of_persona(event)
    return _of_upkeep(event)


def _of_fences(event: DialTurned | QueuePaused | QueueResumed | FlightsEnded) -> str:
    match event:
        case DialTurned():
            return f"dial at {event.rung}{_by(event.who, event.why)}"
        case QueuePaused():
            return f"STOP is set, nothing starts: {event.reason}"
        case QueueResumed():
            return f"STOP is lifted{_by(event.who, event.why)}"
        case FlightsEnded():
            return f"{counted(event.runs, 'run')} in flight ended {event.seconds:.1f} s after STOP"


def _of_configuration(event: ConfigReloaded | ConfigRefused) -> str:
    if isinstance(event, ConfigRefused):
        return f"configuration refused, the one before stays: {event.reason}"
    waits = f"; after a restart: {', '.join(event.waiting)}" if event.waiting else ""
    return f"configuration read again, changed: {', '.join(event.changed) or 'nothing'}{waits}"


def _of_persona(event: PersonaAdded | PersonaChanged | PersonaRemoved | PersonaRefused) -> str:
    match event:
        case PersonaAdded():
            return f"persona {event.persona} added"
        case PersonaChanged():
            return f"persona {event.persona} changed"
        case PersonaRemoved():
            return f"persona {event.persona} removed"
        case PersonaRefused():
            kept = "; its last valid version stays in use" if event.kept else ""
            return f"persona refused: {event.reason}{kept}"


def _of_upkeep(event: DaemonEvent) -> str:
    match event:
        case BoundaryChecked():
            return f"{event.check}: {event.fault or 'holds'}"
        case RunUnsettled():
            return f"run {event.run} is not cleaned up yet: {event.reason}"
        case RunSettled():
            return f"run {event.run} of {event.persona} is cleaned up: {spoken(event.outcome)}"
        case NameReleased():
            return f"name {event.name} of run {event.run} released"
        case RunsRemoved():
            return f"folders of {counted(event.runs, 'old run')} removed, {event.bytes / 1e6:.1f} MB"
        case StateSealed():
            return f"a copy of the state is sealed: {event.file}, SHA-256 {event.sha256}"
        case SubscriptionOpened():
            return "new blocks wake the chain triggers"
        case SubscriptionLost():
            return f"the subscription to new blocks is lost, blocks are polled: {event.reason}"
        case FaultMet():
            return f"internal error in {event.where}: {event.error_message}"
    return event.type
