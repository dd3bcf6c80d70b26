"""After an incident: its case is whole before the tests go on, and the dial stays low for seven days."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleet.app.authority import require_authority
from fleet.app.incidents import barred, case_file, lacking, lowered_by, open_case, read_case
from fleet.cli.console import who
from fleet.cli.operate import resume
from fleet.clock import SystemClock, iso
from fleet.errors import ConfigError, Refused
from fleet.gate.dial import DIAL, read_dial, write_dial
from fleet.gate.model import Rung
from fleet.gate.stop import fence_failed, stop, stopped
from fleet.jail.battery.record import FenceRecord, save

CLOCK = SystemClock()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "config"
    home.mkdir()
    (home / "fleet.toml").write_text(f'[authority]\nsigners = ["0x{"ab" * 20}"]\n')
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(home))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


def whole(path: Path, *, manager: str = "ada", reauthorised: str = "") -> None:
    """A person fills the case in."""
    said = {name: f"about {name}" for name in ("detected_by", "affected", "factors", "cause")}
    said |= {"lowered_by": "eve", "reported": "2026-11-29, by telephone", "approved": "Bob of the shop"}
    said |= {"manager": manager, "reauthorised": reauthorised}
    known = read_case(path).model_dump(mode="json") | said
    lines = [f"{name} = {json.dumps(text)}" for name, text in known.items() if isinstance(text, str)]
    lines.append('causes = ["another"]')
    for cause in ("about cause", "another"):
        lines += [
            "[[actions]]",
            f'cause = "{cause}"',
            'action = "mended"',
            'owner = "eve"',
            "due = 2026-12-01",
        ]
        lines += ['done = "commit 12ab"', 'shown = "tests/jail/test_battery.py"']
    path.write_text("\n".join(lines) + "\n")


def held(at: str) -> FenceRecord:
    return FenceRecord(at=at, version="0.1.0", kernel="6", backend="bubblewrap", held=("F01",))


def test_tests_go_on_once_the_case_is_whole_and_the_fence_was_tried_since(state: Path) -> None:
    write_dial(state, Rung.EXERCISE, "a night", "ada", CLOCK)
    found = fence_failed(state, "battery", "F01 leaks", CLOCK)
    first = CliRunner().invoke(resume.app, ["--reason", "I looked"])
    assert isinstance(first.exception, Refused)
    assert "detected_by, affected, factors, cause" in str(first.exception)
    assert stopped(state)
    assert read_dial(state / DIAL).rung is Rung.OBSERVE
    path = case_file(state, found)
    case = read_case(path)
    assert (case.before, case.after) == ("exercise", "observe")
    assert f"case {path.stem}, and the dial from exercise to observe" in (state / "DECISIONS.md").read_text()
    assert (lowered_by(state, Rung.EXERCISE), lowered_by(state, Rung.OBSERVE)) == (found.since, "")
    whole(path)
    save(state, held("2026-01-01T00:00:00Z"))
    assert lacking(state, path) == [
        "a record of the escape battery that holds, made since (`fleet check machine --fence`)"
    ]
    save(state, held(iso(CLOCK.now() + timedelta(seconds=1))))
    done = CliRunner().invoke(resume.app, ["--reason", "I looked"])
    assert (done.exit_code, stopped(state)) == (0, None)


@pytest.mark.parametrize("field", ["cause", "shown", "due"])
def test_each_action_about_each_cause_is_shown_to_help(state: Path, field: str) -> None:
    path = open_case(state, fence_failed(state, "battery", "x", CLOCK), CLOCK)
    whole(path)
    save(state, held(iso(CLOCK.now() + timedelta(seconds=1))))
    assert lacking(state, path) == []
    rows = path.read_text().splitlines()
    last = max(at for at, row in enumerate(rows) if row.startswith(field))
    path.write_text("\n".join(rows[:last] + rows[last + 1 :]))
    expected = [f"actions[2].{field}"]
    assert lacking(state, path) == (
        [*expected, "an action about 'another'"] if field == "cause" else expected
    )


def test_the_dial_stays_low_for_seven_days_and_until_somebody_else_permits_it(state: Path) -> None:
    write_dial(state, Rung.PROPOSE, "a night", "ada", CLOCK)
    path = open_case(state, fence_failed(state, "battery", "x", CLOCK), CLOCK)
    now, later = CLOCK.now(), CLOCK.now() + timedelta(days=7, seconds=1)
    assert barred(state, Rung.OBSERVE, "eve", now) == ""
    assert "not before" in barred(state, Rung.EXERCISE, "eve", now)
    assert "not permitted again" in barred(state, Rung.EXERCISE, "eve", later)
    whole(path, reauthorised="ada")
    assert "who managed the incident" in barred(state, Rung.EXERCISE, "eve", later)
    whole(path, reauthorised="eve")
    assert "who managed the incident" in barred(state, Rung.EXERCISE, "ada@host", later)
    assert barred(state, Rung.EXERCISE, "eve@host", later) == ""
    for bad in ("at = 3", 'at = "x"\nlowered_at = "soon"', 'at = "x"\nafter = "high"'):
        path.write_text(bad)
        with pytest.raises(ConfigError, match=re.escape(str(path))):
            barred(state, Rung.EXERCISE, "eve", later)


def test_a_case_holds_whatever_a_stop_says(state: Path) -> None:
    path = open_case(state, fence_failed(state, "battery", 'F01 says "x" = \\y', CLOCK), CLOCK)
    assert 'F01 says "x" = \\y' in read_case(path).what


def test_a_person_who_raises_the_dial_after_an_incident_is_refused(
    state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config" / "platforms").mkdir()
    (tmp_path / "config" / "platforms" / "devnet.toml").write_text('name = "devnet"\n')
    open_case(state, fence_failed(state, "battery", "x", CLOCK), CLOCK)
    with pytest.raises(Refused, match="the dial was lowered after the incident"):
        require_authority(state, who(), Rung.EXERCISE)


def test_a_stop_by_a_person_is_no_incident(state: Path) -> None:
    stop(state, "ada", "maintenance", CLOCK)
    assert CliRunner().invoke(resume.app, ["--reason", "it is over"]).exit_code == 0
    assert not (state / "incidents").exists()
    assert replace(held(""), failed={"F01": "leaks"}).holds is False
