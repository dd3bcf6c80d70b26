"""The way into a container, without an engine."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from pathlib import Path

import pytest

from fleet.jail.docker.start import Door

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("turns", range(4))
async def test_a_cancelled_wait_loses_no_one(turns: int, tmp_path: Path) -> None:
    with closing(Door(tmp_path)) as door, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as guest:
        waiting = asyncio.ensure_future(door.knocked())
        await asyncio.sleep(0)
        guest.connect(str(door.folder / "door"))
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        with door.accept() as control:
            guest.send(b"here")
            assert (control.getblocking(), control.recv(9)) == (False, b"here")
