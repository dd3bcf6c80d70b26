"""Runs over a faulty provider: each finding is posted once, every run is settled, nothing is the platform's.

`NODE_RUNS=100` for the longer form.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path

import pytest

from fleet.findings.reader import read
from fleet.runs.run import fire
from tests.acceptance.conftest import CREATE, House, persona, probe, step
from tests.acceptance.faulty_node import KINDS, FaultyNode, before, restarts

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]
RUNS = int(os.environ.get("NODE_RUNS", "3"))
TOOLS = 'tools = ["qa_fetch", "qa_chain", "qa_create"]\nbudget = { calls = 60, reports = 5, writes = 20 }'
HEALTHY = (
    probe("mint", CREATE, expect="result.ok", severity="high"),
    probe("count", step("qa_chain", function="feedbackCount"), expect="result.ok"),
)


PAGES = ("/llms.txt", "/", "/robots.txt")


def seen(number: int) -> str:
    """A finding of its own for each page."""
    fetch = step("qa_fetch", url=f"{{site}}{PAGES[number % len(PAGES)]}")
    return probe(f"seen-{number}", fetch, expect="result.status == 418")


async def drive(house: House, root: Path, node: FaultyNode, runs: int) -> None:
    async with before(node):
        state = await house.state(root, (house.devnet.chain.url, node.url))
        for number in range(runs):
            one = persona(root, TOOLS, *HEALTHY, seen(number), name=f"qa-n{number}")
            async with house.world(state, one) as world:
                report = await fire(world, one)
                assert (report.outcome, report.settled) == ("done", True), report.detail
                state_ = "posted" if number < len(PAGES) else "repeated"
                assert [(row.probe, row.state) for row in report.findings] == [(f"seen-{number}", state_)]
                names = await world.journal.effects(None, ["name"])
                assert {name.state for name in names} <= {"released", "failed"}  # failed: never minted
                assert not any(await world.chain.names.owners_of_names([name.ref for name in names]))
        async with house.world(state, one) as world:
            entries = await world.chain.log.range(0, 10_000)
            ours = Counter(read(entry.text).fp for entry in entries if entry.sender == world.chain.identity)
            assert sorted(ours.values()) == [1] * min(runs, len(PAGES))


async def test_a_tenth_of_all_requests_fails_in_every_way(house: House, tmp_path: Path) -> None:
    node = FaultyNode(house.rpc)
    await drive(house, tmp_path, node, RUNS)
    assert sum(node.met[kind] for kind in KINDS) > RUNS


@pytest.mark.parametrize("kind", ["-32005", "html", "lag"])
async def test_a_fifth_of_one_kind(house: House, tmp_path: Path, kind: str) -> None:
    node = FaultyNode(house.rpc, share=0.2, kinds=(kind,), seed=2)
    await drive(house, tmp_path, node, max(1, RUNS // 3))
    assert node.met[kind]


async def test_five_requests_a_second(house: House, tmp_path: Path) -> None:
    node = FaultyNode(house.rpc, share=0.0, per_second=5)
    await drive(house, tmp_path, node, max(1, RUNS // 3))
    assert node.met["limited"]


async def test_a_node_that_restarts(house: House, tmp_path: Path) -> None:
    node = FaultyNode(house.rpc, share=0.0)
    restarting = asyncio.create_task(restarts(node, 0.7, 0.7))
    try:
        await drive(house, tmp_path, node, max(1, RUNS // 3))
    finally:
        restarting.cancel()
        await asyncio.gather(restarting, return_exceptions=True)
    assert node.met["restarting"]
