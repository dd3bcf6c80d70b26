"""`fleet demo` from outside: it finds what was seeded, posts it once, and leaves nothing behind."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.conftest import Fleet, processes_of, signed

pytestmark = [pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(400)]


def runs_that_saw(state: Path) -> dict[str, int]:
    """By fingerprint: an item counts the runs that saw it, though one entry stands on the log."""
    statement = (
        "select fingerprint, count(distinct run_id) from findings where state in ('posted', 'repeated')"
    )
    with closing(sqlite3.connect(state / "demo" / "fleet.db")) as journal:
        return dict(journal.execute(f"{statement} group by fingerprint"))


def test_it_finds_posts_and_ranks_every_seeded_defect_once(fleet: Fleet, state: Path) -> None:
    said = fleet("demo", "--json")
    assert said.code == 0, said.err
    got = said.data
    assert got["defects_seeded"] == got["defects_found"] == got["findings_posted"] == 21
    assert (got["missed"], got["false_findings"]) == ([], 0)
    assert (got["items"], got["doubles"]) == (21, {})
    assert got["log_entries"] == 22  # each finding once, and one summary of the top three
    assert got["names_minted"] >= 4
    assert (got["names_leaked"], got["jails_left"]) == (0, 0)
    assert [item["rank"] for item in got["worklist"]] == list(range(1, 22))
    assert {item["fingerprint"]: item["count"] for item in got["worklist"]} == runs_that_saw(state)
    assert all(item["verified"] and item["why"] and item["repro"] for item in got["worklist"])
    assert (got["worklist"][0]["severity"], got["worklist"][0]["surface"]) == ("critical", "security")
    assert got["seconds"] > 0
    assert "dial raised to exercise, for this devnet only" in said.err
    assert processes_of(state) == []
    assert list((state / "demo" / "runs").glob("*/keys")) == []
    assert signed(state) == {"submitFeedback", "register", "setMetadata", "claimDaily", "releaseName", ""}
