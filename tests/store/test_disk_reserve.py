"""The ballast: laid where there is room, given up on a full disk, laid again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.disk_reserve import BALLAST, SIZE, look
from fleet.files import ROOT

APART = ["unshare", "--mount", "--propagation", "private"]


def test_on_a_disk_with_room_it_is_laid_once_and_nothing_is_wrong(tmp_path: Path) -> None:
    assert look(tmp_path) == ""
    laid = (tmp_path / BALLAST).stat()
    assert (laid.st_size, laid.st_mode & 0o777) == (SIZE, 0o600)
    assert look(tmp_path) == ""
    assert (tmp_path / BALLAST).stat().st_ino == laid.st_ino


def test_it_is_given_up_on_a_full_disk_and_laid_again_when_there_is_room(tmp_path: Path) -> None:
    if os.geteuid() or not shutil.which("unshare") or subprocess.run([*APART, "true"]).returncode:
        pytest.skip("a disk of its own needs root and unshare")
    words = [*APART, sys.executable, "-m", "tests.store.small_disk", str(tmp_path)]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout) == {
        "at first": "",
        "reserved": True,
        "enough room relieves nothing": False,
        "full": "the disk is full: 16 MiB free",
        "given up": True,
        "still full": "the disk is full: 16 MiB free",
        "room for what ends": 1 << 20,
        "freed": "",
        "reserved again": True,
        "relieved": True,
        "by giving up": True,
        "nothing left to give": True,
        "freed again": "",
        "too many files": "the disk is full: 1000 inodes free",
        "given up for them": True,
        "fewer files": "",
        "reserved after them": True,
        "no disk": "the disk is full: 0 MiB free",
    }
