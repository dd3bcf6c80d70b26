"""What every jail of one backend has in common: its mounts, and its user."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fleet.errors import JailError
from fleet.jail.locate import bundled_libraries, find_interpreter, guest_code, site_packages
from fleet.jail.model import Image, Layout, Limits
from fleet.jail.mount_namespace import Staging

UNPRIVILEGED = 64738
"""The user and group a root daemon starts its jails as: limits on processes do not bind uid 0."""

_WORK = "work"
_OWN_NAMES = frozenset({"py", "site", "sandbox", "start", _WORK})
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}\Z")

T = TypeVar("T")


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
            box = _box_by_descriptor(stack, work, shared, layout.box) if work else None
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


def _box_by_descriptor(stack: ExitStack, work: Path, shared: list[int], box: str) -> tuple[str, str, str]:
    shared.append(_open_path(stack, work, os.O_NOFOLLOW | os.O_DIRECTORY))
    return "--bind-fd", str(shared[-1]), box


def existing(path: Path) -> Path:
    """Its place without links; JailError for one that cannot be seen."""
    try:
        return path.resolve(strict=True)
    except OSError as error:
        raise _unseen(path, error) from error


def _unseen(path: Path, error: OSError) -> JailError:
    problem = f"cannot mount {path} in a jail: {error.strerror}"
    return JailError(problem, remedy=f"check that {path} exists and can be read")
