"""N08: JSON-RPC through a real broker; what is refused never reaches the node, others are still served."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from fleet.broker.broker import Broker
from tests.sandbox.doubles import Got, Server, http_answer, json_answer, listener, policy_for

pytestmark = pytest.mark.anyio

READ_ANSWER = {"jsonrpc": "2.0", "id": 1, "result": "0x1"}
READ = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}
SEND = READ | {"method": "eth_sendRawTransaction", "params": ["0x00"]}


@dataclass
class Rig:
    broker: Broker
    node: Server
    port: int

    async def raw(self, data: bytes) -> tuple[int, Any]:
        """Status and JSON body of the answer to these bytes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        await writer.drain()
        status, body = await read_answer(reader)
        writer.close()
        return status, json.loads(body)

    async def rpc(self, body: bytes | object) -> tuple[int, Any]:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.raw(post("/rpc", raw))


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: broker", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)).decode()
    size = int(next(line[15:] for line in head.lower().split("\r\n") if line.startswith("content-length:")))
    return int(head.split(" ")[1]), await reader.readexactly(size)


def node(got: Got) -> bytes:
    asked = json.loads(got.body)
    ids = [item["id"] for item in asked] if isinstance(asked, list) else [asked["id"]]
    answers = [{"jsonrpc": "2.0", "id": each, "result": "0x1"} for each in ids]
    return json_answer(200, answers if isinstance(asked, list) else answers[0])


@contextlib.asynccontextmanager
async def rig(**limits: Any) -> AsyncIterator[Rig]:
    async with Server(node) as upstream:
        broker = Broker(policy_for(rpc=upstream.url, **limits))
        with listener() as sock:
            async with broker.egress(sock):
                yield Rig(broker, upstream, sock.getsockname()[1])


async def test_reads_pass_single_and_batched() -> None:
    async with rig() as it:
        assert await it.rpc(READ) == (200, {"jsonrpc": "2.0", "id": 1, "result": "0x1"})
        status, answers = await it.rpc([READ, READ | {"id": "b"}])
        assert (status, answers) == (200, [READ_ANSWER, READ_ANSWER | {"id": "b"}])
        assert [record.what for record in it.broker.records] == ["eth_chainId", "eth_chainId,eth_chainId"]


@pytest.mark.parametrize(
    ("body", "status", "rule"),
    [
        (SEND, 403, "rpc-method"),
        ([READ, SEND], 403, "rpc-method"),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","method":"eth_chainId"}',
            403,
            "rpc-duplicate-key",
        ),
        (READ | {"id": SEND}, 403, "rpc-shape"),
        (b'{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransactio\\u006e","params":[]}', 403, "rpc-method"),
        (b"not json", 400, "rpc-shape"),
        (b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[1e999]}', 400, "rpc-shape"),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[-1' + b"9" * 99 + b"]}",
            400,
            "rpc-shape",
        ),
    ],
)
async def test_n08_refused_without_a_dial(body: object, status: int, rule: str) -> None:
    async with rig() as it:
        got, answer = await it.rpc(body)
        assert (got, answer["rule"], answer["error_class"]) == (status, rule, "refused")
        assert it.node.dials == 0
        assert [(record.verb, record.rule) for record in it.broker.records] == [("RPC", rule)]
        assert (await it.rpc(READ))[0] == 200


@pytest.mark.parametrize(
    ("head", "status", "rule"),
    [
        ("POST /rpc HTTP/1.1\r\nhost: b\r\ncontent-length: 20000000\r\n\r\n", 413, "body"),
        (
            "POST /rpc HTTP/1.1\r\nhost: b\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            411,
            "transfer-encoding",
        ),
        (
            "POST /rpc HTTP/1.1\r\nhost: b\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0",
            411,
            "transfer-encoding",
        ),
        ("POST /rpc HTTP/1.1\r\nhost: b\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n", 400, "http"),
        ("POST /rpc HTTP/1.1\r\nhost: b\r\ncontent-length: -1\r\n\r\n", 400, "http"),
        ("POST /rpc HTTP/1.1\r\nhost: b\r\nx: " + "a" * 40_000 + "\r\n\r\n", 431, "http"),
        ("\x16\x03\x01\r\n\r\n", 400, "http"),
        ("GET /rpc HTTP/1.1\r\nhost: b\r\n\r\n", 404, "service"),
        ("POST /rpc/../tx HTTP/1.1\r\nhost: b\r\ncontent-length: 0\r\n\r\n", 404, "service"),
        ("POST /admin HTTP/1.1\r\nhost: b\r\ncontent-length: 0\r\n\r\n", 404, "service"),
        ("POST /tx HTTP/1.1\r\nhost: b\r\ncontent-length: 2\r\n\r\n{}", 400, "shape"),
        ("POST /rpc HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}", 400, "http"),
    ],
)
async def test_n08_malformed_heads(head: str, status: int, rule: str) -> None:
    async with rig() as it:
        got, answer = await it.raw(head.encode("latin-1"))
        assert (got, answer["rule"]) == (status, rule)
        assert it.node.dials == 0


async def test_a_body_that_is_really_20_mb_is_refused_and_others_are_served() -> None:
    async with rig() as it:
        body = b"[" + b" " * 20_000_000
        reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
        writer.write(post("/rpc", body))
        assert (await read_answer(reader))[0] == 413
        assert (await it.rpc(READ))[0] == 200
        writer.close()


async def test_n08_two_hundred_slow_clients_do_not_keep_others_out() -> None:
    async with rig(max_connections=16, head_s=1.0) as it:
        slow = [await asyncio.open_connection("127.0.0.1", it.port) for _ in range(200)]
        for _, writer in slow:
            writer.write(b"POST /rpc HTTP/1.1\r\nhost: b")
        assert (await it.rpc(READ))[0] == 200
        gone = [await asyncio.wait_for(gone_at(reader), 5) for reader, _ in slow]
        assert all(gone)
        for _, writer in slow:
            writer.close()


async def gone_at(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read(1) == b""
    except ConnectionResetError:
        return True


async def test_a_connection_is_kept_and_then_ended_when_idle() -> None:
    async with rig(idle_s=0.2) as it:
        reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
        for _ in range(3):
            writer.write(post("/rpc", json.dumps(READ).encode()))
            assert (await read_answer(reader))[0] == 200
        assert await asyncio.wait_for(gone_at(reader), 5)
        writer.close()
        assert it.node.dials == 1


async def test_requests_are_counted() -> None:
    async with rig(max_requests=2) as it:
        assert [(await it.rpc(READ))[0] for _ in range(3)] == [200, 200, 429]


async def test_a_node_that_is_gone_slow_or_endless() -> None:
    async with rig(request_s=0.3, max_response=1000) as it:
        it.node.answer = lambda _: http_answer(200, b"x" * 2000)
        assert (await it.rpc(READ))[1]["rule"] == "too-large"
        it.node.answer = lambda _: b""
        assert (await it.rpc(READ))[1]["error_class"] == "timeout"
    async with rig(request_s=30) as it:  # asked again for some seconds first
        it.node.answer = lambda _: b"no http at all\r\n\r\n"
        assert (await it.rpc(READ))[1]["error_class"] == "unreachable"
        await it.node.__aexit__()
        assert (await it.rpc(READ))[0] == 502


async def test_nothing_is_served_after_the_call() -> None:
    async with Server(node) as upstream:
        broker = Broker(policy_for(rpc=upstream.url))
        with listener() as sock:
            port = sock.getsockname()[1]
            async with broker.egress(sock):
                open_reader, open_writer = await asyncio.open_connection("127.0.0.1", port)
                open_writer.write(b"POST /rpc HT")
                await asyncio.sleep(0.05)
            assert await asyncio.wait_for(gone_at(open_reader), 5)
            open_writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
