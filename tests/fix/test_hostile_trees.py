"""A work tree that hostile code has written to is refused by name, and nothing in it is followed."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from fleet.errors import PatchRefused
from fleet.fix.repository.git import Git
from fleet.fix.repository.tree_scan import CONTENT
from fleet.fix.repository.trees import GitTrees
from tests.fix.repositories import Remote, checked, git, make_remote, task

pytestmark = pytest.mark.anyio


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return make_remote(tmp_path)


def trees(tmp_path: Path) -> GitTrees:
    return GitTrees(Git(), tmp_path / "state")


def _link(tree: Path) -> None:
    (tree / "src" / "double.py").unlink()
    (tree / "src" / "double.py").symlink_to("/etc/passwd")


def _linked_folder(tree: Path) -> None:
    (tree / "src" / "out").symlink_to("/etc")


def _program(tree: Path) -> None:
    (tree / "src" / "double.py").chmod(0o755)


def _program_new(tree: Path) -> None:
    (tree / "src" / "run").write_text("#!/bin/sh\n")
    (tree / "src" / "run").chmod(0o755)


def _binary(tree: Path) -> None:
    (tree / "src" / "double.py").write_bytes(b"\0\1\2")


def _newline(tree: Path) -> None:
    (tree / "src" / "a\n+++ b").write_text("x\n")


def _raw_name(tree: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tree) + b"/src/\xff\xfe.py"))).write_text("x\n")


def _repository(tree: Path) -> None:
    git(tree / "src", "init", "--quiet", "inner")


def _pointer(tree: Path) -> None:
    (tree / "src" / ".git").write_text("gitdir: /etc\n")


def _upper_repository(tree: Path) -> None:
    (tree / ".GIT" / "hooks").mkdir(parents=True)


def _pipe(tree: Path) -> None:
    (tree / "src" / "double.py").unlink()
    os.mkfifo(tree / "src" / "double.py")


def _socket(tree: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(tree / "src", os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{here}/s")
        os.close(here)


def _huge(tree: Path) -> None:
    os.truncate(tree / "src" / "double.py", 1 << 40)


def _large_new(tree: Path) -> None:
    (tree / "src" / "new.py").write_bytes(b"#" * (CONTENT + 1))


def _magic(tree: Path) -> None:
    (tree / ":(icase)src").write_text("x\n")


def _colliding(tree: Path) -> None:
    (tree / "src" / "Double.py").write_text("x\n")


def _many(tree: Path) -> None:
    for number in range(501):
        (tree / "src" / f"{number}.py").touch()


def _deep(tree: Path) -> None:
    here = os.open(tree, os.O_RDONLY)
    for _ in range(40):
        os.mkdir("d" * 200, dir_fd=here)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


HOSTILE: list[tuple[Callable[[Path], None], str]] = [
    (_link, "symlink"),
    (_linked_folder, "symlink"),
    (_program, "mode"),
    (_program_new, "mode"),
    (_binary, "binary"),
    (_newline, "name"),
    (_raw_name, "name"),
    (_repository, "kind"),
    (_pointer, "kind"),
    (_upper_repository, "kind"),
    (_pipe, "kind"),
    (_socket, "kind"),
    (_huge, "size"),
    (_large_new, "size"),
    (_magic, "path"),
    (_colliding, "case"),
    (_many, "files"),
    (_deep, "unreadable"),
]


@pytest.mark.parametrize(("act", "rule"), HOSTILE, ids=[act.__name__.strip("_") for act, _ in HOSTILE])
async def test_a_hostile_tree_is_refused_by_name(
    tmp_path: Path, remote: Remote, act: Callable[[Path], None], rule: str
) -> None:
    async with trees(tmp_path).open(task(remote.url)) as tree:
        act(tree.path)
        with pytest.raises(PatchRefused) as refused:
            checked(task(remote.url), await tree.diff(), tree.base)
        assert refused.value.rule == rule
        assert "\n" not in str(refused.value)
        await tree.restore()
        assert await tree.diff() == b""
    assert list((tmp_path / "state" / "trees").iterdir()) == []


async def test_nothing_of_a_link_target_is_in_the_diff(tmp_path: Path, remote: Remote) -> None:
    secret = tmp_path / "secret"
    secret.write_text("very secret text\n")

    def link(tree: Path) -> None:
        (tree / "src" / "double.py").unlink()
        (tree / "src" / "double.py").symlink_to(secret)
        (tree / "out").symlink_to(tmp_path)

    async with trees(tmp_path).open(task(remote.url)) as tree:
        link(tree.path)
        patch = await tree.diff()
    assert b"very secret text" not in patch
    assert patch.count(b"120000") == 2
