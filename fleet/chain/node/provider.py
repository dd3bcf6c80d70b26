"""web3 over our own provider: JSON-RPC by httpx to an untrusted node.

The room's only importer of httpx, and web3's one entry point. Time and bytes are bounded; httpx's exceptions
and the node's invalid answers become our errors here, before web3 sees them.
"""

from __future__ import annotations

import itertools
import ssl
import sys
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NoReturn, TypeVar, cast

import anyio
import certifi
import httpx
from eth_abi.codec import ABICodec
from eth_abi.decoding import ContextFramesBytesIO
from eth_abi.exceptions import DecodingError
from web3 import AsyncWeb3
from web3.providers.async_base import AsyncJSONBaseProvider
from web3.types import RPCEndpoint, RPCResponse

from fleet.chain.node.errors import FOR_BLOCKS, RETRIES, Meaning, NodePatience, trouble
from fleet.chain.node.hexes import as_bytes, as_int, cut_out
from fleet.errors import NodeBusy, RpcError, Unreachable
from fleet.http_client import put_on_record, retry_after, unzipping
from fleet.retry import OWN_BLOCK, Retry
from fleet.unanswered import BAD_GATEWAY, RESET, TIMED_OUT, unanswered
from sandbox import strict_json
from sandbox.errors import GATEWAY

Reply = TypeVar("Reply")
_STALE = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
_FAILED = (
    httpx.TransportError,
    httpx.InvalidURL,
    ValueError,  # of an invalid URL
    zlib.error,
)
_KEPT_S = 30.0
"""An idle connection outlives the pause between two looks at the chain."""
_STATE = frozenset({"eth_call", "eth_getBalance", "eth_getCode", "eth_getTransactionCount"})
_OURS_S = 30.0
"""Seconds after a transaction of ours in which reads ask for its block as well."""
_REPEATABLE = ("eth_", "net_", "web3_")
_ILL = "the node is busy or ill: try again later"
_REMEDY = "check chain.rpc in the platform profile, and that the node is up"
_SHAPES: Mapping[str, Callable[[Any], object]] = {
    "eth_blockNumber": as_int,
    "eth_call": as_bytes,
    "eth_chainId": as_int,
    "eth_gasPrice": as_int,
    "eth_getBalance": as_int,
    "eth_getCode": as_bytes,
    "eth_getTransactionCount": as_int,
}
"""Required shape of a result: web3's formatters pass on what they do not understand."""
_UNFOLDS = 2
"""Maximum reads per byte: web3's codec checks the heads of a tuple before it decodes them."""


def connect(
    url: str, *, timeout_s: float, max_bytes: int, retries: Mapping[Meaning, Retry] = RETRIES
) -> AsyncWeb3[NodeProvider]:
    """web3 on one node, without middleware and name service: it sends only the requests made."""
    provider = NodeProvider(url, timeout_s=timeout_s, max_bytes=max_bytes, retries=retries)
    return AsyncWeb3(provider, middleware=[], ens=cast(Any, None))


def metered_codec() -> ABICodec:
    """web3's strict codec, on a stream that bounds expansion."""
    codec: ABICodec = AsyncWeb3(AsyncJSONBaseProvider(), ens=cast(Any, None)).codec
    codec.stream_class = _Metered
    return codec


class NodeProvider(AsyncJSONBaseProvider):
    """One node. `timeout_s` is a total deadline per attempt, `max_bytes` the maximum body size.

    Raises Unreachable (retryable, except for 4xx) without a usable answer, RpcError when the
    node answered with an error object, NodeBusy when trouble of the node did not pass in time. A batch is one
    request, unless the node takes none or only smaller ones; an element's error is in its place.
    """

    global_ccip_read_enabled = False  # a contract must not choose what we fetch next

    def __init__(
        self, url: str, *, timeout_s: float, max_bytes: int, retries: Mapping[Meaning, Retry] = RETRIES
    ) -> None:
        super().__init__()
        self.request_counter = itertools.count(1)
        self._url = url
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._retries = retries
        self._most = sys.maxsize
        """Largest batch that the node takes, as far as is known."""
        self._floor, self._floor_until = 0, 0.0
        self._client: httpx.AsyncClient | None = None

    async def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:  # noqa: ANN401  web3's
        """For web3: the answer of `ask`, with a result of the shape that the method requires."""
        result = await self.ask(method, params)
        if method in _SHAPES:
            _SHAPES[method](result)
        return {"jsonrpc": "2.0", "id": 1, "result": result}

    async def make_batch_request(self, requests: Sequence[tuple[RPCEndpoint, Any]]) -> list[RPCResponse]:
        """Answers in the order of the requests, each with its own result or error; an element that met
        trouble of the node is asked again alone."""
        if self._floor and time.monotonic() < self._floor_until and any(map(_reads_latest, requests)):
            # answers of a node that has the block of our last transaction; in the end those that it gives
            patience = NodePatience({Meaning.BEHIND: OWN_BLOCK})
            while True:
                *answers, head = await self._answers([*requests, (RPCEndpoint("eth_blockNumber"), [])])
                if isinstance(newest := self.outcome(head), RpcError) or as_int(newest) >= self._floor:
                    return answers
                if not await patience.wait(RpcError("header not found")):
                    self._floor = 0  # its chain has stepped back
                    return answers
        return await self._answers(requests)

    def seen(self, block: int) -> None:
        """Note that a transaction of ours is in this block: a replica without it is not believed."""
        self._floor, self._floor_until = max(self._floor, block), time.monotonic() + _OURS_S

    async def _answers(self, requests: Sequence[tuple[RPCEndpoint, Any]]) -> list[RPCResponse]:
        answers: dict[int, RPCResponse] = {}
        left = list(range(len(requests)))
        patience = self._patience(*(method for method, _ in requests))
        while left:
            try:
                got = await self._in_parts([requests[place] for place in left])
            except (Unreachable, RpcError) as error:
                if not await patience.wait(error):
                    raise self._at_last(error) from None
                continue
            answers |= dict(zip(left, got, strict=True))
            left = [place for place in left if self._passes(requests[place], self.outcome(answers[place]))]
            if left and not await patience.wait(worst := self.outcome(answers[left[0]])):
                raise self._at_last(worst)
        return [answers[place] for place in range(len(requests))]

    async def ask(self, method: str, params: Sequence[Any]) -> Any:  # noqa: ANN401  JSON of any shape
        """The `result` of one call, of any shape."""
        if self._floor and time.monotonic() < self._floor_until and _reads_latest((method, params)):
            (answer,) = await self.make_batch_request([(RPCEndpoint(method), params)])
            if isinstance(value := self.outcome(answer), RpcError):
                raise value
            return value

        async def once() -> Any:  # noqa: ANN401  JSON of any shape
            request = self.form_request(RPCEndpoint(method), params)
            return self._result(request, await self._exchange(self.encode_rpc_dict(request)))

        return await self._patiently(method, params, once)

    async def ask_bytes(self, method: str, params: Sequence[Any]) -> bytes:
        """The same of a call that is answered with data, which is not read as JSON first (mark B7)."""

        async def once() -> bytes:
            request = self.form_request(RPCEndpoint(method), params)
            status, raw = await self._whole(self.encode_rpc_dict(request))
            rest, data = cut_out(raw)
            value = as_bytes(self._result(request, self._answer(rest, status)))
            return value if data is None else data

        return await self._patiently(method, params, once)

    async def _patiently(
        self, method: str, params: Sequence[Any], once: Callable[[], Awaitable[Reply]]
    ) -> Reply:
        patience = self._patience(method)
        while True:
            try:
                return await once()
            except (Unreachable, RpcError) as error:
                if isinstance(error, RpcError) and not self._passes((method, params), error):
                    raise
                if not await patience.wait(error):
                    raise self._at_last(error) from None

    def _patience(self, *methods: str) -> NodePatience:
        """Raw transactions have one hash however often they are sent; commands of a test node have not."""
        repeatable = all(one.startswith(_REPEATABLE) and one != "eth_sendTransaction" for one in methods)
        return NodePatience(self._retries if repeatable else {})

    def _passes(self, request: tuple[str, Any], value: object) -> bool:
        """Whether this error is trouble of the node; that a block is unknown answers a question for it."""
        if not isinstance(value, RpcError):
            return False
        meaning = trouble(value)[0]
        return meaning in self._retries and not (meaning is Meaning.BEHIND and _asks_a_block(request))

    def _at_last(self, error: Unreachable | RpcError) -> Unreachable | RpcError:
        """What is raised when patience has ended: a limit or a lag is the node's, never an answer."""
        if isinstance(error, RpcError) and trouble(error)[0] in (Meaning.BUSY, Meaning.BEHIND):
            return NodeBusy(f"{self._url}: {error}", remedy=_ILL)
        return error

    async def _in_parts(self, requests: Sequence[tuple[RPCEndpoint, Any]]) -> list[RPCResponse]:
        """The answers of one batch, or of as many as the node takes; a refused batch is split."""
        done: list[RPCResponse] = []
        while len(done) < len(requests):
            part = requests[len(done) : len(done) + self._most]
            try:
                done += await self._batch(part)
            except (Unreachable, RpcError) as error:
                if len(part) == 1 or not _refuses_batches(error):
                    raise
                never = isinstance(error, RpcError) and trouble(error)[0] is Meaning.NO_BATCH
                self._most = 1 if never else max(1, len(part) // 2)
        return done

    async def _batch(self, requests: Sequence[tuple[RPCEndpoint, Any]]) -> list[RPCResponse]:
        sent = [self.form_request(method, params) for method, params in requests]
        if len(sent) == 1:
            answer = await self._exchange(self.encode_rpc_dict(sent[0]))
            return [self._response(self._matched(sent[0], answer))]
        answers = await self._exchange(self.encode_batch_request_dicts(sent))
        if isinstance(answers, dict):
            problem = self.outcome(self._response(answers))
            raise problem if isinstance(problem, RpcError) else _final(f"{self._url}: no batches here")
        if not isinstance(answers, list) or not all(isinstance(answer, dict) for answer in answers):
            self.refuse("expected a list of objects in reply to a batch")
        found = {_ident(answer): answer for answer in answers}
        idents = [_ident(one) for one in cast("list[dict[str, Any]]", sent)]
        if len(answers) != len(sent) or found.keys() != set(idents):
            self.refuse("the answer to a batch misses or repeats an id")
        return [self._response(found[ident]) for ident in idents]

    @staticmethod
    def outcome(response: RPCResponse) -> Any:  # noqa: ANN401  JSON of any shape
        """The result, or the node's error as a value."""
        if "error" not in response:
            return response["result"]
        error: Any = response["error"]
        return RpcError(error["message"], code=error["code"], data=error["data"])

    async def disconnect(self) -> None:
        """Close the connections; the object may be used again and opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def refuse(self, what: str) -> NoReturn:
        """Raise Unreachable: the node's answer is unusable."""
        raise Unreachable(f"{self._url}: {what}", remedy=_REMEDY)

    def _result(self, request: Mapping[str, Any], answer: object) -> Any:  # noqa: ANN401  JSON of any shape
        value = self.outcome(self._response(self._matched(request, answer)))
        if isinstance(value, RpcError):
            raise value
        return value

    def _matched(self, request: Mapping[str, Any], answer: object) -> dict[str, Any]:
        """The answer to this request; an error may lack the id of a request that the node did not read."""
        ident = _ident(answer) if isinstance(answer, dict) else None
        unread = isinstance(answer, dict) and ident is None and answer.get("error") is not None
        if not isinstance(answer, dict) or (ident != request["id"] and not unread):
            self.refuse("the id of the answer differs from the id of the request")
        return answer

    async def _exchange(self, content: bytes) -> Any:  # noqa: ANN401  JSON of any shape
        status, raw = await self._whole(content)
        return self._answer(raw, status)

    async def _whole(self, content: bytes) -> tuple[int, bytes]:
        """Status and body of an answer that is one; Unreachable without."""
        try:
            with anyio.fail_after(self._timeout_s):
                if self._client is None:
                    self._client = _client(self._url)
                try:
                    status, asked_s, raw = await self._stream(self._client, content)
                except _STALE:
                    # The node had closed a kept-alive connection. Sending the same bytes again is safe for
                    # every method used here: a raw transaction has one hash however often it is sent.
                    status, asked_s, raw = await self._stream(self._client, content)
        except TimeoutError:
            raise _silent(f"{self._url}: no whole answer within {self._timeout_s:g} s", TIMED_OUT) from None
        except _FAILED as error:
            words = f"{self._url}: {str(error) or type(error).__name__}"
            raise _silent(words, _how(error), remedy=_REMEDY) from None
        if status == 429 or (status == 503 and asked_s):
            busy = NodeBusy(f"{self._url}: HTTP {status}", remedy=_ILL)
            busy.asked_s = asked_s
            raise busy
        if status >= 500 or status in (408, 425):
            how = BAD_GATEWAY if status in GATEWAY else ""
            raise _silent(f"{self._url}: HTTP {status}", how, remedy=_ILL)
        return status, raw

    def _answer(self, raw: bytes, status: int) -> Any:  # noqa: ANN401  JSON of any shape
        try:
            answer = strict_json.loads(raw)
        except ValueError:
            kind = "an HTML page" if raw.lstrip()[:1] == b"<" else "no JSON"
            if status != 200:
                raise _final(f"{self._url}: HTTP {status}") from None
            raise Unreachable(
                f"{self._url}: {kind} where a JSON-RPC answer was expected", remedy=_REMEDY
            ) from None
        if status != 200 and not (isinstance(answer, dict) and "error" in answer):
            raise _final(f"{self._url}: HTTP {status}")
        return answer

    async def _stream(self, client: httpx.AsyncClient, content: bytes) -> tuple[int, float, bytes]:
        """Status, the pause that the node asks for (Retry-After, seconds), and the body."""
        async with client.stream("POST", self._url, content=content) as response:
            unzip = unzipping(response.headers.get("content-encoding", ""))
            if unzip is None:
                raise _final(f"{self._url}: an answer compressed in a way that was not asked for")
            size, parts = 0, []
            async for raw in response.aiter_raw():
                part = unzip(raw, self._max_bytes + 1)
                size += len(part)
                if size > self._max_bytes:
                    raise _final(f"{self._url}: an answer larger than {self._max_bytes} bytes")
                parts.append(part)
            return response.status_code, retry_after(response.headers), b"".join(parts)

    def _response(self, answer: dict[str, Any]) -> RPCResponse:
        """The answer in the form that web3 accepts: a result, or an error with a code and a message."""
        error = answer.get("error")
        if error is None:
            if "result" not in answer:
                self.refuse("an answer with neither result nor error")
            return {"jsonrpc": "2.0", "id": 1, "result": answer["result"]}
        if not isinstance(error, dict):
            error = {"message": "the node answered with an error that is not an object"}
        code, data = error.get("code"), error.get("data")
        return {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {
                "code": code if isinstance(code, int) else 0,
                "message": str(error.get("message", ""))[:500],
                "data": data if isinstance(data, str) else "",
            },
        }


class _Metered(ContextFramesBytesIO):
    """A stream with bounded rereads: offsets can point at the same tail again and again."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)  # type: ignore[no-untyped-call]
        self._left = _UNFOLDS * len(data)

    def read(self, size: int | None = -1, /) -> bytes:
        part = super().read(min(size or 0, len(self.getbuffer())))
        self._left -= len(part)
        if self._left < 0:
            raise DecodingError("an answer that unfolds to too much")
        return part


def _client(url: str) -> httpx.AsyncClient:
    if (httpx.URL(url).port or 0) > 65_535:
        raise httpx.InvalidURL(f"{url}: the port is above 65535")  # httpx notices too late, in a group
    tls: ssl.SSLContext | bool = False
    if url.startswith("https:"):
        tls = ssl.create_default_context()
        tls.load_verify_locations(certifi.where())
    return httpx.AsyncClient(
        event_hooks={"request": [put_on_record]},
        headers={"content-type": "application/json", "accept-encoding": "identity", "user-agent": "qa-fleet"},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # accept no cookies
        limits=httpx.Limits(max_connections=100, keepalive_expiry=_KEPT_S),
        timeout=None,  # `_exchange` enforces a total deadline
        trust_env=False,  # a proxy from the environment must not see requests to the node
        verify=tls,
    )


def _asks_a_block(request: tuple[str, Any]) -> bool:
    method, params = request
    return method in FOR_BLOCKS and "latest" not in params


def _reads_latest(request: tuple[str, Any]) -> bool:
    method, params = request
    return method in _STATE and any(one in ("latest", "pending") for one in params if isinstance(one, str))


def _ident(answer: Mapping[str, Any]) -> int | None:
    """The id of an answer; some nodes write the number as a string."""
    found = answer.get("id")
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 20:
        return int(found)
    return found if isinstance(found, int) else None


def _refuses_batches(error: Unreachable | RpcError) -> bool:
    """Whether the node may take these requests in smaller batches, or one by one."""
    if isinstance(error, RpcError):
        return trouble(error)[0] in (Meaning.NO_BATCH, Meaning.OTHER)
    return not error.retryable


def _silent(message: str, how: str, *, remedy: str = "") -> Unreachable:
    error = Unreachable(message, remedy=remedy)
    error.how = how
    return error


def _how(error: Exception) -> str:
    """How the node failed to answer; "" when it answered with something that is not HTTP."""
    if isinstance(error, httpx.TimeoutException):
        return TIMED_OUT
    if word := unanswered(error):
        return word
    cut = isinstance(error, httpx.RemoteProtocolError) and "disconnected" in str(error)
    return RESET if cut or isinstance(error, httpx.ReadError | httpx.WriteError) else ""


def _final(message: str) -> Unreachable:
    error = Unreachable(message, remedy=_REMEDY)
    error.retryable = False
    return error
