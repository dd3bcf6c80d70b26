"""One stream per run: the durable sink first, then readers that can neither slow nor break it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from fleet.clock import Clock, iso_ms
from fleet.events.model import (
    LIVE,
    Event,
    Footer,
    Kind,
    MessageDelta,
    MessageDone,
    MessageSaid,
    MessageStarted,
    TurnEnded,
    TurnStarted,
)
from fleet.events.record import Readers, origin
from fleet.text import clean

CAP = 32_768
"""Most characters of one message; a mark at its end counts the rest."""
MOST_OPEN = 256
"""Most open messages; further starts are ignored."""
MOST = 4_096
"""Characters that may be held back for one secret; the rest of a message beyond it is not shown live."""
PIECE = 16_384
"""Most characters of one piece; the rest is cut with a mark, as in every text."""
_SPOKEN = ("text", "reasoning")
_ENDS = (TurnStarted, TurnEnded, Footer)
"""Events that end every open message."""
Reader = Callable[[Event], None]


@dataclass(slots=True)
class Holdback:
    """The held-back end of a message, since a secret may continue in the next piece.

    Together the pieces read like the mask of the whole. `reach` is the most characters of a secret
    that can be at an end without being recognised yet.
    """

    mask: Callable[[str], str]
    reach: int
    _end: str = field(default="", repr=False)
    _is_mute: bool = False

    def add(self, text: str) -> str:
        """The text that may be shown after this piece."""
        if self._is_mute:
            return ""
        # remove invisible characters first: inside a secret they would make it longer than `reach`
        self._end += clean(text, PIECE, newlines=True)
        ready, left = self._end[: (cut := max(len(self._end) - self.reach, 0))], self._end[cut:]
        masked = self.mask(ready)
        if masked + self.mask(left) == self.mask(self._end):
            self._end = left
            return masked
        self._is_mute = len(self._end) > self.reach + MOST
        return ""

    def rest(self) -> str:
        """The rest of an ended message."""
        end, self._end = self._end, ""
        return "" if self._is_mute else self.mask(end)


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


class DurableSink(Protocol):
    def write(self, event: Event) -> None: ...

    def write_all(self, events: Iterable[Event]) -> None: ...


class Stream:
    """Stamps each event with its run and time, writes it, then calls every reader.

    Pieces of messages go to readers only; when a message is done, or cut off by the end of its turn or run,
    it is written as one `message.said` and passed on before its end is. Inconsistent pieces
    (`Messages`) are ignored. Readers fail open, the sink does not. `mask` is applied to everything
    that a driver says; of live pieces, the last `reach` characters wait for the next piece (`Holdback`), so
    that a secret split over two pieces is masked too. `before` gives what is written before an event.
    """

    def __init__(  # noqa: PLR0913  what a stream is made of
        self,
        run: str,
        *,
        clock: Clock,
        sink: DurableSink,
        readers: tuple[Reader, ...] = (),
        mask: Callable[[str], str] = str,
        reach: int = 0,
        before: Callable[[Event], Event | None] = lambda _: None,
    ) -> None:
        self._run, self._clock, self._sink = run, clock, sink
        self._mask, self._reach, self._before = mask, reach, before
        self._readers = Readers[Event](readers)
        self._held: dict[int | None, Holdback] = {}
        self._messages = Messages(mask, reach)
        self._group: list[Event] | None = None
        self._turn = ""

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is emitted inside is written at once at the end, and passed on then: one wait for the disk."""
        group: list[Event] = []
        self._group = group
        try:
            yield
        finally:
            self._group = None
            if group:
                self._sink.write_all(group)
                for event in group:
                    self._readers.publish(event)

    def emit(self, event: Event) -> None:
        """Emit one event; raises FleetError when it cannot be written."""
        if isinstance(event, LIVE):
            match event:
                case MessageStarted():
                    records, belongs = self._messages.started(event)
                    self._all(records)
                    if belongs:
                        held = self._held[event.index] = Holdback(self._mask, self._reach)
                        self._readers.publish(self._stamped(event, held.add(event.text)))
                case MessageDelta() if self._messages.more(event):
                    self._piece(event.index, self._held[event.index].add(event.text))
                case MessageDone():
                    records, belongs = self._messages.done(event)
                    if belongs:
                        self._piece(event.index, self._held.pop(event.index).rest())
                    self._all(records)
                    if belongs:
                        self._readers.publish(self._stamped(event))
        elif isinstance(event, MessageSaid):
            self._all(self._messages.said(event))
        else:
            if isinstance(event, _ENDS):
                self._all(self._messages.end())
                self._held.clear()
            if (first := self._before(event)) is not None:
                self._record(first)
            self._record(event)

    def _piece(self, index: int | None, text: str) -> None:
        if text:
            self._readers.publish(self._stamped(MessageDelta(index=index, text=text), text))

    def _all(self, records: list[MessageSaid]) -> None:
        for record in records:
            self._record(record)

    def _record(self, event: Event) -> None:
        stamped = self._stamped(event)
        if self._group is not None:
            self._group.append(stamped)
            return
        self._sink.write(stamped)
        self._readers.publish(stamped)

    def _stamped(self, event: Event, text: str | None = None) -> Event:
        """The event as it goes out; `text` replaces its own."""
        if isinstance(event, TurnStarted):
            self._turn = f"/{event.index}"
        update = {
            "run": self._run,
            "at": iso_ms(self._clock.now()),
            "correlation_id": f"{self._run}{self._turn}",
            **origin(event.type),
        }
        if isinstance(event, TurnEnded):
            self._turn = ""
        return event.model_copy(update=update if text is None else update | {"text": text})
