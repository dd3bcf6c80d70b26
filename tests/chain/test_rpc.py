"""A node that misbehaves: each answer becomes one clear error, in bounded time and memory."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fleet.chain.node.hexes import cut_out
from fleet.chain.node.rpc import Rpc
from fleet.config import Platform, parse
from fleet.errors import RpcError, Unreachable, WrongTarget
from tests.chain.conftest import Chain

pytestmark = pytest.mark.anyio

Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[str]:
    """A server that reads one request per connection, answers with whatever `answer` writes, and hangs up."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await answer(await reader.readexactly(size), writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def body(content: bytes, status: str = "200 OK", extra: str = "") -> Answer:
    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        ident = json.loads(request).get("id") if request[:1] == b"{" else 0
        filled = content.replace(b"$ID", str(ident).encode())
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(filled)}\r\n{extra}\r\n".encode() + filled)

    return answer


GOOD = b'{"jsonrpc":"2.0","id":$ID,"result":"0x1"}'


async def failure(answer: Answer, **options: float) -> Unreachable:
    async with (
        serving(answer) as url,
        Rpc(url, timeout_s=options.get("timeout_s", 5), max_bytes=10_000, retries={}) as rpc,
    ):
        with pytest.raises(Unreachable) as caught:
            await rpc.call("eth_chainId")
    return caught.value


async def test_good_answer() -> None:
    async with serving(body(GOOD)) as url, Rpc(url) as rpc:
        assert await rpc.call("eth_chainId") == "0x1"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<!DOCTYPE html><html>502</html>", "HTML page"),
        (b'{"jsonrpc":"2.0","id":$ID,"resu', "no JSON"),
        (b"", "no JSON"),
        (b'{"jsonrpc":"2.0","id":999999,"result":"0x1"}', "id of the answer differs"),
        (b'{"jsonrpc":"2.0","id":$ID}', "neither result nor error"),
        (b'[{"id":$ID,"result":1}]', "id of the answer differs"),
        (b'{"jsonrpc":"2.0","id":$ID,"result":NaN}', "no JSON"),
        (b'{"jsonrpc":"2.0","id":$ID,"result":' + b"[" * 4000, "no JSON"),
        (b'{"jsonrpc":"2.0","id":$ID,"result":' + b"9" * 5000 + b"}", "no JSON"),
        (b'{"jsonrpc":"2.0","id":$ID,"result":' + b"9" * 4000 + b"}", "no JSON"),
        (b'{"jsonrpc":"2.0","id":$ID,"result":1e999}', "no JSON"),
        (b"\xff\xfe\xff", "no JSON"),
    ],
)
async def test_nonsense_is_unreachable(content: bytes, said: str) -> None:
    error = await failure(body(content))
    assert said in str(error)
    assert "chain.rpc" in error.remedy


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        ("429 Too Many Requests", True),
        ("503 Busy", True),
        ("500 Oops", True),
        ("404 Gone", False),
        ("301 Moved", False),
    ],
)
async def test_http_status_says_whether_to_try_again(status: str, retryable: bool) -> None:
    error = await failure(body(b"<html>x</html>", status))
    assert error.retryable is retryable
    assert status[:3] in str(error)


async def test_error_object_with_status_400_is_the_nodes_answer() -> None:
    content = b'{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"bad params","data":"0xff"}}'
    async with serving(body(content, "400 Bad Request")) as url, Rpc(url) as rpc:
        with pytest.raises(RpcError, match="bad params") as caught:
            await rpc.call("eth_call", [{}])
    assert (caught.value.code, caught.value.data) == (-32602, "0xff")


async def test_giant_body_is_cut_while_reading() -> None:
    async def flood(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(2000):
            writer.write(b" " * 10_000)
            await writer.drain()

    error = await failure(flood)
    assert "larger than 10000 bytes" in str(error)
    assert not error.retryable


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip"])
async def test_bodies_compressed_in_another_way_are_refused(encoding: str) -> None:
    error = await failure(body(GOOD, extra=f"content-encoding: {encoding}\r\n"))
    assert "compressed" in str(error)


async def test_a_body_that_claims_to_be_gzip_is_unreachable() -> None:
    assert "incorrect header check" in str(await failure(body(GOOD, extra="content-encoding: gzip\r\n")))


async def test_gzip_that_unfolds_to_more_than_the_limit_is_cut() -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    error = await failure(body(bomb, extra="content-encoding: gzip\r\n"))
    assert "larger than 10000 bytes" in str(error)


async def test_one_byte_at_a_time_meets_the_total_deadline() -> None:
    async def drip(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        for _ in range(100):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)

    started = time.monotonic()
    error = await failure(drip, timeout_s=0.4)
    assert "within 0.4 s" in str(error)
    assert time.monotonic() - started < 2


async def test_silent_server_meets_the_total_deadline() -> None:
    async def silent(request: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(2)

    assert "within 0.3 s" in str(await failure(silent, timeout_s=0.3))


async def test_cut_connection_and_refused_connection() -> None:
    async def cut(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")

    assert (await failure(cut)).retryable
    async with Rpc("http://127.0.0.1:1") as rpc:
        with pytest.raises(Unreachable) as caught:
            await rpc.call("eth_chainId")
    assert caught.value.retryable


async def test_connection_that_the_node_had_closed_is_tried_once_more() -> None:
    seen = 0

    async def flaky(request: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            await body(GOOD)(request, writer)

    async with serving(flaky) as url, Rpc(url) as rpc:
        assert await rpc.call("eth_chainId") == "0x1"
    assert seen == 2


@pytest.mark.parametrize(
    "content",
    [
        b'[{"id":1,"result":1}]',
        b'[{"id":1,"result":1},{"id":1,"result":1}]',
        b'[{"id":1,"result":1},{"id":2,"result":1},{"id":3,"result":1}]',
        b'[{"id":1,"result":1},{"id":7,"result":1}]',
        b'[{"id":1,"result":1},null]',
        b'"0x1"',
        b'{"id":null,"result":1}',
    ],
)
async def test_batches_must_answer_each_call_once(content: bytes) -> None:
    async with serving(body(content)) as url, Rpc(url, retries={}) as rpc:
        with pytest.raises(Unreachable):
            await rpc.batch([("a", []), ("b", [])])


async def test_batch_is_put_back_in_order_and_keeps_its_errors() -> None:
    content = b'[{"id":2,"error":{"code":3,"message":"no"}},{"id":1,"result":"0x1"}]'
    async with serving(body(content)) as url, Rpc(url) as rpc:
        first, second = await rpc.batch([("a", []), ("b", [])])
    assert first == "0x1"
    assert isinstance(second, RpcError)
    assert await rpc.batch([]) == []


@pytest.mark.parametrize("answer", [b'"0x"', b'"0x01"', b'"zz"', b"null", b"7", b'"0x' + b"ff" * 31 + b'"'])
async def test_view_that_answers_nonsense(answer: bytes) -> None:
    async with serving(body(b'{"id":$ID,"result":' + answer + b"}")) as url, Rpc(url) as rpc:
        with pytest.raises(Unreachable, match="invalid answer"):
            await rpc.view("0x" + "11" * 20, "feedbackCount")


@pytest.mark.parametrize(
    ("raw", "data"),
    [
        (b'{"id":1,"result":"0x00fF"}', b"\x00\xff"),
        (b'{"result":"0x","id":1}', b""),
        (b'{"id": 1, "result": "0x00ff"}', None),
        (b'{"id":1,"result":"0x0"}', None),
        (b'{"id":1,"result":"0x00 ff"}', None),
        (b'{"id":1,"result":"0x00ff', None),
        (b'{"id":1,"result":"0xaa","result":"0xbb"}', None),
        (b'{"id":1,"result":"0xaa","\\u0072esult":"0xbb"}', None),
        (b'{"id":1,"error":"\\"result":"0xaa"}', None),
        (b'{"id":1,"result":"0xaa","x":"' + b" " * 2_000 + b'"}', None),
        (b" " * 2_000 + b'{"id":1,"result":"0xaa"}', None),
    ],
)
async def test_data_is_cut_out_only_where_json_would_find_it(raw: bytes, data: bytes | None) -> None:
    rest, found = cut_out(raw)
    assert found == data
    if data is None:
        assert rest == raw
    else:
        assert json.loads(rest) | {"result": f"0x{data.hex()}"} == json.loads(raw.lower())


@pytest.mark.parametrize(
    "content",
    [
        b'{"jsonrpc":"2.0","id":$ID,"result":"0x1"}',
        b'{"jsonrpc":"2.0","id":"x$ID","result":"0xaa"}',
        b'{"jsonrpc":"2.0","id":$ID,"result":"0xaa"',
        b'{"jsonrpc":"2.0","id":$ID,"result":"0xaa"} {}',
        b'{"jsonrpc":"2.0","id":$ID,"x":{"result":"0xaa"}}',
        b'[{"jsonrpc":"2.0","id":$ID,"result":"0xaa"}]',
        b'{"jsonrpc":"2.0","id":$ID,"result":"0xaa","x":1e999}',
    ],
)
async def test_data_in_an_answer_that_is_none_is_unreachable(content: bytes) -> None:
    async with serving(body(content)) as url, Rpc(url) as rpc:
        with pytest.raises(Unreachable):
            await rpc.call_bytes("eth_call")


async def test_an_error_is_raised_whatever_data_is_with_it() -> None:
    content = b'{"jsonrpc":"2.0","id":$ID,"result":"0xaa","error":{"code":3,"message":"no"}}'
    async with serving(body(content)) as url, Rpc(url) as rpc:
        with pytest.raises(RpcError):
            await rpc.call_bytes("eth_call")


def platform(url: str, **chain: object) -> Platform:
    values = {"rpc": url, "id": 31337, "diamond": "0x" + "11" * 20} | chain
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items())
    text = f'name = "devnet"\n[chain]\n{lines}\n[web]\nsite = "http://x"\nface = "http://x/{{name}}"\nproxy = "http://x"'
    return parse(Platform, text, file="devnet.toml")


@pytest.mark.devnet
async def test_right_target_passes(chain: Chain) -> None:
    await chain.rpc.check_target(platform(chain.rpc.url, diamond=chain.at.diamond))


@pytest.mark.devnet
@pytest.mark.parametrize(
    ("change", "said", "remedy"),
    [
        ({"id": 4217}, "is chain 31337, but profile 'devnet' says chain.id = 4217", "chain.id"),
        ({"diamond": "0x" + "22" * 20}, "no contract at 0x2222", "chain.diamond"),
        ({"diamond": "token"}, "has no feedbackCount()", "chain.diamond"),
    ],
)
async def test_wrong_target_names_key_and_remedy(
    chain: Chain, change: dict[str, object], said: str, remedy: str
) -> None:
    if change.get("diamond") == "token":
        change = {"diamond": chain.at.token}
    values = {"diamond": chain.at.diamond} | change
    with pytest.raises(WrongTarget, match=r".") as caught:
        await chain.rpc.check_target(platform(chain.rpc.url, **values))
    assert said in str(caught.value)
    assert remedy in caught.value.remedy
    assert not caught.value.retryable
    assert caught.value.exit_code == 4


async def test_target_that_is_away_is_unreachable_and_not_wrong() -> None:
    async with Rpc("http://127.0.0.1:1") as rpc:
        with pytest.raises(Unreachable) as caught:
            await rpc.check_target(platform("http://127.0.0.1:1"))
    assert not isinstance(caught.value, WrongTarget)


def test_only_two_modules_of_the_room_import_the_http_client() -> None:
    """The provider of web3, and the question where the log ends, which is asked without web3."""
    room = Path(__file__).parents[2] / "fleet" / "chain"
    users = {path.name for path in room.rglob("*.py") if "import httpx" in path.read_text()}
    assert users == {"end.py", "provider.py"}


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ("", b""),
        ("me:s%20cret@", b"authorization: Basic bWU6cyBjcmV0\r\n"),  # me:s cret
        ("token@", b"authorization: Basic dG9rZW46\r\n"),
    ],
)
async def test_a_user_in_the_url_becomes_the_header_it_stands_for(user: str, header: bytes) -> None:
    heads = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).replace(b"\nAuthorization:", b"\nauthorization:"))
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://{user}127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server, Rpc(url, retries={}) as rpc:
        with pytest.raises(Unreachable):
            await rpc.call("eth_chainId")
    assert len(heads) == 2  # a connection that was closed is tried once more
    for head in heads:
        assert header in head
        assert (b"uthorization" in head) is bool(header)
        assert b"@" not in head


@pytest.mark.parametrize("url", ["http://[", "ftp://127.0.0.1", "http://127.0.0.1:99999999", "", "http://é"])
async def test_a_url_that_is_none_is_unreachable(url: str) -> None:
    async with Rpc(url) as rpc:
        with pytest.raises(Unreachable):
            await rpc.call("eth_chainId")
