"""A jail's only way out: reads of the chain, transactions and tokens by request, the platform's own hosts.

    POST /rpc                      JSON-RPC, single or batch: reads on the list, written anew (rpc_policy.py)
    POST /tx, POST /auth           a transaction or a call token under a throwaway key, by label (services.py)
    POST /pay                      a payment by the purse, for terms that were quoted in this call
    GET http(s)://host[:port]/…    a listed host, in its turn (pace.py); POST under the proxy's base URL, and
                                   POST, PUT, PATCH, DELETE where the profile permits acts (forward.py)
    CONNECT host:port              never: inside a tunnel no rule could be held

Policy is enforced here, on the trusted side, on every request of a jail. Every refusal is an answer with its
rule, so that the caller can read the reason: `{"error", "error_class", "rule"}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import anyio
import h11

from fleet.broker.connection import JailConnection, header
from fleet.broker.egress_policy import EgressPolicy, EgressTarget, parse_target
from fleet.broker.egress_record import CallEgress, EgressEntry, EgressRecord
from fleet.broker.forward import relay
from fleet.broker.jail_session import JailSession
from fleet.broker.rpc_policy import Denied
from fleet.broker.services import Services, TxPort
from sandbox.spec import OVERRIDES

__all__ = ["Broker", "EgressPolicy", "EgressRecord", "TxPort"]

_LOOKAHEAD = 1 << 17


class Broker:
    """The egress of one run: `jail.call(…, egress=broker.egress)`, any number of calls at a time."""

    def __init__(
        self,
        policy: EgressPolicy,
        tx: TxPort | None = None,
        note: Callable[[EgressRecord], None] | None = None,
        record: CallEgress | None = None,
    ) -> None:
        """`note` is called with each record; with `record` what is not on disk does not leave."""
        self._policy, self._tx, self._noted, self._record = policy, tx, note, record
        self._records: list[EgressRecord] = []

    @property
    def records(self) -> tuple[EgressRecord, ...]:
        """All records so far, oldest first; append-only."""
        return tuple(self._records)

    @contextlib.asynccontextmanager
    async def egress(self, listener: socket.socket) -> AsyncIterator[None]:
        """Serve a listening socket while the context lasts; afterwards it is closed and nothing is served.

        A submitted transaction is awaited, never cut off between its signature and its receipt,
        even when the call is cancelled: else it would act after its run's clean-up.
        """
        policy = replace(self._policy, over=self._tx.over) if self._tx else self._policy
        services = Services(policy, self._tx)

        def note(record: EgressRecord) -> None:
            self._records.append(record)
            if self._noted is not None:
                self._noted(record)

        session = EgressSession(policy, services, note, self._record)
        server = await asyncio.start_server(session.accept, sock=listener, limit=_LOOKAHEAD)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                server.close()
                await session.aclose()
                await services.aclose()


class EgressSession(JailSession):
    """The requests of one call: the broker's own services, and listed hosts."""

    def __init__(
        self,
        policy: EgressPolicy,
        services: Services,
        note: Callable[[EgressRecord], None],
        record: CallEgress | None,
    ) -> None:
        super().__init__(policy, note, record)
        self._services = services

    async def _route(self, wire: JailConnection, request: h11.Request, entry: EgressEntry) -> None:
        target = request.target.decode("ascii", "replace")
        if request.method == b"CONNECT":
            # inside a tunnel no rule but the host's could be held; the broker does TLS itself
            entry.host = target[:100]
            raise Denied("tunnel", f"egress denied by broker: CONNECT {target[:100]}")
        elif target.startswith("/"):
            service = self._services.by_path.get(target)
            if service is None or request.method != b"POST":
                raise Denied("service", f"no such service: {entry.verb} {target[:60]}", status=404)
            entry.verb = target[1:].upper()
            async with asyncio.timeout(self._policy.request_s):
                body = await wire.body()
            entry.sent = len(body)
            entry.status, payload = await service(body, entry)
            raw = wire.encode(payload)
            if target == "/rpc":  # a transaction's outcome is never withheld
                self._meter(entry)(len(raw))
            await wire.answer(entry.status, raw)
        else:
            async with asyncio.timeout(self._policy.request_s):
                await self._forward(wire, request, target, entry)

    async def _forward(
        self, wire: JailConnection, request: h11.Request, text: str, entry: EgressEntry
    ) -> None:
        target = parse_target(text)
        entry.host, entry.what = target.origin.authority, target.path.partition("?")[0][:200]
        authority = text.partition("://")[2].partition("/")[0]
        bare = authority.removesuffix(":80" if text.startswith("http://") else ":443")
        if header(request, b"host").decode("ascii", "replace") not in (authority, bare):
            raise Denied("host-mismatch", "the Host header names another host than the target")
        entry.criticality = self._policy.care.at(f"{target.origin.scheme}://{authority}").criticality
        self._judge(entry, target)
        if taken := OVERRIDES & {name.decode("ascii", "replace") for name, _ in request.headers}:
            raise Denied("override", f"{min(taken)} may make it another request", status=400)
        entry.waited_s = await self._policy.turn(target, entry.verb)
        await wire.go_on(entry.waited_s)
        body = await wire.body()
        entry.sent = len(body)
        self._judge(entry, target, body)
        await self._policy.function_turn(target, entry.verb, body)
        await relay(
            wire,
            request,
            body,
            entry,
            target,
            self._policy,
            self._meter(entry),
            # a slow client, a turn and a dial take seconds in which a fence may close
            ask=lambda: self._judge(entry, target, body),
            kept=self._services.keeping(text, target),
        )

    def _judge(self, entry: EgressEntry, target: EgressTarget, body: bytes | None = None) -> None:
        """Whether this may leave now, judged anew; how long that took is on record. Raises Denied."""
        began = time.perf_counter()
        try:
            self._policy.check(entry.verb, target, body)
        finally:
            entry.judged_ms = max(entry.judged_ms, (time.perf_counter() - began) * 1000)
