"""The one writer and the one reader of small files: what they refuse, and that no room has its own."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.files import UnfitFile, open_regular, read_bounded, read_owned, write_atomic, write_new

ROOM = Path(__file__).resolve().parents[1] / "fleet"
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"whole")
    path.chmod(0o600)
    return path


def foreign(path: Path) -> None:
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize(
    ("spoil", "rule", "reason"),
    [
        pytest.param(foreign, "owner", "belongs to another user (12345)", marks=AS_ROOT),
        (lambda path: path.chmod(0o620), "mode", "writable by others"),
        (lambda path: path.chmod(0o602), "mode", "writable by others"),
        (lambda path: os.link(path, path.with_name("other")), "links", "has other names (hard links)"),
        (lambda path: path.write_bytes(b"whole."), "size", "larger than 5 bytes"),
        (lambda path: os.truncate(path, 1 << 40), "size", "larger than 5 bytes"),
    ],
)
def test_a_file_that_does_not_fit_is_not_read(
    file: Path, spoil: Callable[[Path], object], rule: str, reason: str
) -> None:
    assert read_owned(file, 5) == b"whole"
    spoil(file)
    with pytest.raises(UnfitFile) as caught:
        read_owned(file, 5)
    assert (caught.value.rule, caught.value.strerror) == (rule, reason)
    if rule == "size":
        with pytest.raises(UnfitFile, match="larger than 5 bytes"):
            read_bounded(file, 5)
    else:
        assert read_bounded(file, 5) == b"whole"


def test_a_mode_that_lets_others_read_is_refused_where_it_matters(file: Path) -> None:
    file.chmod(0o640)
    assert read_owned(file, 5) == b"whole"
    with pytest.raises(UnfitFile, match="mode 0640 lets others in"):
        read_owned(file, 5, mode=0o077)


@pytest.mark.parametrize("read", [read_owned, read_bounded])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, read: Callable[..., bytes], file: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "to-fifo").symlink_to(tmp_path / "fifo")
    for name, follow in (("fifo", False), ("folder", False), ("to-fifo", True)):
        with pytest.raises(UnfitFile, match="not a regular file"):
            read(tmp_path / name, 5, follow=follow)
    with pytest.raises(OSError, match="symbolic links"):
        read(tmp_path / "link", 5)
    assert read(tmp_path / "link", 5, follow=True) == b"whole"
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none", 5)
    with pytest.raises(ValueError, match="null"):
        read(tmp_path / "a\0b", 5)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_descriptor_of_what_is_refused_is_not_left_open(file: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with pytest.raises(UnfitFile):
            read_bounded(file, 1)
        with pytest.raises(UnfitFile):
            open_regular(file.parent)
    assert len(os.listdir("/proc/self/fd")) == before


def before_read(monkeypatch: pytest.MonkeyPatch, acts: Iterator[Callable[[], object]]) -> None:
    plain = os.read

    def read(*args: Any) -> bytes:
        next(acts, lambda: None)()
        return plain(*args)

    monkeypatch.setattr(os, "read", read)


def test_one_that_is_replaced_meanwhile_is_read_anew(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before_read(monkeypatch, iter([lambda: write_atomic(file, b"newer")]))
    assert read_owned(file, 5) == b"newer"


def test_one_that_is_never_still_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before_read(monkeypatch, iter([lambda: write_atomic(file, b"newer")] * 99))
    with pytest.raises(UnfitFile, match="replaced repeatedly"):
        read_owned(file, 5)


def test_one_that_grows_while_it_is_read_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before_read(monkeypatch, iter([lambda: file.write_bytes(b"x" * 99)]))
    with pytest.raises(UnfitFile, match="larger than 5 bytes"):
        read_owned(file, 5)


@pytest.mark.parametrize("write", [write_atomic, write_new])
def test_the_mode_is_exact_whatever_the_umask(write: Callable[..., None], tmp_path: Path) -> None:
    path, before = tmp_path / "made", os.umask(0o077)
    try:
        write(path, b"x", mode=0o644)
    finally:
        os.umask(before)
    assert (stat.S_IMODE(path.stat().st_mode), path.read_bytes(), os.listdir(tmp_path)) == (
        0o644,
        b"x",
        ["made"],
    )


def test_a_name_that_is_taken_is_left_alone(file: Path) -> None:
    dangling = file.with_name("dangling")
    dangling.symlink_to("nowhere")
    for path in (file, dangling):
        with pytest.raises(FileExistsError):
            write_new(path, b"other")
    assert file.read_bytes() == b"whole"
    assert sorted(os.listdir(file.parent)) == ["dangling", "file"]


def test_a_link_in_the_files_place_is_replaced_and_not_written_through(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    write_atomic(link, b"mine")
    assert (file.read_bytes(), link.read_bytes(), link.is_symlink()) == (b"whole", b"mine", False)


@pytest.mark.parametrize("call", ["fsync", "replace", "link"])
def test_what_fails_leaves_no_draft(file: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    write = write_new if call == "link" else write_atomic
    with monkeypatch.context() as bad:
        bad.setattr(os, call, fails)
        with pytest.raises(OSError, match="Input/output error"):
            write(file, b"other")
    assert (file.read_bytes(), os.listdir(file.parent)) == (b"whole", ["file"])


def test_no_room_has_a_writer_or_a_reader_of_its_own() -> None:
    """`S_ISREG` beside an open is a guarded reader, `os.replace` or a draft in `O_EXCL` an atomic writer."""
    found = {
        (str(path.relative_to(ROOM)), word)
        for path in ROOM.rglob("*.py")
        for word in re.findall(r"S_ISREG|os\.replace|O_EXCL|mkstemp|NamedTemporaryFile", path.read_text())
    }
    assert found - {("files.py", "S_ISREG"), ("files.py", "os.replace"), ("files.py", "O_EXCL")} == {
        ("chain/run_keys.py", "S_ISREG"),  # overwrites a key before it is removed
        ("disk_reserve.py", "O_EXCL"),  # space without content
        ("fix/jails/tree_changes.py", "O_EXCL"),  # a tree of ours, written from a jail's stream
        ("fix/repository/tree_scan.py", "S_ISREG"),  # a hostile work tree: opened beneath its top
        ("fix/repository/trees.py", "O_EXCL"),  # the same tree, written
        ("store/sql/online_copy.py", "O_EXCL"),  # an empty database, filled by SQLite
        ("store/sql/sqlite.py", "O_EXCL"),  # an empty database, filled by SQLite
    }
