"""On SQLite: a run by hand that is killed, and the next one, which recovers."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.chain.node.rpc import Rpc
from fleet.devnet.deploy import deploy_registries
from fleet.devnet.devnet import Devnet
from tests.crash import course
from tests.crash.farm import Farm, Zygotes
from tests.crash.trials import RECORDS_WHAT_HAPPENED

pytestmark = course.MARKS


@pytest.fixture
def farm(tmp_path: Path, devnet: Devnet, zygotes: Zygotes) -> Farm:
    return Farm(tmp_path, devnet, "hand", None, zygotes)


async def test_a_run_survives_sigkill_after_its_journal_steps(farm: Farm) -> None:
    """In its short form where something happened that is not written down yet."""
    await course.a_run_survives(farm, 1_200, RECORDS_WHAT_HAPPENED)


@course.LONG
async def test_a_run_that_posts_to_a_registry_survives_sigkill(farm: Farm) -> None:
    """ERC-8004: what a try signed before it died has other bytes than what the next one would sign."""
    async with Rpc(farm.devnet.chain.url) as rpc:
        farm.registry = await deploy_registries(rpc)
    await course.a_run_survives(farm, 1_000, ("effect.resolve", "effect.intend.tx", "finding.set"))


@course.LONG
async def test_a_run_with_sponsored_keys_survives_sigkill(farm: Farm) -> None:
    """All its steps; those of its keys, and what is left of them, are in test_kill_zero_fund.py."""
    farm.sponsored = True
    await course.a_run_survives(farm)


@course.LONG
async def test_a_recovery_survives_sigkill_after_its_journal_steps(farm: Farm) -> None:
    await course.a_recovery_survives(farm)
