"""`fleet demo` under STOP: refused, and said where, whichever of its two state directories has it; and a demo
that stays."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleet.cli.demo import app, stay
from fleet.clock import SystemClock
from fleet.config.files import demo_dir
from fleet.errors import Refused
from fleet.gate.stop import stop


@pytest.mark.parametrize("where", ["the state directory", "the demo's own"])
def test_a_demo_is_refused_under_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    place = tmp_path if where == "the state directory" else demo_dir(tmp_path)
    stop(place, "ann", "hold it", SystemClock())
    said = CliRunner().invoke(app, [])
    assert isinstance(said.exception, Refused), said.output
    assert said.exception.rule == "stop"
    assert f"{place / 'STOP'}" in str(said.exception)
    assert "hold it" in str(said.exception)
    assert CliRunner().invoke(app, ["--dry-run"]).exit_code == 0


def test_a_demo_that_stays_brings_its_platform_back_and_becomes_the_service(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    did: list[list[str]] = []

    def ran(words: list[str], *, check: bool) -> subprocess.CompletedProcess[str]:
        did.append(words[3:])
        return subprocess.CompletedProcess(words, int(check))

    monkeypatch.setattr(subprocess, "run", ran)
    monkeypatch.setattr(os, "execv", lambda _, words: did.append(words[3:]))
    stay(18080)
    assert did == [["--demo", "devnet", "up"], ["--demo", "up", "--port", "18080"]]
    assert "look at it: http://127.0.0.1:18080/ until Ctrl-C" in capsys.readouterr().err
