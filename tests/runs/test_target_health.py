"""Targets are looked at while they are tested; one that does not answer is left alone, alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleet.broker.egress_record import EgressRecord
from fleet.config.scope import HostSection
from fleet.drivers.session import RunOver
from fleet.runs.call.sightings import SIGHTED
from fleet.runs.target_health import FAILURES, NO_ANSWER, STRETCH, HealthOfTarget, TargetHealth
from tests.runs.table import PLATFORM, Table, persona, seated
from tests.runs.test_questions import asking, both, reply

pytestmark = pytest.mark.anyio
SITE = {"url": "http://site/"}


class Tick:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at

    def now(self) -> Any:
        raise NotImplementedError


def test_the_usual_time_is_the_median_of_the_first_ten_without_what_lies_outside() -> None:
    one = HealthOfTarget()
    for ms in (10, 11, 12, 13):
        assert (one.take(ms), one.usual) == ("", 0.0)
    for ms in (14, 15, 16, 17, 18, 4000):
        one.take(ms)
    assert one.usual == 14.5  # of 11 to 18: 10 and 4000 are left out
    assert one.take(34.0) == ""  # more than twice, but no twenty milliseconds more
    assert one.take(300.0) == "took 300 ms for a look, more than twice the usual 14"
    assert one.usual == 14.5
    assert (one.take(None), one.take(None)) == (NO_ANSWER, "did not answer a look 2 times in a row")
    assert (one.take(12.0), one.failures) == ("", 0)


def test_what_hangs_on_a_host_says_how_often_it_is_looked_at() -> None:
    levels = {"critical": 30.0, "production": 60.0, "unknown": 60.0, "non-production": 300.0}
    found = {level: HostSection(criticality=level, approved="ada").look_s for level in levels}
    assert found == levels
    assert HostSection(health_s=5).look_s == 5


def test_a_look_is_due_when_its_wait_is_over_and_rarer_than_one_of_a_hundred_requests() -> None:
    clock, health, host = Tick(), TargetHealth(), HostSection(health_s=10)
    named = [("site", host), ("proxy", HostSection(health_s=20))]
    assert health.due(named, clock, 0) == []
    clock.at = 10
    assert health.due(named, clock, 0) == ["site"]
    health.looked("site", 1.0)
    clock.at = 20
    assert health.due(named, clock, 10) == ["site", "proxy"]  # one of ten: more than it may be
    clock.at = 30
    assert health.due(named, clock, 10) == []
    clock.at = 20 + 10 * STRETCH
    assert health.due(named, clock, 1000) == ["site"]
    clock.at += 10
    assert health.due(named, clock, 1000) == ["site"]


def test_another_build_has_another_usual_time() -> None:
    health = TargetHealth()
    for build, usual in (("", 5.0), ("a", 5.0), ("a", 5.0), ("b", 0.0)):
        for _ in range(10 if build == "" else 0):
            health.looked("site", 5.0)
        health.built(build)
        assert health.of("site").usual == usual


async def turned(table: Table, url: str = "http://site/page") -> Any:
    """One call of the run, each target being due."""
    health = table.world.health
    health._due = dict.fromkeys(health._due, 0.0)
    return await table.drive.runner.session.call("qa_fetch", {"url": url})


async def test_a_target_that_does_not_answer_is_left_alone_and_told_and_others_are_not(
    tmp_path: Path,
) -> None:
    down = False

    async def says(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        if down and args["url"] == "http://site/":
            return {"ok": False, "error_class": "timeout", "error": "no answer in time", "latency_ms": 9.0}
        return {"ok": True, "status": 200, "text": "hello", "latency_ms": 4.0}

    async with seated(tmp_path, persona(), answer=says) as table:
        assert (await table.drive.runner.session.call("qa_fetch", SITE)).denied == ""
        assert table.said("target.checked") == []  # the first is one wait later
        assert (await turned(table)).denied == ""
        seen = {one.target: (one.ms, one.wrong, one.looks) for one in table.said("target.checked")}
        assert seen.pop("node")[1] == ""
        assert {one.what for one in table.said("target.checked") if one.target == "node"} == {"eth_chainId"}
        assert seen == {"site": (4.0, "", 1), "proxy": (4.0, "", 1), "faces": (4.0, "", 1)}
        down = True
        for _ in range(FAILURES - 1):
            assert (await turned(table)).denied == ""
        got = await turned(table)
        assert (got.denied, got.reason) == (
            "health",
            "site did not answer a look 3 times in a row: nothing else is asked until it answers one",
        )
        assert (await turned(table, "http://proxy/page")).denied == ""
        kept = await table.world.journal.facts(f"{SIGHTED}paper:strain:")
        assert {key.rpartition(":")[2] for key in kept} == {"site", "site, left alone"}
        down = False
        assert (await turned(table)).denied == ""


async def test_a_target_that_is_not_well_waits_for_a_person(tmp_path: Path) -> None:
    async def says(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "status": 200, "text": "hello", "latency_ms": 500.0}

    async with seated(tmp_path, persona(), platform=asking(pauses=("strain",)), answer=says) as table:
        await table.drive.runner.session.call("qa_fetch", SITE)
        for _ in range(10):
            table.world.health.looked("site", 5.0)
        with pytest.raises(RunOver) as over:
            await both(lambda: turned(table), lambda: reply(table, False))
        assert (over.value.outcome, over.value.detail) == (
            "cancelled",
            "ended by ada@host after strain: a reason",
        )
        assert table.said("question.asked")[0].place == "site"
        assert "took 500 ms for a look, more than twice the usual 5" in table.said("question.asked")[0].what


async def test_a_change_of_pace_is_on_record_with_what_showed_it(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(), platform=PLATFORM) as table:
        for share in (1.0, 0.5, 0.4, 0.6, 0.8, 0.9, 1.0, 1.0):
            table.drive.runner.session._noted(
                EgressRecord(verb="GET", host="site", what="/", status=429, ms=7.0, share=share)
            )
            table.drive.runner.session._noted(  # refused here: nothing is known of the host's rate
                EgressRecord(verb="GET", host="site", what="/", status=429, rule="busy")
            )
        told = [(one.before, one.after, one.status, one.ms) for one in table.said("pace.changed")]
        assert told == [
            (1.0, 0.5, 429, 7.0),
            (0.5, 0.4, 429, 7.0),
            (0.4, 0.8, 429, 7.0),
            (0.8, 1.0, 429, 7.0),
        ]


async def test_a_persona_that_fetches_nothing_looks_at_each_target_as_well(tmp_path: Path) -> None:
    """The look is the fleet's own, by the same jail and rules; the persona itself may not ask so."""
    async with seated(tmp_path, persona(tools=("qa_call",))) as table:
        for _ in range(2):
            table.world.health._due = dict.fromkeys(table.world.health._due, 0.0)
            await table.drive.runner.session.call("qa_call", {"agent": "paper", "message": "hello"})
        assert {one.target for one in table.said("target.checked")} == {"node", "site", "proxy", "faces"}
        assert [args["url"] for tool, args in table.jail.calls if tool == "qa_fetch"] == [
            "http://site/",
            "http://proxy/",
            "http://claude.face/",
        ]
        assert (await turned(table)).denied == "grant"


def test_what_feeds_a_target_that_is_not_well_is_left_alone_until_that_is_well() -> None:
    health = TargetHealth({"site": ("proxy",)})
    for _ in range(10):
        assert (health.looked("site", 5.0), health.looked("proxy", 5.0)) == ("", "")
    assert health.looked("proxy", 9.0) == ""  # below what is slow: nothing is held for it
    assert (health.halted("site"), health.halted("proxy")) == ("", "")
    health.looked("proxy", 500.0)
    why = "took 500 ms for a look, more than twice the usual 5"
    assert health.halted("site") == f"site feeds proxy, which {why}: nothing else is asked until that is well"
    assert health.halted("proxy") == ""
    assert health.looked("site", 5.0) == ""  # itself it is well, and held all the same
    assert health.halted("site")
    health.looked("proxy", 5.0)
    assert health.halted("site") == ""


def test_what_depends_on_a_target_that_does_not_answer_is_not_asked() -> None:
    health = TargetHealth({"site": ("proxy",)})
    for _ in range(FAILURES):
        health.looked("site", None)
    assert health.halted("proxy").startswith(
        "proxy depends on site: site did not answer a look 3 times in a row"
    )
    assert health.halted("faces") == ""
    health.looked("site", 4.0)
    assert health.halted("proxy") == ""
