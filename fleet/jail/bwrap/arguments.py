"""The argument list of bubblewrap, in the one order that holds.

Operations run in the order given: everything is mounted first and `/` becomes read-only last. No destination
is named beneath a directory that a jail can write to (CVE-2026-87766). Sizes are given for every tmpfs: the
default is half of the machine's memory. There is no `--die-with-parent`: a daemon that dies while bubblewrap
starts would leave its half-made child waiting forever (4 of 60 kills); our PID 1 watches instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleet.jail.jail_spec import Shape
from fleet.jail.model import Layout

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


def etc(layout: Layout) -> tuple[tuple[str, bytes], ...]:
    """`DATA` as it is in a layout."""
    (path, user), (groups, group), *others = DATA
    name, box = layout.user.encode(), layout.box.encode()
    user = user.replace(b"qa:", name + b":", 1).replace(b":/box:", b":" + box + b":")
    return ((path, user), (groups, group.replace(b"qa:", name + b":", 1)), *others)


def bwrap_arguments(
    shape: Shape, *, data_fds: Sequence[int], masks: Sequence[str], filter_fd: int, status_fd: int
) -> list[str]:
    """Return the options for one jail; `data_fds` hold the contents of `DATA`, in its order."""
    box = shape.box if shape.box is not None else _tmpfs(shape.limits.box, "0700", shape.layout.box)
    files = [(str(fd), path) for fd, (path, _) in zip(data_fds, DATA, strict=True)]
    return [
        *("--unshare-all", "--unshare-user", "--disable-userns"),
        *("--new-session", "--as-pid-1"),
        *("--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--hostname", shape.layout.host),
        *_environment(shape),
        *_read_only(shape),
        *(word for fd, path in files for word in ("--ro-bind-data", fd, path)),
        *("--proc", "/proc"),
        *(word for path in masks for word in ("--ro-bind", "/dev/null", path)),
        *("--dev", "/dev"),
        *_tmpfs(shape.limits.shm, "1777", "/dev/shm"),
        *("--remount-ro", "/dev"),
        *_tmpfs(shape.limits.tmp, "1777", "/tmp"),
        *box,
        *("--chdir", shape.layout.box, "--remount-ro", "/"),
        *("--seccomp", str(filter_fd), "--json-status-fd", str(status_fd)),
    ]


def _environment(shape: Shape) -> list[str]:
    known = {"PATH": "/usr/bin:/bin", "HOME": shape.layout.box, "LANG": "C.UTF-8", **shape.layout.variables}
    if shape.library_path:
        known["LD_LIBRARY_PATH"] = shape.library_path
    return ["--clearenv", *(word for name, value in known.items() for word in ("--setenv", name, value))]


def _read_only(shape: Shape) -> list[str]:
    words = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64"):
        words += ["--symlink", f"usr/{name}", f"/{name}"]
    return [*words, *(word for bind in shape.binds for word in bind)]


def _tmpfs(size: int, mode: str, path: str) -> list[str]:
    return ["--size", str(size), "--perms", mode, "--tmpfs", path]
