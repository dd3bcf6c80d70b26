"""One stream per run: the durable sink first, then readers that can neither slow nor break it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from fleet.clock import Clock, iso
from fleet.events.holdback import Holdback
from fleet.events.messages import Messages
from fleet.events.model import (
    LIVE,
    Event,
    Footer,
    MessageDelta,
    MessageDone,
    MessageSaid,
    MessageStarted,
    TurnEnded,
    TurnStarted,
)
from fleet.events.record import Readers

Reader = Callable[[Event], None]
_ENDS = (TurnStarted, TurnEnded, Footer)
"""Events that end every open message."""


class DurableSink(Protocol):
    def write(self, event: Event) -> None: ...

    def write_all(self, events: Iterable[Event]) -> None: ...


class Stream:
    """Stamps each event with its run and time, writes it, then calls every reader.

    Pieces of messages go to readers only; when a message is done, or cut off by the end of its turn or run,
    it is written as one `message.said` and passed on before its end is. Inconsistent pieces
    (`messages.Messages`) are ignored. Readers fail open, the sink does not. `mask` is applied to everything
    that a driver says; of live pieces, the last `reach` characters wait for the next piece (`holdback`), so
    that a secret split over two pieces is masked too.
    """

    def __init__(
        self,
        run: str,
        *,
        clock: Clock,
        sink: DurableSink,
        readers: tuple[Reader, ...] = (),
        mask: Callable[[str], str] = str,
        reach: int = 0,
    ) -> None:
        self._run, self._clock, self._sink = run, clock, sink
        self._mask, self._reach = mask, reach
        self._readers = Readers[Event](readers)
        self._held: dict[int | None, Holdback] = {}
        self._messages = Messages(mask, reach)
        self._group: list[Event] | None = None

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
            self._live(event)
        elif isinstance(event, MessageSaid):
            self._all(self._messages.said(event))
        else:
            if isinstance(event, _ENDS):
                self._all(self._messages.end())
                self._held.clear()
            self._record(event)

    def _live(self, event: MessageStarted | MessageDelta | MessageDone) -> None:
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
        update = {"run": self._run, "at": iso(self._clock.now())}
        return event.model_copy(update=update if text is None else update | {"text": text})
