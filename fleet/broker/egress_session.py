"""One listener, served: connections, their limits, and which request goes where."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import h11

from fleet.broker.connection import JailConnection, header
from fleet.broker.egress_policy import EgressPolicy, parse_target
from fleet.broker.egress_record import EgressEntry, EgressRecord
from fleet.broker.forward import Broke, Meter, relay
from fleet.broker.rpc_policy import Denied
from fleet.broker.services import Services
from sandbox.spec import OVERRIDES


class EgressSession:
    """The connections of one call. Counters are the call's own; `note` takes each finished record."""

    def __init__(
        self, policy: EgressPolicy, services: Services, note: Callable[[EgressRecord], None]
    ) -> None:
        self._policy, self._services, self._note = policy, services, note
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
        self._make_room()
        try:
            while (request := await wire.head()) is not None:
                self._waiting.pop(wire, None)
                if not await self._answer(wire, request):
                    return
                self._waiting[wire] = None
        except h11.RemoteProtocolError as error:
            await self._refuse(
                wire, EgressEntry(), Denied("http", "not HTTP", status=error.error_status_hint)
            )
        except Denied as denied:
            await self._refuse(wire, EgressEntry(), denied)

    def _make_room(self) -> None:
        """Beyond the cap, close the connection that has been silent longest."""
        if len(self._tasks) > self._policy.max_connections:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.cut()

    async def _answer(self, wire: JailConnection, request: h11.Request) -> bool:
        """Handle one request, recorded in any case; returns whether the connection may continue."""
        entry = EgressEntry(request.method.decode())
        try:
            await self._route(wire, request, entry)
        except Denied as denied:
            await self._refuse(wire, entry, denied)
            return False
        except TimeoutError:
            await self._refuse(wire, entry, Denied("timeout", "no answer in time", status=504))
            return False
        except (Broke, OSError, asyncio.CancelledError):
            self._note(entry.record("cut"))
            raise
        self._note(entry.record(""))
        return wire.can_go_on

    async def _route(self, wire: JailConnection, request: h11.Request, entry: EgressEntry) -> None:
        self._requests += 1
        if self._requests > self._policy.max_requests:
            raise Denied(
                "requests", f"more than {self._policy.max_requests} requests in one call", status=429
            )
        target = request.target.decode("ascii", "replace")
        if request.method == b"CONNECT":
            # inside a tunnel no rule but the host's could be held; the broker does TLS itself
            entry.host = target[:100]
            raise Denied("tunnel", f"egress denied by broker: CONNECT {target[:100]}")
        elif target.startswith("/"):
            await self._serve_own(wire, request, target, entry)
        else:
            async with asyncio.timeout(self._policy.request_s):
                await self._forward(wire, request, target, entry)

    async def _serve_own(
        self, wire: JailConnection, request: h11.Request, path: str, entry: EgressEntry
    ) -> None:
        service = self._services.by_path.get(path)
        if service is None or request.method != b"POST":
            raise Denied("service", f"no such service: {entry.verb} {path[:60]}", status=404)
        entry.verb = path[1:].upper()
        async with asyncio.timeout(self._policy.request_s):
            body = await wire.body()
        entry.sent = len(body)
        entry.status, payload = await service(body, entry)
        raw = wire.encode(payload)
        if path == "/rpc":  # a transaction's outcome is never withheld
            self._meter(entry)(len(raw))
        await wire.answer(entry.status, raw)

    async def _forward(
        self, wire: JailConnection, request: h11.Request, text: str, entry: EgressEntry
    ) -> None:
        target = parse_target(text)
        entry.host, entry.what = target.origin.authority, target.path.partition("?")[0][:200]
        if header(request, b"host").decode("ascii", "replace") not in _hosts(text):
            raise Denied("host-mismatch", "the Host header names another host than the target")
        self._policy.check(entry.verb, target)
        if taken := OVERRIDES & {name.decode("ascii", "replace") for name, _ in request.headers}:
            raise Denied("override", f"{min(taken)} may make it another request", status=400)
        await wire.go_on(await self._policy.turn(target.origin))
        body = await wire.body()
        entry.sent = len(body)
        await relay(wire, request, body, target, self._policy, self._meter(entry))
        entry.status = 200

    def _meter(self, entry: EgressEntry) -> Meter:
        def count(size: int) -> None:
            entry.received += size
            self._total += size
            if entry.received > self._policy.max_response or self._total > self._policy.max_total:
                raise Denied("bytes", "more bytes than one call may receive", status=502)

        return count

    async def _refuse(self, wire: JailConnection, entry: EgressEntry, denied: Denied) -> None:
        entry.status = denied.status
        self._note(entry.record(denied.rule))
        await wire.refuse(denied)


def _hosts(target: str) -> tuple[str, str]:
    """Spellings of a Host header that mean the target: with its port as written, or the default left out."""
    authority = target.partition("://")[2].partition("/")[0]
    bare = authority.removesuffix(":80" if target.startswith("http://") else ":443")
    return authority, bare
