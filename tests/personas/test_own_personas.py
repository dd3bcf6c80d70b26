"""Own personas: in the folder of configuration or of state; they replace shipped ones of their names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleet.app.persona_sets import roster
from fleet.cli.personas import personas
from fleet.config.files import own_personas, persona_dirs
from fleet.errors import UsageError
from fleet.files import SHIPPED


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    for name in ("state", "configuration"):
        (tmp_path / name / "personas").mkdir(mode=0o700, parents=True)
        monkeypatch.setenv(f"{name.upper()}_DIRECTORY", str(tmp_path / name))
    return persona_dirs(tmp_path / "state")


def copied(name: str, folder: Path) -> Path:
    path = folder / f"{name}.md"
    path.write_text((SHIPPED / "personas" / path.name).read_text("utf-8"), "utf-8")
    return path


def test_the_list_says_where_each_comes_from(folders: dict[str, Path]) -> None:
    copied("qa-ux", folders["configuration"])
    copied("qa-perf", folders["configuration"])
    of_state = copied("qa-ux", folders["state"])
    listed = json.loads(CliRunner().invoke(personas.app, ["list", "--json"]).stdout)
    found = {one["name"]: one for one in listed}
    own = {name: one["from"] for name, one in found.items() if one["from"] != "shipped"}
    assert own == {"qa-perf": "configuration", "qa-ux": "state"}
    assert found["qa-ux"]["file"] == str(of_state)
    assert found["qa-smoke"]["file"] == str(SHIPPED / "personas" / "qa-smoke.md")


def test_a_bad_file_of_ones_own_does_not_bring_the_shipped_one_back(folders: dict[str, Path]) -> None:
    bad = folders["state"] / "qa-ux.md"
    bad.write_text("+++\n", "utf-8")
    found, errors = roster()
    assert "qa-ux" not in found
    assert [error.file for error in errors] == [str(bad)]


def test_new_writes_to_the_operators_folder_and_replaces_no_persona(folders: dict[str, Path]) -> None:
    made = CliRunner().invoke(personas.app, ["new", "qa-mine"])
    assert made.exit_code == 0, made.stderr
    assert own_personas() == folders["configuration"]
    assert roster()[0]["qa-mine"].path == folders["configuration"] / "qa-mine.md"
    refused = CliRunner().invoke(personas.app, ["new", "qa-smoke"])
    assert isinstance(refused.exception, UsageError)
    assert str(SHIPPED / "personas" / "qa-smoke.md") in str(refused.exception)


def test_a_checkout_without_a_configuration_folder_has_its_own_beside_the_shipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CONFIGURATION_DIRECTORY", raising=False)
    assert own_personas() == SHIPPED / "personas"
