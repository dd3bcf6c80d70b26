"""`fleet check machine --fence`: what it keeps, when that counts, and that a leak stops the fleet."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from typer.testing import CliRunner

from fleet import __version__
from fleet.cli.check import machine
from fleet.cli.operate import status
from fleet.clock import SystemClock, iso
from fleet.config import JailSection
from fleet.gate.stop import CHECKS, stopped
from fleet.jail.battery import report
from fleet.jail.battery.probes.battery import ALL
from fleet.jail.battery.record import NEVER, FenceRecord, outdated, read_record, save
from fleet.jail.battery.scenarios import SCENARIOS
from fleet.jail.battery.yard import Verdict

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
CONFIG = JailSection(backend="bubblewrap")
GOOD = FenceRecord(iso(NOW), __version__, os.uname().release, "bubblewrap", held=("F01",))


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("record", "days", "said"),
    [
        (GOOD, 30, ""),
        (GOOD, 31, "31 days old"),
        (replace(GOOD, version="0.0.9"), 0, f"of fleet 0.0.9, here is {__version__}"),
        (replace(GOOD, kernel="5.4"), 0, "of kernel 5.4, here is "),
        (replace(GOOD, backend="docker runsc"), 0, "of backend docker runsc, here is bubblewrap"),
    ],
)
def test_a_record_counts_for_a_month_on_the_same_machine(record: FenceRecord, days: int, said: str) -> None:
    why = outdated(record, CONFIG, NOW + timedelta(days=days))
    assert (said in why, bool(why)) == (True, bool(said))


def test_doctor_and_status_say_what_the_record_is_worth(state: Path) -> None:
    assert anyio.run(machine.battery, None) == [("escape battery", True, NEVER)]
    save(state, replace(GOOD, at=iso(datetime.now(UTC)), failed={"N01": "succeeded"}))
    [(_, good, seen)] = anyio.run(machine.battery, None)
    assert (good, "LEAKS N01: succeeded" in seen) == (False, True)
    said = json.loads(CliRunner().invoke(status.app, ["--json"]).stdout)
    assert said["wrong"] == [f"fence: {said['fence']}"]
    assert "LEAKS N01" in said["fence"]
    save(state, replace(GOOD, at="2020-01-01T00:00:00Z"))
    [(_, good, seen)] = anyio.run(machine.battery, None)
    assert (good, "days old: fleet check machine --fence" in seen) == (False, True)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"at": 1}', '{"unknown": 1}'])
def test_a_record_that_cannot_be_read_is_none(state: Path, text: str) -> None:
    (state / "fence.json").write_text(text)
    assert read_record(state) is None


def leaking(monkeypatch: pytest.MonkeyPatch, **found: Verdict) -> list[list[str]]:
    """The battery, in which these attempts show this, each time; the names of each time."""
    asked: list[list[str]] = []

    async def attempts(word: str, names: list[str]) -> dict[str, Verdict]:
        asked.append(names)
        return {name: found.get(name, (True, "")) for name in names}

    monkeypatch.setattr(report, "_attempts", attempts)
    return asked


def test_a_leak_stops_the_fleet_with_its_reason(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = leaking(monkeypatch, N01=(False, "succeeded: None"))
    done = CliRunner().invoke(machine.app, ["--fence", "--json"])
    assert (done.exit_code, asked[1:]) == (4, [["N01"]])  # once more alone
    pause = stopped(state)
    assert pause is not None
    assert (pause.check, "N01: succeeded: None" in pause.why) == (CHECKS["battery"], True)
    assert "the fleet, whose battery failed stops the fleet" in (state / "DECISIONS.md").read_text()
    assert {one["check"] for one in json.loads(done.stdout)["checks"]} >= {"escape battery: N01"}


def test_what_could_not_be_tried_is_no_leak(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaking(monkeypatch, **dict.fromkeys([*ALL, *SCENARIOS], (None, "no bubblewrap")))
    assert CliRunner().invoke(machine.app, ["--fence"]).exit_code == 4
    record = read_record(state)
    assert (stopped(state), record and record.holds) == (None, False)


def test_what_is_listed_as_weaker_is_told_and_no_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    leaking(monkeypatch, F07=(False, "{'mqueue'}"))
    docker = JailSection(backend="docker", socket="unix:///nowhere")
    record = anyio.run(report.try_fence, docker, SystemClock())
    assert (record.holds, record.weaker) == (True, ("F07",))
    assert not anyio.run(report.try_fence, CONFIG, SystemClock()).holds


@pytest.mark.jail
def test_the_real_battery_runs_from_the_product(state: Path) -> None:
    done = CliRunner().invoke(machine.app, ["--fence"])
    record = read_record(state)
    assert record is not None, done.output
    assert (done.exit_code, record.failed, record.untried) == (0, {}, {})
    assert {*record.held} == {*ALL, *SCENARIOS}
