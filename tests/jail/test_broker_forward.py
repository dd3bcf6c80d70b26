"""N07: requests to hosts through a real broker, and upstreams that mean harm."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import anyio
import h11
import pytest

from fleet.broker.broker import Broker
from fleet.broker.egress_policy import EgressTarget, Origin
from fleet.broker.forward import asked_pause, rewritten
from fleet.broker.pace import HostPace
from fleet.broker.rpc_policy import Denied
from tests.sandbox.doubles import Got, Raw, Server, http_answer, listener, policy_for

pytestmark = pytest.mark.anyio


@dataclass
class Rig:
    broker: Broker
    site: Server
    port: int

    async def raw(self, data: bytes) -> bytes:
        """Everything that comes back until the broker closes; "" when it cuts the connection first."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        out = b""
        with contextlib.suppress(ConnectionResetError):
            while chunk := await asyncio.wait_for(reader.read(1 << 16), 10):
                out += chunk
        writer.close()
        return out

    async def ask(
        self, target: str, method: str = "GET", host: str = "", body: bytes = b"", *headers: str
    ) -> bytes:
        authority = host or target.partition("://")[2].partition("/")[0]
        lines = [f"{method} {target} HTTP/1.1", f"host: {authority}", *headers]
        lines += [f"content-length: {len(body)}"] if body else []
        return await self.raw("\r\n".join([*lines, "", ""]).encode("utf-8") + body)

    async def rule(
        self, target: str, method: str = "GET", host: str = "", body: bytes = b""
    ) -> tuple[int, str]:
        return verdict(await self.ask(target, method, host, body))


def verdict(answer: bytes) -> tuple[int, str]:
    return int(answer.split(b" ")[1]), json.loads(answer.partition(b"\r\n\r\n")[2])["rule"]


@contextlib.asynccontextmanager
async def rig(raw: Raw | None = None, path: str = "", **limits: Any) -> AsyncIterator[Rig]:
    async with Server(lambda _: http_answer(200, b"hello"), raw) as site:
        broker = Broker(policy_for(site.url + path, **limits))
        with listener() as sock:
            async with broker.egress(sock):
                yield Rig(broker, site, sock.getsockname()[1])


async def test_a_listed_host_is_asked_in_our_own_words() -> None:
    async with rig() as it:
        answer = await it.ask(
            f"{it.site.url}/a?b=c",
            "GET",
            "",
            b"",
            "connection: x-hop",
            "x-hop: 1",
            "x-keep: 2",
            "proxy-authorization: Basic x",
            "x-qa-once: abc",
            "x-forwarded-for: 1.2.3.4",
        )
        assert answer.endswith(b"\r\n\r\nhello")
        (got,) = it.site.got
        host = f"127.0.0.1:{it.site.port}"
        assert (got.method, got.path) == ("GET", "/a?b=c")
        assert got.headers == {"host": host, "connection": "close", "x-keep": "2"}
        (record,) = it.broker.records
        assert (record.verb, record.host, record.what, record.status, record.rule) == (
            "GET",
            host,
            "/a",
            200,
            "",
        )
        assert record.received == len(answer)


async def test_n07_nothing_off_the_list_is_dialled() -> None:
    async with rig() as it, Server() as other:
        port = it.site.port
        asked = [
            f"http://127.0.0.1:{other.port}/",
            "http://evil.test/",
            f"http://localhost:{port}/",
            f"http://0x7f.0.0.1:{port}/",
            f"http://0177.0.0.1:{port}/",
            f"http://2130706433:{port}/",
            f"http://127.1:{port}/",
            f"http://[::1]:{port}/",
            f"http://[::ffff:127.0.0.1]:{port}/",
            "http://169.254.169.254/latest/meta-data/",
            f"https://127.0.0.1:{port}/",
        ]
        assert [await it.rule(target) for target in asked] == [(403, "host")] * len(asked)
        assert (it.site.dials, other.dials) == (0, 0)
        assert all(record.rule == "host" for record in it.broker.records)


@pytest.mark.parametrize(
    ("target", "rule"),
    [
        ("http://127.0.0.1.:{port}/", "spelling"),
        ("http://user@127.0.0.1:{port}/", "spelling"),
        ("http://user:p@127.0.0.1:{port}/", "spelling"),
        ("HTTP://127.0.0.1:{port}/", "target"),
        ("http://LOCALHOST:{port}/", "spelling"),
        ("http://127.0.0.1:0{port}/", "spelling"),
        ("ftp://127.0.0.1:{port}/", "target"),
        ("gopher://127.0.0.1:{port}/", "target"),
        ("127.0.0.1:{port}", "target"),
        ("*", "target"),
    ],
)
async def test_n07_other_spellings_of_a_listed_host(target: str, rule: str) -> None:
    async with rig() as it:
        assert await it.rule(target.format(port=it.site.port), host="x") == (403, rule)
        assert it.site.dials == 0


async def test_n07_host_that_differs_from_the_target() -> None:
    async with rig() as it:
        assert await it.rule(it.site.url + "/", host="evil.test") == (403, "host-mismatch")
        assert it.site.dials == 0


@pytest.mark.parametrize(
    "inside", ["\r\nx: y", " HTTP/1.1\r\nhost: evil.test\r\n\r\nGET http://evil.test/", "\x00", "é"]
)
async def test_n07_bytes_that_end_a_target(inside: str) -> None:
    async with rig() as it:
        answer = await it.ask(f"{it.site.url}/a{inside}b", host=f"127.0.0.1:{it.site.port}")
        assert int(answer.split(b" ")[1]) in (400, 403)
        assert it.site.got == []


@pytest.mark.parametrize("port", [22, 25, 443, 6443])
async def test_n07_connect_is_off(port: int) -> None:
    async with rig() as it:
        answer = await it.raw(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert verdict(answer) == (403, "tunnel")


async def test_post_only_under_the_proxy() -> None:
    async with rig(path="/proxy") as it:
        assert (await it.ask(f"{it.site.url}/proxy/v1", "POST", "", b"{}")).endswith(b"hello")
        assert it.site.got[0].body == b"{}"
        for target in ("/other", "/proxy", "/proxy/../other", "/proxyx/y"):
            assert await it.rule(it.site.url + target, "POST", "", b"{}") == (403, "method")
        assert await it.rule(it.site.url + "/proxy/v1", "DELETE") == (403, "method")
        assert len(it.site.got) == 1


async def test_a_redirect_is_handed_back_and_not_followed() -> None:
    async with Server() as other, rig() as it:
        it.site.answer = lambda _: http_answer(302, b"", f"location: {other.url}/")
        answer = await it.ask(it.site.url + "/")
        assert answer.startswith(b"HTTP/1.1 302 ")
        assert other.dials == 0


@pytest.mark.parametrize("also", ["169.254.169.254", "127.0.0.1", "10.0.0.1", "::1", "::ffff:127.0.0.1"])
async def test_n07_a_listed_name_with_one_address_that_is_not_public(also: str) -> None:
    async def rebind(_: Origin) -> tuple[str, ...]:
        return ("93.184.216.34", also)

    broker = Broker(policy_for("http://rebound.test:80", resolve=rebind))
    async with Server() as site:
        with listener() as sock:
            async with broker.egress(sock):
                it = Rig(broker, site, sock.getsockname()[1])
                assert await it.rule("http://rebound.test/") == (403, "address")


async def test_an_upstream_that_is_gone_or_says_nothing() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with rig(hang_up) as it:
        assert await it.rule(it.site.url + "/") == (502, "unreachable")
        await it.site.__aexit__()
        assert await it.rule(it.site.url + "/") == (502, "unreachable")


async def test_an_upstream_that_never_answers() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    async with rig(silent, request_s=0.3) as it:
        assert await it.rule(it.site.url + "/") == (504, "timeout")


async def test_an_answer_without_end_is_cut_and_cannot_look_complete() -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    async with rig(flood, max_response=1 << 20) as it:
        reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
        writer.write(f"GET {it.site.url}/ HTTP/1.1\r\nhost: 127.0.0.1:{it.site.port}\r\n\r\n".encode())
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(-1), 10)
        writer.close()
        assert it.broker.records[0].rule == "cut"


async def test_a_slow_drip_ends_at_the_deadline() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"H")
            await asyncio.sleep(0.05)

    async with rig(drip, request_s=0.5) as it:
        answer = await asyncio.wait_for(it.ask(it.site.url + "/"), 5)
        assert 0 < len(answer) < 30
        assert it.broker.records[0].rule == "timeout"


async def test_total_bytes_of_a_call_are_counted() -> None:
    async with rig(max_total=1000) as it:
        it.site.answer = lambda _: http_answer(200, b"x" * 600)
        assert (await it.ask(it.site.url + "/")).endswith(b"x")
        assert not (await it.ask(it.site.url + "/")).endswith(b"x")


async def test_a_client_that_leaves_ends_the_relay() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        left.set_result(await reader.read() is not None)

    left: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    async with rig(endless) as it:
        reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
        writer.write(f"GET {it.site.url}/ HTTP/1.1\r\nhost: 127.0.0.1:{it.site.port}\r\n\r\n".encode())
        assert (await reader.readuntil(b"ok")).endswith(b"ok")
        writer.close()
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(asyncio.shield(left), 5)


async def test_a_host_that_does_not_speak_tls_is_unreachable_by_https() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 no TLS here\r\n\r\n")

    async with rig(plain) as it:
        policy = policy_for(it.site.url.replace("http:", "https:"))
        with listener() as sock:
            async with (broker := Broker(policy)).egress(sock):
                secure = Rig(broker, it.site, sock.getsockname()[1])
                assert await secure.rule(it.site.url.replace("http:", "https:") + "/") == (502, "unreachable")


@pytest.mark.parametrize(
    "name",
    ["qa0123456789", "qa0123456789.evil.test", "a b:x", "[", "^|", "<script>qa01</script>", "%"],
)
async def test_a_host_is_called_by_a_name_that_nobody_has(name: str) -> None:
    async with rig() as it:
        assert (await it.ask(it.site.url + "/", "GET", "", b"", f"x-qa-host: {name}")).startswith(
            b"HTTP/1.1 2"
        )
        (got,) = it.site.got
        assert got.headers == {"host": name, "connection": "close"}


@pytest.mark.parametrize(
    "name",
    [
        "intranet",
        "other.example",
        "evil.test",
        "qa01.evil.test.example",
        "x@other.example",
        "a b.example",
        "[::1]",
        "localhost",
        "127.0.0.1",
        "<a.example>",
        "qa0123456789:80",
        "qa0123456789,intranet",
        "localhost:%",
        "intranet |",
        "x%@intranet",
        "localhost/ x",
        "<localhost>",
        "qa01 intranet",
        "scripts <x>",
        "%61",
    ],
)
async def test_a_name_that_may_be_another_server_s_is_not_sent(name: str) -> None:
    async with rig() as it:
        answer = await it.ask(it.site.url + "/", "GET", "", b"", f"x-qa-host: {name}")
        assert verdict(answer) == (403, "host")
        assert it.site.got == []


def test_a_websocket_is_offered_and_nothing_else() -> None:
    def sent(method: str, offer: str) -> bytes:
        heads = [("host", "moss"), ("upgrade", "h2c"), ("x-qa-upgrade", offer)]
        return rewritten(h11.Request(method=method, target="/", headers=heads), b"", target)

    origin = Origin("http", "moss.example", 80)
    target = EgressTarget(origin, "/")
    lines = sent("GET", "websocket").lower().split(b"\r\n")
    assert lines[1:-2] == [b"host: moss.example", b"connection: upgrade, close", b"upgrade: websocket"]
    for method, offer in (("GET", "h2c"), ("GET", "websocket, h2c"), ("OPTIONS", "websocket")):
        with pytest.raises(Denied, match="only a WebSocket"):
            sent(method, offer)


DATE = "Fri, 27 Nov 2026 05:00:30 GMT"
NOW = datetime(2026, 11, 27, 5, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("head", "seconds"),
    [
        ("429 Too Many Requests\r\nRetry-After: 7", 7.0),
        ("503 Busy\r\nserver: x\r\nretry-after:  12  \r\nx: y", 12.0),
        (f"429\r\nRetry-After: {DATE}", 30.0),
        ("429 X\r\nRetry-After: Fri, 27 Nov 2020 05:00:30 GMT", 0.0),
        ("429 X\r\nRetry-After: 99999999999999999999", 86_400.0),
        ("429 X\r\nRetry-After: -5", 0.0),
        ("429 X\r\nRetry-After: soon", 0.0),
        ("429 X\r\nRetry-After: \u00b2", 0.0),
        ("429 X\r\nRetry-After: 1\u00b3", 0.0),
        ("429 X\r\nRetry-After: Mon, 01 Jan 0001 00:00:00 +2359", 0.0),
        ("429 X\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 -2359", 86_400.0),
        ("429 X\r\nX-Retry-After: 9", 0.0),
        ("200 OK\r\nRetry-After: 9", 0.0),
        ("301 Moved\r\nRetry-After: 9", 0.0),
        ("103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 429 X\r\nRetry-After: 3", 3.0),
        ("103 Early Hints\r\nRetry-After: 3\r\n\r\nHTTP/1.1 200 OK\r\nx: y", 0.0),
    ],
)
def test_what_a_host_asks_to_wait(head: str, seconds: float) -> None:
    assert (
        asked_pause(f"HTTP/1.1 {head}\r\n\r\nbody\r\nRetry-After: 99\r\n\r\n".encode("latin-1"), NOW)
        == seconds
    )


async def test_a_host_that_asks_for_a_pause_is_not_asked_until_it_is_over() -> None:
    said = [http_answer(429, b"", "retry-after: 1"), http_answer(200, b"ok")]
    times: list[float] = []

    def answer(_: object) -> bytes:
        times.append(time.monotonic())
        return said.pop(0)

    async with Server(answer) as site:
        policy = replace(policy_for(site.url), pace=HostPace(1000.0))
        broker = Broker(policy)
        with listener() as sock:
            async with broker.egress(sock):
                it = Rig(broker, site, sock.getsockname()[1])
                assert (await it.ask(f"{site.url}/a")).startswith(b"HTTP/1.1 429")
                assert (await it.ask(f"{site.url}/b")).endswith(b"ok")
    assert times[1] - times[0] >= 1.0
    assert [record.pause for record in broker.records] == [1.0, 0.0]


async def test_a_limit_of_what_is_written_there_holds_that_function_alone() -> None:
    """A site lets so many accounts be made in ten minutes: its pages are looked at meanwhile."""

    def answer(got: Got) -> bytes:
        if got.method == "POST" and got.path.startswith("/sign-up"):
            return http_answer(429, b"", "retry-after: 600")
        return http_answer(200, b"ok")

    async with Server(answer) as site:
        policy = replace(policy_for(site.url, rung=lambda: "exercise"), pace=HostPace(1000.0))
        broker = Broker(policy)
        with listener() as sock:
            async with broker.egress(sock):
                it = Rig(broker, site, sock.getsockname()[1])
                posted = ("POST", "", b"a", "connection: close")
                assert (await it.ask(f"{site.url}/sign-up", *posted)).startswith(b"HTTP/1.1 429")
                assert await it.rule(f"{site.url}/sign-up?again", "POST", "", b"a") == (429, "busy")
                assert (await it.ask(f"{site.url}/log-in", *posted)).endswith(b"ok")
                assert (await it.ask(f"{site.url}/sign-up")).endswith(b"ok")
        assert [got.path for got in site.got] == ["/sign-up", "/log-in", "/sign-up"]
        assert [record.pause for record in broker.records] == [0.0] * 4


async def test_a_limit_of_a_graphql_operation_holds_that_operation_alone() -> None:
    """All that it is sent goes to one path."""

    def asking(query: str) -> bytes:
        return json.dumps({"variables": {"a": "{ x }"}, "query": query}).encode()

    def answer(got: Got) -> bytes:
        return http_answer(429, b"", "retry-after: 600") if b"signUp" in got.body else http_answer(200, b"ok")

    joins = (
        asking("mutation ($a: String!) {\n  signUp(name: $a) { token }\n}"),
        asking("mutation { a: signUp }"),
    )
    async with Server(answer) as site:
        policy = replace(policy_for(site.url, rung=lambda: "exercise"), pace=HostPace(1000.0))
        broker = Broker(policy)
        with listener() as sock:
            async with broker.egress(sock):
                it = Rig(broker, site, sock.getsockname()[1])
                url = f"{site.url}/graphql"
                posted = [
                    ("POST", "", body, "connection: close") for body in (joins[0], asking("{ me { id } }"))
                ]
                assert (await it.ask(url, *posted[0])).startswith(b"HTTP/1.1 429")
                assert (await it.ask(url, *posted[1])).endswith(b"ok")
                for join in joins:
                    assert await it.rule(url, "POST", "", join) == (429, "busy")
        assert len(site.got) == 2


async def test_a_long_pause_is_refused_at_once_for_every_jail() -> None:
    async with Server(lambda _: http_answer(503, b"", "retry-after: 600")) as site:
        policy = replace(policy_for(site.url), pace=HostPace(1000.0))
        for number in range(2):
            broker = Broker(policy)
            with listener() as sock:
                async with broker.egress(sock):
                    it = Rig(broker, site, sock.getsockname()[1])
                    if not number:
                        await it.ask(f"{site.url}/a")
                    with anyio.fail_after(60):
                        assert await it.rule(f"{site.url}/b") == (429, "busy")
        assert len(site.got) == 1
