"""Readers that log: the daemon's own events, and the start and end of each run."""

from __future__ import annotations

import logging

from fleet.events import daemon_words, timeline
from fleet.events.daemon_events import DaemonEvent
from fleet.events.model import Event
from fleet.service.logs import WORDS

WARNED = frozenset(
    {
        "daemon.lost",
        "persona.refused",
        "config.refused",
        "trigger.skipped",
        "run.unsettled",
        "fault.met",
        "queue.paused",
        "subscription.lost",
    }
)
TOLD = frozenset({"header", "footer"})
"""Logged events of a run: its start and its end."""
LEFT_OUT = {"type", "at", "budget", "schema_version", "sha256", "persona_sha256"}
"""Fields that a line shows elsewhere, or that are only for programs."""
DOCUMENTS = {"brief", "policy", "groups", "targets", "goal", "build"}
"""Fields of a run's start that its trajectory holds: with them a line would be a page."""

_LOG = logging.getLogger("fleet.daemon")


def log_daemon(event: DaemonEvent) -> None:
    """Log an event of the daemon's feed."""
    level = logging.WARNING if event.type in WARNED else logging.INFO
    _LOG.log(level, event.type, extra=event.model_dump(exclude=LEFT_OUT) | {WORDS: daemon_words.words(event)})


def log_run(event: Event) -> None:
    """Log the start and the end of a run, from its stream."""
    if event.type in TOLD:
        fields = event.model_dump(exclude=LEFT_OUT | DOCUMENTS)
        known = {name: value for name, value in fields.items() if value not in ("", None)}
        _LOG.info(event.type, extra=known | {WORDS: f"run {event.run}: {timeline.words(event)}"})
