"""`fleet items release`: a held finding, and nothing else, is let go by a person with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from fleet.cli.items import items
from fleet.errors import UsageError
from fleet.store.journal import Journal
from fleet.store.rows import HOLD, FindingRow, NewRun

HELD, OTHER = "ab" * 6, "cd" * 6


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))

    async def found() -> None:
        async with await Journal.open(tmp_path / "fleet.db") as journal:
            await journal.trigger(
                NewRun(run_id="r", persona="p", key="r", platform="devnet", trigger="", rung="", budget={})
            )
            for name, data in ((HELD, {HOLD: True}), (OTHER, {})):
                row = FindingRow(run_id="r", fingerprint=name, state="confirmed", title="a leak", data=data)
                await journal.add_finding(row)

    anyio.run(found)
    return tmp_path


def said(*words: str) -> Any:
    result = CliRunner().invoke(items.app, words)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_a_release_is_a_decision_that_can_be_undone(folder: Path) -> None:
    assert "release is recorded" in said("release", HELD[:4], "--reason", "read it, it is ours to tell")
    assert "read it, it is ours to tell" in (folder / "DECISIONS.md").read_text()
    assert "takes back: release" in said("undo", HELD, "--reason", "not yet")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("release", OTHER, "--reason", "x"), "is not held"),
        (("release", HELD, "--reason", " "), "needs a reason"),
        (("release", HELD, "--reason", "x", "--publish"), "is not for the log"),
    ],
)
def test_what_cannot_be_released(folder: Path, words: tuple[str, ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        said(*words)
    assert not (folder / "DECISIONS.md").exists()
