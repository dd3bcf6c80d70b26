"""On PostgreSQL: a daemon whose trigger fires the same tick at every start, and every fourth time a peer."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.devnet.devnet import Devnet
from tests.crash import course
from tests.crash.farm import Farm, Zygotes
from tests.crash.trials import RECORDS_WHAT_HAPPENED
from tests.store.cluster import Cluster

pytestmark = course.MARKS


@pytest.fixture
def farm(tmp_path: Path, devnet: Devnet, zygotes: Zygotes, cluster: Cluster) -> Farm:
    return Farm(tmp_path, devnet, "daemon", cluster, zygotes)


@course.LONG
async def test_a_run_survives_sigkill_after_its_journal_steps(farm: Farm) -> None:
    """In short: test_two_daemons.py kills one on the same server, test_paused_daemon.py stops one."""
    await course.a_run_survives(farm, 1_000, RECORDS_WHAT_HAPPENED)


@course.LONG
async def test_a_run_with_sponsored_keys_survives_sigkill(farm: Farm) -> None:
    farm.sponsored = True
    await course.a_run_survives(farm, 1_000, RECORDS_WHAT_HAPPENED)


@course.LONG
async def test_a_recovery_survives_sigkill_after_its_journal_steps(farm: Farm) -> None:
    await course.a_recovery_survives(farm)
