"""One stream per run: the durable sink first, then readers that can neither slow nor break it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fleet.clock import Clock, iso
from fleet.events.model import Event

Reader = Callable[[Event], None]


class Sink(Protocol):
    def write(self, event: Event) -> None: ...


class Stream:
    """Stamps each event with its run and time, writes it down, then tells every reader.

    A reader that raises is dropped: observability fails open, the sink does not.
    """

    def __init__(self, run: str, *, clock: Clock, sink: Sink, readers: tuple[Reader, ...] = ()) -> None:
        self._run, self._clock, self._sink = run, clock, sink
        self._readers = list(readers)

    def emit(self, event: Event) -> None:
        stamped = event.model_copy(update={"run": self._run, "at": iso(self._clock.now())})
        self._sink.write(stamped)
        for reader in list(self._readers):
            try:
                reader(stamped)
            except Exception:
                self._readers.remove(reader)
