"""While `fleet up --port` waits for the chain or for room on the disk, its pages say so."""

from __future__ import annotations

import socket
from pathlib import Path

import anyio
import httpx
import pytest

from fleet.app.bootstrap import Options
from fleet.cli.operate.up import shown_waiting
from fleet.service.listeners import loopback


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as line:
        return int(line.getsockname()[1])


@pytest.mark.anyio
async def test_the_pages_say_what_is_waited_for_and_leave_the_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    options = Options(tmp_path, (tmp_path,), port=free_port())
    async with anyio.create_task_group() as tasks, httpx.AsyncClient(base_url=options.page) as client:
        tasks.start_soon(shown_waiting, options, "the chain")
        text = ""
        with anyio.fail_after(20):
            while not text:
                try:
                    text = (await client.get("/", timeout=60)).text
                except httpx.ConnectError:
                    await anyio.sleep(0.05)
        tasks.cancel_scope.cancel()
    assert ">Waiting<" in text
    assert "The daemon waits for the chain." in text
    loopback(options.port or 0).close()  # free for the daemon
