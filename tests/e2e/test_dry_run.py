"""What would change something can be asked what it would do, and then does nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.devnet.defects import ALL_IDS
from tests.e2e.conftest import Fleet

ONE = sorted(ALL_IDS)[0]


def test_a_demo_says_what_it_would_do_and_does_nothing(fleet: Fleet, state: Path) -> None:
    plan = fleet("demo", "--dry-run", "--json", "--rung", "observe", "--defects", ONE).data
    assert plan == {
        "folder": str(state / "demo"),
        "replaces": False,
        "dial": "observe",
        "personas": ["qa-smoke", "qa-security", "qa-fuzz", "qa-ux", "qa-perf", "qa-triage"],
        "defects": [ONE],
        "explore": False,
    }
    assert list(state.iterdir()) == []


@pytest.mark.parametrize(("words", "seeded"), [(("--clean",), []), ((), sorted(ALL_IDS))])
def test_so_does_a_devnet(fleet: Fleet, state: Path, words: tuple[str, ...], seeded: list[str]) -> None:
    plan = fleet("devnet", "up", "--dry-run", "--json", *words).data
    assert plan == {"folder": str(state / "devnet"), "running": None, "defects": seeded, "surfaces": []}
    assert list(state.iterdir()) == []


def test_an_unknown_defect_is_still_an_error(fleet: Fleet) -> None:
    assert fleet("demo", "--dry-run", "--defects", "no-such").code == 3
