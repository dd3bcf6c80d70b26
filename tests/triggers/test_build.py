"""A changed build of the platform fires once; a page that differs at every look never does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import anyio.to_thread
import pytest

from fleet.config import ChainSection, Platform, WebSection
from fleet.http_client import HttpFailure
from fleet.triggers.build import BuildWatch
from tests.doubles.triggers import FiringRecorder, MemoryFacts
from tests.triggers.conftest import FakeClock, Refusing

pytestmark = pytest.mark.anyio


def platform(**web: Any) -> Platform:
    chain = ChainSection(rpc="http://127.0.0.1:9", id=7, diamond="0x" + "11" * 20)
    return Platform(name="paper", chain=chain, web=WebSection(**web))


@dataclass
class Builds:
    """A watch of what a test says the build is; `again` is a restart."""

    now: str = "a" * 64
    sink: FiringRecorder = field(default_factory=FiringRecorder)
    facts: MemoryFacts = field(default_factory=MemoryFacts)
    broken: bool = False

    def __post_init__(self) -> None:
        self.watch = self.again()

    def again(self) -> BuildWatch:
        self.watch = BuildWatch(
            platform(), self.facts, self.sink, lambda _: ("qa-a",), clock=FakeClock(), read=self._read
        )
        return self.watch

    async def _read(self) -> str:
        if self.broken:
            raise HttpFailure("ConnectError: refused", reached=False)
        return self.now

    async def fires(self, build: str = "", looks: int = 2) -> list[str]:
        before, self.now = len(self.sink.fired), build or self.now
        for _ in range(looks):
            await self.watch.turn()
        return self.sink.keys[before:]


async def test_a_change_that_two_looks_agree_on_fires_once() -> None:
    builds = Builds()
    assert await builds.fires() == []  # the first sight
    assert await builds.fires("b" * 64, looks=1) == []
    assert await builds.fires(looks=5) == ["qa-a@build-changed:bbbbbbbbbbbb:1"]
    assert await builds.fires("a" * 64) == ["qa-a@build-changed:aaaaaaaaaaaa:2"]


async def test_a_page_that_differs_at_every_look_never_fires() -> None:
    builds = Builds()
    for number in range(20):
        assert await builds.fires(f"{number:064x}", looks=1) == []


async def test_a_change_while_the_daemon_was_down_fires_at_the_next_start() -> None:
    builds = Builds()
    await builds.fires()
    builds.again()
    assert await builds.fires("b" * 64) == ["qa-a@build-changed:bbbbbbbbbbbb:1"]
    builds.again()
    assert await builds.fires() == []


async def test_two_daemons_fire_a_change_once() -> None:
    one = Builds()
    await one.fires()
    two = Builds(sink=one.sink, facts=one.facts)
    assert await one.fires("b" * 64) == ["qa-a@build-changed:bbbbbbbbbbbb:1"]
    assert await two.fires("b" * 64, looks=4) == []


async def test_a_refused_firing_is_tried_again_with_the_same_key() -> None:
    builds = Builds(sink=Refusing("qa-a"))
    await builds.fires()
    assert await builds.fires("b" * 64) == []
    builds.sink = FiringRecorder()
    builds.again()
    assert await builds.fires() == ["qa-a@build-changed:bbbbbbbbbbbb:1"]


async def test_a_failed_look_and_a_platform_that_says_nothing_are_told_once() -> None:
    builds = Builds(broken=True)
    assert await builds.fires(looks=3) == []
    assert [skip.reason for skip in builds.sink.skips] == [
        "could not look: HttpFailure: ConnectError: refused"
    ]
    silent = Builds("")
    assert await silent.fires(looks=3) == []
    assert [skip.reason for skip in silent.sink.skips] == [
        "could not look: ConfigError: the platform states no build: "
        "its profile has no web.version, its site no ETag"
    ]
    nothing = Builds()
    nothing.watch = BuildWatch(
        platform(), nothing.facts, nothing.sink, lambda _: ("qa-a",), clock=FakeClock()
    )
    assert (await nothing.fires(looks=3), nothing.sink.skips) == ([], [])  # no site, nothing to watch


@asynccontextmanager
async def served(pages: Mapping[str, tuple[int, dict[str, str], bytes]]) -> AsyncIterator[str]:
    """A site of these pages."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = pages.get(self.path, (404, {}, b"none"))
            self.send_response(status)
            for name, value in ({"content-length": str(len(body))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = Thread(target=partial(server.serve_forever, 0.01))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        await anyio.to_thread.run_sync(server.shutdown)
        thread.join()
        server.server_close()


async def test_the_version_document_is_read_else_the_etag_of_the_site() -> None:
    pages: dict[str, tuple[int, dict[str, str], bytes]] = {
        "/": (200, {"ETag": '"one"'}, b"x" * 200_000),
        "/version.json": (200, {}, b'{"build": 1}'),
    }
    async with served(pages) as site:
        for web in ({"site": site}, {"site": site, "version": "{site}/version.json"}):
            facts, sink = MemoryFacts(), FiringRecorder()
            watch = BuildWatch(platform(**web), facts, sink, lambda _: ("qa-a",), clock=FakeClock())
            await watch.turn()
            assert (watch.trouble, len(facts)) == ("", 1)
            pages["/"] = (200, {"ETag": f'"{len(web)}"'}, b"")
            await watch.turn()
            await watch.turn()
            assert len(sink.fired) == (1 if len(web) == 1 else 0)
        pages["/version.json"] = (200, {}, b"x" * 70_000)
        await watch.turn()
        assert watch.trouble == "AnswerTooLarge: more than 65536 bytes"
        pages["/version.json"] = (500, {}, b"")
        await watch.turn()
        assert watch.trouble == f"HttpFailure: {site}/version.json: HTTP 500"
