"""The types of the jail: requests to a backend, and results of calls."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

Egress = Callable[[socket.socket], AbstractAsyncContextManager[None]]
"""Serves a jail's egress for one call: gets the listening TCP socket in the jail's network namespace. The
context is left when the call is over, and must have stopped serving by then."""


class End(StrEnum):
    """How the jail's first process ended, decided from its wait status, never from what it printed."""

    EXITED = "exited"
    SIGNALED = "signaled"
    TIMEOUT = "timeout"
    FLOOD = "flood"  # more output than the cap
    LOST = "lost"  # the jail ended without a status: our failure, not an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Set inside the jail (jail.md section 5). Bytes and seconds."""

    data: int = 1 << 30
    file: int = 64 << 20
    files: int = 512
    processes: int = 128
    cpu_s: int = 60
    stack: int = 16 << 20
    box: int = 128 << 20
    tmp: int = 64 << 20
    shm: int = 16 << 20
    stdout: int = 1 << 20
    stderr: int = 64 << 10
    memory: int = 1536 << 20  # of the whole jail: no rlimit counts it, the jail's PID 1 watches it
    inodes: int = 65_536  # on its tmpfs: empty files take kernel memory but no blocks


RESOURCES: Mapping[str, Limits] = {
    "browser": Limits(processes=160, files=256, memory=768 << 20, stderr=16 << 10),
    "fuzz": Limits(data=2 << 30, cpu_s=150, stdout=4 << 20, memory=2 << 30),
}
"""Limits by the class that a tool's spec names; "" means those of the image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where things are in a jail, and what it is called: a look at other places shows who relies on these."""

    box: str = "/box"
    opt: str = "/opt"
    host: str = "jail"
    user: str = "qa"

    def inside(self, path: str) -> str:
        """A usual path below /opt as it is in this layout."""
        return self.opt + path.removeprefix("/opt") if path.startswith("/opt/") else path

    @property
    def variables(self) -> dict[str, str]:
        """What tells the guest; see `sandbox/places.py`."""
        return {} if (self.box, self.opt) == ("/box", "/opt") else {"QA_PLACES": f"{self.box}:{self.opt}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Read-only mounts of a jail besides the interpreter: host path -> top-level name under /opt."""

    mounts: tuple[tuple[Path, str], ...] = ()
    limits: Limits = field(default_factory=Limits)
    guest: str = "sandbox.guest"  # module with `main() -> int`: one request line in, one result line out
    layout: Layout = field(default_factory=Layout)
    output: int | None = None  # descriptor that standard output goes to, in place of the outcome; as bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`code` is the exit status for EXITED, the signal number for SIGNALED, else 0."""

    end: End
    code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    cpu_s: float | None = None
    """Processor time of what ended inside, by the jail's first process; None where it did not say."""
    memory: int | None = None
    """The most bytes that were held inside at once, as it saw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Result of a self-check by behaviour: the chosen backend, its strength, and each check's result."""

    backend: str
    tier: str  # strong | standard | weak
    ok: bool
    checks: tuple[tuple[str, bool, str], ...]  # name, passed, observation or remedy


class Jail(Protocol):
    """A backend: one call, one fresh jail."""

    async def probe(self) -> Tier:
        """Prove the fence by behaviour. A caller refuses to run when `ok` is false."""

    async def call(
        self, request: bytes, *, deadline_s: float, egress: Egress | None = None, resources: str = ""
    ) -> Outcome:
        """Run the guest once on one request line and return how it ended; JailError without a jail.

        `resources` is a class of RESOURCES.
        """

    async def cool(self) -> None:
        """End the jails that wait for a call."""

    async def aclose(self) -> None:
        """End every jail that is still alive, pooled ones included."""
