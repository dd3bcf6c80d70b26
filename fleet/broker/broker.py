"""A jail's only way out: reads of the chain, transactions and tokens by request, the platform's own hosts.

    POST /rpc                      JSON-RPC, single or batch: reads on the list, written anew (rpc_policy.py)
    POST /tx, POST /auth           a transaction or a call token under a throwaway key, by label (services.py)
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
from collections.abc import AsyncIterator, Callable

import anyio

from fleet.broker.egress_policy import EgressPolicy
from fleet.broker.egress_record import EgressRecord
from fleet.broker.egress_session import EgressSession
from fleet.broker.services import Services, TxPort

__all__ = ["Broker", "EgressPolicy", "EgressRecord", "TxPort"]

_LOOKAHEAD = 1 << 17


class Broker:
    """The egress of one run: `jail.call(…, egress=broker.egress)`, any number of calls at a time."""

    def __init__(
        self,
        policy: EgressPolicy,
        tx: TxPort | None = None,
        note: Callable[[EgressRecord], None] | None = None,
    ) -> None:
        """`note` is called with each record."""
        self._policy, self._tx, self._noted = policy, tx, note
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
        services = Services(self._policy, self._tx)
        session = EgressSession(self._policy, services, self._note)
        server = await asyncio.start_server(session.accept, sock=listener, limit=_LOOKAHEAD)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                server.close()
                await session.aclose()
                await services.aclose()

    def _note(self, record: EgressRecord) -> None:
        self._records.append(record)
        if self._noted is not None:
            self._noted(record)
