"""A strict decoder of event streams: the same events however the bytes were cut, the first fault named."""

from __future__ import annotations

import codecs
import re
from typing import Any

from sandbox import strict_json

MAX_EVENT = 1 << 20
"""Characters of one event; a stream without an end is a fault, not a memory leak."""

_BREAK = re.compile("[\r\n]")
_FIELDS = ("data", "event", "id", "retry")


class StreamFault(Exception):
    """The stream broke its own rules: framing, UTF-8, JSON."""


class Decoder:
    """Feed bytes; `events` holds the JSON payload of each complete event (WHATWG framing: LF, CR or CRLF).

    `primed`: an event without data is no fault; a stream of MCP begins with one, for its id.
    """

    def __init__(self, *, primed: bool = False) -> None:
        self._primed = primed
        self.events: list[Any] = []
        self._utf8 = codecs.getincrementaldecoder("utf-8")("strict")
        self._line: list[str] = []
        self._data: list[str] = []
        self._size = 0
        self._after_cr = False  # an LF that comes next belongs to the line break before it
        self._pending = False
        self._started = False

    def feed(self, chunk: bytes) -> None:
        """Take bytes; raises StreamFault at the first broken rule, after keeping the events before it."""
        try:
            text = self._utf8.decode(chunk)
        except UnicodeDecodeError as error:
            self._text(bytes(error.object[: error.start]).decode())
            raise StreamFault("not UTF-8") from None
        self._text(text)

    def close(self) -> None:
        """The end of the bytes; raises StreamFault when it falls inside an event or a character."""
        try:
            self._utf8.decode(b"", True)
        except UnicodeDecodeError:
            raise StreamFault("not UTF-8") from None
        if self._line or self._pending:
            raise StreamFault("the stream ends inside an event")

    def _text(self, text: str) -> None:
        if text and not self._started:
            self._started = True
            text = text.removeprefix("\ufeff")
        start = 0
        for found in _BREAK.finditer(text):
            at, char = found.start(), found.group()
            second_half = self._after_cr and char == "\n" and at == start
            self._after_cr = char == "\r"
            if not second_half:
                self._take(text[start:at])
                self._end_line()
            start = at + 1
        if text[start:]:
            self._after_cr = False
            self._take(text[start:])

    def _take(self, piece: str) -> None:
        self._size += len(piece)
        if self._size > MAX_EVENT:
            raise StreamFault(f"an event of more than {MAX_EVENT} characters")
        if piece:
            self._line.append(piece)

    def _end_line(self) -> None:
        line = "".join(self._line)
        self._line.clear()
        if not line:
            self._dispatch()
            return
        field, colon, value = line.partition(":")
        if not field:
            return  # a comment
        if field not in _FIELDS:
            raise StreamFault(f"a line that is not a field: {line[:40]!r}")
        self._pending = True
        if field == "data":
            self._data.append(value.removeprefix(" ") if colon else "")

    def _dispatch(self) -> None:
        payload, had = "\n".join(self._data), bool(self._data)
        self._data.clear()
        self._size, self._pending = 0, False
        if not had or payload == "[DONE]" or (self._primed and not payload):
            return
        try:
            self.events.append(strict_json.loads(payload))
        except ValueError:
            raise StreamFault(f"an event that is not JSON: {payload[:40]!r}") from None
