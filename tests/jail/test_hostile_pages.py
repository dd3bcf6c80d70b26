"""Hostile pages in the browser's jail: they learn nothing, reach nothing, leave nothing, and end in time."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fleet.jail import model
from fleet.jail.battery.yard import Backend, Yard
from fleet.jail.model import End
from sandbox.browser.devtools import installed
from tests.jail.hostile import ENDLESS, LEARNING, REACHING, page
from tests.sandbox.browsing import Stand, needs_browser, standing
from tests.sandbox.doubles import Server, http_answer

pytestmark = [pytest.mark.anyio, pytest.mark.jail, needs_browser]

MARK = 57
"""Seconds of processor time of this file's jails, by which their processes are known on the host."""
GUEST_S, ENDLESS_S = 20.0, 5.0
"""Deadlines of a look: at a page that ends, and at one that does not."""
SERVICE = b"fetch('http://127.0.0.1:{secret}/service-worker', {mode: 'no-cors'})"
BY_NAVIGATION = ("navigation", "popup")
"""What a browser without a page that is driven does not do."""


@dataclass
class ExplorerContext:
    """A platform of hostile pages, and beside it what they must not reach."""

    stand: Stand
    secret: Server
    datagrams: socket.socket
    spool: Path

    def gained(self) -> list[str]:
        """What pages reported, and what reached the host."""
        found = [got.path for got in self.stand.server.got if got.path.startswith("/gained/")]
        with suppress(BlockingIOError):
            self.datagrams.recv(100, socket.MSG_PEEK)
            found.append("datagram")
        return found + [f"secret {got.path}" for got in self.secret.got] + ["dial"] * self.secret.dials

    def left(self) -> list[Any]:
        """Processes and files that a look left on the host."""
        yard = Yard(Backend("bwrap"), model.Image(), self.spool, {})
        return [*yard.running(MARK), *self.spool.iterdir()]


@pytest.fixture(scope="module", autouse=True)
def marked() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        limits = replace(model.RESOURCES["browser"], cpu_s=MARK)
        patch.setitem(model.RESOURCES, "browser", limits)
        yield


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[ExplorerContext]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        datagrams.setblocking(False)
        async with Server(lambda _: http_answer(200, b"secret")) as secret, standing(tmp_path, {}) as stand:
            ports = {"secret": secret.port, "datagram": datagrams.getsockname()[1]}
            for name, script in (REACHING | LEARNING | ENDLESS).items():
                stand.pages[f"/{name}"] = page(script, **ports)
            service = SERVICE.replace(b"{secret}", str(secret.port).encode())
            stand.pages["/service.js"] = http_answer(200, service, "content-type: text/javascript")
            away = f"location: http://127.0.0.1:{secret.port}/redirect"
            stand.pages["/moved"] = http_answer(302, b"", away)
            yield ExplorerContext(stand, secret, datagrams, tmp_path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*REACHING, *LEARNING])
async def test_a_hostile_page_reaches_and_learns_nothing(ground: ExplorerContext, name: str) -> None:
    seen = await ground.stand.look(f"/{name}", deadline_s=GUEST_S)
    assert seen["status"] == 200, seen
    assert ground.gained() == []
    assert ground.left() == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ENDLESS)
async def test_a_page_without_end_ends_in_time(ground: ExplorerContext, name: str) -> None:
    outcome = await ground.stand.call(f"/{name}", deadline_s=ENDLESS_S)
    assert outcome.end is not End.TIMEOUT, outcome  # it is the guest that ends it, or the jail's limits
    assert ground.left() == []
    after = await ground.stand.look("/moved", deadline_s=GUEST_S)  # and the next look works
    assert after["error_class"] == "refused"


async def test_a_look_that_is_cut_off_leaves_nothing(ground: ExplorerContext) -> None:
    look = asyncio.ensure_future(ground.stand.call("/loop", deadline_s=GUEST_S))
    for _ in range(1_000):
        if ground.stand.server.got:
            break
        await asyncio.sleep(0.05)
    assert ground.left() != []
    look.cancel()
    with pytest.raises(asyncio.CancelledError):
        await look
    assert ground.left() == []


async def test_without_a_fence_the_same_pages_reach_the_host(ground: ExplorerContext, tmp_path: Path) -> None:
    """The negative control: a battery that cannot fail proves nothing."""
    names = [name for name in REACHING if name not in BY_NAVIGATION]
    expected = {"datagram", *(f"secret /{name}" for name in names)}
    frames = "".join(f'<iframe src="/{name}"></iframe>' for name in [*names, "webrtc"])
    ground.stand.pages["/all"] = f"<!doctype html><title>all</title>{frames}"
    command = [installed(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/bare"]
    command += ["--remote-debugging-port=0", f"{ground.stand.server.url}/all"]
    bare = await asyncio.create_subprocess_exec(
        *command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(90):
            while not expected <= set(ground.gained()):
                await asyncio.sleep(0.1)
                assert bare.returncode is None, ground.gained()
    finally:
        if bare.returncode is None:
            os.killpg(bare.pid, 9)
        await bare.wait()
        shutil.rmtree(tmp_path / "bare", ignore_errors=True)
