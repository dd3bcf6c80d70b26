"""Delivery by sending to configured sinks: `[sinks.<name>]` in fleet.toml.

One POST is one batch of one run, signed like a delivery to one of our webhooks:

    {"v": 1, "run": "k3v9…", "persona": "qa-ux", "seq": 0, "lost": 0,
     "deliveries": [{"kind": "tool_request", "identity": "1", "payload": {…}, "is_complete": true}, …],
     "end": null}

The last batch of a run has its result in `end`: outcome, detail, final_text and usage. `seq` counts the
batches of a run from 0; none is sent twice, and `lost` is the number of earlier deliveries without confirmed
arrival. A run settled by another process is counted from 0 again, and has no persona there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from fleet.config import SinkSection
from fleet.events.model import Event, Footer, Header
from fleet.events.send import AutoSend, Kind
from fleet.events.sink_queue import CAP, DEADLINE_S, Outbox, Sender
from fleet.events.stream import Reader
from fleet.events.truncate import packed, shrink

FLUSH_S = 3.0
"""Seconds after the last run until unposted deliveries are dropped."""
_WIDE = 1_024
"""Most items of a list or table; the rest is cut."""

Mask = Callable[[Any], Any]
"""Masks a JSON structure before it leaves this machine."""


@dataclass(frozen=True, slots=True)
class _Letters:
    """The channel of one run: a delivery is queued once it is whole or cut off."""

    outbox: Outbox
    sender: Sender
    kinds: Collection[str]
    mask: Mask

    def open(self, kind: Kind, identity: str) -> _Letter:
        return _Letter(self, kind, identity)

    def post(self, record: dict[str, Any], *, is_end: bool = False) -> None:
        self.outbox.put(self.sender, partial(self._packed, record), is_end=is_end)

    def _packed(self, record: dict[str, Any]) -> bytes:
        """Mask first, then cut to size; parts that will be cut anyway are not masked."""
        return packed(self.mask(shrink(record, 2 * CAP, _WIDE)), CAP)


@dataclass(frozen=True, slots=True)
class _Letter:
    letters: _Letters
    kind: Kind
    identity: str

    def add(self, text: str) -> None:
        """Ignored: the whole arrives at `close`."""

    def close(self, payload: Mapping[str, Any], *, is_complete: bool) -> None:
        if self.kind in self.letters.kinds:
            about = {"kind": self.kind, "identity": self.identity}
            self.letters.post({**about, "payload": payload, "is_complete": is_complete})


class SinkReader:
    """A reader of all runs that sends each of them to one sink."""

    def __init__(self, outbox: Outbox, kinds: Collection[str], mask: Mask) -> None:
        self._outbox, self._kinds, self._mask = outbox, kinds, mask
        self.runs: dict[str, tuple[_Letters, AutoSend]] = {}
        """Runs that are not over."""

    def __call__(self, event: Event) -> None:
        if event.run not in self.runs:
            letters = _Letters(self._outbox, Sender(run=event.run), self._kinds, self._mask)
            self.runs[event.run] = letters, AutoSend(letters)
        letters, send = self.runs[event.run]
        if isinstance(event, Header):
            letters.sender.persona = event.persona
        send(event)
        if isinstance(event, Footer):
            del self.runs[event.run]
            sent = send.result()
            usage = sent.usage.model_dump(exclude_none=True) if sent.usage else None
            end = {"outcome": event.outcome, "detail": event.detail, "final_text": sent.final_text}
            letters.post(end | {"usage": usage}, is_end=True)

    def close(self) -> None:
        """Close all open deliveries as incomplete; accept no more."""
        for _, send in self.runs.values():
            send.aclose()
        self.runs.clear()
        self._outbox.close()


@asynccontextmanager
async def sinking(
    sections: Mapping[str, SinkSection],
    *,
    seal: Callable[[str, bytes], Mapping[str, str]],
    mask: Mask,
    deadline_s: float = DEADLINE_S,
    flush_s: float = FLUSH_S,
) -> AsyncIterator[tuple[Reader, ...]]:
    """A reader per sink; at the end queued deliveries are posted, for at most `flush_s`.

    Args:
        seal: the headers that sign a body for the sink of this name.
        mask: applied to every delivery before anything else.
    """
    boxes = [
        Outbox(name, section.url, partial(seal, name), deadline_s=deadline_s)
        for name, section in sections.items()
    ]
    readers = tuple(
        SinkReader(box, section.kinds, mask) for box, section in zip(boxes, sections.values(), strict=True)
    )
    tasks = [asyncio.create_task(box.run()) for box in boxes]
    try:
        yield readers
    finally:
        for reader in readers:
            reader.close()
        with anyio.CancelScope(shield=True):
            await _ended(tasks, flush_s)
        for box in boxes:
            box.sum_up()


async def _ended(tasks: list[asyncio.Task[None]], within_s: float) -> None:
    with anyio.move_on_after(within_s):
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
