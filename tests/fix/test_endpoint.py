"""The way out of a fixer's jail: one URL, our key outside, everything else refused with a clear status."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.broker.egress_record import EgressRecord
from fleet.errors import ConfigError
from fleet.fix.fixers import endpoint
from fleet.fix.fixers.endpoint import KeyScrub, ModelEgress
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import End, Image
from tests.sandbox.doubles import Got, Raw, Server, http_answer, listener, read_request

KEY = "sk-canary-5f1c0de5f1c0de"
STREAM = b'data: {"text": "one"}\n\n', b'data: {"text": "two"}\n\n', b"data: [DONE]\n\n"
GUESTS = Path(__file__).parent / "guests"


def post(path: str, body: str = "{}", *headers: str) -> str:
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1:3128", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "connection: close", *headers, "", body])


@contextlib.asynccontextmanager
async def served(
    answer: Callable[[Got], bytes] | None = None,
    raw: Raw | None = None,
    *,
    path: str = "/v1",
    rung: Callable[[], str] | None = None,
    header: str = "authorization",
    **limits: Any,
) -> AsyncIterator[tuple[Server, ModelEgress, Callable[[str], Any]]]:
    async with Server(answer, raw) as upstream:
        url = upstream.url + path
        with pytest.MonkeyPatch.context() as patch:
            for name, value in limits.items():
                patch.setattr(endpoint, name, value)
            way = ModelEgress(url, key=KEY, header=header, rung=rung)
        with listener() as sock:
            async with way.egress(sock):
                port = sock.getsockname()[1]
                yield upstream, way, lambda text: asked(port, text)


async def asked(port: int, text: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.encode("latin-1"))
    out = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := await asyncio.wait_for(reader.read(1 << 16), 10):
            out += piece
    writer.close()
    return out


def refusal(answer: bytes) -> tuple[int, str]:
    return int(answer.split(b" ")[1]), json.loads(answer.partition(b"\r\n\r\n")[2])["rule"]


@pytest.mark.anyio
@pytest.mark.jail
async def test_a_jail_reaches_its_model_and_nothing_else_and_never_sees_the_key(tmp_path: Path) -> None:
    """A real jail: the key is added outside, a key from the jail is replaced, and another path is refused."""
    jail = BwrapJail(Image(mounts=((GUESTS, "guests"),), guest="guests.asking"), pool=0, spool=tmp_path)
    sent = [
        post("/v1/messages", '{"a": 1}', "authorization: Bearer stranger", "x-api-key: stranger"),
        post("/v2/messages"),
        "CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n",
    ]
    async with Server(lambda got: http_answer(200, json.dumps(got.headers).encode())) as upstream:
        way = ModelEgress(f"{upstream.url}/v1", key=KEY)
        try:
            outcome = await jail.call(json.dumps(sent).encode() + b"\n", deadline_s=20, egress=way.egress)
        finally:
            await jail.aclose()
    assert (outcome.end, outcome.code) == (End.EXITED, 0), outcome.stderr
    said = json.loads(outcome.stdout)
    headers = json.loads(said["seen"][0].partition("\r\n\r\n")[2])
    assert headers["authorization"] == f"Bearer {'*' * len(KEY)}"  # the echo is scrubbed on its way back
    assert "stranger" not in said["seen"][0]
    assert [refusal(one.encode()) for one in said["seen"][1:]] == [(404, "path"), (403, "host")]
    (got,) = upstream.got
    assert (got.path, got.body, got.headers["authorization"]) == (
        "/v1/messages",
        b'{"a": 1}',
        f"Bearer {KEY}",
    )
    assert KEY.encode() not in outcome.stdout + outcome.stderr
    assert [(one.status, one.rule) for one in way.records] == [(200, ""), (404, "path"), (403, "host")]
    assert (way.records[0].sent, way.records[0].received) == (8, len(json.dumps(got.headers)))


@pytest.mark.anyio
async def test_only_listed_fields_are_sent_and_returned() -> None:
    answer = http_answer(
        429, b"slow down", "retry-after: 7", "set-cookie: a=b", "x-secret: c", "x-ratelimit-left: 0"
    )
    async with served(lambda _: answer, header="x-api-key") as (upstream, _, ask):
        fields = (
            "anthropic-version: 2023-06-01",
            "cookie: a=b",
            "x-http-method-override: DELETE",
            "x-api-key: k",
        )
        said = await ask(post("/v1/messages", "{}", *fields, "x-goog-api-key: k", "x-forwarded-for: 1.2.3.4"))
    (got,) = upstream.got
    assert got.headers == {
        "host": f"127.0.0.1:{upstream.port}",
        "connection": "close",
        "accept-encoding": "identity",
        "x-api-key": KEY,
        "content-length": "2",
        "anthropic-version": "2023-06-01",
    }
    head = said.partition(b"\r\n\r\n")[0].lower()
    assert head.split(b"\r\n")[0].startswith(b"http/1.1 429")
    assert b"retry-after: 7" in head
    assert b"x-ratelimit-left: 0" in head
    assert b"cookie" not in head
    assert b"x-secret" not in head


@pytest.mark.anyio
async def test_an_answer_streams_through_piece_by_piece() -> None:
    """Each event is out before the next is in: the upstream goes on only after the jail has it."""
    got_first = asyncio.Event()

    async def in_step(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + STREAM[0]
        )
        await writer.drain()
        await asyncio.wait_for(got_first.wait(), 10)
        writer.write(b"".join(STREAM[1:]))
        await writer.drain()

    async with Server(raw=in_step) as upstream, contextlib.AsyncExitStack() as stack:
        way = ModelEgress(f"{upstream.url}/v1", key=KEY)
        sock = stack.enter_context(listener())
        await stack.enter_async_context(way.egress(sock))
        reader, writer = await asyncio.open_connection("127.0.0.1", sock.getsockname()[1])
        writer.write(post("/v1/messages").encode())
        seen = b""
        while STREAM[0] not in seen:
            seen += await asyncio.wait_for(reader.read(1 << 16), 10)
        assert b"text/event-stream" in seen
        got_first.set()
        while piece := await asyncio.wait_for(reader.read(1 << 16), 10):
            seen += piece
        writer.close()
    assert all(piece in seen for piece in STREAM)
    assert way.records[0].received == sum(map(len, STREAM))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        (post("/"), (404, "path")),
        (post("/v1x/messages"), (404, "path")),
        (post("/v1/../admin"), (404, "path")),
        (post("/v1/%2e%2e/admin"), (404, "path")),
        (post("/v1/mess%61ges"), (404, "path")),
        (post("/v1//messages"), (404, "path")),
        (post("/v1/a;b"), (404, "path")),
        (post("/v1/messages?key=AIzaStranger"), (400, "credential")),
        (post("/v1/messages").replace("POST", "DELETE"), (405, "method")),
        (post("http://169.254.169.254/v1/x"), (403, "host")),
        (post("/v1/messages", "{}", "transfer-encoding: chunked"), (411, "transfer-encoding")),
        ("nonsense\r\n\r\n", (400, "http")),
    ],
)
async def test_everything_else_is_refused(request_text: str, expected: tuple[int, str]) -> None:
    async with served() as (upstream, way, ask):
        assert refusal(await ask(request_text)) == expected
        assert (upstream.dials, [one.rule for one in way.records]) == (0, [expected[1]])


@pytest.mark.anyio
@pytest.mark.parametrize(("word", "rule"), [("stop", "stop"), ("exercise", "dial"), ("observe", "dial")])
async def test_the_dial_is_asked_at_each_request(word: str, rule: str) -> None:
    words = ["propose"] * 3 + [word]  # at the head, before the connection, before the first byte
    async with served(rung=lambda: words.pop(0)) as (upstream, _, ask):
        assert (await ask(post("/v1/a"))).startswith(b"HTTP/1.1 200")
        assert refusal(await ask(post("/v1/a"))) == (403, rule)
        assert len(upstream.got) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("word", ["stop", "exercise"])
@pytest.mark.parametrize("passed", [1, 2])
async def test_the_dial_is_asked_when_the_request_leaves(word: str, passed: int) -> None:
    """The body and the connection may each take minutes."""
    words = ["propose"] * passed + [word]
    async with served(rung=lambda: words.pop(0)) as (upstream, _, ask):
        assert refusal(await ask(post("/v1/a"))) == (403, "stop" if word == "stop" else "dial")
        assert upstream.got == []


@pytest.mark.anyio
async def test_requests_bytes_and_seconds_are_bounded() -> None:
    async with served(REQUESTS=2) as (upstream, _, ask):
        answers = [await ask(post("/v1/a")) for _ in range(3)]
        assert refusal(answers[2]) == (429, "requests")
        assert len(upstream.got) == 2
    async with served(BODY=10) as (upstream, _, ask):
        assert refusal(await ask(post("/v1/a", "x" * 11))) == (413, "body")
        assert upstream.dials == 0
    async with served(lambda _: http_answer(200, b"x" * 5000), ANSWER=1000) as (_, way, ask):
        assert len(await ask(post("/v1/a"))) < 5000
        assert [one.rule for one in way.records] == ["bytes"]
    async with served(lambda _: http_answer(200, b"x" * 600), TOTAL=1000) as (_, way, ask):
        assert [len(await ask(post("/v1/a"))) >= 600 for _ in range(2)] == [True, False]
        assert [one.rule for one in way.records] == ["", "bytes"]

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read(-1)

    async with served(raw=silent, SECONDS=0.2) as (_, way, ask):
        assert refusal(await ask(post("/v1/a"))) == (504, "timeout")
        assert [one.status for one in way.records] == [504]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (http_answer(302, b"", "location: http://169.254.169.254/"), (502, "redirect")),
        (http_answer(200, b"x", "content-encoding: gzip"), (502, "encoding")),
        (b"", (502, "unreachable")),
        (b"SSH-2.0\r\n\r\n", (502, "unreachable")),
    ],
)
async def test_an_upstream_that_misbehaves(answer: bytes, expected: tuple[int, str]) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)

    async with served(raw=once) as (_, _, ask):
        assert refusal(await ask(post("/v1/a"))) == expected


@pytest.mark.anyio
async def test_half_an_answer_does_not_look_complete() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")

    async with served(raw=half) as (_, way, ask):
        assert b"0\r\n\r\n" not in await ask(post("/v1/a"))
        assert [one.rule for one in way.records] == ["cut"]


@pytest.mark.anyio
async def test_a_refusal_on_a_connection_that_was_used_is_an_answer() -> None:
    first = post("/v1/a").replace("connection: close\r\n", "")
    async with served() as (_, way, ask):
        said = await ask(first + post("/other"))
    assert said.count(b"HTTP/1.1") == 2
    assert b'"rule": "path"' in said
    assert [one.rule for one in way.records] == ["", "path"]


@pytest.mark.parametrize("url", ["https://Example.com/v1", "https://a.example./", "https://a:99999/"])
def test_a_url_without_a_plain_host_is_a_mistake_of_ours(url: str) -> None:
    with pytest.raises(ConfigError, match=r"propose\.endpoint"):
        ModelEgress(url)


def test_the_key_is_in_no_description() -> None:
    assert KEY not in repr(ModelEgress("https://a.example/", key=KEY))
    assert EgressRecord.__dataclass_params__.frozen  # type: ignore[attr-defined]


@given(st.lists(st.sampled_from([b"a", b"ab", b"aab", b"x", b"aabaab", b"b"]), max_size=20))
def test_a_key_is_found_however_the_pieces_are_cut(pieces: list[bytes]) -> None:
    scrub, text = KeyScrub(b"aabaax"), b"".join(pieces)
    out = b"".join(map(scrub.feed, pieces)) + scrub.rest()
    assert out == text.replace(b"aabaax", b"******")
