"""What the fleet's own process asks, of node, log, receivers, model or publisher: `egress.jsonl` of the state
directory, in the form of a run's (`egress_record`), read by `egress_read`.

Nothing waits for this record: no line is synced, and a request that cannot be recorded is made all the same.
A request that a kill cut off has no second line.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from fleet.broker.egress_record import CUT, EGRESS, REQUEST, RESPONSE, SHOWN
from fleet.clock import Clock, iso_ms
from fleet.events.record import RecordFile
from fleet.http_client import BELONGS, Ended
from fleet.text import line

LARGEST = 32_000_000
"""Bytes of the file; a larger one is put aside as `egress.1.jsonl`, replacing the one there."""
_KEY = re.compile(r"(?=[^/]*[0-9])[^/]{16,}")
"""A part of a path that may be a key: nodes, chats and dead-man's switches have theirs there."""
_LOG = logging.getLogger("fleet.egress")


class ServiceEgress:
    """The record of one process, which is the only one in its state directory. `mask` hides secrets."""

    def __init__(
        self, state: Path, *, clock: Clock, mask: Callable[[str], str] = str, largest: int = LARGEST
    ) -> None:
        self._path, self._clock, self.mask, self._largest = state / EGRESS, clock, mask, largest
        self._process = f"process {iso_ms(clock.now())}"
        self._alone = threading.Lock()  # spans are sent by a thread of their own
        self._file: RecordFile | None = None
        self._fault = ""

    def began(self, verb: str, host: str, what: str, sent: int) -> Ended:
        """As `http_client.Began`."""
        about: dict[str, object] = {
            "at": iso_ms(self._clock.now()),
            "source": "service",
            "correlation_id": BELONGS.get() or self._process,
            "verb": verb,
            "host": self._shown(host),
            "path" if what.startswith("/") else "what": self._shown(_KEY.sub("[key]", what)),
        }
        number = self._add({"event_type": REQUEST, **about})
        started = time.monotonic()

        def ended(status: int, received: int, why: str) -> None:
            rule = ("" if not why else CUT) if status or not why else "unreachable"
            self._add(
                {
                    "event_type": RESPONSE,
                    **about,
                    "rule": rule,
                    "status": status,
                    "sent": sent,
                    "received": received,
                    "ms": round((time.monotonic() - started) * 1000, 3),
                    **({"error": self._shown(why)} if why else {}),
                },
                number,
            )

        return ended

    def _shown(self, text: str) -> str:
        return line(self.mask(text), SHOWN)

    def _add(self, said: Mapping[str, object], number: int = 0) -> int:
        """Write one line, of this request or of a new one; the number of its request."""
        with self._alone:
            try:
                file = self._file = self._file or self._open()
                if file.size > self._largest:
                    file.rotate()
                number = number or file.end.lines + 1
                file.append([json.dumps({"n": number, **said}, separators=(",", ":")).encode()])
                self._fault = ""
            except OSError as error:
                if (why := error.strerror or str(error)) != self._fault:
                    self._fault = why
                    _LOG.error("cannot write %s: %s", self._path, why)
        return number

    def _open(self) -> RecordFile:
        file = RecordFile(self._path, sync=False)
        file.end_line()
        return file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
