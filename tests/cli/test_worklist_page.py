"""docs/worklist.md: its commands work as written on a list, and its table has every state."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import get_args

import anyio
import pytest
from typer.testing import CliRunner

from fleet.cli import app
from fleet.cli.items import decide
from fleet.files import ROOT
from fleet.store.journal import Journal
from fleet.triage.items.life import OPEN, ItemState
from fleet.triage.run import item_row
from tests.cli.test_worklist_command import ITEMS, state

__all__ = ("state",)

PAGE = (ROOT / "docs/worklist.md").read_text("utf-8")
LINES = [
    line.partition("  #")[0].strip()
    for block in re.findall(r"^```\n(.*?)^```", PAGE, re.M | re.S)
    for line in block.splitlines()
]
WITH_A_PLATFORM = ("items verify", "items publish", "items rebuild")
NAMES = {"FP": ITEMS[0].fingerprint, "OTHER": ITEMS[1].fingerprint}


async def listed(state: Path) -> None:
    async with await Journal.open(state / "fleet.db") as journal:
        await journal.put_items("devnet", [item_row(one) for one in ITEMS])


def test_its_commands_work_in_their_order(state: Path) -> None:
    anyio.run(listed, state)
    assert len(LINES) == 27
    for line in LINES:
        words = [NAMES.get(word, word) for word in shlex.split(line)]
        assert words.pop(0) == "fleet"
        if line.removeprefix("fleet ").startswith(WITH_A_PLATFORM):
            words = [*words[:2], "--help"]
        elif words == ["items"] or words[1] == "digest" or words[1].startswith("-"):
            words.append("--offline")
        said = CliRunner().invoke(app, words)
        assert said.exit_code == (1 if "--exit-code" in words else 0), (line, said.output, said.exception)


def test_a_decision_says_at_once_what_the_item_is_now(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anyio.run(listed, state)

    def said(word: str) -> tuple[str, str]:
        words = ["items", word, ITEMS[0].fingerprint, "--reason", "as designed"]
        text, data = (CliRunner().invoke(app, [*words, *more]).stdout for more in ([], ["--json"]))
        return text.splitlines()[-1], json.loads(data)["state"]

    assert said("dismiss") == ("the item is now dismissed", "dismissed")  # no platform: the list is old
    monkeypatch.setattr(decide, "_refresh", lambda _: True)
    assert said("reopen") == ("the item is now confirmed, number 1 of the list", "confirmed")


def test_its_table_has_every_state() -> None:
    rows = re.findall(r"^\| (`[a-z-]+`(?:, `[a-z-]+`)*) \|", PAGE, re.M)
    names = [name for row in rows for name in re.findall(r"[a-z-]+", row)]
    assert sorted(names) == sorted(get_args(ItemState))
    assert {*names[:6], "regression"} == OPEN
