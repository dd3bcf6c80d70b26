"""Start a jail and complete its handshake: before that nothing hostile can be inside."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from fleet.errors import JailError
from fleet.jail.bwrap.descriptors import Plumbing
from fleet.jail.diagnosis import explained
from fleet.jail.jail_spec import Shape
from fleet.jail.model import Layout
from fleet.jail.process import is_running, kill, open_pidfd, proc_stat
from fleet.jail.reap import write_record
from fleet.jail.running_jail import RunningJail, await_listener, readable
from fleet.jail.seccomp import seccomp_filter

HOST_FACTS = (
    "/proc/cmdline",
    "/proc/config.gz",
    "/proc/kallsyms",
    "/proc/diskstats",
    "/proc/interrupts",
    "/proc/sys/kernel/random/boot_id",
)
"""Facts about the host that `/proc` shows in every namespace; masked where the kernel has them."""

DATA = (
    ("/etc/passwd", b"qa:x:1000:1000::/box:/usr/sbin/nologin\n"),
    ("/etc/group", b"qa:x:1000:\n"),
    ("/etc/hosts", b"127.0.0.1 localhost\n"),
    ("/etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files\n"),
)
"""The whole of /etc in a jail."""
_GONE_S = 2.0


def etc(layout: Layout) -> tuple[tuple[str, bytes], ...]:
    """`DATA` as it is in a layout."""
    (path, user), (groups, group), *others = DATA
    name, box = layout.user.encode(), layout.box.encode()
    user = user.replace(b"qa:", name + b":", 1).replace(b":/box:", b":" + box + b":")
    return ((path, user), (groups, group.replace(b"qa:", name + b":", 1)), *others)


def bwrap_arguments(
    shape: Shape, *, data_fds: Sequence[int], masks: Sequence[str], filter_fd: int | None, status_fd: int
) -> list[str]:
    """Return the options for one jail; `data_fds` hold the contents of `DATA`, in its order.

    Without a filter they are those of a zygote (`sandbox/start/zygote.py`), where nothing hostile comes in:
    its forks make a namespace each, cover what is covered here, and mount what can be written.

    Operations run in the order given: everything is mounted first and `/` becomes read-only last. No
    destination is named beneath a directory that a jail can write to (CVE-2026-87766). Sizes are given for
    every tmpfs: the default is half of the machine's memory. There is no `--die-with-parent`: a daemon that
    dies while bubblewrap starts would leave its half-made child waiting forever (4 of 60 kills); our PID 1
    watches instead.
    """
    known = {"PATH": "/usr/bin:/bin", "HOME": shape.layout.box, "LANG": "C.UTF-8", **shape.layout.variables}
    if shape.library_path:
        known["LD_LIBRARY_PATH"] = shape.library_path
    jail = filter_fd is not None
    box = shape.box if shape.box is not None else _tmpfs(shape.limits.box, "0700", shape.layout.box)
    files = [(str(fd), path) for fd, (path, _) in zip(data_fds, DATA, strict=True)]
    return [
        *("--unshare-all", "--unshare-user", *(("--disable-userns",) if jail else ())),
        *("--new-session", "--as-pid-1"),
        *("--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--hostname", shape.layout.host),
        "--clearenv",
        *(word for name, value in known.items() for word in ("--setenv", name, value)),
        *("--ro-bind", "/usr", "/usr"),
        *(word for name in ("bin", "lib", "lib64") for word in ("--symlink", f"usr/{name}", f"/{name}")),
        *(word for bind in shape.binds for word in bind),
        *(word for fd, path in files for word in ("--ro-bind-data", fd, path)),
        *("--proc", "/proc"),
        *(word for path in masks if jail for word in ("--ro-bind", "/dev/null", path)),
        *("--dev", "/dev"),
        *_tmpfs(shape.limits.shm, "1777", "/dev/shm"),
        *("--remount-ro", "/dev"),
        *_tmpfs(shape.limits.tmp, "1777", "/tmp"),
        *box,
        *("--chdir", shape.layout.box, "--remount-ro", "/"),
        *(("--seccomp", str(filter_fd)) if jail else ()),
        *("--json-status-fd", str(status_fd)),
    ]


def _tmpfs(size: int, mode: str, path: str) -> list[str]:
    return ["--size", str(size), "--perms", mode, "--tmpfs", path]


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


async def spawn(shape: Shape, spool: Path, *, zygote: bool = False) -> RunningJail:
    """Start a jail and return it with its guest waiting; else JailError with bubblewrap's words.

    A zygote in its place has its guest loaded, and waits for what to fork.
    """
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
        outer = _start(shape, plumbing, far_control, (request, result, words), far_status, zygote=zygote)
        plumbing.close_theirs()
        outer_fd = plumbing.own(os.pidfd_open(outer.pid))
        listener = plumbing.own_socket(await await_listener(control, outer_fd))
        pid = _child_pid(status)
        init_fd = plumbing.own(_pin(pid, outer.pid))
        record = write_record(spool, pid)
    except BaseException as error:
        control.close()  # PID 1 ends when its control socket does, and the jail with it
        message = _abandon(outer, status, stderr) if outer else ""
        plumbing.close()
        if isinstance(error, (JailError, OSError, subprocess.SubprocessError, ValueError)):
            raise no_jail(message or str(error) or type(error).__name__) from error
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


def no_jail(reason: str) -> JailError:
    """The error of a jail that could not be made: what the reason means here, and a remedy where known."""
    why, remedy = explained(reason)
    return JailError(f"no jail could be made: {f'{why} ({reason})' if why else reason}", remedy=remedy)


def masks() -> list[str]:
    """What this host shows of `HOST_FACTS`."""
    return [path for path in HOST_FACTS if os.path.exists(path)]


def _start(
    shape: Shape,
    plumbing: Plumbing,
    control: int,
    standard: tuple[int, int, int],
    status: int,
    *,
    zygote: bool,
) -> subprocess.Popen[bytes]:
    words = bwrap_arguments(
        shape,
        data_fds=[plumbing.file(content) for _, content in etc(shape.layout)],
        masks=masks(),
        filter_fd=None if zygote else plumbing.file(seccomp_filter()),
        status_fd=status,
    )
    options = plumbing.file(b"".join(word.encode() + b"\0" for word in words))
    limits = asdict(shape.limits) | ({} if shape.box is None else {"box": 0})
    program = "start/zygote.py" if zygote else "__main__.py"
    guest = [shape.python, "-I", "-S", "-B", shape.layout.inside(f"/opt/sandbox/{program}")]
    guest += [str(control), shape.guest] if zygote else [str(control), json.dumps(limits), shape.guest]
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
    os.set_blocking(stderr, False)
    try:
        message = os.read(stderr, 1 << 16)
    except BlockingIOError:
        return ""
    return (message.decode(errors="replace").strip().splitlines() or [""])[-1]
