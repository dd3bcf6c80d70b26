"""Trouble of a node that passes is waited for within the request; what it takes in another form is used."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from fleet.chain.node.rpc import Rpc
from fleet.chain.signing.broadcast import Receipts
from fleet.errors import NodeBusy, RpcError, Unreachable
from tests.chain.conftest import Chain, Kit, make_kit

pytestmark = pytest.mark.anyio

Reply = tuple[int, str, bytes]
"""Status, headers, body."""


@dataclass
class Node:
    """A node whose first answers are `troubles`; then each call's result is its method's length."""

    troubles: list[Callable[[Any], Reply]] = field(default_factory=list)
    shape: Callable[[Any], Reply] | None = None
    asked: list[Any] = field(default_factory=list)
    url: str = ""

    def answer(self, request: Any) -> Reply:
        self.asked.append(request)
        if self.troubles:
            return self.troubles.pop(0)(request)
        return self.shape(request) if self.shape else plain(request)


def plain(request: Any) -> Reply:
    return 200, "", json.dumps(results(request)).encode()


def results(request: Any) -> Any:
    if isinstance(request, list):
        return [results(one) for one in request]
    return {"jsonrpc": "2.0", "id": request["id"], "result": hex(len(request["method"]))}


def error(code: int, message: str) -> Callable[[Any], Reply]:
    def reply(request: Any) -> Reply:
        said = {"code": code, "message": message}
        many = request if isinstance(request, list) else [request]
        answers = [{"jsonrpc": "2.0", "id": one["id"], "error": said} for one in many]
        return 200, "", json.dumps(answers if isinstance(request, list) else answers[0]).encode()

    return reply


def http(status: int, headers: str = "", content: bytes = b"<html>x</html>") -> Callable[[Any], Reply]:
    return lambda request: (status, headers, content)


@asynccontextmanager
async def serving(node: Node) -> AsyncIterator[Rpc]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            status, headers, content = node.answer(json.loads(await reader.readexactly(size)))
            if status:
                writer.write(
                    f"HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {len(content)}\r\n"
                    f"{headers}\r\n".encode()
                    + content
                )
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server, Rpc(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as rpc:
        yield rpc


TROUBLES = {
    "429": http(429),
    "429 with a pause": http(429, "retry-after: 1\r\n"),
    "503 with a pause": http(503, "retry-after: 1\r\n"),
    "502": http(502),
    "HTML with 200": http(200),
    "nothing": http(200, "", b""),
    "cut": http(0),
    "-32005": error(-32005, "limit exceeded"),
    "header not found": error(-32000, "header not found"),
    "internal error": error(-32603, "Internal error"),
    "another id": http(200, "", b'{"jsonrpc":"2.0","id":987654,"result":"0x1"}'),
}


@pytest.mark.parametrize("kind", TROUBLES)
async def test_one_hiccup_is_waited_for(kind: str) -> None:
    node = Node([TROUBLES[kind]])
    async with serving(node) as rpc:
        assert await rpc.call("eth_chainId") == "0xb"
    node = Node([TROUBLES[kind]])
    async with serving(node) as rpc:
        assert await rpc.batch([("eth_a", []), ("eth_bc", [])]) == ["0x5", "0x6"]
    node = Node([TROUBLES[kind]])
    async with serving(node) as rpc:
        assert (await rpc.w3.eth.block_number) == len("eth_blockNumber")


async def test_only_the_element_that_met_trouble_is_asked_again() -> None:
    def half(request: Any) -> Reply:
        first, second = results(request)
        busy = {"jsonrpc": "2.0", "id": second["id"], "error": {"code": -32005, "message": "limit exceeded"}}
        return 200, "", json.dumps([first, busy]).encode()

    node = Node([half])
    async with serving(node) as rpc:
        assert await rpc.batch([("eth_a", []), ("eth_bc", [])]) == ["0x5", "0x6"]
    assert [one["method"] for one in node.asked[0]] == ["eth_a", "eth_bc"]
    assert node.asked[1]["method"] == "eth_bc"


async def test_a_revert_and_a_command_are_not_repeated() -> None:
    node = Node([error(3, "execution reverted")])
    async with serving(node) as rpc:
        with pytest.raises(RpcError, match="reverted"):
            await rpc.call("eth_call")
    assert len(node.asked) == 1
    for method in ("evm_mine", "anvil_reorg", "eth_sendTransaction"):
        node = Node([error(-32005, "limit exceeded")])
        async with serving(node) as rpc:
            with pytest.raises(Unreachable):
                await rpc.call(method)
        assert len(node.asked) == 1


async def test_a_limit_that_lasts_is_the_nodes_and_never_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def soon(seconds: float) -> None:
        clock[0] += seconds

    clock = [1.0]
    monkeypatch.setattr("fleet.chain.node.errors.anyio", SimpleNamespace(sleep=soon))
    monkeypatch.setattr("fleet.chain.node.errors.time", SimpleNamespace(monotonic=lambda: clock[0]))
    node = Node(shape=error(-32005, "limit exceeded"))
    async with serving(node) as rpc:
        with pytest.raises(NodeBusy, match="limit exceeded"):
            await rpc.call("eth_chainId")
        with pytest.raises(NodeBusy, match="limit exceeded"):
            await rpc.batch([("eth_a", []), ("eth_b", [])])
    assert len(node.asked) > 6


async def test_that_a_block_is_unknown_answers_a_question_for_it() -> None:
    for method in ("eth_getBlockByNumber", "eth_getLogs"):
        node = Node(shape=error(-32000, "unknown block"))
        async with serving(node) as rpc:
            with pytest.raises(RpcError, match="unknown block"):
                await rpc.call(method)
            (found,) = await rpc.batch([(method, [])])
        assert isinstance(found, RpcError)
        assert len(node.asked) == 2


def refusing(request: Any) -> Reply:
    if isinstance(request, list):
        return error_of_all(-32600, "batch requests are not supported")
    return plain(request)


def error_of_all(code: int, message: str) -> Reply:
    said = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return 200, "", json.dumps(said).encode()


def at_most_two(request: Any) -> Reply:
    if isinstance(request, list) and len(request) > 2:
        return error_of_all(-32000, "too many items")
    return plain(request)


def with_413(request: Any) -> Reply:
    return (413, "", b"") if isinstance(request, list) else plain(request)


@pytest.mark.parametrize(("shape", "most"), [(refusing, 1), (at_most_two, 2), (with_413, 1)])
async def test_a_batch_that_a_node_refuses_is_split(shape: Callable[[Any], Reply], most: int) -> None:
    node = Node(shape=shape)
    calls: list[tuple[str, list[Any]]] = [("eth_" + "x" * n, []) for n in range(5)]
    async with serving(node) as rpc:
        assert await rpc.batch(calls) == [hex(4 + n) for n in range(5)]
        node.asked.clear()
        assert await rpc.batch(calls) == [hex(4 + n) for n in range(5)]
    assert max(len(one) if isinstance(one, list) else 1 for one in node.asked) == most


def strings(request: Any) -> Reply:
    many = request if isinstance(request, list) else [request]
    answers = [results(one) | {"id": str(one["id"])} for one in many]
    return 200, "", json.dumps(answers if isinstance(request, list) else answers[0]).encode()


def zipped(request: Any) -> Reply:
    status, _, content = plain(request)
    return status, "content-encoding: gzip\r\n", gzip.compress(content)


@pytest.mark.parametrize("shape", [strings, zipped])
async def test_answers_in_another_form_are_used(shape: Callable[[Any], Reply]) -> None:
    async with serving(Node(shape=shape)) as rpc:
        assert await rpc.call("eth_chainId") == "0xb"
        assert await rpc.call_bytes("eth_getStorageAtxx") == b"\x12"
        assert await rpc.batch([("eth_a", []), ("eth_bc", [])]) == ["0x5", "0x6"]


class Shouting(Rpc):
    """Hashes in upper case, as some gateways write them."""

    async def batch(self, calls: Any) -> list[Any]:
        return [_upper(answer) for answer in await super().batch(calls)]


def _upper(answer: Any) -> Any:
    if isinstance(answer, dict) and "transactionHash" in answer:
        return answer | {"transactionHash": _upper(answer["transactionHash"])}
    return "0x" + answer[2:].upper() if isinstance(answer, str) and len(answer) == 66 else answer


@pytest.mark.devnet
async def test_hashes_in_upper_case_are_ours(chain: Chain) -> None:
    async with Shouting(chain.rpc.url) as rpc:
        kit: Kit = await make_kit(chain, rpc)
        receipt = await kit.signer.submit(kit.post("shouted"))
        assert (await Receipts(rpc).lookup([receipt.tx])) == [receipt]
