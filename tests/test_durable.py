"""What a loss of power leaves: every file that must survive one is synced, in an order that can be relied on.

The calls that make something durable are recorded on their way to the system: a file is whole and on the disk
before it gets its name, and the name is on the disk before whoever asked for it goes on.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleet.chain.keys import write_new
from fleet.chain.run_keys import RunKeys
from fleet.clock import SystemClock
from fleet.errors import TryAgain
from fleet.events.daemon_events import Feed, QueuePaused
from fleet.events.trajectory import TrajectoryFile
from fleet.files import write_atomic
from fleet.gate.dial import read_dial, write_dial
from fleet.gate.model import Rung
from fleet.gate.stop import stop
from fleet.runs.call.decision_file import Decision, DecisionFile
from fleet.runs.desk.state import Plan, RunState, StateFile
from tests.events.samples import FOOTER, HEADER, denied

Call = tuple[str, ...]


class Disk:
    """The calls, in order: `("sync", file, content)`, `("sync", folder + "/")`, `("replace", from, to)`.

    A name that begins with a dot is "part": the draft of a file.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[Call] = []
        for name, record in (("fsync", self._sync), ("replace", self._move), ("link", self._move)):
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name), record))

    def _watched(
        self, name: str, real: Callable[..., Any], record: Callable[..., Call]
    ) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            self.calls.append((name.replace("fsync", "sync"), *record(*args)))
            return real(*args, **named)

        return call

    @staticmethod
    def _sync(descriptor: int) -> Call:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            return (f"{path.name}/",)
        return _name(path), path.read_bytes().decode()

    @staticmethod
    def _move(source: Path, target: Path) -> Call:
        return _name(source), _name(target)

    def drain(self) -> list[Call]:
        calls, self.calls = self.calls, []
        return calls


def _name(path: Path) -> str:
    return "part" if Path(path).name.startswith(".") else Path(path).name


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir(mode=0o700)
    return folder


def replaced(name: str, content: str) -> list[Call]:
    """What one durable replacement of a file is."""
    return [("sync", "part", content), ("replace", "part", name), ("sync", "here/")]


def test_the_dial_and_its_note_are_on_the_disk_one_after_the_other(disk: Disk, here: Path) -> None:
    write_dial(here, Rung.EXERCISE, "why", "ada", SystemClock())
    note = (here / "autonomy.json").read_text()
    assert disk.drain() == [*replaced("autonomy.json", note), *replaced("autonomy", "exercise\n")]


def test_a_stop_is_on_the_disk_before_anybody_hears_of_it(disk: Disk, here: Path) -> None:
    stop(here, "ada", "lunch", SystemClock())
    assert disk.drain() == replaced("STOP", (here / "STOP").read_text())


def test_the_state_of_a_run_is_on_the_disk_at_every_turn(disk: Disk, here: Path) -> None:
    file, state = StateFile(here, "r"), RunState.begin("r", Plan(()))
    for turn in range(2):
        file.save(state.model_copy(update={"turns": turn}))
        text = file.path.read_text()
        copy = [("sync", "part", text), ("replace", "part", "state.copy.json")]
        assert disk.drain() == [*replaced("state.json", text), *copy]


def test_evidence_is_on_the_disk_before_it_has_its_name(disk: Disk, here: Path) -> None:
    write_atomic(here / "bundle.json", b"{}")
    assert disk.drain() == replaced("bundle.json", "{}")


def test_a_file_whose_name_may_be_lost_is_still_never_half_there(disk: Disk, here: Path) -> None:
    write_atomic(here / "PLAN.md", b"plan", sync_name=False)
    assert disk.drain() == replaced("PLAN.md", "plan")[:2]


def test_a_key_is_on_the_disk_before_anything_is_done_with_it(disk: Disk, here: Path) -> None:
    write_new(here / "key", b"0123\n")
    assert disk.drain() == [("sync", "part", "0123\n"), ("link", "part", "key"), ("sync", "here/")]


def test_the_first_key_of_a_run_makes_its_folder_durable_too(disk: Disk, here: Path) -> None:
    keys = RunKeys(here)
    keys.new("caller")
    first = [call for call in disk.drain() if call[0] == "sync" and call[1].endswith("/")]
    assert first == [("sync", "here/"), ("sync", "keys/")]
    keys.new("other")
    assert [call[1] for call in disk.drain() if call[0] == "sync"] == ["part", "keys/"]


def test_every_record_of_a_trajectory_is_whole_on_the_disk_when_it_is_written(disk: Disk, here: Path) -> None:
    path = here / "t.jsonl"
    sink = TrajectoryFile(path)
    assert disk.drain() == [("sync", "here/"), ("sync", f"{here.parent.name}/")]  # its name, its folder's
    for event in (HEADER, denied(1), FOOTER):
        sink.write(event)
        assert disk.drain() == [("sync", "t.jsonl", path.read_text())]
    TrajectoryFile(path)
    assert disk.drain() == []


def test_a_record_that_could_not_be_synced_is_not_in_the_file(
    disk: Disk, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody may act on what a loss of power takes back."""
    path = here / "t.jsonl"
    sink = TrajectoryFile(path)
    sink.write(HEADER)
    before = path.read_bytes()

    def fails(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as bad:
        bad.setattr(os, "fsync", fails)
        with pytest.raises(TryAgain, match="Input/output error"):
            sink.write(denied(1))
    assert (path.read_bytes(), sink.size) == (before, len(before))


def test_the_feed_and_the_decisions_are_on_the_disk_line_by_line(disk: Disk, here: Path) -> None:
    feed = Feed(here / "events.jsonl", clock=SystemClock())
    disk.drain()
    feed.publish(QueuePaused(reason="STOP"))
    assert disk.drain() == [("sync", "events.jsonl", (here / "events.jsonl").read_text())]
    feed.close()
    decisions = DecisionFile(here, SystemClock())
    one = Decision(title="t", fork="f", decision="d", why="w", reversal="r")
    assert decisions.record(one, run="r", turn=1) == 1
    assert disk.drain() == [("sync", decisions.path.name, decisions.path.read_text())]


@pytest.mark.parametrize("at", ["fsync", "replace"])
def test_a_dial_that_could_not_be_made_durable_is_not_turned(
    here: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    write_dial(here, Rung.OBSERVE, "why", "ada", SystemClock())

    def fails(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as bad:
        bad.setattr(os, at, fails)
        with pytest.raises(OSError, match="Input/output error"):
            write_atomic(here / "autonomy", b"exercise\n")
    assert read_dial(here / "autonomy").rung is Rung.OBSERVE
    assert sorted(os.listdir(here)) == ["autonomy", "autonomy.json"]
