"""The log of the process: lines for a person on a terminal, JSON for everything else; secrets masked.

Rooms log through the standard library; only this module formats lines.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from fleet.text import clean

if TYPE_CHECKING:
    from fleet.events.daemon_events import DaemonEvent
    from fleet.events.model import Event
    from fleet.findings.redact import Redactor

NOISY = ("httpx", "httpcore", "apscheduler", "uvicorn", "asyncio", "sqlalchemy", "web3", "websockets")
"""Libraries that log every request; only their warnings are kept."""
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

_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes of every record; the rest are the caller's."""

_LOG = logging.getLogger("fleet.daemon")


class _Lines(logging.Formatter):
    """One record as fields, each masked and cleaned; before a redactor exists, only cleaned."""

    redactor: Redactor | None = None

    def __init__(self, render: Callable[[dict[str, Any]], str]) -> None:
        super().__init__()
        self._render = render

    def format(self, record: logging.LogRecord) -> str:
        line = {"event": record.getMessage(), "level": record.levelname.lower(), "logger": record.name}
        line |= {key: value for key, value in vars(record).items() if key not in _RECORD}
        line["at"] = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return self._render({key: self._clean(key, value) for key, value in line.items()})

    def _clean(self, key: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        whole = value if self.redactor is None else self.redactor.text(value)
        return clean(whole, newlines=key == "exception")


def configure(*, as_json: bool | None = None) -> None:
    """Send every log line to stderr; JSON unless stderr is a terminal."""
    if as_json is None:
        as_json = not sys.stderr.isatty()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(partial(json.dumps, default=repr) if as_json else _for_a_person()))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)


def _for_a_person() -> Callable[[dict[str, Any]], str]:
    from structlog.dev import ConsoleRenderer  # 5 MB that a service does not need

    render = ConsoleRenderer(colors=sys.stderr.isatty())
    return lambda line: str(render(None, "", line))


def mask_with(redactor: Redactor) -> None:
    """From now on mask everything that this redactor knows in log lines."""
    _Lines.redactor = redactor


def log_daemon(event: DaemonEvent) -> None:
    """A reader of the daemon's feed."""
    level = logging.WARNING if event.type in WARNED else logging.INFO
    _LOG.log(level, event.type, extra=event.model_dump(exclude=LEFT_OUT))


def log_run(event: Event) -> None:
    """A reader of every run's stream: logs how each began and ended."""
    if event.type in TOLD:
        _LOG.info(event.type, extra=event.model_dump(exclude=LEFT_OUT))
