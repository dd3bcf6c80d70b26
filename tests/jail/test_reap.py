"""Ending what a dead daemon left: exactly that, and never someone else's process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from fleet.jail.process import boot_id, proc_stat
from fleet.jail.reap import Record, leftover_prefix, reap_stale, write_record


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["/bin/sleep", "60"])
    yield process
    process.kill()
    process.wait()


def start_of(pid: int) -> int:
    stat = proc_stat(pid)
    assert stat
    return stat.start


def record(pid: int) -> Record:
    """A jail whose daemon is dead: no process has both this pid and this start."""
    return Record(pid=pid, start=start_of(pid), owner=1, owner_start=-1, boot=boot_id())


def spool(tmp_path: Path, entry: Record) -> Path:
    path = tmp_path / f"{entry.pid}.jail"
    path.write_text(json.dumps(asdict(entry)))
    return path


def test_a_stale_jail_is_ended(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    spool(tmp_path, record(sleeper.pid))
    assert reap_stale(tmp_path) == 1
    assert sleeper.wait() == -9
    assert os.listdir(tmp_path) == []


def test_a_stale_jail_of_another_user_is_left_to_its_engine(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.jail.reap.kill", Mock(side_effect=PermissionError))
    spool(tmp_path, record(sleeper.pid))
    assert reap_stale(tmp_path) == 0
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("change", [{"start": 1}, {"boot": "another"}])
def test_a_reused_pid_is_left_alone(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], change: dict[str, int]
) -> None:
    spool(tmp_path, replace(record(sleeper.pid), **change))  # type: ignore[arg-type]
    assert reap_stale(tmp_path) == 0
    assert sleeper.poll() is None
    assert os.listdir(tmp_path) == []


def test_a_jail_of_a_living_daemon_is_left_alone(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    path = write_record(tmp_path, sleeper.pid)
    assert reap_stale(tmp_path) == 0
    assert sleeper.poll() is None
    assert path.exists()


def test_a_zombie_daemon_is_a_dead_one(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    owner = subprocess.Popen(["/bin/true"])
    os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)
    spool(tmp_path, replace(record(sleeper.pid), owner=owner.pid, owner_start=start_of(owner.pid)))
    assert reap_stale(tmp_path) == 1
    owner.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_torn_record_is_cleared(tmp_path: Path, text: str) -> None:
    (tmp_path / "1.jail").write_text(text)
    assert reap_stale(tmp_path) == 0
    assert os.listdir(tmp_path) == []


def test_a_dead_pid_is_cleared(tmp_path: Path) -> None:
    process = subprocess.Popen(["/bin/true"])
    entry = record(process.pid)
    process.wait()
    spool(tmp_path, entry)
    assert reap_stale(tmp_path) == 0
    assert os.listdir(tmp_path) == []


def test_what_a_killed_self_check_left_is_removed_and_a_living_one_is_let_be(tmp_path: Path) -> None:
    gone, here = subprocess.Popen(["/bin/true"]), tmp_path / f"{leftover_prefix()}abc"
    dead = tmp_path / f"selfcheck-{gone.pid}-1-abc"
    for folder in (dead, here, tmp_path / "selfcheck-old"):
        (folder / "work").mkdir(parents=True)
        (folder / "work" / "a").symlink_to("/oldroot")
        (folder / "work").chmod(0)
    gone.wait()
    reap_stale(tmp_path)
    assert os.listdir(tmp_path) == [here.name]


def test_a_full_disk_leaves_no_empty_record(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, *_: object, **__: object) -> int:
        path.touch()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match="No space left"):
            write_record(tmp_path, sleeper.pid)
    assert list(tmp_path.iterdir()) == []
