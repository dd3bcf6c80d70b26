"""One command of this machine, run to its end within bounds."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

ERRORS = 64 * 1024
"""Bytes that are kept of what a command says on stderr: its end."""


@dataclass(slots=True)
class CompletedCommand:
    """How a command ended: `late` when its time was over, `flooded` when it printed too much; it and what it
    started were killed then."""

    status: int | None = None
    output: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)
    late: bool = False
    flooded: bool = False


async def run_command(
    words: Sequence[str],
    *,
    env: Mapping[str, str],
    limit: int,
    seconds: float,
    stdin: bytes = b"",
    cwd: Path | None = None,
) -> CompletedCommand:
    """Start it without a shell, in a session of its own, with nothing inherited; `limit` is the most bytes of
    its output. Raises OSError or ValueError when it cannot be started."""
    process = await anyio.open_process(
        list(words),
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        env=env,
        cwd=cwd or "/",
        start_new_session=True,
    )
    end = CompletedCommand()
    try:
        with anyio.move_on_after(seconds) as scope:
            await _follow(process, end, limit, stdin)
    finally:
        with anyio.CancelScope(shield=True):
            # end it with all that it started: what it runs are processes of their own
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            await process.aclose()
    end.status, end.late = process.returncode, scope.cancelled_caught
    return end


async def _follow(process: Process, end: CompletedCommand, limit: int, stdin: bytes) -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_listen, process.stderr, end)
        if process.stdin is not None:
            tasks.start_soon(_feed, process.stdin, stdin)
        async for piece in process.stdout:
            end.output += piece
            if len(end.output) > limit:
                end.flooded = True
                tasks.cancel_scope.cancel()
                return
    await process.wait()


async def _listen(stream: ByteReceiveStream, end: CompletedCommand) -> None:
    async for piece in stream:
        end.errors = (end.errors + piece)[-ERRORS:]


async def _feed(stream: ByteSendStream, data: bytes) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, BrokenPipeError, ConnectionError):
        await stream.send(data)
    await stream.aclose()
