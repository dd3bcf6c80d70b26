"""A double of the jail without any fence, for tests of the rooms above.

It runs the same guests by the same protocol, so it passes the same conformance suite; its tier is `none` and
its self-check fails, so it cannot replace a real jail by accident.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack, suppress

import anyio

from fleet.errors import JailError
from fleet.jail.locate import guest_code, site_packages
from fleet.jail.model import Egress, End, Image, Outcome, Tier
from fleet.jail.running_jail import BoundedReader, feed, readable

_GUEST = """
import sys
sys.path += sys.argv[3:]
import sandbox.spec
sandbox.spec.BROKER = sys.argv[1]
from importlib import import_module
sys.exit(import_module(sys.argv[2]).main())
"""


class LocalJail:
    """Plain subprocesses. Mounts are found by their parent folder, so a mount's name must be its folder's."""

    def __init__(self, image: Image) -> None:
        for path, name in image.mounts:
            if path.name != name:
                raise JailError(f"the double cannot show {path} as {name!r}")
        self._image = image
        self._alive: set[subprocess.Popen[bytes]] = set()

    async def probe(self) -> Tier:
        return Tier(backend="local", tier="none", ok=False, checks=(("fence", False, "there is none"),))

    async def call(
        self, request: bytes, *, deadline_s: float, egress: Egress | None = None, resources: str = ""
    ) -> Outcome:
        """Run the guest once; see `fleet.jail.model.Jail.call`."""
        async with AsyncExitStack() as stack:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            listener.setblocking(False)
            port = listener.getsockname()[1]
            if egress is None:
                listener.close()
            else:
                await stack.enter_async_context(egress(listener))
            box = stack.enter_context(tempfile.TemporaryDirectory(prefix="box-"))
            return await self._run(request, deadline_s, f"http://127.0.0.1:{port}", box)

    async def cool(self) -> None:
        """No process waits for a call here."""

    async def aclose(self) -> None:
        for process in list(self._alive):
            _kill(process)

    async def _run(self, request: bytes, deadline_s: float, broker: str, box: str) -> Outcome:
        started = time.monotonic()
        process = self._start(broker, box)
        assert process.stdin
        assert process.stdout
        assert process.stderr
        pidfd = os.pidfd_open(process.pid)
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finish() -> None:
            if not over.done():
                over.set_result(None)

        out = BoundedReader(process.stdout.fileno(), self._image.limits.stdout, finish)
        err = BoundedReader(process.stderr.fileno(), self._image.limits.stderr, finish)
        ended = asyncio.ensure_future(readable(pidfd))
        ended.add_done_callback(lambda _: finish())
        feeder = asyncio.ensure_future(feed(os.dup(process.stdin.fileno()), request))
        process.stdin.close()
        try:
            await asyncio.wait([over], timeout=deadline_s)
            in_time = over.done()
        finally:
            with anyio.CancelScope(shield=True):
                for task in (ended, feeder):
                    task.cancel()
                await asyncio.gather(ended, feeder, return_exceptions=True)
                _kill(process)
                self._alive.discard(process)
                stdout, stderr = out.finish(), err.finish()
                process.stdout.close()
                process.stderr.close()
                os.close(pidfd)
        end, code = _verdict(process.returncode, in_time, out.flooded or err.flooded)
        return Outcome(end=end, code=code, stdout=stdout, stderr=stderr, seconds=time.monotonic() - started)

    def _start(self, broker: str, box: str) -> subprocess.Popen[bytes]:
        roots = [guest_code().parent, site_packages(), *(path.parent for path, _ in self._image.mounts)]
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", _GUEST, broker, self._image.guest, *map(str, roots)],
            env={"PATH": "/usr/bin:/bin", "HOME": box, "LANG": "C.UTF-8"},
            cwd=box,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._alive.add(process)
        return process


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _verdict(returncode: int, in_time: bool, flooded: bool) -> tuple[End, int]:
    if flooded:
        return End.FLOOD, 0
    if not in_time:
        return End.TIMEOUT, 0
    return (End.SIGNALED, -returncode) if returncode < 0 else (End.EXITED, returncode)
