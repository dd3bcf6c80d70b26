"""What a driver says, put together: pieces by index come in, whole messages go on record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fleet.events.model import Kind, MessageDelta, MessageDone, MessageSaid, MessageStarted

CAP = 32_768
"""Characters of one message that are kept; what is cut off is counted in a mark at its end."""
MOST_OPEN = 256
"""Messages that may be open at once; a start beyond that is passed over."""
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
    """The messages of one run that are open now. Nothing a driver sends raises, nothing is mixed:

    * a start of an index that is open closes the earlier message as incomplete, then opens the new one;
    * a piece or an end without an index, or for one that is not open, is passed over (also a second end);
    * a whole message (`said`) takes the place of an open one of its kind and index, whatever had come of it;
      one of another kind under that index is closed as incomplete before;
    * the same whole message again, right after the end of its index, is passed over;
    * arguments and results of tools are only shown live: the gate's own records hold the whole of them.
    """

    mask: Callable[[str], str] = str
    reach: int = 0
    """Characters of a secret that may stand before a cut without being one: they go with what is cut off."""
    _open: dict[int, _OpenMessage] = field(default_factory=dict)
    _last: dict[int, tuple[Kind, str]] = field(default_factory=dict)

    def started(self, event: MessageStarted) -> tuple[list[MessageSaid], bool]:
        """What must be recorded before, and whether this start is one."""
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
        """The record of a message that ended, and whether one did."""
        if event.index is None or (message := self._open.pop(event.index, None)) is None:
            return [], False
        if message.kind not in _SPOKEN:
            return [], True
        text = self._whole(message)
        self._last[event.index] = (message.kind, text)
        return [MessageSaid(index=event.index, kind=message.kind, text=text)], True

    def said(self, event: MessageSaid) -> list[MessageSaid]:
        """What to record for a whole message: it, within the cap, or nothing when it stands already."""
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
        """An early end: every open message as far as it came, by index, none of them complete."""
        self._last.clear()
        return [said for index in sorted(self._open) for said in self._cut(index)]

    def _cut(self, index: int) -> Iterator[MessageSaid]:
        message = self._open.pop(index, None)
        if message is not None and message.kind in _SPOKEN:
            yield MessageSaid(index=index, kind=message.kind, text=self._whole(message), is_complete=False)

    def _whole(self, message: _OpenMessage) -> str:
        text, reach = self.mask("".join(message.parts)), self.reach
        return marked(text[:-reach] if reach else text, message.lost + reach) if message.lost else text
