"""`fleet demo` from outside: it finds what was seeded, posts it once, and leaves nothing behind."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from fleet.chain.abi import FUNCTIONS
from fleet.chain.tx import parse
from fleet.devnet.defects import ALL_IDS, DEFECTS
from tests.e2e.conftest import Fleet, processes_of

pytestmark = [pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(400)]

OBSERVABLE = {defect.id for defect in DEFECTS if defect.rung == "observe"}


def signed(state: Path) -> set[str]:
    """Names of the functions of every transaction that was ever signed over this state; "" a transfer."""
    with sqlite3.connect(state / "demo" / "fleet.db") as db:
        raws = [
            raw for (raw,) in db.execute("select json_extract(data, '$.raw') from effects where kind = 'tx'")
        ]
    names = {function.selector: name for name, function in FUNCTIONS.items()}
    return {names.get(parse(bytes.fromhex(raw))[0].data[:4], "") for raw in raws}


def test_it_finds_posts_and_ranks_every_seeded_defect_once(fleet: Fleet, state: Path) -> None:
    said = fleet("demo", "--json")
    assert said.code == 0, said.err
    got = said.data
    assert got["defects_seeded"] == got["defects_found"] == got["findings_posted"] == 21
    assert (got["missed"], got["false_findings"]) == ([], 0)
    assert got["log_entries"] == 22  # each finding once, and one summary of the top three
    assert got["names_minted"] >= 4
    assert (got["names_leaked"], got["jails_left"]) == (0, 0)
    assert [item["rank"] for item in got["worklist"]] == list(range(1, 22))
    assert {item["count"] for item in got["worklist"]} == {1}
    assert all(item["verified"] and item["why"] and item["repro"] for item in got["worklist"])
    assert (got["worklist"][0]["severity"], got["worklist"][0]["surface"]) == ("critical", "security")
    assert got["seconds"] > 0
    assert "dial raised to exercise, for this devnet only" in said.err
    assert processes_of(state) == []
    assert list((state / "demo" / "runs").glob("*/keys")) == []
    assert signed(state) == {"submitFeedback", "register", "setMetadata", "claimDaily", "releaseName", ""}


def test_without_defects_it_finds_nothing(fleet: Fleet, state: Path) -> None:
    said = fleet("demo", "--clean", "--json")
    assert said.code == 0, said.err
    got = said.data
    assert (got["defects_seeded"], got["findings_posted"], got["false_findings"]) == (0, 0, 0)
    assert (got["log_entries"], got["worklist"]) == (0, [])
    assert (got["names_leaked"], got["jails_left"]) == (0, 0)
    assert "saw:" not in said.err
    assert processes_of(state) == []


def test_at_observe_nothing_but_feedback_is_signed(fleet: Fleet, state: Path) -> None:
    said = fleet("demo", "--rung", "observe", "--json")
    assert said.code == 0, said.err
    got = said.data
    assert set(got["missed"]) == ALL_IDS - OBSERVABLE
    assert (got["defects_found"], got["findings_posted"]) == (len(OBSERVABLE), len(OBSERVABLE))
    assert (got["false_findings"], got["names_minted"]) == (0, 0)
    assert signed(state) == {"submitFeedback"}
