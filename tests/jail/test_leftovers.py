"""Removing a directory that hostile code has written to."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from fleet.errors import JailError
from fleet.jail.rmtree import rmtree


@pytest.fixture
def box(tmp_path: Path) -> Path:
    box = tmp_path / "box"
    box.mkdir()
    (box / "report").write_bytes(b"report")
    (tmp_path / "secret").write_text("secret")
    return box


def test_everything_is_removed(tmp_path: Path, box: Path) -> None:
    at = box
    for _ in range(40):
        at = at / "d"
        at.mkdir()
    os.mkfifo(box / "fifo")
    (box / "a\nb").mkdir()
    (Path(os.fsdecode(os.fsencode(box) + b"/\xff"))).mkdir()
    (box / "out").symlink_to(tmp_path)
    at.chmod(0)
    (box / "d").chmod(0)
    rmtree(tmp_path, "box")
    assert sorted(os.listdir(tmp_path)) == ["secret"]


def test_a_link_is_removed_and_not_followed(tmp_path: Path, box: Path) -> None:
    (tmp_path / "alias").symlink_to(box)
    rmtree(tmp_path, "alias")
    assert (box / "report").exists()
    assert not (tmp_path / "alias").is_symlink()


def test_a_missing_one_is_fine(tmp_path: Path) -> None:
    rmtree(tmp_path, "missing")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b"])
def test_only_a_plain_name_is_removed(tmp_path: Path, name: str) -> None:
    with pytest.raises(JailError, match="plain name"):
        rmtree(tmp_path, name)


def test_someone_who_keeps_adding_does_not_stop_it_for_good(tmp_path: Path, box: Path) -> None:
    stop = threading.Event()

    def add() -> None:
        number = 0
        while not stop.wait(0.001):
            number += 1
            try:
                (box / str(number)).mkdir()
            except OSError:
                return

    adding = threading.Thread(target=add)
    adding.start()
    try:
        rmtree(tmp_path, "box")
    finally:
        stop.set()
        adding.join()
    assert not box.exists()
