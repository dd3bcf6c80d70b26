"""What the host plants before the probes run: if a jail sees any of it, it got out."""

from __future__ import annotations

import ctypes
import os
import platform
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fleet.jail.battery.probes.registry import Escaped
from fleet.jail.jail_spec import UNPRIVILEGED

_KEYCTL_JOIN, _SESSION = 1, -3
_ADD_KEY, _KEYCTL = (248, 250) if platform.machine() == "x86_64" else (217, 219)
_SHM_GET, _SHM_CTL = (29, 31) if platform.machine() == "x86_64" else (194, 195)

_BELONGINGS = (
    "state/autonomy",
    "state/autonomy.json",
    "state/STOP",
    "state/DECISIONS.md",
    "state/fleet.toml",
    "state/runs/abcdefgh/PLAN.md",
    "state/runs/abcdefgh/state.json",
    "state/runs/abcdefgh/MISSION.md",
    "state/runs/abcdefgh/CHARTER.md",
    "state/runs/abcdefgh/GUARDRAILS.md",
    "state/runs/abcdefgh/trajectory.jsonl",
    "personas/qa-ux.md",
)
"""What a run is governed by: a jail that changes one of these gives itself rights."""


@contextmanager
def planted() -> Iterator[dict[str, Any]]:
    """Plant everything and yield the facts that the probes need; Escaped if a probe reached it."""
    token = os.environ.get("QA_CANARY", "") or secrets.token_hex(
        8
    )  # a program's first environment stays in /proc
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="canary-")))
        key, database = home / "operator.key", home / "fleet.db"
        for path in (key, database):
            path.write_text(token)
            path.chmod(0o600)
        belongings = [home / name for name in _BELONGINGS]
        for path in belongings:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(token)
        port, unix, abstract = _sockets(stack, home, token)
        sleeper = _sleeper(stack, token)
        os.set_inheritable(os.open(home, os.O_RDONLY | os.O_DIRECTORY), True)
        _session_key(token)
        yield {
            "secrets": [str(key), str(database), "/root/.ssh/id_ed25519", os.path.expanduser("~/.config")],
            "belongings": [str(path) for path in belongings],
            "canary": token,
            "canary_pid": sleeper.pid,
            "secret": token,
            "key": token,
            "port": port,
            "socket": unix,
            "abstract": abstract,
            "shm_key": _shared_memory(stack),
            "hostname": socket.gethostname(),
            "private": [str(home), "operator", "spool"],
        }
        if sleeper.poll() is not None:
            raise Escaped("a probe killed a process of the host")
        if any(path.read_text() != token for path in belongings):
            raise Escaped("a probe changed a file of a run")


def _sockets(stack: ExitStack, home: Path, token: str) -> tuple[int, str, str]:
    tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    named = stack.enter_context(socket.socket(socket.AF_UNIX))
    named.bind(str(home / "socket"))
    named.listen()
    hidden = stack.enter_context(socket.socket(socket.AF_UNIX))
    hidden.bind("\0" + token)
    hidden.listen()
    return tcp.getsockname()[1], str(home / "socket"), token


def _sleeper(stack: ExitStack, token: str) -> subprocess.Popen[bytes]:
    """A process of the very user that the jails run as."""
    user = UNPRIVILEGED if os.geteuid() == 0 else None
    sleeper = subprocess.Popen(
        ["/bin/sh", "-c", "read x", token], stdin=subprocess.PIPE, user=user, group=user
    )
    stack.callback(sleeper.wait)
    stack.callback(sleeper.kill)
    assert sleeper.stdin
    stack.callback(sleeper.stdin.close)
    return sleeper


def _session_key(token: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(_KEYCTL, _KEYCTL_JOIN, None)
    libc.syscall(_ADD_KEY, b"user", token.encode(), b"x", ctypes.c_size_t(1), ctypes.c_long(_SESSION))


def _shared_memory(stack: ExitStack) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    key = secrets.randbelow(1 << 30) + 1
    shm = libc.syscall(_SHM_GET, key, ctypes.c_size_t(4096), 0o1666)
    if shm >= 0:
        stack.callback(libc.syscall, _SHM_CTL, shm, 0, None)
    return key
