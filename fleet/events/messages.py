"""Assembles a driver's messages: pieces come in by index, whole messages are recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fleet.events.model import Kind, MessageDelta, MessageDone, MessageSaid, MessageStarted

CAP = 32_768
"""Most characters of one message; a mark at its end counts the rest."""
MOST_OPEN = 256
"""Most open messages; further starts are ignored."""
_SPOKEN = ("text", "reasoning")


@dataclass(slots=True)
class _OpenMessage:
    kind: Kind
    parts: list[str] = field(default_factory=list)
    kept: int = 0
    lost: int = 0

    def add(self, text: str) -> None:
        room = max(CAP - self.kept, 0)
        if kept := text[:room]:
            self.parts.append(kept)
        self.kept += len(kept)
        self.lost += len(text) - len(kept)


def marked(text: str, lost: int) -> str:
    """The text, with a mark when characters are missing at its end."""
    return f"{text}…[cut {lost} characters]" if lost else text


@dataclass(slots=True)
class Messages:
    """The open messages of one run. No input of a driver raises, and messages are never mixed:

    * a start of an index that is open closes the earlier message as incomplete, then opens the new one;
    * a piece or an end without an index, or for one that is not open, is ignored (also a second end);
    * a whole message (`said`) replaces an open one of its kind and index, whatever had arrived;
      one of another kind under that index is closed as incomplete first;
    * the same whole message again, right after the end of its index, is ignored;
    * arguments and results of tools are only shown live: the gate's records hold them in full.
    """

    mask: Callable[[str], str] = str
    reach: int = 0
    """Characters of a secret that may precede a cut unrecognised: they are removed with the rest."""
    _open: dict[int, _OpenMessage] = field(default_factory=dict)
    _last: dict[int, tuple[Kind, str]] = field(default_factory=dict)

    def started(self, event: MessageStarted) -> tuple[list[MessageSaid], bool]:
        """Records due before this start, and whether the start is accepted."""
        index = event.index
        if index is None:
            return [], False
        before = list(self._cut(index))
        if len(self._open) >= MOST_OPEN:
            return before, False
        self._last.pop(index, None)
        message = self._open[index] = _OpenMessage(event.kind)
        message.add(event.text)
        return before, True

    def more(self, event: MessageDelta) -> bool:
        """Whether this piece belongs to an open message."""
        if event.index is None or (message := self._open.get(event.index)) is None:
            return False
        message.add(event.text)
        return True

    def done(self, event: MessageDone) -> tuple[list[MessageSaid], bool]:
        """The record of an ended message, and whether one ended."""
        if event.index is None or (message := self._open.pop(event.index, None)) is None:
            return [], False
        if message.kind not in _SPOKEN:
            return [], True
        text = self._whole(message)
        self._last[event.index] = (message.kind, text)
        return [MessageSaid(index=event.index, kind=message.kind, text=text)], True

    def said(self, event: MessageSaid) -> list[MessageSaid]:
        """The record of a whole message, within the cap; nothing if it is recorded already."""
        message, index = _OpenMessage(event.kind), event.index
        message.add(event.text)
        whole = event.model_copy(update={"text": self._whole(message)})
        if index is None:
            return [whole]
        if index in self._open and self._open[index].kind == event.kind:
            del self._open[index]
        before = list(self._cut(index))
        if self._last.get(index) == (whole.kind, whole.text):
            return before
        self._last[index] = (whole.kind, whole.text)
        return [*before, whole]

    def end(self) -> list[MessageSaid]:
        """An early end: every open message as far as it came, by index, all incomplete."""
        self._last.clear()
        return [said for index in sorted(self._open) for said in self._cut(index)]

    def _cut(self, index: int) -> Iterator[MessageSaid]:
        message = self._open.pop(index, None)
        if message is not None and message.kind in _SPOKEN:
            yield MessageSaid(index=index, kind=message.kind, text=self._whole(message), is_complete=False)

    def _whole(self, message: _OpenMessage) -> str:
        text, reach = self.mask("".join(message.parts)), self.reach
        return marked(text[:-reach] if reach else text, message.lost + reach) if message.lost else text
