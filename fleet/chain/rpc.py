"""JSON-RPC over HTTP to a node that is not trusted: bounded in time and bytes, every answer checked.

The room's only importer of httpcore, which is what httpx wraps: httpx brings a command line of its own that
costs a daemon 0.1 s and 5 MB. Its exceptions and the node's nonsense are translated here.
"""

from __future__ import annotations

import itertools
import json
from base64 import b64encode
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NoReturn, Self
from urllib.parse import unquote, urlsplit

import anyio
import httpcore

from fleet.chain import abi
from fleet.chain.hexes import as_bytes, as_int
from fleet.config import Platform
from fleet.errors import ChainError, RpcError, Unreachable, WrongTarget
from fleet.unanswered import BAD_GATEWAY, GATEWAY, RESET, TIMED_OUT, unanswered
from sandbox import strict_json

Call = tuple[str, list[Any]]

_HEADERS = [("content-type", "application/json"), ("accept-encoding", "identity")]
_STALE = (httpcore.RemoteProtocolError, httpcore.ReadError, httpcore.WriteError)
_FAILED = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
    ValueError,  # of a URL that is none
)
_KEPT_S = 30.0
"""An idle connection outlives the pause between two looks at the chain."""


class Rpc:
    """One node. `timeout_s` is a total deadline per request, `max_bytes` the largest body that is read.

    Raises Unreachable (retryable, except for 4xx) when no usable answer came, RpcError when the
    node answered with an error object. A batch returns the errors of its elements as values.
    """

    def __init__(self, url: str, *, timeout_s: float = 10.0, max_bytes: int = 32 << 20) -> None:
        self.url = url
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._ids = itertools.count(1)
        self._pool: httpcore.AsyncConnectionPool | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the object may be used again and opens new ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    async def call(self, method: str, params: Sequence[Any] = ()) -> Any:
        """The `result` of one call."""
        ident = next(self._ids)
        answer = await self._exchange(
            {"jsonrpc": "2.0", "id": ident, "method": method, "params": list(params)}
        )
        if not isinstance(answer, dict) or answer.get("id") != ident:
            self._garbage("the answer has another id than the request")
        value = self._outcome(answer)
        if isinstance(value, RpcError):
            raise value
        return value

    async def batch(self, calls: Sequence[Call]) -> list[Any]:
        """Results in the order of the calls; an element that failed is an RpcError instance."""
        if not calls:
            return []
        idents = [next(self._ids) for _ in calls]
        answers = await self._exchange(
            [
                {"jsonrpc": "2.0", "id": ident, "method": method, "params": list(params)}
                for ident, (method, params) in zip(idents, calls, strict=True)
            ]
        )
        if isinstance(answers, dict):
            problem = self._outcome(answers)
            raise problem if isinstance(problem, RpcError) else Unreachable(f"{self.url}: no batches here")
        if not isinstance(answers, list) or not all(isinstance(answer, dict) for answer in answers):
            self._garbage("the answer to a batch is no list of objects")
        found = {answer.get("id"): answer for answer in answers if isinstance(answer.get("id"), int)}
        if len(answers) != len(calls) or found.keys() != set(idents):
            self._garbage("the answer to a batch misses or repeats an id")
        return [self._outcome(found[ident]) for ident in idents]

    async def view(
        self, to: str, name: str, *args: Any, block: str = "latest", gas: int | None = None
    ) -> Any:
        """Call a view of `abi.FUNCTIONS`; its value, or the tuple of its values when there are several."""
        function = abi.FUNCTIONS[name]
        call = {"to": to, "data": "0x" + function.encode(*args).hex()}
        if gas is not None:
            call["gas"] = hex(gas)
        answer = as_bytes(await self.call("eth_call", [call, block]))
        try:
            values = function.decode(answer)
        except ValueError as error:
            raise Unreachable(f"{self.url}: {name} answered nonsense: {error}") from None
        return values[0] if len(values) == 1 else values

    async def check_target(self, platform: Platform) -> None:
        """Prove that this is the profile's chain and has its diamond; WrongTarget says what is not."""
        chain, diamond = platform.chain, platform.chain.diamond
        profile = f"profile {platform.name!r}"
        count = "0x" + abi.FUNCTIONS["feedbackCount"].encode().hex()
        calls: list[Call] = [
            ("eth_chainId", []),
            ("eth_getCode", [diamond, "latest"]),
            ("eth_call", [{"to": diamond, "data": count}, "latest"]),
        ]
        found, code, answer = await self.batch(calls)
        for problem in (found, code):
            if isinstance(problem, RpcError):
                raise problem
        if as_int(found) != chain.id:
            raise WrongTarget(
                f"{self.url} is chain {as_int(found)}, but {profile} says chain.id = {chain.id}",
                remedy=f"fix chain.id or chain.rpc in {profile}",
            )
        if not as_bytes(code):
            raise WrongTarget(
                f"no contract at {diamond} on chain {chain.id}: chain.diamond of {profile}",
                remedy=f"fix chain.diamond in {profile}, or deploy the platform",
            )
        if isinstance(answer, RpcError) or len(as_bytes(answer)) != 32:
            raise WrongTarget(
                f"the contract at {diamond} has no feedbackCount(): chain.diamond of {profile}",
                remedy=f"point chain.diamond in {profile} at the platform's diamond",
            )

    async def _exchange(self, body: Any) -> Any:
        content = json.dumps(body, separators=(",", ":")).encode()
        try:
            with anyio.fail_after(self._timeout_s):
                status, raw = await self._post(content)
        except TimeoutError:
            raise _silent(f"{self.url}: no whole answer within {self._timeout_s:g} s", TIMED_OUT) from None
        except _FAILED as error:
            words = f"{self.url}: {str(error) or type(error).__name__}"
            raise _silent(words, _how(error), remedy=_REMEDY) from None
        if status == 429 or status >= 500:
            how = BAD_GATEWAY if status in GATEWAY else ""
            raise _silent(
                f"{self.url}: HTTP {status}", how, remedy="the node is busy or ill: try again later"
            )
        answer = self._json(raw, status)
        if status != 200 and not (isinstance(answer, dict) and "error" in answer):
            raise _final(f"{self.url}: HTTP {status}")
        return answer

    async def _post(self, content: bytes) -> tuple[int, bytes]:
        if self._pool is None:
            # no proxy of the environment: it must not see what is sent to the node
            self._pool = httpcore.AsyncConnectionPool(max_connections=100, keepalive_expiry=_KEPT_S)
        try:
            return await self._stream(self._pool, content)
        except _STALE:
            # A kept-alive connection that the node had closed. Sending the same bytes again is safe
            # for every method used here: a raw transaction has one hash however often it is sent.
            return await self._stream(self._pool, content)

    async def _stream(self, pool: httpcore.AsyncConnectionPool, content: bytes) -> tuple[int, bytes]:
        async with pool.stream(
            "POST", self.url.encode("ascii"), headers=_HEADERS + _login(self.url), content=content
        ) as response:
            encodings = [value for name, value in response.headers if name.lower() == b"content-encoding"]
            if encodings not in ([], [b"identity"]):
                raise _final(f"{self.url}: compressed answers are not accepted")
            size, parts = 0, []
            async for part in response.aiter_stream():
                size += len(part)
                if size > self._max_bytes:
                    raise _final(f"{self.url}: an answer larger than {self._max_bytes} bytes")
                parts.append(part)
            return response.status, b"".join(parts)

    def _json(self, raw: bytes, status: int) -> Any:
        try:
            return strict_json.loads(raw)
        except ValueError:
            kind = "an HTML page" if raw.lstrip()[:1] == b"<" else "no JSON"
            if status != 200:
                raise _final(f"{self.url}: HTTP {status}") from None
            raise Unreachable(
                f"{self.url}: {kind} where a JSON-RPC answer was expected", remedy=_REMEDY
            ) from None

    def _outcome(self, answer: dict[str, Any]) -> Any:
        error = answer.get("error")
        if error is None:
            if "result" not in answer:
                self._garbage("an answer with neither result nor error")
            return answer["result"]
        if not isinstance(error, dict):
            return RpcError("the node answered with an error that is no object")
        code, data = error.get("code"), error.get("data")
        return RpcError(
            str(error.get("message", ""))[:500],
            code=code if isinstance(code, int) else 0,
            data=data if isinstance(data, str) else "",
        )

    def _garbage(self, what: str) -> NoReturn:
        raise Unreachable(f"{self.url}: {what}", remedy=_REMEDY)


_REMEDY = "check chain.rpc in the platform profile, and that the node is up"


def _login(url: str) -> list[tuple[str, str]]:
    """The header that a URL with a user in it stands for."""
    parts = urlsplit(url)
    if parts.username is None:
        return []
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return [("authorization", f"Basic {b64encode(user).decode()}")]


def _silent(message: str, how: str, *, remedy: str = "") -> Unreachable:
    error = Unreachable(message, remedy=remedy)
    error.how = how
    return error


def _how(error: Exception) -> str:
    """How the node did not answer; "" when it did, in something that is not HTTP."""
    if isinstance(error, httpcore.TimeoutException):
        return TIMED_OUT
    if word := unanswered(error):
        return word
    cut = isinstance(error, httpcore.RemoteProtocolError) and "disconnected" in str(error)
    return RESET if cut or isinstance(error, httpcore.ReadError | httpcore.WriteError) else ""


def _final(message: str) -> Unreachable:
    error = Unreachable(message, remedy=_REMEDY)
    error.retryable = False
    return error


def is_oog(error: ChainError) -> bool:
    """True when a read failed for lack of gas or memory: a smaller page may work."""
    text = str(error).lower()
    return any(
        word in text for word in ("oog", "out of gas", "outofgas", "gas limit", "gas required exceeds")
    )
