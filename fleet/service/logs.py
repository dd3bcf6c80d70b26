"""The log of the process: lines for a person on a terminal, JSON for everything else; secrets masked.

Rooms log by the standard library; this alone knows structlog, and how a line looks.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from fleet.events.feed import DaemonEvent
from fleet.events.model import Event, Footer, Header
from fleet.findings.redact import Redactor
from fleet.text import clean

NOISY = ("httpx", "httpcore", "apscheduler", "uvicorn", "asyncio", "sqlalchemy")
"""Libraries whose every request is a line; their warnings stay."""
WARNED = frozenset(
    {"persona.refused", "config.refused", "trigger.skipped", "run.unsettled", "fault.met", "queue.paused"}
)
LEFT_OUT = {"type", "at", "budget", "schema_version", "sha256", "persona_sha256"}
"""Fields of events that a line says elsewhere, or that only a program reads."""

_LOG = logging.getLogger("fleet.daemon")


class _Masked:
    """Masks and cleans every value of a line; with no redactor yet, only cleans."""

    redactor: Redactor | None = None

    def __call__(self, _logger: Any, _name: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        for key, value in line.items():
            if isinstance(value, str):
                whole = value if self.redactor is None else self.redactor.text(value)
                line[key] = clean(whole, newlines=key == "exception")
        return line


_MASKED = _Masked()


def configure(*, as_json: bool | None = None) -> None:
    """Send every log line to stderr; JSON unless that is a terminal."""
    if as_json is None:
        as_json = not sys.stderr.isatty()
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        structlog.processors.format_exc_info,
    ]
    last: Any = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _MASKED, last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)


def mask_with(redactor: Redactor) -> None:
    """From now on nothing that this redactor knows leaves by a log line."""
    _MASKED.redactor = redactor


def log_daemon(event: DaemonEvent) -> None:
    """A reader of the daemon's feed."""
    level = logging.WARNING if event.type in WARNED else logging.INFO
    _LOG.log(level, event.type, extra=event.model_dump(exclude=LEFT_OUT))


def log_run(event: Event) -> None:
    """A reader of every run's stream: how each began and ended."""
    if isinstance(event, Header | Footer):
        _LOG.info(event.type, extra=event.model_dump(exclude=LEFT_OUT))
