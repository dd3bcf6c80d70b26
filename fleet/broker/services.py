"""The broker's own services: reads of the chain, a transaction, a call token; each parsed strictly."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import h11

from fleet.broker.egress_policy import EgressPolicy, EgressTarget
from fleet.broker.egress_record import EgressEntry
from fleet.broker.rpc_policy import Denied, rewrite
from fleet.chain.node.errors import FOR_BLOCKS, RETRIES, Meaning, NodePatience, trouble
from fleet.chain.ports import PaymentQuote
from fleet.errors import (
    ChainError,
    FleetError,
    NodeBusy,
    Refused,
    RpcError,
    TxFailed,
    Unfunded,
    Unreachable,
)
from fleet.http_client import AnswerTooLarge, HttpFailure, open_client, retry_after, send
from fleet.retry import OWN_BLOCK
from fleet.text import line
from sandbox import strict_json
from sandbox.payment_offers import offers

if TYPE_CHECKING:
    import httpx

Answer = tuple[int, Mapping[str, Any] | bytes]
Service = Callable[[bytes, EgressEntry], Awaitable[Answer]]

SETTLE_S = 60.0
"""Longest that a transaction in flight may keep a call's egress open after the jail is gone."""
MAX_AGE_S = 400 * 86_400
"""Seconds that the clock of a token may be off, in either direction."""

MAX_KEPT_ANSWERS = 32
"""Resources whose last answers are kept for one call."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_DATA = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)
_LABEL = re.compile(r"[a-z0-9-]{1,63}", re.ASCII)
_WEI = re.compile(r"[0-9]{1,40}", re.ASCII)
_ROUTE = re.compile(r"[a-z0-9-]{0,32}", re.ASCII)
_HEAD = b'{"jsonrpc":"2.0","id":"head","method":"eth_blockNumber","params":[]}'
_SHORT = 8_192
"""Bytes of an answer that is read for an error of the node."""
_JSON = {"content-type": "application/json"}


class TxPort(Protocol):
    """A jail's requests to a run's throwaway keys, by label; the keys never enter the jail."""

    async def submit(self, key: str, to: str, data: bytes, value: int, gas: int) -> dict[str, Any]:
        """`{"tx","status","gas_used","block","reverted"}`; raises Refused, TxFailed, Unreachable."""

    async def token(self, key: str, route: str, age: int = 0) -> dict[str, Any]:
        """`{"token": "<addr>:<ts>:<sig>", "address"}`, fresh; or dated `age` seconds back. Raises Refused."""

    async def pay(self, quote: PaymentQuote, value: int, seconds: int, *, own: bool) -> dict[str, Any]:
        """`{"authorization", "signature"}` of a payment by the purse; raises Refused, Unreachable."""

    def over(self) -> tuple[str, str] | None:
        """Rule and reason once the run may do nothing more."""


class Services:
    """`POST /rpc`, `/tx`, `/auth` and `/pay` for one call."""

    def __init__(self, policy: EgressPolicy, tx: TxPort | None) -> None:
        self._policy, self._tx = policy, tx
        self._tokens = self._payments = 0
        self._answers = dict[str, bytearray]()
        """The beginning of the last answer of each resource that is paid for."""
        self._rpc: RpcUpstream | None = None  # most calls never ask the node
        self._floor = 0
        """Block of the last transaction of this call: what a replica without it says is not passed on."""
        self._acts: set[asyncio.Task[dict[str, Any]]] = set()
        self.by_path: dict[str, Service] = {
            "/rpc": self.rpc,
            "/tx": self.tx,
            "/auth": self.auth,
            "/pay": self.pay,
        }

    async def aclose(self) -> None:
        """Wait for submitted transactions for a limited time, then close the node's connection."""
        if self._acts:
            _, late = await asyncio.wait(self._acts, timeout=SETTLE_S)
            for task in late:
                task.cancel()
        if self._rpc is not None:
            await self._rpc.aclose()

    async def rpc(self, body: bytes, entry: EgressEntry) -> Answer:
        clean, methods = rewrite(body, methods=self._policy.methods, max_log_range=self._policy.max_log_range)
        entry.what, entry.host = ",".join(methods)[:200], urlsplit(self._policy.rpc).netloc.rpartition("@")[2]
        self._policy.ask()
        if not self._policy.rpc:
            raise Denied("node", "this platform has no chain", status=403)
        node = self._rpc = self._rpc or RpcUpstream(self._policy.rpc, max_response=self._policy.max_response)
        try:
            async with asyncio.timeout(self._policy.request_s):
                if self._floor and clean.startswith(b"{"):
                    return await node.post_from(clean, methods, self._floor)
                return await node.post(clean, methods)
        finally:
            entry.address = node.address

    async def tx(self, body: bytes, entry: EgressEntry) -> Answer:
        asked = {"value": "0"} | _object(body, {"key", "to", "data", "gas", "value"})
        key, to, data = (
            _match(asked, "key", _LABEL),
            _match(asked, "to", _ADDRESS),
            _match(asked, "data", _DATA),
        )
        value, gas = _match(asked, "value", _WEI), asked.get("gas")
        if type(gas) is not int or not 0 < gas < 1 << 40:
            raise Denied("shape", "gas: expected a positive integer", status=400)
        entry.host, entry.what = to, data[:10]
        if self._tx is None:
            raise Denied("no-tx", "this call may not send transactions")
        plain = bytes.fromhex(data[2:])
        if plain[:4] in self._policy.never:
            raise Denied("never", f"selector {data[:10]} is on the configured never-list")
        self._policy.ask("a transaction")
        status, answer = await self._act(self._tx.submit(key, to, plain, int(value), gas))
        mined = answer.get("block") if isinstance(answer, Mapping) else 0
        self._floor = max(self._floor, mined if isinstance(mined, int) else 0)
        return status, answer

    async def auth(self, body: bytes, entry: EgressEntry) -> Answer:
        asked = {"route": "", "age": 0} | _object(body, {"key", "route", "age"})
        key, route, age = _match(asked, "key", _LABEL), _match(asked, "route", _ROUTE), asked["age"]
        if type(age) is not int or abs(age) > MAX_AGE_S:
            raise Denied("shape", f"age: expected an integer of at most {MAX_AGE_S}", status=400)
        entry.what = f"{key}:{route}"
        if self._tx is None:
            raise Denied("no-tx", "this call has no keys")
        self._policy.ask("a call token")
        self._tokens += 1
        if self._tokens > self._policy.max_tokens:
            raise Denied("budget", f"more than {self._policy.max_tokens} call tokens for what was charged")
        return await self._act(self._tx.token(key, route, age))

    def keeping(self, url: str, target: EgressTarget) -> bytearray | None:
        """Where the beginning of an answer goes that may be a quote, apart from others; None for any other
        target."""
        if not self._policy.sells(target):
            return None
        self._answers.pop(url, None)
        self._answers[url] = kept = bytearray()
        if len(self._answers) > MAX_KEPT_ANSWERS:
            del self._answers[next(iter(self._answers))]
        return kept

    async def pay(self, body: bytes, entry: EgressEntry) -> Answer:
        """A payment for what a resource has quoted in this call, as it passed here: not as the jail says."""
        asked = _object(body, {"url", "option", "value", "seconds", "own"})
        url, option, value = asked.get("url"), asked.get("option"), asked.get("value", 0)
        seconds, own = asked.get("seconds", 60), asked.get("own", False)
        if not (
            isinstance(url, str) and type(option) is type(value) is type(seconds) is int and type(own) is bool
        ):
            raise Denied("shape", "expected url, option, and value, seconds, own", status=400)
        entry.host, entry.what = urlsplit(url).netloc, urlsplit(url).path[:200]
        if self._tx is None:
            raise Denied("no-tx", "this call has no purse")
        quotes = quotes_in(bytes(self._answers.get(url, b"")))
        if not 0 <= option < len(quotes):
            raise Denied("quote", "that resource has quoted no such terms in this call")
        quote = quotes[option]
        self._policy.ask("a payment")
        self._payments += 1
        if self._payments > self._policy.max_payments:
            raise Denied("budget", f"more than {self._policy.max_payments} payments in one call")
        return await self._act(self._tx.pay(quote, value or quote.amount, seconds, own=own))

    async def _act(self, act: Coroutine[Any, Any, dict[str, Any]]) -> Answer:
        """Run to completion even when the jail ends: never cut between a signature and its receipt."""
        task = asyncio.create_task(act)
        self._acts.add(task)
        task.add_done_callback(self._ended)
        try:
            return 200, await asyncio.shield(task)
        except Refused as refused:
            raise Denied(refused.rule, str(refused)) from None
        except TxFailed as failed:
            if failed.kind == "not_mined":
                return 200, {"error": str(failed), "error_class": "timeout", "tx": failed.tx}
            mined = {"tx": failed.tx, "status": 0, "gas_used": failed.gas_used, "block": 0}
            return 200, mined | {"reverted": str(failed)}
        except Unreachable as error:
            raise Denied("unreachable", str(error), status=502) from None
        except ChainError as error:
            # only a revert is the platform's: why a node did not take a transaction is the node's own reason
            reverted = not isinstance(error, RpcError) or error.code == 3 or "revert" in str(error).lower()
            kind = "refused" if isinstance(error, Unfunded) else "reverted" if reverted else "unreachable"
            return 200, {"error": str(error), "error_class": kind}
        except FleetError as error:
            return 200, {"error": str(error), "error_class": "internal"}

    def _ended(self, task: asyncio.Task[dict[str, Any]]) -> None:
        self._acts.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved: the jail that asked may have ended before


def quotes_in(answer: bytes) -> list[PaymentQuote]:
    """What the beginning of an answer of 402 quotes, in its order."""
    status, headers, body = 0, dict[str, str](), bytearray()
    reader = h11.Connection(h11.CLIENT)
    reader.send(h11.Request(method="GET", target="/", headers=[("host", "quoted")]))
    reader.send(h11.EndOfMessage())
    reader.receive_data(answer)
    with suppress(h11.RemoteProtocolError):
        while not isinstance(event := reader.next_event(), type | h11.EndOfMessage | h11.ConnectionClosed):
            if isinstance(event, h11.Response):
                status = event.status_code
                for name, value in (
                    (one.decode("latin-1"), text.decode("latin-1")) for one, text in event.headers
                ):
                    headers[name] = f"{headers[name]}, {value}" if name in headers else value
            elif isinstance(event, h11.Data):
                body += event.data
    return [
        PaymentQuote(one.scheme, one.network, one.asset, one.payee, one.amount, one.bound)
        for one in offers(status, headers, bytes(body))
    ]


def _object(body: bytes, keys: set[str]) -> dict[str, Any]:
    try:
        asked = strict_json.loads(body)
    except ValueError:
        asked = None
    if not isinstance(asked, dict) or not keys.issuperset(asked):
        raise Denied("shape", f"expected an object of {', '.join(sorted(keys))}", status=400)
    return asked


def _match(asked: Mapping[str, Any], key: str, pattern: re.Pattern[str]) -> str:
    value = asked.get(key)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise Denied("shape", f"{key}: not of the form {pattern.pattern[:40]}", status=400)
    return value


class RpcUpstream:
    """The node, over connections that are kept. The operator chose its URL, so its address is not checked."""

    def __init__(self, url: str, *, max_response: int) -> None:
        self._url, self._max_response = url, max_response
        self._client = open_client(url)
        self._client.event_hooks = {"response": [self._met]}
        self.address = ""
        """Of the node, as it was dialled last."""

    async def _met(self, answer: httpx.Response) -> None:
        peer = answer.extensions["network_stream"].get_extra_info("server_addr")
        self.address = str(peer[0]) if peer else ""

    async def post(self, body: bytes, methods: Sequence[str] = ()) -> tuple[int, bytes]:
        """Status and body of the answer; Denied `unreachable` without one, also when the node refuses for a
        reason of its own (a limit, a lag) until patience ends: all requests are reads, and are repeated."""
        patience = NodePatience(RETRIES)
        while True:
            try:
                return await self._exchange(body, asks_blocks=not FOR_BLOCKS.isdisjoint(methods))
            except AnswerTooLarge:
                why = f"the node answered more than {self._max_response} bytes"
                raise Denied("too-large", why, status=502) from None
            except Unreachable as error:
                if not await patience.wait(error):
                    raise Denied("unreachable", f"the chain's node {error}", status=502) from None

    async def post_from(self, body: bytes, methods: Sequence[str], floor: int) -> tuple[int, bytes]:
        """As `post`, of one request, by a node that has this block; in the end what it answers."""
        patience = NodePatience({Meaning.BEHIND: OWN_BLOCK})
        while True:
            status, raw = await self.post(b"[" + body + b"," + _HEAD + b"]", methods)
            answer, head = _pair(raw)
            if answer is None or "error" in answer:  # no batches here, or trouble that `post` waits for
                return await self.post(body, methods)
            if head >= floor or not await patience.wait(RpcError("header not found")):
                return status, json.dumps(answer).encode()

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _exchange(self, body: bytes, *, asks_blocks: bool) -> tuple[int, bytes]:
        """One attempt; Unreachable when it met trouble of the node instead of an answer."""
        try:
            status, headers, raw = await send(
                self._client, "POST", self._url, body, _JSON, limit=self._max_response, unzip=True
            )
        except AnswerTooLarge:
            raise
        except HttpFailure as failure:
            raise Unreachable("closed the connection" if failure.reached else "does not answer") from None
        if status == 429:
            busy = NodeBusy("answers HTTP 429: too many requests")
            busy.asked_s = retry_after(headers)
            raise busy
        if status >= 500:
            raise Unreachable(f"answers HTTP {status}")
        error = _node_error(raw)
        meaning = trouble(error)[0] if error is not None else Meaning.OTHER
        if meaning in (Meaning.BUSY, Meaning.BEHIND) and not (meaning is Meaning.BEHIND and asks_blocks):
            raise NodeBusy(f"refuses for now: {line(str(error), 200)}")
        if meaning is Meaning.FAULTY:
            raise Unreachable(f"is ill: {line(str(error), 200)}")
        return status, raw


def _pair(raw: bytes) -> tuple[dict[str, Any] | None, int]:
    """The answer to a request, and the node's newest block asked beside it; None for no such pair."""
    try:
        answers = strict_json.loads(raw)
    except ValueError:
        return None, 0
    if (
        not isinstance(answers, list)
        or len(answers) != 2
        or not all(isinstance(one, dict) for one in answers)
    ):
        return None, 0
    head = next((one.get("result") for one in answers if one.get("id") == "head"), None)
    answer = next((one for one in answers if one.get("id") != "head"), None)
    known = isinstance(head, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,16}", head)
    return (answer, int(str(head), 16)) if known else (None, 0)


def _node_error(raw: bytes) -> RpcError | None:
    """The error of a short answer; Unreachable for one that is not JSON. A long one is data."""
    if len(raw) > _SHORT:
        return None
    try:
        answer = strict_json.loads(raw)
    except ValueError:
        raise Unreachable("did not answer in JSON-RPC") from None
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return None
    code, data = error.get("code"), error.get("data")
    return RpcError(
        str(error.get("message", ""))[:500],
        code=code if isinstance(code, int) else 0,
        data=data if isinstance(data, str) else "",
    )
