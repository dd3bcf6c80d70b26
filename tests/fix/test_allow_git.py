"""ALLOW_GIT: what counts as a person's token, and that nothing of the fleet makes one."""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fleet.files import ROOT
from fleet.fix.permission.allow_git import FOLDER, GitPermission, command, permission

FP = "0123456789ab"
NOW = datetime(2026, 11, 23, 23, 59, tzinfo=UTC)
DAY = "day-2026-11-23"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / FOLDER
    made.mkdir(mode=0o755)
    return made


def token(path: Path, text: str = "allow\n", mode: int = 0o644) -> None:
    path.write_text(text)
    path.chmod(mode)


def linked(path: Path) -> None:
    token(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def twice(path: Path) -> None:
    token(path)
    os.link(path, path.with_name("other"))


def foreign(path: Path) -> None:
    token(path)
    os.chown(path, 12345, 12345)


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "another word": (lambda path: token(path, "deny\n"), "its content is not the word allow"),
    "more words": (lambda path: token(path, "allow all\n"), "its content is not the word allow"),
    "a space": (lambda path: token(path, "allow "), "its content is not the word allow"),
    "empty": (lambda path: token(path, ""), "its content is not the word allow"),
    "oversize": (lambda path: token(path, "allow\n" * 20), "larger than 64 bytes"),
    "group may write": (lambda path: token(path, mode=0o664), "writable by others"),
    "all may write": (lambda path: token(path, mode=0o646), "writable by others"),
    "a link": (linked, "a symbolic link"),
    "a second name": (twice, "has other names (hard links)"),
    "a pipe": (os.mkfifo, "not a regular file"),
    "a folder": (os.mkdir, "not a regular file"),
    "of another user": (foreign, "belongs to another user (12345)"),
}


@pytest.mark.parametrize("text", ["allow", "allow\n"])
def test_the_item_s_token_and_the_day_s(folder: Path, text: str) -> None:
    assert not permission(folder, FP, NOW).allowed
    token(folder / DAY, text)
    assert permission(folder, FP, NOW) == GitPermission(True, "day 2026-11-23")
    assert not permission(folder, FP, datetime(2026, 11, 24, tzinfo=UTC)).allowed
    token(folder / FP, text)
    assert permission(folder, FP, NOW) == GitPermission(True, f"item {FP}")
    (folder / FP).unlink()
    assert permission(folder, FP, NOW).why == "day 2026-11-23"  # never cached


@pytest.mark.parametrize("name", BAD)
def test_a_bad_token_is_refused_with_its_reason(folder: Path, name: str) -> None:
    if name == "of another user" and os.geteuid():
        pytest.skip("only root can make a file of another user")
    make, why = BAD[name]
    make(folder / FP)
    token(folder / DAY)  # the item's own token decides, not a good one of the day
    assert permission(folder, FP, NOW) == GitPermission(False, f"{FOLDER}/{FP}: {why}")


def test_a_bad_folder_is_refused(tmp_path: Path, folder: Path) -> None:
    token(folder / FP)
    folder.chmod(0o775)
    assert permission(folder, FP, NOW).why == f"{FOLDER}: writable by others"
    folder.chmod(0o755)
    (tmp_path / "link").symlink_to(folder)
    assert permission(tmp_path / "link", FP, NOW).why == f"{FOLDER}: a symbolic link"
    assert permission(tmp_path / "none", FP, NOW).why == f"{FOLDER}: missing"
    assert permission(folder / FP, FP, NOW).why == f"{FOLDER}: not a folder"
    if os.geteuid() == 0:
        os.chown(folder, 12345, 12345)
        assert permission(folder, FP, NOW).why == f"{FOLDER}: belongs to another user (12345)"


@pytest.mark.parametrize("name", ["../0123456789ab", DAY, "", "0123456789AB", "a/b", "0123456789ab\n"])
def test_only_a_fingerprint_names_a_token(folder: Path, name: str) -> None:
    token(folder / DAY)
    assert not permission(folder, name, NOW).allowed


def test_the_command_for_a_person_permits(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / FOLDER
    folder.parent.mkdir()
    subprocess.run(["sh", "-c", command(folder, FP)], check=True)
    assert permission(folder, FP, NOW).allowed


def test_nothing_of_the_fleet_writes_a_token() -> None:
    """Only these name the folder, and the module that reads it calls nothing that writes."""
    files = [path for room in ("fleet", "sandbox") for path in (ROOT / room).rglob("*.py")]
    naming = {path.relative_to(ROOT).as_posix() for path in files if "allow_git" in path.read_text("utf-8")}
    assert naming == {
        "fleet/app/proposals.py",
        "fleet/cli/propose.py",
        "fleet/fix/fix_pass.py",
        "fleet/fix/permission/permit.py",
        "fleet/fix/permission/preconditions.py",
    }
    literal = [path for path in files if FOLDER in path.read_text("utf-8")]
    assert [path.name for path in literal] == ["allow_git.py"]
    tree = ast.parse((ROOT / "fleet/fix/permission/allow_git.py").read_text("utf-8"))
    called = {
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
    writing = {"open", "write_text", "write_bytes", "write_atomic", "write_new", "mkdir", "touch", "rename"}
    assert called & writing == set()
