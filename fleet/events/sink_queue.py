"""The queue of one sink and the task that posts it: bounded, at most once, invisible to runs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import anyio

from fleet.http_client import HttpFailure, open_client, post
from fleet.text import line

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
_LOG = logging.getLogger("fleet.sinks")

Seal = Callable[[bytes], Mapping[str, str]]
"""The headers that sign a body."""


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
    """One batch as `sinks` describes it."""
    sender = batch[0].sender
    about = {"v": 1, "run": sender.run, "persona": sender.persona, "seq": sender.seq, "lost": sender.lost}
    deliveries = b",".join(item.content for item in batch if not item.is_end)
    end = next((item.content for item in batch if item.is_end), b"null")
    return b'%s,"deliveries":[%s],"end":%s}' % (json.dumps(about)[:-1].encode(), deliveries, end)


class Outbox:
    """The queue of one sink. It logs a failure once per reason, and its losses at the end."""

    def __init__(
        self, name: str, url: str, seal: Seal, *, room: int = ROOM, deadline_s: float = DEADLINE_S
    ) -> None:
        self._name, self._url, self._seal = name, url, seal
        self._room, self._deadline_s = room, deadline_s
        self._into, self._out = anyio.create_memory_object_stream[QueuedDelivery](room + ENDS)
        self._closing = anyio.Event()
        self._told = set[str]()
        self._client = open_client(url)
        self.taken = self.arrived = 0

    def put(self, sender: Sender, pack: Callable[[], bytes], *, is_end: bool = False) -> None:
        """Enqueue without waiting; items beyond the limit are not packed."""
        self.taken += 1
        room = self._room + ENDS if is_end else self._room
        if self._into.statistics().current_buffer_used < room:
            self._into.send_nowait(QueuedDelivery(sender, pack(), is_end))
        else:
            sender.lost += 1
            self._tell("its queue is full, deliveries are dropped")

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
        if why := await self._failure(content):
            sender.lost += lost
            self._tell(why)
        else:
            self.arrived += len(batch)

    async def _failure(self, content: bytes) -> str:
        """Why this body did not arrive; "" when it did."""
        try:
            with anyio.fail_after(self._deadline_s):
                headers = {"content-type": "application/json", **self._seal(content)}
                # Nothing of an answer is read but its status, which ends the connection too: one that was
                # kept could be closed by the sink at the wrong moment, and lose a batch.
                status, _ = await post(self._client, self._url, content, headers, limit=0)
        except TimeoutError:
            return f"no answer within {self._deadline_s:g} s"
        except HttpFailure as failure:
            return line(str(failure), 200)
        except Exception as error:  # any failure of a sink or its network is only logged
            return f"{type(error).__name__}: {line(str(error), 200)}"
        if 300 <= status < 400:
            return f"HTTP {status}: redirects are not followed"
        return "" if 200 <= status < 300 else f"HTTP {status}"

    def _tell(self, why: str) -> None:
        """Log once per reason: the part before a colon, which outsiders cannot influence."""
        reason = why.partition(":")[0]
        if reason not in self._told:
            self._told.add(reason)
            _LOG.warning("sink %s: %s; runs continue", self._name, why)
