"""Small real servers for the guest tools: a platform, a node and a signer, scripted by the test."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eth_abi.abi import decode, encode
from eth_utils.crypto import keccak

from fleet.broker.broker import Broker, EgressPolicy
from fleet.broker.egress_policy import EgressTarget, parse_target
from fleet.chain.ports import PaymentQuote
from fleet.errors import Refused, TxFailed

ROOT = Path(__file__).resolve().parents[2]
SITE_PACKAGES = next(path for path in sys.path if path.endswith("site-packages"))
DIAMOND = "0x" + "d1" * 20
TOKEN = "0x" + "70" * 20
CALLER = "0x" + "ca" * 20
OWNER = "0x" + "a1" * 20
NAME = "qa-run7-1"
APP, FACE, PERSONA = (
    keccak(text=f"localharness.{label}") for label in ("app.wasm", "public_face", "persona")
)
METADATA = {
    role: "0x" + key.hex()
    for role, key in {"app": APP, "face": FACE, "persona": PERSONA, "localharness.persona": PERSONA}.items()
}

Raw = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Got:
    """One request as a server saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def http_answer(status: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def json_answer(status: int, value: object, *headers: str) -> bytes:
    return http_answer(status, json.dumps(value).encode(), "content-type: application/json", *headers)


async def read_request(reader: asyncio.StreamReader) -> Got:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:]) if name
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Got(method, path, headers, body)


class Server:
    """A loopback HTTP server whose answers are bytes; `got` is what reached it. An answer with `at_once` is
    asked in threads, so that requests overlap."""

    def __init__(self, answer: Callable[[Got], bytes] | None = None, raw: Raw | None = None) -> None:
        self.got: list[Got] = []
        self.dials = self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.answer = answer or (lambda _: http_answer(200, b"ok"))
        self._raw = raw

    async def __aenter__(self) -> Server:
        await self.listen()
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def listen(self) -> None:
        """Take connections; again after `leave`, on the same port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def leave(self) -> None:
        """Refuse every new connection."""
        self._server.close()

    async def __aexit__(self, *_: object) -> None:
        self.leave()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.dials += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            if self._raw is not None:
                await self._raw(reader, writer)
            else:
                while True:
                    got = await read_request(reader)
                    self.got.append(got)
                    at_once = getattr(self.answer, "at_once", False)
                    writer.write(await asyncio.to_thread(self.answer, got) if at_once else self.answer(got))
                    await writer.drain()
                    if got.headers.get("connection") == "close":
                        break
        writer.close()


def selector(signature: str) -> str:
    return "0x" + keccak(text=signature)[:4].hex()


class Node:
    """A chain in a dictionary, behind real JSON-RPC; `views` maps a selector to what it gives."""

    def __init__(self) -> None:
        self.views: dict[str, tuple[str, tuple[str, ...], Callable[..., tuple[Any, ...]]]] = {}
        self.methods: list[str] = []
        self.estimate: int | dict[str, Any] = 300_000
        self.broken = b""

    def view(self, signature: str, types: tuple[str, ...], give: Callable[..., tuple[Any, ...]]) -> None:
        self.views[selector(signature)] = (signature, types, give)

    def answer(self, got: Got) -> bytes:
        if self.broken:
            return http_answer(200, self.broken)
        asked = json.loads(got.body)
        found = [self._reply(one) for one in (asked if isinstance(asked, list) else [asked])]
        return json_answer(200, found if isinstance(asked, list) else found[0])

    def _reply(self, request: dict[str, Any]) -> dict[str, Any]:
        self.methods.append(request["method"])
        return {"jsonrpc": "2.0", "id": request["id"]} | self._one(request)

    def _one(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["method"] == "eth_blockNumber":
            return {"result": "0x2a"}
        if request["method"] == "eth_estimateGas":
            known = isinstance(self.estimate, int)
            return {"result": hex(self.estimate)} if known else {"error": self.estimate}  # type: ignore[arg-type]
        data = bytes.fromhex(request["params"][0]["data"][2:])
        found = self.views.get("0x" + data[:4].hex())
        if found is None:
            reason = "0x08c379a0" + encode(["string"], ["Diamond: function not found"]).hex()
            return {"error": {"code": 3, "message": "execution reverted", "data": reason}}
        signature, types, give = found
        inputs = [kind for kind in signature.partition("(")[2].rstrip(")").split(",") if kind]
        return {"result": "0x" + encode(types, give(*decode(inputs, data[4:]))).hex()}


@dataclass
class Chain:
    """State that transactions change, shared by the node's views and the signer."""

    owners: dict[str, str] = field(default_factory=dict)
    mains: dict[str, int] = field(default_factory=dict)
    metadata: dict[tuple[int, bytes], bytes] = field(default_factory=dict)
    credit: int = 5 * 10**18
    cost: int = 0

    def on(self, node: Node) -> None:
        zero = "0x" + "0" * 40
        node.view("registrationCost()", ("uint256",), lambda: (self.cost,))
        node.view("ownerOfName(string)", ("address",), lambda name: (self.owners.get(name, zero),))
        node.view("idOfName(string)", ("uint256",), lambda name: (7 if name in self.owners else 0,))
        node.view("mainOf(address)", ("uint256",), lambda who: (self.mains.get(who, 0),))
        node.view("creditOf(address)", ("uint256",), lambda _: (self.credit,))
        node.view("metadata(uint256,bytes32)", ("bytes",), lambda i, key: (self.metadata.get((i, key), b""),))


@dataclass(frozen=True, slots=True)
class Submitted:
    key: str
    to: str
    data: bytes
    value: int
    gas: int


class NoPurse:
    """The part of a TxPort that pays for nothing."""

    async def pay(self, quote: PaymentQuote, value: int, seconds: int, *, own: bool) -> dict[str, Any]:
        raise Refused(f"no purse pays {value} of {quote} in {seconds} s, {own}", rule="key")


class Signer:
    """A TxPort: keeps what was asked; `mined` decides what became of it."""

    def __init__(self, mined: Callable[[Submitted], dict[str, Any]] | None = None) -> None:
        self.submitted: list[Submitted] = []
        self.tokens: list[tuple[str, str]] = []
        self.payments: list[tuple[PaymentQuote, int, int, bool]] = []
        self.ended: tuple[str, str] | None = None
        self.mined = mined or (lambda _: {})

    async def submit(self, key: str, to: str, data: bytes, value: int, gas: int) -> dict[str, Any]:
        self.submitted.append(Submitted(key, to, data, value, gas))
        base = {
            "tx": f"0x{len(self.submitted):064x}",
            "status": 1,
            "gas_used": 250_000,
            "block": 9,
            "reverted": "",
        }
        return base | self.mined(self.submitted[-1])

    async def token(self, key: str, route: str, age: int = 0) -> dict[str, Any]:
        self.tokens.append((key, route))
        stamp, signature = f"{len(self.tokens)}" + f"-{age}" * bool(age), "sig" if key == "caller" else key
        return {"token": f"{CALLER}:{stamp}:0x{signature}", "address": CALLER}

    async def pay(self, quote: PaymentQuote, value: int, seconds: int, *, own: bool) -> dict[str, Any]:
        self.payments.append((quote, value, seconds, own))
        return {"authorization": {"from": CALLER, "nonce": "0x" + "00" * 32}, "signature": "0x" + "00" * 65}

    def over(self) -> tuple[str, str] | None:
        return self.ended


class FailingSigner(Signer):
    """A TxPort whose transactions are sent and do not succeed."""

    async def submit(self, key: str, to: str, data: bytes, value: int, gas: int) -> dict[str, Any]:
        await super().submit(key, to, data, value, gas)
        raise TxFailed("ran out of gas", kind="oog", tx="0xdead", gas_used=gas)


@dataclass
class Bench:
    """A platform, a node, a signer and the broker before them; `run` executes the real guest as a process."""

    site: Server
    node: Node
    node_server: Server
    signer: Signer
    broker: Broker
    address: str
    chain: Chain

    async def run(self, tool: str, args: dict[str, Any], **ctx: Any) -> dict[str, Any]:
        code, out, err = await self.raw_run({"v": 1, "tool": tool, "args": args, "ctx": self.ctx() | ctx})
        assert code == 0, err.decode()
        result: dict[str, Any] = json.loads(out)["result"]
        return result

    async def raw_run(self, request: object) -> tuple[int, bytes, bytes]:
        line = request if isinstance(request, bytes) else json.dumps(request).encode()
        return await run_guest(line + b"\n", self.address)

    def ctx(self) -> dict[str, Any]:
        return {
            "run": "run7",
            "prefix": "qa-run7-",
            "chain_id": 31337,
            "diamond": DIAMOND,
            "site": self.site.url,
            "proxy": self.site.url,
            "call_url": f"{self.site.url}/v1beta/models/gemini-flash:generateContent",
            "stream_url": f"{self.site.url}/v1beta/models/gemini-flash:streamGenerateContent?alt=sse",
            "token_header": "x-goog-api-key",
            "route": "gemini",
            "metadata": METADATA,
            "codes": {"no_entry": "LH0302", "too_large": "LH0303"},
            "keys": {"caller": CALLER, NAME: OWNER},
            "deadline_s": 20.0,
        }


async def run_guest(line: bytes, broker: str = "127.0.0.1:1") -> tuple[int, bytes, bytes]:
    """Exit status, standard output and error of one guest process, started as the jail starts it."""
    code = (
        f"import sys; sys.path += [{str(ROOT)!r}, {SITE_PACKAGES!r}]; "
        "from sandbox.guest import main; sys.exit(main())"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        "-B",
        "-c",
        code,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"QA_BROKER": broker, "PATH": os.environ["PATH"]},
    )
    out, err = await process.communicate(line)
    assert process.returncode is not None
    return process.returncode, out, err


def policy_for(*urls: str, rpc: str = "http://127.0.0.1:1", **extra: Any) -> EgressPolicy:
    """A policy that lists exactly these base URLs; the first one is the proxy."""
    targets = [parse_target(url) for url in urls]
    proxy = EgressTarget(targets[0].origin, targets[0].path.rstrip("/")) if targets else None
    return EgressPolicy(rpc=rpc, hosts=frozenset(t.origin for t in targets), proxy=proxy, **extra)


def listener() -> socket.socket:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen(64)
    return sock


@contextlib.asynccontextmanager
async def bench(
    answer: Callable[[Got], bytes] | None = None,
    *,
    raw: Raw | None = None,
    signer: Signer | None = None,
    acts: str = "",
) -> AsyncIterator[Bench]:
    """`acts`: a path of the site that may be acted on, at the rung `exercise`."""
    node, chain, signer = Node(), Chain(), signer or Signer()
    chain.on(node)
    async with Server(answer, raw) as site, Server(node.answer) as node_server:
        acted = (EgressTarget(parse_target(site.url).origin, acts),) if acts else ()
        rung = {"rung": lambda: "exercise"} if acts else {}
        broker = Broker(policy_for(site.url, rpc=node_server.url, act_paths=acted, **rung), signer)
        with listener() as sock:
            host, port = sock.getsockname()
            async with broker.egress(sock):
                yield Bench(site, node, node_server, signer, broker, f"{host}:{port}", chain)
