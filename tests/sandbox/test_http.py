"""The guest's HTTP module through a real broker, against answers made to hurt."""

from __future__ import annotations

import asyncio
import gzip
import zlib

import anyio.to_thread
import pytest

from sandbox.errors import Deadline, Failure, JailBroken
from sandbox.http import HttpReply, HttpRequest, absolute, send
from sandbox.spec import Mistake
from tests.sandbox.doubles import Raw, bench, http_answer

served = pytest.mark.anyio


async def ask(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> HttpReply:
    """One GET of a raw server, by the module itself in a thread."""
    async with bench(raw=raw) as it:
        monkeypatch.setenv("QA_BROKER", it.address)
        return await anyio.to_thread.run_sync(send, HttpRequest("GET", it.site.url + "/"), Deadline(10))


@served
@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("gzip", gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0)),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")[2:-4]),
        ("identity", b"hello"),
    ],
)
async def test_packed_bodies(coding: str, packed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(http_answer(200, packed, f"content-encoding: {coding}"))

    assert (await ask(once, monkeypatch)).body == b"hello"


BOMB = gzip.compress(b"\0" * (64 << 20), 9)


@served
@pytest.mark.parametrize(
    ("answer", "error_class"),
    [
        (http_answer(200, BOMB, "content-encoding: gzip"), "too_large"),
        (http_answer(200, BOMB[:-900], "content-encoding: gzip"), "too_large"),
        (http_answer(200, gzip.compress(b"x", mtime=0)[:-3], "content-encoding: gzip"), "garbage"),
        (http_answer(200, b"no gzip", "content-encoding: gzip"), "garbage"),
        (http_answer(200, b"x", "content-encoding: gzip, gzip"), "garbage"),
        (http_answer(200, b"x", "content-encoding: br"), "garbage"),
        (http_answer(200, b"x" * (5 << 20)), "too_large"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort", "garbage"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "garbage"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc", "garbage"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100_000 + b"\r\n", "garbage"),
        (b"HTTP/1.1 200 OK\r\na: " + b"b" * 100_000 + b"\r\n\r\n", "garbage"),
        (b"SSH-2.0-OpenSSH_9\r\n", "garbage"),
        (b"HTTP/1.1 abc OK\r\n\r\n", "garbage"),
    ],
    ids=range(14),
)
async def test_hostile_answers(answer: bytes, error_class: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    with pytest.raises(Failure) as caught:
        await ask(once, monkeypatch)
    assert caught.value.error_class == error_class


@served
async def test_a_broker_that_closes_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")  # closing over unread bytes would be a reset, which means a cut
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    monkeypatch.setenv("QA_BROKER", f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
    with pytest.raises(JailBroken):
        await anyio.to_thread.run_sync(send, HttpRequest("GET", "http://x.test/"), Deadline(5))
    server.close()


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://Host.Test", "http://host.test/"),
        ("http://host.test:8080/a?b=c#d", "http://host.test:8080/a?b=c"),
        ("https://h/ü?ä", "https://h/%C3%BC?%C3%A4"),
        ("http://bücher.test/", "http://xn--bcher-kva.test/"),
        ("http://[::1]:1/", "http://[::1]:1/"),
        ("http://h/%0d%0a", "http://h/%0d%0a"),
    ],
)
def test_one_spelling_of_a_url(url: str, sent: str) -> None:
    assert absolute(url) == sent


@pytest.mark.parametrize(
    "url", ["", "x", "//h/", "http:///x", "ftp://h/", "http://h:x/", "http://h/\x00", "http://h /"]
)
def test_no_url(url: str) -> None:
    with pytest.raises(Mistake, match="/args/url"):
        absolute(url)
