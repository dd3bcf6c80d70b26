"""The record of egress: each request is one line, refused or not; what cannot be recorded does not leave."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fleet.broker.broker import Broker
from fleet.broker.egress_read import by_host, read_egress
from fleet.broker.egress_record import EGRESS, OPEN, CallEgress, Calls, EgressEntry, EgressLog
from fleet.broker.rpc_policy import Denied
from fleet.clock import SystemClock
from fleet.config.scope import HostCare, HostSection
from fleet.events.chain import verify
from tests.jail.test_broker_fences import BODIES
from tests.jail.test_broker_rpc import node, post, read_answer
from tests.sandbox.doubles import Got, Server, Signer, http_answer, listener, policy_for

pytestmark = pytest.mark.anyio

CALL = Calls(7, 9)


@dataclass
class Rig:
    """A broker with a record, before a site, a node and a signer."""

    folder: Path
    site: Server
    node: Server
    log: EgressLog
    port: int
    failed: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(read_egress(self.folder))

    async def send(self, data: bytes) -> tuple[int, Any]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        status, body = await read_answer(reader)
        writer.close()
        return status, json.loads(body) if body else None

    async def page(self, path: str, *, base: str = "", verb: str = "GET") -> tuple[int, Any]:
        url = base or self.site.url
        host = url.partition("//")[2]
        return await self.send(f"{verb} {url}{path} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())


@contextlib.asynccontextmanager
async def rig(folder: Path, *, largest: int = 10**6, **limits: Any) -> AsyncIterator[Rig]:
    failed: list[str] = []

    def page(got: Got) -> bytes:
        return http_answer(404 if b"missing" in got.path.encode() else 200, b"{}")

    def mask(text: str) -> str:
        return text.replace("hunter2", "[redacted]")

    async with Server(page) as site, Server(node) as chain:
        log = EgressLog(folder, clock=SystemClock(), mask=mask, failed=failed.append, largest=largest)
        policy = policy_for(f"{site.url}/proxy", rpc=chain.url, **limits)
        with listener() as sock:
            async with Broker(policy, Signer(), record=CallEgress(log, CALL)).egress(sock):
                yield Rig(folder, site, chain, log, sock.getsockname()[1], failed)
        log.close()


async def test_each_request_is_one_line_with_what_an_officer_asks(tmp_path: Path) -> None:
    async with rig(tmp_path) as it:
        assert (await it.page("/a/hunter2?token=1"))[0] == 200
        assert (await it.page("/missing"))[0] == 404
        for service in ("/rpc", "/tx", "/auth"):
            assert (await it.send(post(service, BODIES[service])))[0] == 200
        page, missing, rpc, tx, auth = it.rows
        host = it.site.url.partition("//")[2]
        assert [page[key] for key in ("verb", "host", "path", "address", "status", "rule")] == [
            *("GET", host, "/a/[redacted]", "127.0.0.1", 200, "")
        ]
        assert (page["call"], page["last_call"], page["received"] > 2, page["ms"] > 0) == (7, 9, True, True)
        assert len(page["at"]) == len("2026-11-27T09:00:00.000Z")
        assert [page[key] for key in ("source", "correlation_id")] == ["broker", tmp_path.name]
        assert (missing["path"], missing["status"]) == ("/missing", 404)
        chain = it.node.url.partition("//")[2]
        assert [rpc[key] for key in ("verb", "what", "host", "address")] == [
            *("RPC", "eth_chainId", chain, "127.0.0.1")
        ]
        assert (tx["verb"], tx["what"], auth["verb"], auth["what"]) == ("TX", "0x89934d3a", "AUTH", "caller:")
        assert [row["n"] for row in it.rows] == [1, 2, 3, 4, 5]
        assert by_host(tmp_path)[host].requests == 2
    # what leaves has a line before it does, of the same number
    every = [json.loads(text) for text in (tmp_path / EGRESS).read_text().splitlines()]
    assert [(one["n"], one["event_type"]) for one in every] == [
        (number, kind) for number in range(1, 6) for kind in ("request", "response")
    ]
    assert {"status", "ms"} & every[0].keys() == set()
    assert verify(tmp_path / EGRESS).fault == ""
    assert "token" not in (tmp_path / EGRESS).read_text()


def test_what_a_name_led_to_stands_in_the_line(tmp_path: Path) -> None:
    log, found = EgressLog(tmp_path, clock=SystemClock()), ("203.0.113.7", "203.0.113.8")
    moved = "shop.example leads to"
    entry = EgressEntry("GET", host="shop.example", what="/", addresses=found, ttl_s=60, moved=moved)
    log.end(Calls(1, 1), entry, entry.record("drift"))
    log.close()
    [row] = read_egress(tmp_path)
    assert (row["host"], tuple(row["addresses"]), row["ttl_s"]) == ("shop.example", found, 60)
    assert (row["rule"], row["moved"]) == ("drift", moved)
    assert row["at"].endswith("Z")


async def test_what_hangs_on_a_host_and_how_long_it_was_judged_stands_in_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: 0.15 * next(ticks))
    monkeypatch.setattr("fleet.broker.broker.time", clock)
    care = HostCare.of({"shop.test": HostSection(criticality="production")})
    async with rig(tmp_path, care=care) as it:
        assert (await it.page("/a"))[0] == 200
        assert (await it.page("/", base="http://shop.test"))[0] == 403
        assert (await it.page("/", base="http://other.test"))[0] == 403
        said = [(row["criticality"], row["judged_ms"]) for row in it.rows]
    assert said == [("non-production", 150.0), ("production", 150.0), ("unknown", 150.0)]


@pytest.mark.parametrize(
    ("ask", "rule"),
    [
        (lambda it: it.page("/", base="http://evil.test"), "host"),
        (lambda it: it.page("/", base="http://EVIL.test"), "spelling"),
        (lambda it: it.page("/cart", verb="DELETE"), "method"),
        (lambda it: it.send(b"CONNECT evil.test:443 HTTP/1.1\r\nhost: evil.test:443\r\n\r\n"), "tunnel"),
        (lambda it: it.send(post("/nothing", b"{}")), "service"),
        (lambda it: it.send(post("/rpc", b'{"jsonrpc":"2.0","id":1,"method":"eth_sign"}')), "rpc-method"),
        (lambda it: it.send(b"\x00\x01 nonsense\r\n\r\n"), "http"),
    ],
    ids=["host", "spelling", "method", "tunnel", "service", "rpc-method", "http"],
)
async def test_a_refusal_is_a_line_with_its_rule_and_nothing_left(
    tmp_path: Path, ask: Callable[[Rig], Any], rule: str
) -> None:
    async with rig(tmp_path) as it:
        status, _ = await ask(it)
        (row,) = it.rows
        assert (row["rule"], row["status"], row["address"]) == (rule, status, "")
        assert (it.site.got, it.node.got) == ([], [])
        if rule in ("host", "tunnel"):
            assert "evil.test" in row["host"]
    assert verify(tmp_path / EGRESS).fault == ""


async def test_of_what_comes_beyond_the_number_of_requests_the_first_is_on_record(tmp_path: Path) -> None:
    async with rig(tmp_path, max_requests=2) as it:
        found = [(await it.page("/"))[0] for _ in range(6)]
        assert found == [200, 200, 429, 429, 429, 429]
        assert [row["rule"] for row in it.rows] == ["", "", "requests"]


def remove(it: Rig) -> None:
    shutil.rmtree(it.folder)


def close(it: Rig) -> None:
    assert it.log._file is not None
    it.log._file.close()
    it.log._file._fd = -1  # as a disk that fails


@pytest.mark.parametrize("spoil", [remove, close])
@pytest.mark.parametrize("way", ["page", *BODIES])
async def test_what_cannot_be_recorded_does_not_leave(
    tmp_path: Path, spoil: Callable[[Rig], None], way: str
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    async with rig(folder) as it:
        assert (await it.page("/first"))[0] == 200
        spoil(it)
        for _ in range(2):
            status, body = await (it.page("/second") if way == "page" else it.send(post(way, BODIES[way])))
            assert (status, body["rule"]) == (503, "record")
        assert ([got.path for got in it.site.got], it.node.got) == (["/first"], [])
        assert it.log.fault is not None
        assert len(it.failed) == 1
        assert str(folder / EGRESS) in it.failed[0]
        it.log._file = None


async def test_a_record_that_is_full_lets_nothing_leave_and_is_no_broken_fence(tmp_path: Path) -> None:
    async with rig(tmp_path, largest=1000) as it:
        found = [(await it.page("/"))[0] for _ in range(4)]
        assert found == [200, 200, 503, 503]
        assert len(it.site.got) == 2
        assert "is full" in str(it.log.fault)
        assert it.failed == []


async def test_a_request_whose_process_is_killed_becomes_a_line(tmp_path: Path) -> None:
    log = EgressLog(tmp_path, clock=SystemClock())
    entries = [EgressEntry(verb="GET", host="h", what=f"/{number}") for number in range(5)]
    for entry in entries:
        log.begin(CALL, entry)
    log.end(CALL, entries[1], entries[1].record(""))
    last = EgressEntry(verb="GET", host="h", what="/again")
    log.begin(CALL, last)  # takes the place of the one that is over
    log.end(CALL, entries[3], entries[3].record(""))
    with (tmp_path / EGRESS).open("ab") as file:
        file.write(b'{"n":')  # and its last line is torn
    assert "torn" in verify(tmp_path / EGRESS).note
    again = EgressLog(tmp_path, clock=SystemClock())
    rows = {row["path"]: row["rule"] for row in read_egress(tmp_path)}
    assert rows == {"/0": "cut", "/1": "", "/2": "cut", "/3": "", "/4": "cut", "/again": "cut"}
    again.begin(CALL, entry := EgressEntry(what="/new"))
    again.end(CALL, entry, entry.record(""))
    assert sorted(row["n"] for row in read_egress(tmp_path)) == [*range(1, 8)]
    assert verify(tmp_path / EGRESS).fault == ""
    for one in (log, again):
        one.close()
    EgressLog(tmp_path, clock=SystemClock()).close()
    assert len(list(read_egress(tmp_path))) == 7
    assert (tmp_path / OPEN).stat().st_size == 0


def test_a_full_disk_is_no_broken_fence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[str] = []
    log = EgressLog(tmp_path, clock=SystemClock(), failed=failed.append)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fleet.broker.egress_record.os.pwrite", full)
    with pytest.raises(Denied, match="no space left"):
        log.begin(CALL, EgressEntry())
    assert (failed, log.fault is not None) == ([], True)
    log.close()
