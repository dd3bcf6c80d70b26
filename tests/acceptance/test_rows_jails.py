"""A killed jail costs a call, not a run: what the kernel's OOM killer does to the jail of one call."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fleet.jail.model import Egress, End, Jail, Outcome, Tier
from fleet.runs.call.session import RETRIES
from fleet.runs.run import fire
from tests.acceptance.conftest import CREATE, House, persona, probe, step

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]
BUDGET = "budget = { calls = 60, writes = 20, reports = 5 }"
FETCH = step("qa_fetch", url="{site}/llms.txt")
SEEN = probe("seen", FETCH, expect="result.status == 418")
OTHER = step("qa_fetch", url="{site}/skill.md")


@dataclass
class Killed:
    """The real jail, of whose calls some are killed: before they did anything, or after all that they did."""

    inner: Jail
    dies: Callable[[int, dict[str, Any]], str]
    """The number of a call, from 1 on, and its request: "", "before" or "after"."""
    calls: list[str] = field(default_factory=list)

    async def probe(self) -> Tier:
        return await self.inner.probe()

    async def cool(self) -> None:
        pass

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def call(
        self, request: bytes, *, deadline_s: float, egress: Egress | None = None, resources: str = ""
    ) -> Outcome:
        asked = json.loads(request)
        self.calls.append(asked["tool"])
        when = self.dies(len(self.calls), asked)
        lost = Outcome(end=End.LOST, code=0, stdout=b"", stderr=b"", seconds=0.0)
        if when == "before":
            return lost
        outcome = await self.inner.call(request, deadline_s=deadline_s, egress=egress)
        return lost if when else outcome


async def run(house: House, tmp_path: Path, front: str, probes: list[str], dies: Any) -> tuple[Any, Killed]:
    """One run of a persona over a jail that is killed now and then."""
    one = persona(tmp_path, f"{front}\n{BUDGET}", *probes)
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        jail = Killed(world.jail, dies)
        report = await fire(replace(world, jail=jail), one)
        assert await world.journal.effects(report.run, states=["open"]) == []
        assert not (world.folder(report.run) / "keys").exists()
    return report, jail


async def test_a_read_whose_jail_is_killed_is_made_again_in_another(house: House, tmp_path: Path) -> None:
    healthy = probe("look", FETCH, expect="result.status == 200")
    report, jail = await run(
        house, tmp_path, 'tools = ["qa_fetch"]', [healthy], lambda n, _: "before" if n <= RETRIES else ""
    )
    assert (report.outcome, report.calls, jail.calls) == ("done", RETRIES + 1, ["qa_fetch"] * (RETRIES + 1))
    answers = [(one.call, one.is_error) for one in house.said("tool.responded")]
    assert answers == [(1, True), (2, True), (3, False)]  # each try is a call, on the record


async def test_what_was_seen_is_proven_and_posted_though_a_later_probe_loses_every_jail(
    house: House, tmp_path: Path
) -> None:
    later = probe("later", OTHER, expect="result.status == 200")
    report, _ = await run(
        house,
        tmp_path,
        'tools = ["qa_fetch"]',
        [SEEN, later],
        lambda _, asked: "before" if "skill" in asked["args"]["url"] else "",
    )
    assert (report.outcome, [row.state for row in report.findings]) == ("jail_lost", ["posted"])
    assert report.detail.startswith("3 times in a row: the jail of qa_fetch ended without a status")


async def test_one_that_kills_its_jails_does_not_stop_the_proof_of_another(
    house: House, tmp_path: Path
) -> None:
    deadly = probe("deadly", OTHER, expect="result.status == 418")
    report, _ = await run(
        house,
        tmp_path,
        'tools = ["qa_fetch"]',
        [deadly, SEEN],
        lambda n, asked: "before" if n > 2 and "skill" in asked["args"]["url"] else "",
    )
    assert report.outcome == "jail_lost"
    assert {row.probe: row.state for row in report.findings} == {"deadly": "unverified", "seen": "posted"}


async def test_an_act_that_was_lost_before_it_acted_is_made_again(house: House, tmp_path: Path) -> None:
    mint = probe("mint", CREATE, expect="result.ok")
    report, _ = await run(
        house, tmp_path, 'tools = ["qa_create"]', [mint], lambda n, _: "before" if n == 1 else ""
    )
    assert (report.outcome, report.findings) == ("done", ())
    assert await house.tools_signed() == ["register"]
    assert len({event.args["name"] for event in house.said("tool.requested")}) == 1


async def test_an_act_that_was_lost_after_it_acted_is_never_repeated_but_begun_anew(
    house: House, tmp_path: Path
) -> None:
    """Repeated, its name would be taken, which is no finding; so the attempt begins again under another."""
    mint = probe("mint", CREATE, expect="result.ok")
    report, _ = await run(
        house, tmp_path, 'tools = ["qa_create"]', [mint], lambda n, _: "after" if n == 1 else ""
    )
    assert (report.outcome, report.findings) == ("done", ())
    assert await house.tools_signed() == ["register", "register"]
    names = [event.args["name"] for event in house.said("tool.requested")]
    assert names == [f"qa-{report.run}-1", f"qa-{report.run}-2"]
    released = {event.ref for event in house.said("resource.released") if event.kind == "name"}
    assert released == set(names)


async def test_a_proof_survives_a_jail_that_is_killed_after_it_acted(house: House, tmp_path: Path) -> None:
    mint = probe("mint", CREATE, expect="!result.ok")
    report, _ = await run(
        house, tmp_path, 'tools = ["qa_create"]', [mint], lambda n, _: "after" if n == 3 else ""
    )
    assert (report.outcome, [(row.state, row.confirmed) for row in report.findings]) == (
        "done",
        [("posted", 3)],
    )
