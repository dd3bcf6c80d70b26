"""The process log: one line an event for a person on a terminal, otherwise JSON; secrets masked.

Rooms log through the standard library; this module formats the lines.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from fleet.text import clean

NOISY = ("httpx", "httpcore", "apscheduler", "uvicorn", "asyncio", "sqlalchemy", "web3", "websockets")
"""Libraries that log every request; only their warnings are logged."""
WORDS = "in_words"
"""Attribute of a record with its line for a person, who sees that instead of its fields; never in JSON."""
_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", WORDS}
"""Attributes of every record; any other is the caller's."""


class _Lines(logging.Formatter):
    """Formats a record as its words, or as fields, each masked and cleaned; before a mask is set, only
    cleaned."""

    mask: Callable[[str], str] = staticmethod(str)

    def __init__(self, render: Callable[[dict[str, Any]], str], *, terminal: bool) -> None:
        super().__init__()
        self._render, self._terminal = render, terminal

    def format(self, record: logging.LogRecord) -> str:
        if self._terminal and (words := getattr(record, WORDS, "")):
            text = f"{datetime.fromtimestamp(record.created, UTC):%H:%M}  {clean(self.mask(words))}"
            warned = record.levelno >= logging.WARNING and _coloured()
            return f"\x1b[33m{text}\x1b[0m" if warned else text
        line = {"event": record.getMessage(), "level": record.levelname.lower(), "logger": record.name}
        line |= {key: value for key, value in vars(record).items() if key not in _RECORD}
        line["at"] = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        for key, value in line.items():
            if isinstance(value, str):
                line[key] = clean(self.mask(value), newlines=key == "exception")
        return self._render(line)


def configure(*, as_json: bool | None = None) -> None:
    """Send every log line to stderr; JSON unless stderr is a terminal."""
    if as_json is None:
        as_json = not sys.stderr.isatty()
    handler = logging.StreamHandler(sys.stderr)
    render = partial(json.dumps, default=repr) if as_json else _for_a_person()
    handler.setFormatter(_Lines(render, terminal=not as_json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)


def _for_a_person() -> Callable[[dict[str, Any]], str]:
    from structlog.dev import ConsoleRenderer  # 5 MB that a service does not need

    render = ConsoleRenderer(colors=_coloured())
    return lambda line: str(render(None, "", line))


def _coloured() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def mask_with(mask: Callable[[str], str]) -> None:
    """Mask every further log line with this function, a redactor's `text`."""
    _Lines.mask = staticmethod(mask)
