"""`fleet demo` under STOP: refused, and said where, whichever of its two state directories has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleet.cli.demo import app
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
