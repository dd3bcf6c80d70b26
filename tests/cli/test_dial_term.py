"""`fleet dial --for`, and what status says of terms and testing windows."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleet.cli import console
from fleet.cli.operate import dial, resume
from fleet.cli.operate.status_page import page
from fleet.clock import SystemClock
from fleet.errors import ConfigError, Refused, UsageError
from fleet.files import login
from fleet.gate.dial import read_dial, shown
from fleet.gate.model import Rung
from fleet.gate.stop import stop, stopped
from tests.cli.test_status import data_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    return tmp_path


def said(*words: str) -> str:
    result = CliRunner().invoke(dial.app, words)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_a_term_is_shown_and_only_a_longer_one_needs_a_reason(folder: Path) -> None:
    assert said("exercise", "--for", "8h", "--reason", "tonight").startswith("exercise until 20")
    reading = read_dial(folder / "autonomy")
    assert (reading.rung, shown(folder)["until"]) == (Rung.EXERCISE, reading.until)
    for words in (("exercise", "--for", "9h"), ("exercise",)):
        with pytest.raises(UsageError, match="a longer term needs a reason"):
            said(*words)
    assert said("exercise", "--for", "1h").startswith("exercise until 20")
    assert read_dial(folder / "autonomy").until < reading.until
    assert said("observe").startswith("observe (by")
    assert read_dial(folder / "autonomy").until == ""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("observe", "--for", "8h"), "observe needs no term"),
        (("--for", "8h"), "--for needs a rung"),
        (("exercise", "--for", "8", "--reason", "x"), "not a duration"),
        (("exercise", "--for", "721h", "--reason", "x"), "longer than 720h"),
        (("exercise", "--for", "8h"), "raising the dial from observe to exercise needs a reason"),
    ],
)
def test_what_is_no_term_is_refused(folder: Path, words: tuple[str, ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        said(*words)
    assert not (folder / "autonomy").exists()


def test_only_a_role_in_force_raises_the_dial_and_lets_the_tests_go_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(folder))
    monkeypatch.setattr(dial, "who", lambda: "ada@desk")
    monkeypatch.setattr(resume, "who", lambda: "ada@desk")
    profile = folder / "platforms" / "shop.toml"
    profile.parent.mkdir()
    (folder / "fleet.toml").write_text('platform = "shop"\n')

    def roles(text: str) -> None:
        profile.write_text(f'name = "shop"\n[escalation.approvers.lead]\n{text}\n')

    roles('people = ["eve"]\ndial = "propose"')
    for words in (("exercise", "--reason", "x"), ("exercise", "--reason", "x", "--dry-run")):
        with pytest.raises(Refused, match="ada@desk may not raise the dial to exercise"):
            said(*words)
    assert not (folder / "autonomy").exists()
    assert "ada@desk may not raise the dial" in (folder / "DECISIONS.md").read_text()
    roles('people = ["ada"]\ndial = "exercise"\nuntil = 2020-01-01')
    with pytest.raises(Refused, match="raise the dial"):
        said("exercise", "--reason", "x")
    roles('people = ["ada"]\ndial = "exercise"')
    assert said("exercise", "--for", "1h", "--reason", "x").startswith("exercise")
    with pytest.raises(Refused, match="raise the dial to propose"):
        said("propose", "--reason", "x")
    roles('people = ["eve"]')
    with pytest.raises(Refused, match="raise the dial to exercise"):
        said("exercise", "--for", "2h", "--reason", "longer")
    assert said("observe").startswith("observe")
    stop(folder, "mallory", "anybody may", SystemClock())
    go_on = CliRunner().invoke(resume.app, ["--reason", "x"])
    assert isinstance(go_on.exception, Refused)
    assert "may not let the tests go on" in str(go_on.exception)
    assert stopped(folder) is not None
    roles('people = ["ada"]')
    assert CliRunner().invoke(resume.app, ["--reason", "x"]).exit_code == 0
    assert stopped(folder) is None
    roles("people = 7")
    with pytest.raises(ConfigError):
        said("exercise", "--reason", "a profile that cannot be read")


def test_who_somebody_is_the_machine_says_and_not_their_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "eve")
    assert console.who() == f"{pwd.getpwuid(os.getuid()).pw_name}@{socket.gethostname()}"
    assert login(2**31 - 7) == str(2**31 - 7)


def test_status_says_until_when(folder: Path) -> None:
    said("exercise", "--for", "8h", "--reason", "tonight")
    data = data_of(folder)
    end = data["dial"]["until"]
    data["schedule"] = {"closed": "", "changes": "2026-11-28T05:00:00Z"}
    lines = [one.text for one in page(data, width=300, height=30)]
    assert lines[0].startswith(f"exercise until {end[:16].replace('T', ' ')} UTC by ")
    assert lines[0].endswith("; the testing window closes 2026-11-28 05:00 UTC.")
    why = "outside the profile's testing windows: next from 2026-11-28T21:00:00Z"
    data["schedule"] = {"closed": why, "changes": "2026-11-28T21:00:00Z"}
    data["next"] = [{"persona": "qa-smoke", "at": "2026-11-22T01:04:00Z"}]
    lines = [one.text for one in page(data, width=300, height=30)]
    closed = "outside the profile's testing windows: next from 2026-11-28 21:00 UTC"
    assert lines[0].startswith(f"CLOSED: {closed}; nothing starts; dial exercise until ")
    assert "qa-smoke" not in lines[0]
