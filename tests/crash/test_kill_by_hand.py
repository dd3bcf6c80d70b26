"""On SQLite: a run by hand that is killed, and the next one, which recovers."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.devnet.devnet import Devnet
from tests.crash import course
from tests.crash.farm import Farm, Zygotes

pytestmark = course.MARKS


@pytest.fixture
def farm(tmp_path: Path, devnet: Devnet, zygotes: Zygotes) -> Farm:
    return Farm(tmp_path, devnet, "hand", None, zygotes)


async def test_a_run_survives_sigkill_after_its_journal_steps(farm: Farm) -> None:
    await course.a_run_survives(farm)


@course.LONG
async def test_a_recovery_survives_sigkill_after_its_journal_steps(farm: Farm) -> None:
    await course.a_recovery_survives(farm)
