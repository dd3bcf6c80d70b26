"""httpx as the fleet uses it: fenced against the environment, the far end, and its own conveniences."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import shutil
import subprocess
import sys
import threading
from contextvars import ContextVar
from pathlib import Path

import pytest

from fleet import http_client
from fleet.app.run_records import asked_by
from fleet.broker.egress_read import read_egress
from fleet.broker.egress_record import EGRESS, REQUEST, RESPONSE
from fleet.broker.rpc_policy import Denied
from fleet.broker.service_egress import ServiceEgress
from fleet.broker.services import RpcUpstream
from fleet.chain.node.provider import NodeProvider
from fleet.cli.daemon_client import ask
from fleet.cli.run.records import show_asked
from fleet.clock import SystemClock
from fleet.errors import TryAgain
from fleet.events.chain import verify
from fleet.http_client import AnswerTooLarge, HttpFailure, look, on_record, open_client, post, trust_store
from tests.sandbox.doubles import Got, Server, http_answer

pytestmark = pytest.mark.anyio
ROOM = Path(__file__).resolve().parents[1] / "fleet"


async def exchange(url: str, limit: int = 100) -> tuple[int, bytes]:
    async with open_client(url) as client:
        return await post(client, url, b"{}", {"x-own": "1"}, limit=limit)


async def test_only_what_was_asked_for_is_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    async with Server() as proxy, Server() as site:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert await exchange(f"{site.url}/a?b=c") == (200, b"ok")
        (got,) = site.got
        assert (proxy.dials, got.method, got.path, got.body) == (0, "POST", "/a?b=c", b"{}")
        assert got.headers == {
            "host": f"127.0.0.1:{site.port}",
            "accept": "*/*",
            "accept-encoding": "identity",
            "connection": "keep-alive",
            "user-agent": "qa-fleet/1",
            "x-own": "1",
            "content-length": "2",
        }


@pytest.mark.parametrize("interim", [b"102 Processing", b"103 Early Hints\r\nlink: </x>"])
async def test_interim_answers_are_passed_over(interim: bytes) -> None:
    async with Server(lambda _: (b"HTTP/1.1 " + interim + b"\r\n\r\n") * 3 + http_answer(200, b"ok")) as site:
        assert await exchange(site.url) == (200, b"ok")
        async with open_client(site.url) as client:
            assert await look(client, site.url) == 200


async def test_a_redirect_is_an_answer_and_no_cookie_comes_back() -> None:
    async with Server() as other, Server() as site:
        site.answer = lambda _: http_answer(307, b"", f"location: {other.url}/", "set-cookie: a=1; path=/")
        async with open_client(site.url) as client:
            said = [await post(client, site.url, b"", {}, limit=9) for _ in range(2)]
        assert said == [(307, b""), (307, b"")]
        assert other.dials == 0
        assert ["cookie" in got.headers for got in site.got] == [False, False]


async def test_a_body_ends_at_the_limit_and_is_never_unpacked() -> None:
    async with Server(lambda _: http_answer(200, b"x" * 100)) as site:
        assert await exchange(site.url) == (200, b"x" * 100)
        with pytest.raises(AnswerTooLarge):
            await exchange(site.url, limit=99)
        assert await exchange(site.url, limit=0) == (200, b"")
        site.answer = lambda _: http_answer(200, b"not gzip", "content-encoding: gzip")
        assert await exchange(site.url) == (200, b"not gzip")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"no http at all\r\n\r\n", "RemoteProtocolError"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", "RemoteProtocolError"),
        (b"", "RemoteProtocolError"),
    ],
)
async def test_nonsense_is_a_failure_that_names_its_kind(answer: bytes, why: str) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    async with Server(raw=say) as site:
        with pytest.raises(HttpFailure, match=f"^{why}: ") as caught:
            await exchange(site.url)
        assert caught.value.reached
        await site.__aexit__()
        with pytest.raises(HttpFailure, match=r"^ConnectError: ") as caught:
            await exchange(site.url)
        assert not caught.value.reached
    for url in ("gopher://x/", "http://[::1/", "http://x:99999/"):
        with pytest.raises(HttpFailure):
            await exchange(url)


async def test_a_client_of_plain_http_trusts_nobody() -> None:
    transport = open_client("http://a.test")._transport
    assert transport._pool._ssl_context.cert_store_stats()["x509_ca"] == 0  # type: ignore[attr-defined]
    assert trust_store().cert_store_stats()["x509_ca"] > 0
    assert trust_store().check_hostname


async def test_a_kept_connection_that_was_closed_is_made_again_once() -> None:
    closed = asyncio.Event()

    async def once_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not closed.is_set():
            await reader.readuntil(b"{}")
            if closed.is_set():
                return  # as when the node's limit for idle connections is met at that very moment
            writer.write(http_answer(200, b"1"))

    async with Server(raw=once_each) as node:
        upstream = RpcUpstream(node.url, max_response=9)
        assert await upstream.post(b"{}") == (200, b"1")
        closed.set()
        node._raw, node.answer = None, lambda _: http_answer(200, b"2")
        assert await upstream.post(b"{}") == (200, b"2")
        assert node.dials == 2
        await upstream.aclose()


async def test_a_unix_socket_is_asked_under_the_name_in_the_url(tmp_path: Path) -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(http_answer(202, b"{}"))
        writer.close()

    path = str(tmp_path / "x.sock")
    async with (
        await asyncio.start_unix_server(serve, path),
        open_client("http://fleet", socket=path) as client,
    ):
        assert await post(client, "http://fleet/runs", b"{}", {}, limit=9) == (202, b"{}")
    assert heads[0].startswith(b"POST /runs HTTP/1.1\r\nHost: fleet\r\n")
    async with open_client("http://fleet", socket=str(tmp_path / "none")) as client:
        with pytest.raises(HttpFailure, match=r"^ConnectError: ") as caught:
            await post(client, "http://fleet/", b"", {}, limit=9)
    assert not caught.value.reached


def test_a_daemon_that_never_ends_its_answer_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The deadline is one for all of it: each byte of the drip comes long before it."""
    monkeypatch.setattr("fleet.cli.daemon_client.PATIENCE_S", 0.4)
    ready, stop = threading.Event(), threading.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            while not stop.is_set():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)

    async def serve() -> None:
        async with await asyncio.start_unix_server(drip, str(tmp_path / "fleet.sock")):
            ready.set()
            await asyncio.to_thread(stop.wait)

    server = threading.Thread(target=asyncio.run, args=(serve(),))
    server.start()
    try:
        assert ready.wait(30)
        with pytest.raises(TryAgain, match="no daemon answers"):
            ask(tmp_path, "/runs", b"{}")
    finally:
        stop.set()
        server.join()


def test_httpx_has_one_importer_outside_the_chain() -> None:
    files = [path for path in ROOM.rglob("*.py") if ROOM / "chain" not in path.parents]
    typed = re.compile(r"if TYPE_CHECKING:\n(    .*\n)+")
    texts = {path.name: typed.sub("", path.read_text()) for path in files}
    assert [name for name, text in texts.items() if "import httpx\n" in text] == ["http_client.py"]


@pytest.mark.parametrize(
    "command", ["status", "dial", "items", "personas list", "service hook list", "runs list"]
)
def test_a_command_that_asks_nobody_does_not_load_it(command: str) -> None:
    script = f"import sys; from tests.command_tree import command_of; command_of({command.split()})"
    script += "; print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    "trouble",
    [
        http_answer(429, b"slow down"),
        http_answer(502, b"<html>"),
        http_answer(200, b"<html>"),
        http_answer(200, b'{"id":1,"error":{"code":-32005,"message":"limit exceeded"}}'),
        http_answer(200, b'{"id":1,"error":{"code":-32000,"message":"header not found"}}'),
    ],
)
async def test_a_node_that_limits_a_jails_reads_is_asked_again_and_never_the_platforms_answer(
    trouble: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = http_answer(200, b'{"id":1,"result":"0x1"}')
    answers = [trouble]
    async with Server(lambda _: answers.pop() if answers else good) as node:
        upstream = RpcUpstream(node.url, max_response=200)
        assert await upstream.post(b"{}") == (200, b'{"id":1,"result":"0x1"}')
        node.answer = lambda _: trouble
        monkeypatch.setattr("fleet.broker.services.RETRIES", {})
        with pytest.raises(Denied) as denied:
            await upstream.post(b"{}")
        assert (denied.value.rule, denied.value.status) == ("unreachable", 502)
        await upstream.aclose()


async def test_what_this_process_asks_is_on_record_before_it_leaves_and_when_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(got: Got) -> bytes:
        if got.path == "/rpc":
            ident = json.loads(got.body)["id"]
            return http_answer(200, b'{"jsonrpc":"2.0","id":%d,"result":"0x1"}' % ident)
        if got.path == "/cut":
            return b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ncut"
        return http_answer(404, b"gone")

    record = ServiceEgress(tmp_path, clock=SystemClock(), mask=lambda text: text.replace("hunter2", "[x]"))
    monkeypatch.setattr(http_client, "RECORD", ContextVar("a record", default=record.began))
    async with Server(answer) as site, Server() as gone:
        gone.leave()
        async with open_client(site.url) as client:
            assert await look(client, f"{site.url}/hunter2/9f8e7d6c5b4a39281706?key=secret") == 404
            with pytest.raises(HttpFailure):
                await post(client, f"{site.url}/cut", b"12345", {"connection": "close"}, limit=9)
            with pytest.raises(HttpFailure):
                await look(client, gone.url)
        node = NodeProvider(f"{site.url}/rpc", timeout_s=5, max_bytes=99)
        node.request_counter = itertools.count(10**12)  # of a process that has run for long
        assert await node.ask("eth_chainId", []) == "0x1"
        await node.disconnect()
        with pytest.raises(ValueError, match="broken"), on_record("GIT", "git.test", "fetch"):
            raise ValueError("broken")
    fields = ("verb", "path", "what", "rule", "status", "sent", "received")
    rows = list(read_egress(tmp_path))
    assert [[row[name] for name in fields if name in row] for row in rows] == [
        ["GET", "/[x]/[key]", "", 404, 0, 4],
        ["POST", "/cut", "cut", 200, 5, 9],
        ["GET", "/", "unreachable", 0, 0, 0],
        ["RPC", "eth_chainId", "", 200, 78, 51],
        ["GIT", "fetch", "unreachable", 0, 0, 0],
    ]
    reasons = ["", "RemoteProtocolError", "ConnectError", "", "ValueError"]
    assert [row.get("error", "").partition(":")[0] for row in rows] == reasons
    lines = [json.loads(text) for text in (tmp_path / EGRESS).read_text().splitlines()]
    assert [one["event_type"] for one in lines] == [REQUEST, RESPONSE] * 5
    assert [one["n"] for one in lines] == [1, 1, 3, 3, 5, 5, 7, 7, 9, 9]
    assert {(one["source"], one["correlation_id"][:8]) for one in lines} == {("service", "process ")}
    assert verify(tmp_path / EGRESS)[:3] == (10, 10, "")
    show_asked(asked_by(tmp_path, "", only_refused=False))
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1] == "5 requests; refused: none", "there is no scope of its own to be out of"
    assert "asked git.test: 1 request, 0.0 kB sent, 0.0 kB received" in shown


def test_a_record_of_this_process_is_bounded_and_holds_nothing_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record = ServiceEgress(tmp_path, clock=SystemClock(), largest=1_000)
    for _ in range(9):
        record.began("GET", "a.test", "/", 0)(200, 1, "")
    sizes = [(tmp_path / name).stat().st_size for name in (EGRESS, "egress.1.jsonl")]
    assert max(sizes) < 1_400
    said = verify(tmp_path / EGRESS, rotated=tmp_path / "egress.1.jsonl")
    assert (said.fault, said.end.lines) == ("", 18)
    record.close()
    with (tmp_path / EGRESS).open("ab") as torn:
        torn.write(b'{"n":19')  # its writer was killed, with a request under way
    after = ServiceEgress(tmp_path, clock=SystemClock())
    after.began("GET", "b.test", "/", 0)(200, 1, "")
    assert [(row["n"], row["host"]) for row in read_egress(tmp_path)][-1:] == [(20, "b.test")]
    assert verify(tmp_path / EGRESS).fault == ""
    after.close()
    shutil.rmtree(tmp_path)
    record.began("GET", "a.test", "/", 0)(200, 1, "")
    assert [one.getMessage() for one in caplog.records] == [
        f"cannot write {tmp_path / EGRESS}: No such file or directory"
    ]
