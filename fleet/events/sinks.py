"""Delivery by sending to configured sinks: `[sinks.<name>]` in fleet.toml.

One POST is one batch of one run, signed like a delivery to one of our webhooks:

    {"v": 1, "run": "k3v9…", "persona": "qa-ux", "seq": 0, "lost": 0,
     "deliveries": [{"kind": "tool_request", "identity": "1", "payload": {…}, "is_complete": true}, …],
     "end": null}

The last batch of a run has its result in `end`: outcome, detail, final_text and usage. `seq` counts the
batches of a run from 0; none is sent twice, and `lost` is the number of earlier deliveries without confirmed
arrival. A run settled by another process is counted from 0 again, and has no persona there. Each sink has a
queue of its own, bounded and invisible to runs.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio

from fleet.config import SinkSection
from fleet.config.fleet import Delivered
from fleet.events.model import (
    Event,
    FindingPosted,
    FindingRaised,
    FindingRepeated,
    FindingVerified,
    Footer,
    GateDenied,
    Header,
    MessageDelta,
    MessageSaid,
    MessageStarted,
    ToolRequested,
    ToolResponded,
    TurnEnded,
    TurnUsage,
    total_usage,
)
from fleet.events.outbound import WarnOnce, attempt, post_signed
from fleet.events.record import STAMP
from fleet.events.stream import Reader
from fleet.events.truncate import packed, shrink
from fleet.http_client import open_client

ROOM = 512
"""Most queued deliveries; when full, new ones are dropped and counted."""
ENDS = 512
"""Places reserved for the ends of runs."""
CAP = 32 * 1024
"""Bytes of one delivery."""
LARGEST = 256 * 1024
"""Bytes of one body: no more than a fleet's own webhooks take."""
DEADLINE_S = 5.0
"""Seconds from the connection to the status line of the answer."""
LINGER_S = 0.25
"""Deliveries within this time share a batch."""
_ENVELOPE = 4 * 1024
FLUSH_S = 3.0
"""Seconds after the last run until unposted deliveries are dropped."""
_WIDE = 1_024
"""Most items of a list or table; the rest is cut."""

_LOG = logging.getLogger("fleet.sinks")

Seal = Callable[[bytes], Mapping[str, str]]
"""The headers that sign a body."""
Mask = Callable[[Any], Any]
"""Masks a JSON structure before it leaves this machine."""


@dataclass(slots=True, eq=False, kw_only=True)
class Sender:
    """A run as a sink knows it."""

    run: str
    persona: str = ""
    seq: int = 0
    lost: int = 0
    """Deliveries before the next batch without confirmed arrival."""


@dataclass(frozen=True, slots=True)
class QueuedDelivery:
    """One delivery of a run, or its end: JSON of at most CAP bytes."""

    sender: Sender
    content: bytes
    is_end: bool = False


def batches(items: Iterable[QueuedDelivery]) -> Iterator[list[QueuedDelivery]]:
    """Pure: the items of each run in their order, as many as fit into one body."""
    runs: dict[Sender, list[QueuedDelivery]] = {}
    for item in items:
        runs.setdefault(item.sender, []).append(item)
    for mine in runs.values():
        batch, size = list[QueuedDelivery](), _ENVELOPE
        for item in mine:
            size += len(item.content) + 1
            if batch and size > LARGEST:
                yield batch
                batch, size = [], _ENVELOPE + len(item.content)
            batch.append(item)
        yield batch


def body(batch: list[QueuedDelivery]) -> bytes:
    """One batch, as described above."""
    sender = batch[0].sender
    about = {"v": 1, "run": sender.run, "persona": sender.persona, "seq": sender.seq, "lost": sender.lost}
    deliveries = b",".join(item.content for item in batch if not item.is_end)
    end = next((item.content for item in batch if item.is_end), b"null")
    return b'%s,"deliveries":[%s],"end":%s}' % (json.dumps(about)[:-1].encode(), deliveries, end)


class SinkQueue:
    """The queue of one sink. It logs a failure once per reason, and its losses at the end."""

    def __init__(
        self,
        name: str,
        url: str,
        seal: Seal,
        *,
        room: int = ROOM,
        deadline_s: float = DEADLINE_S,
        certificate: str = "",
    ) -> None:
        self._name, self._url, self._seal = name, url, seal
        self._room, self._deadline_s = room, deadline_s
        self._into, self._out = anyio.create_memory_object_stream[QueuedDelivery](room + ENDS)
        self._closing = anyio.Event()
        self._warn = WarnOnce(_LOG, f"sink {name}")
        self._client = open_client(url, certificate=certificate)
        self.taken = self.arrived = 0

    def put(self, sender: Sender, pack: Callable[[], bytes], *, is_end: bool = False) -> None:
        """Enqueue without waiting; items beyond the limit are not packed."""
        self.taken += 1
        room = self._room + ENDS if is_end else self._room
        if self._into.statistics().current_buffer_used < room:
            self._into.send_nowait(QueuedDelivery(sender, pack(), is_end))
        else:
            sender.lost += 1
            self._warn("its queue is full, deliveries are dropped")

    async def run(self) -> None:
        """Post until `close`, and until everything queued by then has been tried."""
        async with self._out, self._client:
            async for first in self._out:
                with anyio.move_on_after(LINGER_S):
                    await self._closing.wait()
                waiting = [first]
                while self._out.statistics().current_buffer_used:
                    waiting.append(self._out.receive_nowait())
                for batch in batches(waiting):
                    await self._post(batch)

    def close(self) -> None:
        """Accept no more deliveries."""
        self._closing.set()
        self._into.close()

    def sum_up(self) -> None:
        """Log the total of lost deliveries."""
        if lost := self.taken - self.arrived:
            _LOG.warning("sink %s: %d of %d deliveries were lost", self._name, lost, self.taken)

    async def _post(self, batch: list[QueuedDelivery]) -> None:
        sender = batch[0].sender
        content, lost = body(batch), sender.lost + len(batch)
        sender.seq, sender.lost = sender.seq + 1, 0
        why = await attempt(
            lambda: post_signed(self._client, self._url, content, self._seal(content)), self._deadline_s
        )
        if why:
            sender.lost += lost
            self._warn(why)
        else:
            self.arrived += len(batch)


@dataclass(slots=True)
class _SentRun:
    """A run that is not over. `begun` are its messages that still arrive, by index: kind and pieces."""

    sender: Sender
    begun: dict[int, tuple[Delivered, list[str]]] = field(default_factory=dict)
    usages: list[TurnUsage | None] = field(default_factory=list)
    final_text: str = ""


class SinkReader:
    """A reader of all runs that sends each of them to one sink: a delivery is queued once it is whole."""

    def __init__(self, outbox: SinkQueue, kinds: Collection[str], mask: Mask) -> None:
        self._outbox, self._kinds, self._mask = outbox, kinds, mask
        self._runs: dict[str, _SentRun] = {}

    def __call__(self, event: Event) -> None:
        run = self._runs.get(event.run) or self._runs.setdefault(event.run, _SentRun(Sender(run=event.run)))
        match event:
            case Header():
                run.sender.persona = event.persona
            case MessageStarted(kind="text" | "reasoning") if event.index is not None:
                run.begun[event.index] = event.kind, [event.text]
            case MessageDelta() if event.index in run.begun:
                run.begun[event.index][1].append(event.text)
            case MessageSaid():
                run.begun.pop(-1 if event.index is None else event.index, None)
                run.final_text = event.text if event.kind == "text" else run.final_text
                self._deliver(run, event.kind, event.index, {"text": event.text}, event.is_complete)
            case ToolRequested():
                self._deliver(run, "tool_request", event.call, {"tool": event.tool, "args": event.args})
            case ToolResponded():
                result = {"tool": event.tool, "result": event.result, "is_error": event.is_error}
                self._deliver(run, "tool_response", event.call, result)
            case GateDenied():
                refusal = {"tool": event.tool, "denied": event.rule, "is_error": True}
                self._deliver(run, "tool_response", event.call, refusal)
            case FindingRaised() | FindingVerified() | FindingPosted() | FindingRepeated():
                became = event.model_dump(exclude={*STAMP, "type", "fingerprint"})
                self._deliver(run, "finding", event.fingerprint, {"event": event.type, **became})
            case TurnEnded():
                run.usages.append(event.usage)
            case Footer():
                del self._runs[event.run]
                used = event.usage or total_usage(run.usages)
                usage = used.model_dump(exclude_none=True) if used else None
                end = {"outcome": event.outcome, "detail": event.detail, "final_text": run.final_text}
                self._put(run, end | {"usage": usage}, is_end=True)

    def close(self) -> None:
        """Send what messages have so far as incomplete; accept no more."""
        for run in self._runs.values():
            for index, (kind, pieces) in run.begun.items():
                self._deliver(run, kind, index, {"text": "".join(pieces)}, False)
        self._runs.clear()
        self._outbox.close()

    def _deliver(
        self, run: _SentRun, kind: Delivered, identity: object, payload: object, is_complete: bool = True
    ) -> None:
        """`identity`: a message's index, a call's number, a finding's fingerprint."""
        if kind in self._kinds:
            about = {"kind": kind, "identity": str(identity)}
            self._put(run, {**about, "payload": payload, "is_complete": is_complete})

    def _put(self, run: _SentRun, record: dict[str, Any], *, is_end: bool = False) -> None:
        """Mask first, then cut to size; parts that will be cut anyway are not masked. A failure loses it."""
        with suppress(Exception):
            self._outbox.put(
                run.sender, lambda: packed(self._mask(shrink(record, 2 * CAP, _WIDE)), CAP), is_end=is_end
            )


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
        SinkQueue(
            name,
            section.url,
            partial(seal, name),
            deadline_s=deadline_s,
            certificate=section.certificate_file,
        )
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
            with anyio.move_on_after(flush_s):
                await asyncio.gather(*tasks, return_exceptions=True)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for box in boxes:
            box.sum_up()
