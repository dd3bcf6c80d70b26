"""Readers that log: the daemon's own events, and how each run began and ended."""

from __future__ import annotations

import logging

from fleet.events.daemon_events import DaemonEvent
from fleet.events.model import Event

WARNED = frozenset(
    {
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
"""Events of a run that are logged: its start and its end."""
LEFT_OUT = {"type", "at", "budget", "schema_version", "sha256", "persona_sha256"}
"""Fields that a line shows elsewhere, or that only programs read."""

_LOG = logging.getLogger("fleet.daemon")


def log_daemon(event: DaemonEvent) -> None:
    """A reader of the daemon's feed."""
    level = logging.WARNING if event.type in WARNED else logging.INFO
    _LOG.log(level, event.type, extra=event.model_dump(exclude=LEFT_OUT))


def log_run(event: Event) -> None:
    """A reader of every run's stream: how each began and ended."""
    if event.type in TOLD:
        _LOG.info(event.type, extra=event.model_dump(exclude=LEFT_OUT))
