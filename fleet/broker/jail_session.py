"""The connections of one listener, served within limits; a subclass decides what each request gets."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Callable

import h11

from fleet.broker.connection import JailConnection
from fleet.broker.egress_policy import EgressPolicy
from fleet.broker.egress_record import CUT, CallEgress, EgressEntry, EgressRecord
from fleet.broker.forward import Broke, Meter
from fleet.broker.rpc_policy import Denied


class JailSession(abc.ABC):
    """The connections of one call. Counters are the call's own; `note` takes each finished record.

    With a `record` each request is on disk before it leaves, and as a line when it is over.
    """

    def __init__(
        self,
        policy: EgressPolicy,
        note: Callable[[EgressRecord], None],
        record: CallEgress | None = None,
    ) -> None:
        self._policy, self._noted, self._record = policy, note, record
        self._tasks: dict[asyncio.Task[None], JailConnection] = {}
        self._waiting: dict[JailConnection, None] = {}
        self._closed = False
        self._requests = 0
        self._total = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end; the callback of `asyncio.start_server`."""
        task = asyncio.current_task()
        if task is None or self._closed:
            writer.transport.abort()
            return
        wire = JailConnection(reader, writer, self._policy)
        self._tasks[task] = wire
        try:
            await self._serve(wire)
        except (TimeoutError, OSError, Broke, h11.LocalProtocolError):
            wire.cut()
        except asyncio.CancelledError:
            if not self._closed:
                raise
        finally:
            self._tasks.pop(task, None)
            self._waiting.pop(wire, None)
            writer.close()

    async def aclose(self) -> None:
        """Cut every connection and wait until none is served."""
        self._closed = True
        for task, wire in list(self._tasks.items()):
            wire.cut()
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, wire: JailConnection) -> None:
        self._waiting[wire] = None
        if len(self._tasks) > self._policy.max_connections:
            oldest = next(iter(self._waiting))  # the one that has been silent longest makes room
            del self._waiting[oldest]
            oldest.cut()
        try:
            while (request := await wire.head()) is not None:
                self._waiting.pop(wire, None)
                if not await self._answer(wire, request):
                    return
                self._waiting[wire] = None
        except h11.RemoteProtocolError as error:
            self._requests += 1
            await self._refuse(
                wire, EgressEntry(), Denied("http", "not HTTP", status=error.error_status_hint)
            )
        except Denied as denied:
            self._requests += 1
            await self._refuse(wire, EgressEntry(), denied)

    async def _answer(self, wire: JailConnection, request: h11.Request) -> bool:
        """Handle one request, recorded in any case; returns whether the connection may continue."""
        what = request.target.decode("ascii", "replace").partition("?")[0]
        entry = EgressEntry(request.method.decode(), what=what[:200])
        try:
            self._requests += 1
            if self._requests > (most := self._policy.max_requests):
                raise Denied("requests", f"more than {most} requests in one call", status=429)
            if self._record is not None:
                self._record.log.begin(self._record.calls, entry)
            await self._route(wire, request, entry)
        except Denied as denied:
            await self._refuse(wire, entry, denied)
            return False
        except TimeoutError:
            await self._refuse(wire, entry, Denied("timeout", "no answer in time", status=504))
            return False
        except (Broke, OSError, asyncio.CancelledError):
            self._note(entry, CUT)
            raise
        self._note(entry, "")
        return wire.can_go_on

    @abc.abstractmethod
    async def _route(self, wire: JailConnection, request: h11.Request, entry: EgressEntry) -> None:
        """Answer one request, or raise Denied, TimeoutError or Broke; `entry` becomes its record."""

    def _meter(self, entry: EgressEntry) -> Meter:
        def count(size: int) -> None:
            entry.received += size
            self._total += size
            self._policy.carried(size)
            if entry.received > self._policy.max_response or self._total > self._policy.max_total:
                raise Denied("bytes", "more bytes than one call may receive", status=502)

        return count

    def _note(self, entry: EgressEntry, rule: str) -> None:
        record = entry.record(rule)
        # of what comes beyond the number of requests, the first is on record
        if self._record is not None and (entry.opened or self._requests <= self._policy.max_requests + 1):
            self._record.log.end(self._record.calls, entry, record)
        self._noted(record)

    async def _refuse(self, wire: JailConnection, entry: EgressEntry, denied: Denied) -> None:
        entry.status = denied.status
        self._note(entry, denied.rule)
        await wire.refuse(denied)
