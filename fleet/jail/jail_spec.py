"""What every jail of one backend has in common: its mounts, and its user."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fleet.errors import JailError
from fleet.jail.locate import bundled_libraries, find_interpreter, guest_code, site_packages
from fleet.jail.model import Image, Layout, Limits

_CLONE_NEWNS = 0x20000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT = 1, 2, 4, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_STAGED = "/run"

T = TypeVar("T")
UNPRIVILEGED = 64738
"""The user and group a root daemon starts its jails as: limits on processes do not bind uid 0."""

_WORK = "work"
_OWN_NAMES = frozenset({"py", "site", "sandbox", "start", _WORK})
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}\Z")


class Staging:
    """Root's way to show private files to an unprivileged bubblewrap: a thread whose `/run` holds the given
    sources, each `(path, name, writable)`.

    A root daemon starts its jails as another user, and that user cannot walk to an interpreter below /root;
    bubblewrap resolves the path of even a descriptor it is given. So one thread with a mount namespace of its
    own holds the sources, bound read-only under neutral names, and starts all jails. No process, no mount
    that the host can see, nothing to clean up: the namespace ends with the thread and its jails.

    A writable one is given to `owner` and never reached through a symlink.
    """

    def __init__(self, sources: Sequence[tuple[Path, str, bool]], owner: int) -> None:
        self._thread = ThreadPoolExecutor(1, "jails")
        try:
            self._thread.submit(_furnish, sources, owner).result()
        except OSError as error:
            self._thread.shutdown()
            raise JailError(
                f"cannot prepare jails as root: {error.filename}: {error.strerror}",
                remedy="run the fleet as an ordinary user, or give it CAP_SYS_ADMIN",
            ) from error

    def path(self, name: str) -> str:
        return f"{_STAGED}/{name}"

    def submit(self, work: Callable[[], T]) -> Future[T]:
        return self._thread.submit(work)

    def close(self) -> None:
        self._thread.shutdown()


def _furnish(sources: Sequence[tuple[Path, str, bool]], owner: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "mount namespace")
    _mount(libc, "none", "/", "", _MS_REC | _MS_PRIVATE)
    flags = os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY
    opened = [  # before `/run` is covered: a source may lie there
        (os.open(path, flags | os.O_NOFOLLOW if writable else flags), name, writable)
        for path, name, writable in sources
    ]
    _mount(libc, "none", _STAGED, "tmpfs", _MS_NOSUID | _MS_NODEV, b"size=64k,mode=0755")
    for fd, name, writable in opened:
        place = Path(_STAGED, name)
        place.mkdir()
        if writable:
            os.chown(f"/proc/self/fd/{fd}", owner, owner)
        _mount(libc, f"/proc/self/fd/{fd}", str(place), "", _MS_BIND | (0 if writable else _MS_REC))
        os.close(fd)
        lock = _MS_REMOUNT | _MS_BIND | _MS_NOSUID | _MS_NODEV | (0 if writable else _MS_RDONLY)
        _mount(libc, "none", str(place), "", lock)


def _mount(
    libc: ctypes.CDLL, source: str, target: str, kind: str, flags: int, options: bytes | None = None
) -> None:
    if libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How to start a jail; `close` releases the descriptors and the starting thread.

    `binds` are triples of bubblewrap words, `shared` descriptors that bubblewrap inherits. `staging` starts
    the jails of a root daemon, as the user `drop_to`; without it they start in the calling thread.
    """

    executable: str
    environment: dict[str, str]
    python: str
    library_path: str
    binds: tuple[tuple[str, str, str], ...]
    box: tuple[str, str, str] | None
    shared: tuple[int, ...]
    guest: str
    limits: Limits
    layout: Layout
    drop_to: int | None
    staging: Staging | None
    resources: ExitStack

    def start(self, work: Callable[[], T]) -> T:
        """Run a short blocking call in the thread that owns the jails."""
        return self.staging.submit(work).result() if self.staging else work()

    def close(self) -> None:
        self.resources.close()


def open_shape(image: Image, *, bwrap: str, work: Path | None = None) -> Shape:
    """Open everything mounted in a jail of this image; JailError names what is missing."""
    python, layout = find_interpreter(), image.layout
    sources = [(guest_code(), "sandbox"), (site_packages(), "site"), *checked_mounts(image)]
    if python.prefix is not None:
        sources.append((python.prefix, "py"))
    with ExitStack() as stack:
        shared: list[int] = []
        if os.geteuid() == 0:
            writable = [(work, _WORK, True)] if work else []
            staging = Staging([*((path, name, False) for path, name in sources), *writable], UNPRIVILEGED)
            stack.callback(staging.close)
            places = {name: staging.path(name) for _, name in sources}
            box = ("--bind", staging.path(_WORK), layout.box) if work else None
            executable, environment = by_descriptor(stack, bwrap, shared)
        else:
            staging, executable, environment = None, bwrap, {}
            places = {name: str(existing(path)) for path, name in sources}
            box = None
            if work:
                shared.append(_open_path(stack, work, os.O_NOFOLLOW | os.O_DIRECTORY))
                box = ("--bind-fd", str(shared[-1]), layout.box)
        return Shape(
            executable=executable,
            environment=environment,
            python=layout.inside(python.inside),
            library_path=layout.inside(python.library_path),
            binds=tuple(("--ro-bind", place, f"{layout.opt}/{name}") for name, place in places.items()),
            box=box,
            shared=tuple(shared),
            guest=image.guest,
            limits=image.limits,
            layout=layout,
            drop_to=UNPRIVILEGED if staging else None,
            staging=staging,
            resources=stack.pop_all(),
        )


def checked_mounts(image: Image) -> tuple[tuple[Path, str], ...]:
    """The mounts of an image; JailError for a name that is taken or not a plain word."""
    names = [name for _, name in image.mounts]
    for name in names:
        if not _NAME.match(name) or name in _OWN_NAMES or names.count(name) > 1:
            raise JailError(f"bad mount name {name!r} under /opt", remedy="use a new lower-case word")
    return image.mounts


def by_descriptor(stack: ExitStack, bwrap: str, shared: list[int]) -> tuple[str, dict[str, str]]:
    """Name bubblewrap, and the library of a bundled one, so that another user needs no path to them.

    `shared` gets the descriptors that the started program must inherit.
    """
    shared.append(_open_path(stack, Path(bwrap)))
    executable = f"/proc/self/fd/{shared[-1]}"
    libraries = bundled_libraries(bwrap)
    if libraries is None:
        return executable, {}
    shared.append(_open_path(stack, libraries))
    return executable, {"LD_LIBRARY_PATH": f"/proc/self/fd/{shared[-1]}"}


def _open_path(stack: ExitStack, path: Path, flags: int = 0) -> int:
    """Open a location, not its content."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC | flags)
    except OSError as error:
        raise _unseen(path, error) from error
    stack.callback(os.close, fd)
    return fd


def existing(path: Path) -> Path:
    """Its place without links; JailError for one that cannot be seen."""
    try:
        return path.resolve(strict=True)
    except OSError as error:
        raise _unseen(path, error) from error


def _unseen(path: Path, error: OSError) -> JailError:
    problem = f"cannot mount {path} in a jail: {error.strerror}"
    return JailError(problem, remedy=f"check that {path} exists and can be read")
