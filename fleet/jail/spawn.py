"""Start a jail and shake hands with it.

Must run in a thread that lives as long as the jails: the parent-death signal is sent when the *thread* that
started a process ends. Until the handshake is done nothing hostile can be inside.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path

from fleet.errors import JailError
from fleet.jail.arguments import DATA, HOST_FACTS, bwrap_arguments
from fleet.jail.live import Live
from fleet.jail.process import is_running, open_pidfd, proc_stat
from fleet.jail.reap import write_record
from fleet.jail.seccomp import seccomp_filter
from fleet.jail.shape import Shape
from fleet.jail.streams import readable

_READY = b"R"
_HANDSHAKE_S = 15.0
_REMEDIES = (
    ("uid map", "allow user namespaces for bwrap (Ubuntu: apparmor-profiles, bwrap-userns-restrict)"),
    ("RTM_NEWADDR", "allow user namespaces for bwrap (Ubuntu: apparmor-profiles, bwrap-userns-restrict)"),
    ("No permissions to creat", "set kernel.unprivileged_userns_clone=1, or leave the restricted container"),
    ("namespace failed", "raise user.max_user_namespaces, or end other jails"),
    ("nknown option", "bubblewrap is too old: 0.10 or a distribution build with --ro-bind-fd is needed"),
    ("Mount too revealing", "the service unit must not set ProtectProc, ProcSubset, ProtectKernelTunables"),
    ("No module named", "the guest module is not in the image: check Image.guest and the installed package"),
)


class Ends:
    """The two sides of a jail's plumbing; what has not been taken over is closed."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.inside: list[int] = []

    def pipe(self, *, inward: bool) -> tuple[int, int]:
        """Return (ours, theirs)."""
        read_end, write_end = os.pipe()
        ours, theirs = (write_end, read_end) if inward else (read_end, write_end)
        self._stack.callback(_close, ours)
        self.inside.append(theirs)
        return ours, theirs

    def file(self, name: str, content: bytes) -> int:
        fd = os.memfd_create(name)
        self.inside.append(fd)
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def own(self, fd: int) -> int:
        self._stack.callback(_close, fd)
        return fd

    def close_inside(self) -> None:
        while self.inside:
            os.close(self.inside.pop())

    def keep(self) -> None:
        """Our side now belongs to the caller."""
        self._stack.pop_all()

    def close(self) -> None:
        self.close_inside()
        self._stack.close()


def _close(fd: int) -> None:
    with suppress(OSError):
        os.close(fd)


async def spawn(shape: Shape, spool: Path) -> Live:
    """Start a jail and return it with its guest waiting; else JailError with bubblewrap's words."""
    ends = Ends()
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ends.inside.append(theirs.detach())
    outer: subprocess.Popen[bytes] | None = None
    record: Path | None = None
    try:
        stdin, request = ends.pipe(inward=True)
        stdout, result = ends.pipe(inward=False)
        stderr, words = ends.pipe(inward=False)
        status, status_end = ends.pipe(inward=False)
        outer = _start(shape, ends, (request, result, words), status_end)
        ends.close_inside()
        outer_fd = ends.own(os.pidfd_open(outer.pid))
        async with asyncio.timeout(_HANDSHAKE_S):
            pid = await _child_pid(status, outer_fd)
            init_fd = ends.own(_pin(pid, outer.pid))
            record = write_record(spool, pid)
            listener = await _listener(control, outer_fd)
        ends.keep()
        return Live(
            outer=outer, outer_fd=outer_fd, init_fd=init_fd, control=control, listener=listener,
            stdin=stdin, stdout=stdout, stderr=stderr, status=status, record=record, limits=shape.limits,
        )  # fmt: skip
    except BaseException as error:
        control.close()  # PID 1 ends at the end of its control socket, and the jail with it
        said = _abandon(outer, stderr) if outer else ""
        if record:
            record.unlink(missing_ok=True)
        ends.close()
        if isinstance(error, (JailError, OSError, subprocess.SubprocessError, TimeoutError)):
            raise _failure(error, said) from error
        raise


def _start(
    shape: Shape, ends: Ends, standard: tuple[int, int, int], status_fd: int
) -> subprocess.Popen[bytes]:
    control_fd = ends.inside[0]
    words = bwrap_arguments(
        shape,
        data_fds=[ends.file("data", content) for _, content in DATA],
        masks=[path for path in HOST_FACTS if os.path.exists(path)],
        filter_fd=ends.file("filter", seccomp_filter()),
        status_fd=status_fd,
    )
    options = ends.file("options", b"".join(word.encode() + b"\0" for word in words))
    limits = asdict(shape.limits) | ({} if shape.box is None else {"box": 0})
    guest = [shape.python, "-I", "-S", "-B", "/opt/sandbox/__main__.py"]
    guest += [str(control_fd), json.dumps(limits), shape.guest]
    stdin, stdout, stderr = standard
    return shape.start(
        lambda: subprocess.Popen(
            ["bwrap", "--args", str(options), "--", *guest],
            executable=shape.executable,
            env=shape.environment,
            cwd="/",
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            close_fds=True,
            pass_fds=[fd for fd in (*ends.inside, *shape.shared) if fd not in standard],
            user=shape.drop_to,
            group=shape.drop_to,
            extra_groups=None if shape.drop_to is None else [],
        )
    )


async def _first(waiting: Iterable[int]) -> None:
    tasks = [asyncio.ensure_future(readable(fd)) for fd in waiting]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _child_pid(status_fd: int, outer_fd: int) -> int:
    """Read bubblewrap's status up to its first newline: it may come in parts."""
    os.set_blocking(status_fd, False)
    text = b""
    while b"\n" not in text:
        await _first((status_fd, outer_fd))
        part = os.read(status_fd, 4096) if is_readable(status_fd) else b""
        if not part:
            raise JailError("bubblewrap ended before it made a jail")
        text += part
    return int(json.loads(text.split(b"\n", 1)[0])["child-pid"])


def is_readable(fd: int) -> bool:
    return not is_running(fd)


def _pin(pid: int, outer: int) -> int:
    """Hold the jail's PID 1: its parent is still our bubblewrap, so the number was not reused."""
    init_fd = open_pidfd(pid)
    stat = proc_stat(pid)
    if init_fd is None:
        raise JailError("the jail ended while it was being made")
    if stat is None or stat.parent != outer or not is_running(init_fd):
        os.close(init_fd)
        raise JailError("the jail ended while it was being made")
    return init_fd


async def _listener(control: socket.socket, outer_fd: int) -> socket.socket:
    control.setblocking(False)
    await _first((control.fileno(), outer_fd))
    try:
        word, fds, _, _ = socket.recv_fds(control, 16, 1)
    except (BlockingIOError, ConnectionResetError) as error:
        raise JailError("the jail ended during its start") from error
    if word != _READY or len(fds) != 1:
        for fd in fds:
            os.close(fd)
        raise JailError("the jail ended during its start")
    listener = socket.socket(fileno=fds[0])
    listener.setblocking(False)
    os.set_inheritable(listener.fileno(), False)
    return listener


def _abandon(outer: subprocess.Popen[bytes], stderr: int) -> str:
    """End a half-made jail and return the last thing it said."""
    try:
        outer.wait(timeout=0.5)
    except subprocess.TimeoutExpired:
        outer.kill()
        outer.wait()
    os.set_blocking(stderr, False)
    try:
        said = os.read(stderr, 8192)
    except OSError:
        return ""
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _failure(error: BaseException, said: str) -> JailError:
    reason = said or str(error) or type(error).__name__
    remedy = next((advice for sign, advice in _REMEDIES if sign in reason), "run `fleet doctor`")
    return JailError(f"no jail could be made: {reason}", remedy=remedy)
