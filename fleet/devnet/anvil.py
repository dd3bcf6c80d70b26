"""The local chain: one pinned anvil on loopback whose state outlives it.

    async with Anvil(state / "chain.json") as anvil:
        ... anvil.url ...

Three things keep the state file whole. One anvil per file: a lock that anvil itself inherits, so it is
held until the process is really gone, however its parent ended. Parent killed: the kernel sends anvil
SIGTERM, and it writes its state (`parent_death.py`). Anvil killed: at most `dump_every_s` is lost, and a
file torn in the middle of a write, which anvil makes in place, is replaced by the last good copy.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import anyio
from anyio.abc import Process

from fleet.config.files import fetched, how_to_fetch
from fleet.devnet import pool
from fleet.errors import FleetError, TryAgain

CHAIN_ID = 31337
BLOCK_GAS_LIMIT = 500_000_000
"""As on the real chain (platform-facts 1.5)."""
HARDFORK = "prague"
MNEMONIC = "test test test test test test test test test test test junk"
"""The published development mnemonic: its keys are public and hold nothing anywhere."""

START_WAIT_S = 15.0
STOP_WAIT_S = 30.0
POLL_S = 0.005

_ARCH = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_TORN = "failed to parse json file"


def find_anvil(root: Path | None = None, path: str | None = None) -> Path:
    """The npm-pinned binary under `root`, else one on the search path; FleetError when there is none."""
    arch = _ARCH.get(platform.machine(), platform.machine())
    pinned = (root or fetched()) / "node_modules" / "@foundry-rs" / f"anvil-linux-{arch}" / "bin" / "anvil"
    if pinned.is_file() and os.access(pinned, os.X_OK):
        return pinned
    found = shutil.which("anvil", path=path)
    if found is None:
        raise FleetError("anvil, the local chain, is not installed", remedy=how_to_fetch("@foundry-rs/anvil"))
    return Path(found)


class Anvil:
    """Runs anvil for the length of an `async with`; `url`, `port` and `pid` are valid inside it.

    Args:
        state: file that holds the chain; made when missing, loaded when there.
        port: 0 lets the kernel choose a free one.
        history: how many block states calls may refer to, the latest among them; each costs memory.
        dump_every_s: seconds between writes of the state file while it runs.
        lock_wait_s: how long an anvil whose parent was killed may take to write its state and go.

    Raises FleetError when anvil does not start, TryAgain when the state file is in use.
    """

    def __init__(
        self,
        state: Path,
        *,
        port: int = 0,
        binary: Path | None = None,
        history: int = 8,
        dump_every_s: int = 10,
        lock_wait_s: float = 10.0,
    ) -> None:
        if history < 1:
            raise ValueError("history must be at least 1: with none at all anvil stops mining")
        self.state, self.port, self.history = state.absolute(), port, history
        self.dump_every_s, self.lock_wait_s = dump_every_s, lock_wait_s
        self._binary = binary
        self._process: Process | None = None
        self._lock: int | None = None
        self._words: IO[bytes] | None = None
        self._watch: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws_url(self) -> str:
        """The same port: anvil serves WebSocket beside HTTP."""
        return f"ws://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def ended(self) -> int:
        """Waits until anvil ends; returns its exit status."""
        return await self._running().wait()

    async def __aenter__(self) -> Self:
        binary = self._binary or find_anvil()
        self.state.parent.mkdir(parents=True, exist_ok=True)
        self._lock = await _lock(self.state.with_suffix(".lock"), self.lock_wait_s)
        try:
            kept, draft = self.state.with_suffix(".kept"), self.state.with_suffix(".draft")
            loaded = await anyio.to_thread.run_sync(_copy, self.state, draft)
            try:
                await self._launch(binary)
            except FleetError as error:
                if _TORN not in str(error) or not kept.exists():
                    raise
                self.state.replace(self.state.with_suffix(".torn"))
                await anyio.to_thread.run_sync(_copy, kept, self.state)
                await self._launch(binary)
            else:
                if loaded:
                    draft.replace(kept)
                else:
                    kept.unlink(missing_ok=True)  # of a chain that was removed
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._stop()
            raise
        # no task group: an anvil may end in another order than it began, which a scope does not bear
        self._watch = asyncio.create_task(pool.watch(self.url))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._stop()

    async def _launch(self, binary: Path) -> None:
        assert self._lock is not None
        self._words = self._words or tempfile.TemporaryFile()  # noqa: SIM115 - closed in _stop
        self._words.truncate(0)
        self._process = await anyio.open_process(
            [
                sys.executable,
                "-I",
                "-S",
                "-B",
                str(Path(__file__).with_name("parent_death.py")),
                str(os.getpid()),
                *self._command(binary),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._words,
            env={"HOME": str(self.state.parent)},
            pass_fds=(self._lock,),
            start_new_session=True,  # Ctrl-C is for the fleet, which still needs the chain to clean up
        )
        with anyio.move_on_after(START_WAIT_S):
            while (port := _listening_port(self.pid)) is None:
                if not self.alive:
                    raise self._failure("ended at once")
                await anyio.sleep(POLL_S)
            self.port = port
            return
        raise self._failure(f"did not listen within {START_WAIT_S:.0f} s")

    def _command(self, binary: Path) -> list[str]:
        return [
            str(binary),
            "--quiet",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--chain-id",
            str(CHAIN_ID),
            "--mnemonic",
            MNEMONIC,
            "--hardfork",
            HARDFORK,
            "--gas-limit",
            str(BLOCK_GAS_LIMIT),
            f"--prune-history={self.history}",
            "--no-cors",
            "--state",
            str(self.state),
            "--state-interval",
            str(self.dump_every_s),
        ]

    async def _stop(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
            self._watch = None
        if self._process is not None:
            if self.alive:
                self._process.terminate()
            with anyio.move_on_after(STOP_WAIT_S):
                await self._process.wait()
            if self.alive:
                self._process.kill()
                await self._process.wait()
            self._process = None
        if self._words is not None:
            self._words.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _failure(self, what: str) -> FleetError:
        assert self._words is not None
        self._words.seek(0)
        words = " ".join(self._words.read(2000).decode("utf-8", "replace").split())[:1000]
        remedy = "see the message"
        if "in use" in words.lower():
            remedy = f"port {self.port} is taken: choose another, or 0 for a free one"
        elif _TORN in words:
            remedy = f"the chain's state is damaged: remove {self.state} to start a new chain"
        return FleetError(f"anvil {what}: {words}", remedy=remedy)

    def _running(self) -> Process:
        if self._process is None:
            raise FleetError("anvil is not running")
        return self._process


async def _lock(path: Path, wait_s: float) -> int:
    """An exclusive lock, waiting a little for an anvil whose parent was killed and that is still writing."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with anyio.move_on_after(wait_s):
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return handle
                except BlockingIOError:
                    await anyio.sleep(4 * POLL_S)
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    raise TryAgain(f"the chain in {path.parent} is in use by another process", remedy="fleet devnet down")


def _copy(source: Path, target: Path) -> bool:
    """False without a source."""
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:
        return False
    return True


def _listening_port(pid: int) -> int | None:
    """The TCP port that exactly this process listens on: no other program on the port can be taken for it."""
    try:
        links = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
        table = Path(f"/proc/{pid}/net/tcp").read_text("ascii").splitlines()[1:]
    except OSError:
        return None
    for fields in (line.split() for line in table):
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in links:
            return int(fields[1].partition(":")[2], 16)
    return None
