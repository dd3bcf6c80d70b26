"""The only way out of a fixer's jail: one URL of one model, with a key that the jail never sees.

    GET, POST /<path of the endpoint>/…    sent on by TLS with our key; the answer streams back
    anything else                          refused: {"error", "error_class", "rule"}, as the broker does

Fields of a request that are not on the list are left out, credentials of the jail's own among them: with a
key of a stranger, the provider itself would be a way out. The answer's body and headers are searched for our
key, which an endpoint may quote in an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from urllib.parse import parse_qsl

import anyio
import h11

from fleet.broker.connection import JailConnection
from fleet.broker.egress_policy import EgressPolicy, EgressTarget, is_plain, parse_target
from fleet.broker.egress_record import EgressEntry, EgressRecord
from fleet.broker.forward import Broke, dial
from fleet.broker.jail_session import JailSession
from fleet.broker.rpc_policy import Denied
from fleet.errors import ConfigError
from sandbox.spec import BROKER

INSIDE = BROKER
"""Where a jail reaches the endpoint: the listener that its first process hands out."""
REQUESTS, BODY, ANSWER, TOTAL, SECONDS = 150, 8 << 20, 16 << 20, 128 << 20, 300.0
"""Most requests of one attempt, bytes of a request, of an answer and of all answers, seconds of a request."""

_CHUNK = 1 << 16
_LOOKAHEAD = 1 << 17
_SENT = frozenset({b"accept", b"content-type", b"user-agent", b"x-goog-api-client"})
_SENT_FAMILIES = (b"anthropic-", b"openai-", b"x-stainless-")
_RETURNED = frozenset(
    {b"content-type", b"content-length", b"retry-after", b"retry-after-ms", b"request-id", b"x-request-id"}
)
_RETURNED_FAMILIES = (b"anthropic-ratelimit-", b"x-ratelimit-")
_CREDENTIALS = frozenset({"key", "api_key", "api-key", "apikey", "access_token", "token"})
"""Names of a query's parameters that carry a key."""


class ModelEgress:
    """The egress of an agent program in a jail; `jails.run(…, egress=it.egress)`, any number of times."""

    def __init__(
        self,
        url: str,
        *,
        key: str = "",
        header: str = "authorization",
        rung: Callable[[], str] | None = None,
    ) -> None:
        """`rung` is the dial's word, read at each request: only `propose` lets one pass. ConfigError for a
        URL without a plain host."""
        try:
            target = parse_target(url)
        except Denied as denied:
            raise ConfigError(f"propose.endpoint: {denied}") from None
        self._target = EgressTarget(target.origin, target.path.rstrip("/"))
        self._key, self._header, self._rung = key, header, rung
        self._policy = EgressPolicy(
            rpc="",
            hosts=frozenset({target.origin}),
            max_requests=REQUESTS,
            max_body=BODY,
            max_response=ANSWER,
            max_total=TOTAL,
            request_s=SECONDS,
        )
        self._records: list[EgressRecord] = []

    def __repr__(self) -> str:
        return f"ModelEgress({self._target.origin.authority})"

    @property
    def records(self) -> tuple[EgressRecord, ...]:
        """All requests so far, oldest first."""
        return tuple(self._records)

    @contextlib.asynccontextmanager
    async def egress(self, listener: socket.socket) -> AsyncIterator[None]:
        """Serve a jail's listener while the context lasts; afterwards nothing is served."""
        session = _EndpointSession(
            self._policy,
            self._records.append,
            target=self._target,
            key=self._key.encode(),
            header=self._header.encode(),
            rung=self._rung,
        )
        server = await asyncio.start_server(session.accept, sock=listener, limit=_LOOKAHEAD)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                server.close()
                await session.aclose()


class _EndpointSession(JailSession):
    def __init__(
        self,
        policy: EgressPolicy,
        note: Callable[[EgressRecord], None],
        *,
        target: EgressTarget,
        key: bytes,
        header: bytes,
        rung: Callable[[], str] | None,
    ) -> None:
        super().__init__(policy, note)
        self._target, self._key, self._rung = target, key, rung
        self._own = _key_fields(key, header)

    async def _route(self, wire: JailConnection, request: h11.Request, entry: EgressEntry) -> None:
        entry.host = self._target.origin.authority
        path = self._checked(request, entry)
        async with asyncio.timeout(self._policy.request_s):
            await wire.go_on(0.0)
            body = await wire.body()
            entry.sent = len(body)
            # the request in our own words
            kept = [(k, v) for k, v in request.headers if k in _SENT or k.startswith(_SENT_FAMILIES)]
            own = [
                (b"host", self._target.origin.authority.encode()),
                (b"connection", b"close"),
                (b"accept-encoding", b"identity"),
                *self._own,
            ]
            if request.method == b"POST" or body:
                own.append((b"content-length", b"%d" % len(body)))
            await self._exchange(
                wire,
                h11.Request(method=request.method, target=path.encode(), headers=own + kept),
                body,
                entry,
            )

    def _checked(self, request: h11.Request, entry: EgressEntry) -> str:
        """The path and query to ask for; Denied for anything that is not a request to the endpoint."""
        text = request.target.decode("ascii", "replace")
        entry.what = text.partition("?")[0][:200]
        self._ask()
        if request.method == b"CONNECT" or not text.startswith("/"):
            raise Denied("host", f"only the model's endpoint is reached from here, at {INSIDE}")
        if request.method not in (b"GET", b"POST"):
            raise Denied("method", f"{entry.verb[:16]} is not permitted: GET and POST are", status=405)
        path, _, query = text.partition("?")
        below = f"{self._target.path}/"
        if (
            not is_plain(path)
            or "%" in path
            or ";" in path
            or "//" in path
            or not f"{path}/".startswith(below)
        ):
            raise Denied("path", f"only paths below {below} are reached from here", status=404)
        if any(name.lower() in _CREDENTIALS for name, _ in parse_qsl(query, keep_blank_values=True)):
            raise Denied("credential", "a key in the query: the key is added outside of the jail", status=400)
        return text

    def _ask(self) -> None:
        """Raise Denied unless a request may leave at this moment."""
        if self._rung is not None and (rung := self._rung()) != "propose":
            raise Denied("stop" if rung == "stop" else "dial", f"the dial is at {rung}: nothing is sent")

    async def _exchange(
        self, wire: JailConnection, asked: h11.Request, body: bytes, entry: EgressEntry
    ) -> None:
        self._ask()  # the body may have taken minutes, and so may the connection
        reader, writer = await dial(self._target.origin, self._policy, entry)
        try:
            self._ask()
            talk = h11.Connection(h11.CLIENT, max_incomplete_event_size=self._policy.max_head)
            out = (talk.send(asked) or b"") + (talk.send(h11.Data(data=body)) or b"" if body else b"")
            writer.write(out + (talk.send(h11.EndOfMessage()) or b""))
            await writer.drain()
            events = _events(talk, reader)
            count, scrub = self._meter(entry), KeyScrub(self._key)
            async for event in events:
                if isinstance(event, h11.Response):
                    entry.status = event.status_code
                    await wire.relay(self._head(event))
                elif isinstance(event, h11.Data):
                    count(len(event.data))
                    if piece := scrub.feed(bytes(event.data)):
                        await wire.relay(h11.Data(data=piece))
                elif isinstance(event, h11.EndOfMessage):
                    if rest := scrub.rest():
                        await wire.relay(h11.Data(data=rest))
                    await wire.relay(h11.EndOfMessage())
        except (h11.ProtocolError, OSError):
            if wire.relayed:
                raise Broke from None
            raise Denied("unreachable", "the model's endpoint broke off", status=502) from None
        finally:
            writer.transport.abort()

    def _head(self, answer: h11.Response) -> h11.Response:
        fields = dict(answer.headers)
        if fields.get(b"content-encoding", b"identity") != b"identity":
            raise Denied("encoding", "the endpoint compresses although it was asked not to", status=502)
        if 300 <= answer.status_code < 400:
            raise Denied("redirect", f"the endpoint answers {answer.status_code}: not followed", status=502)
        kept = [
            (name, KeyScrub(self._key).whole(value))
            for name, value in answer.headers
            if name in _RETURNED or name.startswith(_RETURNED_FAMILIES)
        ]
        return h11.Response(status_code=answer.status_code, headers=kept)


async def _events(talk: h11.Connection, reader: asyncio.StreamReader) -> AsyncIterator[object]:
    """The parts of one answer, as they come."""
    while True:
        event = talk.next_event()
        if event is h11.NEED_DATA:
            talk.receive_data(await reader.read(_CHUNK))
            continue
        if isinstance(event, h11.ConnectionClosed):
            raise h11.RemoteProtocolError("closed without an answer")
        yield event
        if isinstance(event, h11.EndOfMessage):
            return


def _key_fields(key: bytes, header: bytes) -> list[tuple[bytes, bytes]]:
    if not key:
        return []
    return [(header, b"Bearer " + key if header == b"authorization" else key)]


class KeyScrub:
    """Replaces a key in a stream by as many asterisks; holds back only what may be the key's beginning."""

    def __init__(self, key: bytes) -> None:
        self._key, self._held = key, b""

    def feed(self, piece: bytes) -> bytes:
        """What may go on now."""
        if not self._key:
            return piece
        text = (self._held + piece).replace(self._key, b"*" * len(self._key))
        most = min(len(self._key) - 1, len(text))
        keep = next((n for n in range(most, 0, -1) if self._key.startswith(text[-n:])), 0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def rest(self) -> bytes:
        """What was held back, once nothing more comes."""
        held, self._held = self._held, b""
        return held

    def whole(self, text: bytes) -> bytes:
        """A text that is complete."""
        return self.feed(text) + self.rest()
