"""`fleet --demo`: the last demo's state directory for any command; what is not there is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleet.triage.outputs.files import save
from tests.cli.test_worklist_command import HEADER, ITEMS
from tests.cli_process import run_fleet


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    (path / "demo").mkdir(mode=0o700, parents=True)
    path.chmod(0o700)
    save(path / "demo", ITEMS, HEADER)
    return path


def fleet(state: Path, *words: str) -> tuple[int, str, str]:
    done = run_fleet(*words, env={"PATH": "/usr/bin:/bin", "STATE_DIRECTORY": str(state)})
    return done.returncode, done.stdout, done.stderr


def test_it_opens_the_demos_list_and_its_items(state: Path) -> None:
    code, said, _ = fleet(state, "--demo", "items", "--offline", "--json")
    assert (code, [one["fingerprint"] for one in json.loads(said)]) == (
        0,
        [one.fingerprint for one in ITEMS if one.rank],
    )
    code, said, _ = fleet(state, "--demo", "items", "show", ITEMS[0].fingerprint[:6])
    assert (code, ITEMS[0].title in " ".join(said.split())) == (0, True)
    code, said, error = fleet(state, "items", "show", ITEMS[0].fingerprint)
    assert (code, said) == (2, "")
    assert "an item of the demo: fleet --demo items show" in error


def test_what_is_not_there_is_said(state: Path, tmp_path: Path) -> None:
    code, _, error = fleet(tmp_path / "state" / "demo", "--demo", "worklist")
    assert code == 2
    assert "no demo was run here" in error
    assert "try: fleet demo" in error
    code, _, error = fleet(state, "--demo", "demo", "--dry-run")
    assert (code, "--demo opens the last demo; it starts none" in error) == (2, True)


@pytest.mark.parametrize("words", [("worklist",), ("run", "qa-smoke", "--no-post"), ("platform", "check")])
def test_a_stopped_devnet_is_not_called_unknown(state: Path, words: tuple[str, ...]) -> None:
    (state / "demo/devnet").mkdir()
    (state / "demo/devnet/deployment.json").write_text("{}")
    _, _, error = fleet(state, "--demo", *words)
    assert "the devnet is stopped; its chain is kept" in error
    assert "no platform named" not in error
