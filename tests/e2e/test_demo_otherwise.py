"""`fleet demo` where there is nothing to find, and where nothing may be exercised."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.devnet.defects import ALL_IDS, DEFECTS
from tests.e2e.conftest import LONG, Fleet, processes_of, signed

pytestmark = [pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(400)]

OBSERVABLE = {defect.id for defect in DEFECTS if defect.rung == "observe"}


def test_without_defects_it_finds_nothing(fleet: Fleet, state: Path) -> None:
    said = fleet("demo", "--clean", "--json")
    assert said.code == 0, said.err
    got = said.data
    assert (got["defects_seeded"], got["findings_posted"], got["false_findings"]) == (0, 0, 0)
    assert (got["log_entries"], got["worklist"]) == (0, [])
    assert (got["names_leaked"], got["jails_left"]) == (0, 0)
    assert "saw:" not in said.err
    assert processes_of(state) == []


@LONG
def test_at_observe_nothing_but_feedback_is_signed(fleet: Fleet, state: Path) -> None:
    said = fleet("demo", "--rung", "observe", "--json")
    assert said.code == 0, said.err
    got = said.data
    assert set(got["missed"]) == ALL_IDS - OBSERVABLE
    assert (got["defects_found"], got["findings_posted"]) == (len(OBSERVABLE), len(OBSERVABLE))
    assert (got["false_findings"], got["names_minted"]) == (0, 0)
    assert signed(state) == {"submitFeedback"}
