"""`fleet items log copy`: the fleet's own entries, each once, in their order, also after it was cut off."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from typer.testing import CliRunner

from fleet.chain.log.file_log import FileLog
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.signing.judge import SigningLimits
from fleet.cli import app
from tests.doubles.chain import MemoryChain

TEXTS = ["one", "two", "one", "three"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory with a profile without a chain."""
    state = tmp_path / "state"
    (state / "platforms").mkdir(mode=0o700, parents=True)
    (state / "fleet.toml").write_text('platform = "site"\n')
    (state / "platforms" / "site.toml").write_text('name = "site"\n[web]\nsite = "http://127.0.0.1:9"\n')
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(state))
    return state


class Nameless(MemoryChain):
    """A fleet without a key: its entries have the zero address."""

    def __init__(self) -> None:
        super().__init__(SigningLimits(rung=lambda: "observe"))
        self.signer.address = lambda role: ZERO_ADDRESS  # type: ignore[method-assign]


def log(state: Path, name: str, *, ours: bool = True) -> FileLog:
    other = MemoryChain(SigningLimits(rung=lambda: "observe"))
    return FileLog(state / "logs" / f"{name}.jsonl", (Nameless() if ours else other).signer)


def texts(state: Path, name: str) -> list[str]:
    return [entry.text for entry in anyio.run(log(state, name).range, 0, 99)]


def copied(*words: str) -> dict[str, object]:
    done = CliRunner().invoke(app, ["items", "log", "copy", "file", "file:new", "--json", *words])
    assert done.exit_code == 0, (done.output, done.exception)
    found: dict[str, object] = json.loads(done.stdout)
    return {key: found[key] for key in ("entries", "there", "foreign")}


def test_each_entry_of_ours_is_copied_once_and_in_order(home: Path) -> None:
    anyio.run(log(home, "site").post_many, TEXTS)
    anyio.run(log(home, "site", ours=False).post, "of a stranger")
    plan = {"entries": 4, "there": 0, "foreign": 1}
    assert copied("--dry-run") == plan
    assert texts(home, "new") == []
    assert copied() == plan
    assert texts(home, "new") == TEXTS
    assert copied() == {"entries": 0, "there": 4, "foreign": 1}
    assert texts(home, "new") == TEXTS


def test_a_copy_that_was_cut_off_goes_on(home: Path) -> None:
    anyio.run(log(home, "site").post_many, TEXTS)
    anyio.run(log(home, "new").post_many, TEXTS[:2])
    assert copied() == {"entries": 2, "there": 2, "foreign": 0}
    assert texts(home, "new") == TEXTS


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("file", "file:site"), "are one log"),
        (("file", "erc8004:0x" + "1" * 40), "needs the table [chain]"),
        (("file", "paper"), "log 'paper' of profile 'site'"),
    ],
)
def test_what_cannot_be_copied_is_said(home: Path, words: tuple[str, str], why: str) -> None:
    done = CliRunner().invoke(app, ["items", "log", "copy", *words])
    assert done.exit_code != 0
    assert why in f"{done.output}{done.exception}"


def test_stop_ends_a_copy(home: Path) -> None:
    anyio.run(log(home, "site").post_many, TEXTS)
    (home / "STOP").write_text("a test")
    done = CliRunner().invoke(app, ["items", "log", "copy", "file", "file:new"])
    assert "STOP is set" in str(done.exception)
    assert texts(home, "new") == []
