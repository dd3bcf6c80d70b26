"""The order and the absence of things in bubblewrap's argument list."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import pairwise

import pytest

from fleet.jail.bwrap.spawn import DATA, HOST_FACTS, bwrap_arguments
from fleet.jail.jail_spec import Shape
from fleet.jail.model import Layout, Limits

MOUNTS = {
    "--ro-bind": 2,
    "--bind": 2,
    "--bind-fd": 2,
    "--ro-bind-data": 2,
    "--tmpfs": 1,
    "--proc": 1,
    "--dev": 1,
}
"""Each mounting option and how far behind it its destination stands."""


def words(box: tuple[str, str, str] | None = None) -> list[str]:
    shape = Shape(
        executable="/usr/bin/bwrap",
        environment={},
        python="/opt/py/bin/python3",
        library_path="",
        binds=(("--ro-bind", "/srv/x", "/opt/x"),),
        box=box,
        shared=(),
        guest="sandbox.guest",
        limits=Limits(),
        layout=Layout(),
        drop_to=None,
        staging=None,
        resources=ExitStack(),
    )
    data = range(len(DATA))
    return bwrap_arguments(shape, data_fds=data, masks=HOST_FACTS, filter_fd=90, status_fd=91)


def destinations(listed: list[str]) -> list[str]:
    return [listed[at + MOUNTS[word]] for at, word in enumerate(listed) if word in MOUNTS]


@pytest.mark.parametrize("box", [None, ("--bind-fd", "7", "/box")])
def test_nothing_is_mounted_beneath_what_a_jail_can_write(box: tuple[str, str, str] | None) -> None:
    inside = [path for path in destinations(words(box)) if path.startswith(("/box/", "/tmp/", "/dev/shm/"))]
    assert inside == []


def test_the_root_becomes_read_only_after_the_last_mount() -> None:
    listed = words()
    last = max(at for at, word in enumerate(listed) if word in MOUNTS)
    closing = [at for at, (one, two) in enumerate(pairwise(listed)) if (one, two) == ("--remount-ro", "/")]
    assert len(closing) == 1
    assert closing[0] > last


def test_every_tmpfs_has_a_size() -> None:
    listed = words()
    sized = [listed[at - 4] for at, word in enumerate(listed) if word == "--tmpfs"]
    assert sized == ["--size"] * 3


def test_a_host_directory_takes_the_place_of_the_tmpfs() -> None:
    assert destinations(words(("--bind-fd", "7", "/box"))).count("/box") == 1


def test_nothing_of_the_host_but_usr_is_named() -> None:
    listed = words()
    sources = [listed[at + 1] for at, word in enumerate(listed) if word in ("--ro-bind", "--bind")]
    assert set(sources) == {"/usr", "/srv/x", "/dev/null"}


@pytest.mark.parametrize(
    "option",
    ["--unshare-all", "--disable-userns", "--new-session", "--as-pid-1", "--clearenv"],
)
def test_an_option_that_the_fence_needs_is_there(option: str) -> None:
    assert words().count(option) == 1
