"""`fleet run --all`: each persona that applies in turn, triage last, and one answer for all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fleet.app.persona_sets import roster
from fleet.cli.run import run
from fleet.cli.run.run import IdlePersona, app, in_order
from fleet.errors import Unreachable
from fleet.personas.load import LoadedPersona


def fired(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **ends: Any) -> list[str]:
    """Names in the order in which they are fired; each ends as given, by default healthy."""
    names: list[str] = []

    async def fire_one(persona: LoadedPersona, *_: object) -> dict[str, Any]:
        names.append(persona.persona.name)
        end = ends.get(persona.persona.name.replace("-", "_"), {})
        if isinstance(end, Exception):
            raise end
        healthy = {"run": "r", "outcome": "done", "detail": "", "findings": [], "calls": 1, "coverage": {}}
        return {**healthy, **end}

    monkeypatch.setattr(run, "fire_one", fire_one)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    return names


FOUND: dict[str, Any] = {
    "findings": [
        {"state": "posted", "severity": "high", "fingerprint": "ab", "surface": "ux", "title": "x"}
        | {"confirmed": "3 of 3", "probe": "p", "data": {}}
    ]
}


def test_all_are_fired_by_name_and_triage_at_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = fired(monkeypatch, tmp_path, qa_mcp=IdlePersona("qa-mcp: no MCP server"), qa_perf=FOUND)
    done = CliRunner().invoke(app, ["--all", "--json"])
    assert names == in_order(roster()[0])
    assert names[-1] == "qa-triage"
    assert "qa-fix" not in names
    said = [one["persona"] for one in json.loads(done.stdout)["runs"]]
    assert (done.exit_code, said) == (1, [name for name in names if name != "qa-mcp"])


def test_the_gravest_of_other_ends_is_the_exit_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fired(monkeypatch, tmp_path, qa_smoke={"outcome": "could_not_tell"}, qa_ux={"outcome": "stopped"})
    assert CliRunner().invoke(app, ["--all"]).exit_code == 5


def test_a_platform_that_is_away_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = in_order(roster()[0])[0]
    names = fired(monkeypatch, tmp_path, **{first.replace("-", "_"): Unreachable("no node")})
    assert isinstance(CliRunner().invoke(app, ["--all"]).exception, (Unreachable, SystemExit))
    assert names == [first]


@pytest.mark.parametrize("words", [[], ["qa-ux", "--all"], ["--all", "--probe", "x"], ["--all", "--follow"]])
def test_what_is_asked_is_one_or_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str]
) -> None:
    names = fired(monkeypatch, tmp_path)
    assert CliRunner().invoke(app, words).exit_code != 0
    assert names == []
