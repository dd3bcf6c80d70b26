"""The guest's HTTP module through a real broker, against answers made to hurt."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import zlib

import anyio.to_thread
import pytest

from fleet.broker.broker import Broker
from sandbox.errors import Deadline, Failure, JailBroken
from sandbox.http import HttpReply, HttpRequest, absolute, send
from sandbox.spec import Mistake
from tests.sandbox.doubles import Raw, bench, http_answer, listener, policy_for

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
        ("gzip", gzip.compress(b"hello", mtime=0) + b"\0" * 64),
        ("gzip", gzip.compress(b"hello", mtime=0) + b"trailing"),
        ("x-gzip, identity", gzip.compress(b"hello", mtime=0) + b"\n"),
        ("deflate", zlib.compress(b"hello") + b"\0\0"),
        ("aws-chunked, gzip", gzip.compress(b"hello", mtime=0)),
        ("none", b"hello"),
        ("UTF-8", b"hello"),
        ("aws-chunked", b"hello"),
        ("", b"hello"),
    ],
)
async def test_packed_bodies(coding: str, packed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(http_answer(200, packed, f"content-encoding: {coding}"))

    assert (await ask(once, monkeypatch)).body == b"hello"


PACKED = gzip.compress(b"hello", mtime=0)
BOMB = gzip.compress(b"\0" * (64 << 20), 9)


@served
@pytest.mark.parametrize(
    ("answer", "error_class"),
    [
        (http_answer(200, BOMB, "content-encoding: gzip"), "too_large"),
        (http_answer(200, BOMB[:-900], "content-encoding: gzip"), "too_large"),
        (http_answer(200, gzip.compress(b"x", mtime=0)[:-3], "content-encoding: gzip"), "garbage"),
        (http_answer(200, b"no gzip", "content-encoding: gzip"), "garbage"),
        (http_answer(200, PACKED + PACKED[:-3], "content-encoding: gzip"), "garbage"),
        (http_answer(200, BOMB + b"\0", "content-encoding: aws-chunked, gzip"), "too_large"),
        (http_answer(200, b"x", "content-encoding: gzip, gzip"), "garbage"),
        (http_answer(200, b"x", "content-encoding: br"), "garbage"),
        (http_answer(200, b"x", "content-encoding: none, zstd"), "garbage"),
        (http_answer(200, b"x" * (5 << 20)), "too_large"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort", "garbage"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "garbage"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc", "garbage"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100_000 + b"\r\n", "garbage"),
        (b"HTTP/1.1 200 OK\r\na: " + b"b" * 300_000 + b"\r\n\r\n", "garbage"),
        (b"HTTP/1.1 200 OK\r\na: b\r\n" + b" c\r\n" * 100_000 + b"\r\n", "garbage"),
        (b"HTTP/1.1 103 Early Hints\r\na: b\r\n\r\n" * 40 + b"HTTP/1.1 200 OK\r\n\r\n", "garbage"),
        (b"HTTP/1.1 103 Early Hints\r\na: b\r\n\r\n", "garbage"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "garbage"),
        (b"HTTP/1.1 " + b"1" * 70_000 + b"\r\n\r\n", "garbage"),
        (b"SSH-2.0-OpenSSH_9\r\n", "garbage"),
        (b"HTTP/1.1 abc OK\r\n\r\n", "garbage"),
    ],
    ids=itertools.count(),
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
@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    "interim",
    [
        b"HTTP/1.1 102 Processing\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nlink: </x.css>; rel=preload\r\ncontent-length: 9\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 -\r\na: b\r\n\r\n",
        b"HTTP/1.1 199 \r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n" * 20,
    ],
)
async def test_interim_answers_are_passed_over(
    interim: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for at in range(0, len(interim), 50):  # in pieces, as they come
            writer.write(interim[at : at + 50])
            await writer.drain()
        writer.write(http_answer(status, b"hello", "x-last: yes"))

    reply = await ask(once, monkeypatch)
    assert (reply.status, reply.body, reply.headers.get("x-last")) == (status, b"hello", "yes")
    assert "link" not in reply.headers


@served
@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ([f"x-note-{n}: v" for n in range(150)], "x-note-149", "v"),
        ([f"x-note-{n}: v" for n in range(900)], "x-note-899", "v"),
        (["x-long: " + "v" * 100_000], "x-long", "v" * 100_000),
        (["x-a: b", "no colon here", "x-b: c"], "x-b", "c"),
        (["x-a: b", "  c", "\td"], "x-a", "b c d"),
        (["x-a : b", ": nameless"], "x-a", "b"),
        (["set-cookie: a=1", "Set-Cookie: b=2"], "set-cookie", "a=1, b=2"),
        (["x-a: \xff"], "x-a", "\xff"),
    ],
    ids=itertools.count(),
)
async def test_heads_that_browsers_read(
    fields: list[str], name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = "\r\n".join(["HTTP/1.1 200 OK", *fields, "content-length: 5", "", ""])
        writer.write(head.encode("latin-1") + b"hello, and more")

    reply = await ask(once, monkeypatch)
    assert (reply.headers.get(name), reply.body) == (value, b"hello")


@served
@pytest.mark.parametrize("coding", ["chunked", "Chunked", "identity, chunked", " chunked "])
async def test_a_body_in_chunks(coding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\ntransfer-encoding: {coding}\r\ncontent-length: 3\r\n\r\n"
        writer.write(head.encode() + b"2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nx-trailer: 1\r\n\r\n")

    assert (await ask(once, monkeypatch)).body == b"hello"


@served
async def test_a_host_by_its_ipv6_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(http_answer(200, head.split(b"\r\n")[1]))
        writer.close()

    server = await asyncio.start_server(once, "::1", 0)
    url = f"http://[::1]:{server.sockets[0].getsockname()[1]}"
    with listener() as sock:
        monkeypatch.setenv("QA_BROKER", "{}:{}".format(*sock.getsockname()))
        async with server, Broker(policy_for(url)).egress(sock):
            reply = await anyio.to_thread.run_sync(send, HttpRequest("GET", f"{url}/"), Deadline(10))
    assert (reply.status, reply.body.decode()) == (200, f"host: {url.removeprefix('http://')}")


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
