"""A full disk is said: by `fleet status`, and by /readyz and /metrics."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.app.lock import only_one
from fleet.disk_reserve import give_up, look
from fleet.service.exposition import exposition
from fleet.service.metrics import Tally
from tests.service.test_health import SNAPSHOT

ROOT = Path(__file__).parents[2]


def status(state: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(state), "STATE_DIRECTORY": str(state)}
    words = [sys.executable, "-m", "fleet.cli", "status", "--json"]
    said = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment)
    assert said.returncode == 0, said.stderr
    return str(json.loads(said.stdout)["degraded"])


def test_status_says_so_while_a_daemon_is_at_work_that_has_nothing_kept_back(tmp_path: Path) -> None:
    assert status(tmp_path) == ""
    with only_one(tmp_path):
        assert status(tmp_path) == "the disk is full: no new run starts"
        assert look(tmp_path) == ""
        assert status(tmp_path) == ""
        give_up(tmp_path)


def test_metrics_say_so() -> None:
    full = dataclasses.replace(SNAPSHOT, degraded="the disk is full: 0 MiB free")
    assert b"fleet_degraded 1.0" in exposition(full, Tally())
    assert b"fleet_degraded 0.0" in exposition(SNAPSHOT, Tally())


def on_read_only_disk(state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A Python process in whose mount namespace the state directory is read-only."""
    script = 'mount --bind "$S" "$S" && mount -o remount,ro,bind "$S" && exec "$@"'
    argv = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        sys.executable,
        *words,
    ]
    environment = {"PATH": os.environ["PATH"], "HOME": "/", "STATE_DIRECTORY": str(state), "S": str(state)}
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, env=environment, cwd=ROOT)


def test_a_read_only_state_directory_is_a_full_disk(tmp_path: Path) -> None:
    assert look(tmp_path) == ""  # its ballast is laid, and much space is free
    script = (
        "import sys; from pathlib import Path\n"
        "from fleet import disk_reserve as d; from fleet.files import *\n"
        "s = Path(sys.argv[1]); print(d.look(s), d.room(s), d.read_only(s))\n"
        "try:\n  with disk_errors(s / 'x'): write_atomic(s / 'x', b'')\n"
        "except Exception as e: print(type(e).__name__, e)"
    )
    said = on_read_only_disk(tmp_path, "-c", script, str(tmp_path))
    assert said.stdout.splitlines() == [
        "the disk is read-only (False, 'the disk is read-only') True",
        f"TryAgain {tmp_path / 'x'}: the file system is read-only",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ballast"]


@pytest.mark.parametrize("words", [("up",), ("run", "qa-smoke")])
def test_a_start_on_a_read_only_state_directory_is_one_clear_sentence(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "devnet").mkdir()
    profile = (
        (ROOT / "config/platforms/example.toml").read_text().replace('name = "example"', 'name = "devnet"')
    )
    (tmp_path / "devnet" / "devnet.toml").write_text(profile)
    said = on_read_only_disk(tmp_path, "-m", "fleet.cli", *words)
    assert said.returncode == 75, said.stderr
    assert "the file system is read-only" in said.stderr
    assert "Traceback" not in said.stderr


def test_status_says_that_the_disk_is_read_only(tmp_path: Path) -> None:
    assert look(tmp_path) == ""
    with only_one(tmp_path):
        said = on_read_only_disk(tmp_path, "-m", "fleet.cli", "status", "--json")
        assert json.loads(said.stdout)["degraded"] == "the disk is read-only: no new run starts"


def test_a_disk_that_says_it_has_room_and_takes_nothing_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert look(tmp_path) == ""

    def refuse(*_: object) -> int:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr("fleet.disk_reserve.os.write", refuse)
    assert look(tmp_path).startswith("the disk is full: ")
