"""Where a log ends, asked without web3: the same as with it, and hostile nodes end in one clear error."""

from __future__ import annotations

import json
from asyncio import StreamWriter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fleet.chain.log.end import LARGEST, LogEnd, log_end
from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.codec import encode
from fleet.config import GasSection, Platform, parse
from fleet.devnet import node
from fleet.errors import FleetError, RpcError, Unreachable, WrongTarget
from tests.chain.conftest import Chain
from tests.chain.test_rpc import Answer, serving

pytestmark = pytest.mark.anyio

DIAMOND = "0x" + "d1" * 20
WORD = "0x" + "00" * 31
ONE = encode(["address[]", "uint64[]", "string[]"], [["0x" + "11" * 20], [2**64 - 1], ["x"]]).hex()
NONE = encode(["address[]", "uint64[]", "string[]"], [[], [], []]).hex()


def profile(url: str, diamond: str = DIAMOND, chain_id: int = 7, **more: Any) -> Platform:
    top = f"log = {json.dumps(more.pop('log'))}\n" if "log" in more else ""
    extra = "\n".join(f"{key} = {json.dumps(value)}" for key, value in more.items())
    return parse(
        Platform,
        f'name = "p"\n{top}[chain]\nrpc = "{url}"\nid = {chain_id}\ndiamond = "{diamond}"\n{extra}\n[web]\n',
        file="p.toml",
    )


def answering(*results: Any, blocks: list[str] | None = None) -> Answer:
    """Each call gets the next of the results; a dictionary is an error."""
    left = list(results)

    async def answer(request: bytes, writer: StreamWriter) -> None:
        said = []
        for one in json.loads(request):
            if blocks is not None and one["method"] == "eth_call":
                blocks.append(one["params"][1])
            result = left.pop(0)
            said.append({"id": one["id"], "error" if isinstance(result, dict) else "result": result})
        await raw(json.dumps(said).encode())(request, writer)

    return answer


def raw(content: bytes, status: str = "200 OK") -> Answer:
    async def answer(request: bytes, writer: StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(content)}\r\n\r\n".encode() + content)

    return answer


async def test_it_is_what_the_log_says_through_web3(chain: Chain, tmp_path: Path) -> None:
    chain_id = int(await chain.rpc.call("eth_chainId"), 16)
    here = profile(chain.rpc.url, chain.at.diamond, chain_id)
    await chain.clear()
    assert await log_end(here, tmp_path) == LogEnd()
    for text in ("first", "second"):
        await node.invoke(chain.rpc, chain.at.deployer, chain.at.diamond, "submitFeedback", text)
    log = FeedbackLog(chain.rpc, chain.at.diamond, GasSection())
    (last,) = await log.range(1, 1)
    assert (
        await log_end(here, tmp_path)
        == LogEnd(await log.count(), last.timestamp)
        == LogEnd(2, last.timestamp)
    )


async def test_only_confirmed_blocks_are_read(tmp_path: Path) -> None:
    blocks: list[str] = []
    async with serving(answering("0x64", "0x7", WORD + "03", "0x" + ONE, blocks=blocks)) as url:
        assert await log_end(profile(url, confirmations=10), tmp_path) == LogEnd(3, 2**64 - 1)
    assert blocks == ["0x5a", "0x5a"]


async def test_a_log_in_a_file_needs_no_node(tmp_path: Path) -> None:
    assert await log_end(profile("http://127.0.0.1:9", log="file:own"), tmp_path) == LogEnd()


@pytest.mark.parametrize(
    ("results", "kind", "said"),
    [
        (["0x8", WORD + "01"], WrongTarget, "is chain 8, but profile 'p' says chain.id = 7"),
        (["0x7", "0x"], WrongTarget, "has no feedbackCount"),
        (["0x7", {"message": "busy"}], RpcError, "busy"),
        (["0x7", {"no": "message"}], RpcError, "http://127"),
        (["0x7", 12], Unreachable, "expected bytes"),
        ([None, WORD + "01"], Unreachable, "expected a number"),
        (["0x7", WORD + "01", "0x1234"], Unreachable, "invalid answer to feedbackRange"),
        (["0x7", WORD + "01", "0x" + NONE], Unreachable, "has 0 entries"),
        (["0x7", "0x" + "ff" * 32, "0x" + "ff" * 200], Unreachable, "invalid answer to feedbackRange"),
    ],
)
async def test_an_answer_that_is_no_log(
    tmp_path: Path, results: Sequence[Any], kind: type[FleetError], said: str
) -> None:
    async with serving(answering(*results)) as url:
        with pytest.raises(kind, match=said):
            await log_end(profile(url), tmp_path, retries={})


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        (b"[" * 90_000, "200 OK", "no JSON"),
        (b"<html>", "200 OK", "no JSON"),
        (b"{}", "200 OK", "expected a list"),
        (b"[1]", "200 OK", "expected a list"),
        (b'[{"id":0,"result":"0x7"},{"id":0,"result":"0x7"}]', "200 OK", "misses or repeats"),
        (b"", "502 Bad Gateway", "HTTP 502"),
        (b"x" * (LARGEST + 1), "200 OK", f"more than {LARGEST} bytes"),
    ],
)
async def test_an_answer_that_is_none(tmp_path: Path, content: bytes, status: str, said: str) -> None:
    async with serving(raw(content, status)) as url:
        with pytest.raises(Unreachable, match=said):
            await log_end(profile(url), tmp_path, retries={})


async def test_a_node_that_is_down(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="ConnectError"):
        await log_end(profile("http://127.0.0.1:9"), tmp_path, retries={})


async def test_trouble_that_passes_is_waited_for_as_everywhere(tmp_path: Path) -> None:
    good = answering("0x7", WORD + "01", "0x" + ONE)
    trouble = [raw(b"", "502 Bad Gateway"), raw(b"", "429 Too Many Requests"), raw(b"<html>")]

    async def answer(request: bytes, writer: StreamWriter) -> None:
        await (trouble.pop(0) if trouble else good)(request, writer)

    async with serving(answer) as url:
        assert await log_end(profile(url), tmp_path) == LogEnd(1, 2**64 - 1)
    assert trouble == []


async def test_what_the_node_refuses_is_not_repeated(tmp_path: Path) -> None:
    asked: list[bytes] = []

    async def answer(request: bytes, writer: StreamWriter) -> None:
        asked.append(request)
        await raw(b"", "403 Forbidden")(request, writer)

    async with serving(answer) as url:
        with pytest.raises(Unreachable, match="HTTP 403"):
            await log_end(profile(url), tmp_path)
    assert len(asked) == 1


def test_its_calls_have_the_form_of_the_abi() -> None:
    assert FUNCTIONS["feedbackRange"].inputs == ("uint256", "uint256")
    assert FUNCTIONS["feedbackCount"].outputs == ("uint256",)
