"""Start a jail and complete its handshake: before that nothing hostile can be inside."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from dataclasses import asdict
from pathlib import Path

from fleet.errors import JailError
from fleet.jail.bwrap.arguments import HOST_FACTS, bwrap_arguments, etc
from fleet.jail.bwrap.descriptors import Plumbing
from fleet.jail.jail_spec import Shape
from fleet.jail.obstacles import explained
from fleet.jail.process import is_running, kill, open_pidfd, proc_stat
from fleet.jail.reap import write_record
from fleet.jail.running_jail import RunningJail, await_listener
from fleet.jail.seccomp import seccomp_filter
from fleet.jail.streams import readable

_GONE_S = 2.0


class Bubblewrap:
    """A jail by its two processes: killing PID 1 ends the whole namespace, regardless of bubblewrap.

    `outer_fd` is a pidfd of `process`, `init_fd` one of the jail's PID 1; both are owned from now on.
    """

    def __init__(self, process: subprocess.Popen[bytes], outer_fd: int, init_fd: int) -> None:
        self._process, self._outer_fd, self._init_fd = process, outer_fd, init_fd
        self.returncode: int | None = None

    def alive(self) -> bool:
        return is_running(self._outer_fd) and is_running(self._init_fd)

    async def ended(self) -> None:
        await readable(self._outer_fd)

    async def end(self) -> None:
        """PID 1 first, so that bubblewrap reaps it and leaves no zombie to our init."""
        kill(self._init_fd)
        try:
            async with asyncio.timeout(_GONE_S):
                await readable(self._outer_fd)
        except TimeoutError:
            kill(self._outer_fd)
            await readable(self._outer_fd)
        self.returncode = self._process.wait()
        await readable(self._init_fd)

    def close(self) -> None:
        os.close(self._outer_fd)
        os.close(self._init_fd)


_ABANDON_S = 3.0


async def spawn(shape: Shape, spool: Path) -> RunningJail:
    """Start a jail and return it with its guest waiting; else JailError with bubblewrap's words."""
    plumbing = Plumbing()
    control, far_control = plumbing.control()
    stdin, request = plumbing.pipe(inward=True)
    stdout, result = plumbing.pipe(inward=False)
    stderr, words = plumbing.pipe(inward=False)
    # a file, not a pipe: a bubblewrap that dies of a missing reader leaves its child waiting forever
    far_status = plumbing.file()
    status = plumbing.own(os.dup(far_status))
    outer: subprocess.Popen[bytes] | None = None
    try:
        outer = _start(shape, plumbing, far_control, (request, result, words), far_status)
        plumbing.close_theirs()
        outer_fd = plumbing.own(os.pidfd_open(outer.pid))
        listener = plumbing.own_socket(await await_listener(control, outer_fd))
        pid = _child_pid(status)
        init_fd = plumbing.own(_pin(pid, outer.pid))
        record = write_record(spool, pid)
    except BaseException as error:
        control.close()  # PID 1 ends when its control socket does, and the jail with it
        said = _abandon(outer, status, stderr) if outer else ""
        plumbing.close()
        if isinstance(error, (JailError, OSError, subprocess.SubprocessError, ValueError)):
            raise _failure(error, said) from error
        raise
    plumbing.keep()
    os.close(status)
    return RunningJail(
        outer=Bubblewrap(outer, outer_fd, init_fd),
        control=control,
        listener=listener,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        record=record,
        limits=shape.limits,
    )


def _start(
    shape: Shape, plumbing: Plumbing, control: int, standard: tuple[int, int, int], status: int
) -> subprocess.Popen[bytes]:
    words = bwrap_arguments(
        shape,
        data_fds=[plumbing.file(content) for _, content in etc(shape.layout)],
        masks=[path for path in HOST_FACTS if os.path.exists(path)],
        filter_fd=plumbing.file(seccomp_filter()),
        status_fd=status,
    )
    options = plumbing.file(b"".join(word.encode() + b"\0" for word in words))
    limits = asdict(shape.limits) | ({} if shape.box is None else {"box": 0})
    guest = [shape.python, "-I", "-S", "-B", shape.layout.inside("/opt/sandbox/__main__.py")]
    guest += [str(control), json.dumps(limits), shape.guest]
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
            process_group=0,  # Ctrl-C is for the fleet, which drains: a run in flight needs its jails
            pass_fds=[fd for fd in (*plumbing.theirs, *shape.shared) if fd not in standard],
            user=shape.drop_to,
            group=shape.drop_to,
            extra_groups=None if shape.drop_to is None else [],
        )
    )


def _child_pid(status: int) -> int:
    """The host's pid of the jail's PID 1, written by bubblewrap before PID 1 could run."""
    return int(json.loads(os.pread(status, 4096, 0).split(b"\n", 1)[0])["child-pid"])


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


def _abandon(outer: subprocess.Popen[bytes], status: int, stderr: int) -> str:
    """End a half-made jail and return its last message.

    The inner process goes first: bubblewrap's child would wait forever for a killed parent.
    """
    deadline = time.monotonic() + _ABANDON_S
    while outer.poll() is None and time.monotonic() < deadline:
        try:
            init_fd = _pin(_child_pid(status), outer.pid)
        except (JailError, ValueError):
            time.sleep(0.005)
            continue
        kill(init_fd)
        os.close(init_fd)
        break
    try:
        outer.wait(timeout=_ABANDON_S)
    except subprocess.TimeoutExpired:
        outer.kill()
        outer.wait()
    return _last_line(stderr)


def _last_line(stderr: int) -> str:
    os.set_blocking(stderr, False)
    try:
        said = os.read(stderr, 1 << 16)
    except BlockingIOError:
        return ""
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _failure(error: BaseException, said: str) -> JailError:
    reason = said or str(error) or type(error).__name__
    why, remedy = explained(reason)
    return JailError(f"no jail could be made: {f'{why} ({reason})' if why else reason}", remedy=remedy)
