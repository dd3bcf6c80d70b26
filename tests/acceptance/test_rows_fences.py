"""Rows 9, 24, 25, 27, 30, 31, 35, 54 and 62: what the gate and the signer hold while a run is in flight."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleet.chain.node.abi import FUNCTIONS
from fleet.clock import SystemClock
from fleet.errors import RpcError
from fleet.events.model import Event, Footer, PhaseChanged
from fleet.events.trajectory import read
from fleet.findings.reader import read as read_entry
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.gate.stop import resume, stop
from fleet.runs.run import fire, recover
from tests.acceptance.conftest import CREATE, GOOD, House, persona, probe, step, times
from tests.acceptance.doubles import Looping, between

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]

BUDGET = "budget = { calls = 60, writes = 20 }"
PUBLISH = step("qa_publish", name="{name}", source=GOOD)
CALL = step("qa_call", target="claude", message="hello")
FETCH = step("qa_fetch", url="{site}/llms.txt")


def after(kind: str, number: int, act: Callable[[], object]) -> Callable[[Event], None]:
    """A reader of the stream that acts once, right after that many events of one type."""
    seen: list[Event] = []

    def watch(event: Event) -> None:
        if event.type == kind:
            seen.append(event)
            if len(seen) == number:
                act()

    return watch


async def test_row_9_a_tool_outside_the_grant_is_refused_at_every_rung(house: House, tmp_path: Path) -> None:
    full = persona(
        tmp_path,
        f'tools = ["qa_call", "qa_fetch", "qa_create"]\n{BUDGET}',
        probe("mint", CREATE, expect="result.ok"),
        probe("look", FETCH, expect="result.status == 200"),
    )
    few = replace(full, persona=full.persona.model_copy(update={"tools": ("qa_call", "qa_fetch")}))
    state = await house.state(tmp_path, rung=Rung.PROPOSE)
    async with house.world(state, few) as world:
        report = await fire(world, few)
        assert (report.outcome, await house.signed()) == ("done", [])
    denied = house.said("gate.denied")
    assert [(one.tool, one.rule) for one in denied] == [("qa_create", "grant")]
    assert [one.tool for one in house.said("tool.requested")] == ["qa_fetch"]


async def test_row_24_at_observe_acts_are_refused_and_only_reports_are_signed(
    house: House, tmp_path: Path
) -> None:
    one = persona(
        tmp_path,
        f'tools = ["qa_create", "qa_publish", "qa_call", "qa_fetch"]\n{BUDGET}',
        probe("mint", CREATE, expect="result.ok"),
        probe("publish", PUBLISH, expect="result.ok"),
        probe("call", CALL, expect="result.ok"),
        probe("wrong", FETCH, expect="result.status == 418"),
    )
    state = await house.state(tmp_path, rung=Rung.OBSERVE)
    async with house.world(state, one) as world:
        report = await fire(world, one)
        signed = await house.signed()
        assert [(tx.sender, tx.function) for tx in signed] == [(world.chain.identity, "submitFeedback")]
    assert [(e.tool, e.rule) for e in house.said("gate.denied")] == [
        (tool, "dial") for tool in ("qa_create", "qa_publish", "qa_call")
    ]
    assert [row.state for row in report.findings] == ["posted"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name",
    [
        "claude",
        "qa-otherrun-1",
        "qa-{run}",
        "qa-{run}-",
        "qa-{run}-1.x",
        "QA-{run}-1",
        "qa-{run}-\uff11",
        "q\u0430-{run}-1",
    ],
    ids=ascii,
)
async def test_row_30_a_name_that_is_not_this_runs_is_refused_before_any_traffic(
    house: House, tmp_path: Path, name: str
) -> None:
    one = persona(
        tmp_path,
        f'tools = ["qa_create", "qa_publish"]\n{BUDGET}',
        probe("mint", step("qa_create", name=name), expect="result.ok"),
        probe("publish", step("qa_publish", name=name, source=GOOD), expect="result.ok"),
    )
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        report = await fire(world, one)
        assert (report.outcome, report.findings, await house.signed()) == ("blind", (), [])
    assert [e.rule for e in house.said("gate.denied")] == ["prefix", "prefix"]
    assert house.said("tool.requested") == []


async def test_row_27_a_flip_to_observe_acts_before_the_next_call_of_a_run_in_flight(
    house: House, tmp_path: Path
) -> None:
    one = times(
        persona(tmp_path, f'tools = ["qa_create"]\n{BUDGET}', probe("mint", CREATE, expect="result.ok")), 3
    )
    state = await house.state(tmp_path)
    flip = after(
        "tool.responded", 1, lambda: write_dial(state, Rung.OBSERVE, "enough", "test", SystemClock())
    )
    async with house.world(state, one, watch=flip) as world:
        report = await fire(world, one)
        assert await house.tools_signed() == ["register"]
        assert await world.chain.names.owner_of_name(f"qa-{report.run}-1") == ""
    assert (report.outcome, report.settled) == ("done", True)
    assert [(e.call, e.rule) for e in house.said("gate.denied")] == [(2, "dial"), (3, "dial")]


async def test_row_31_three_writes_and_one_closing_report(house: House, tmp_path: Path) -> None:
    one = times(
        persona(
            tmp_path,
            'tools = ["qa_create", "qa_publish"]\nbudget = { calls = 60, writes = 3, reports = 0 }',
            probe("publish", CREATE, PUBLISH, expect="results[1].published"),
        ),
        5,
    )
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        report = await fire(world, one)
        assert await house.tools_signed() == ["register", "setMetadata", "setMetadata", "submitFeedback"]
        assert (report.outcome, report.settled) == ("budget_exceeded", True)
        entries = [e for e in await world.chain.log.range(0, 1000) if e.sender == world.chain.identity]
        assert await world.journal.spent(report.run) == {"calls": 2, "writes": 3, "closing": 1}
    (entry,) = [read_entry(e.text) for e in entries]
    assert (entry.severity, entry.run) == ("info", report.run)
    assert "budget-exceeded" in entry.body


async def test_row_31_a_jail_that_loops_gets_three_signatures(house: House, tmp_path: Path) -> None:
    one = persona(
        tmp_path,
        'tools = ["qa_create", "qa_publish"]\nbudget = { calls = 60, writes = 3 }',
        probe("loop", CREATE, expect="result.ok"),
        probe("more", CREATE, PUBLISH, expect="results[1].ok"),
    )
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        looping = Looping(world.platform.chain.diamond)
        report = await fire(replace(world, jail=looping), one)
        tools = await house.tools_signed()
    assert looping.answers[:3] == [200, 200, 200]
    assert set(looping.answers[3:]) == {403}
    assert len(looping.answers) == 100
    assert tools == ["register", "register", "register", "submitFeedback"]
    assert (report.outcome, report.settled) == ("budget_exceeded", True)
    assert [row.probe for row in report.findings if row.state == "posted"] == ["budget-exceeded"]


@pytest.mark.parametrize("answer", ["error", "empty"])
async def test_row_54_a_price_that_cannot_be_read_is_never_free(
    house: House, tmp_path: Path, answer: str
) -> None:
    price = "0x" + FUNCTIONS["registrationCost"].selector.hex()

    async def tamper(method: str, params: list[Any], real: Any) -> Any:
        if method == "eth_call" and params[0]["data"].startswith(price):
            if answer == "error":
                raise RpcError("execution reverted", code=3)
            return "0x"
        return real

    one = persona(tmp_path, f'tools = ["qa_create"]\n{BUDGET}', probe("mint", CREATE, expect="result.ok"))
    async with between(house.rpc, tamper) as url:
        state = await house.state(tmp_path, (house.devnet.chain.url, url))
        async with house.world(state, one) as world:
            report = await fire(world, one)
            assert await house.tools_signed() == ["submitFeedback"]
    said = house.said("tool.responded")
    assert [(one.is_error, one.result["tx"]) for one in said] == [(True, "")] * 4  # seen once, proven thrice
    assert (report.outcome, report.settled) == ("done", True)


async def test_stop_in_mid_run_pauses_all_and_the_next_start_cleans_up(house: House, tmp_path: Path) -> None:
    one = times(
        persona(tmp_path, f'tools = ["qa_create"]\n{BUDGET}', probe("mint", CREATE, expect="result.ok")), 3
    )
    state = await house.state(tmp_path)
    pause = after("tool.responded", 1, lambda: stop(state, "test", "fire drill", SystemClock()))
    async with house.world(state, one, watch=pause) as world:
        report = await fire(world, one)
        name = f"qa-{report.run}-1"
        assert (report.outcome, report.settled) == ("stopped", False)
        assert await house.tools_signed() == ["register"]
        assert "releaseName" not in {tx.function for tx in await house.signed()}
        assert await world.chain.names.owner_of_name(name) != ""
        assert (await world.journal.run(report.run)).state == "settling"
        assert (world.folder(report.run) / "keys" / name).is_file()
    async with house.world(state, one) as world:  # still stopped: nothing is signed, nothing is lost
        (again,) = await recover(world)
        assert (again.settled, await house.signed()) == (False, [])
        assert (state / "STOP").exists()
    assert resume(state)
    async with house.world(state, one) as world:
        (again,) = await recover(world)
        assert (again.outcome, again.settled) == ("stopped", True)
        assert await world.chain.names.owner_of_name(name) == ""
        assert not (world.folder(report.run) / "keys").exists()
        assert (await world.journal.run(report.run)).outcome == "stopped"
        events = list(read(world.folder(report.run) / "trajectory.jsonl"))
    ends = [event for event in events if isinstance(event, Footer)]
    assert [(end.outcome, end.calls) for end in ends] == [("stopped", 1)]
    [end] = [event for event in events if isinstance(event, PhaseChanged) and event.after == "abort"]
    assert (end.before, end.why[:8]) == ("identification", "stopped:")


async def test_row_35_keys_are_private_and_appear_nowhere(house: House, tmp_path: Path) -> None:
    secrets: dict[str, str] = {}
    one = persona(
        tmp_path,
        f'tools = ["qa_create"]\n{BUDGET}',
        probe("p", CREATE, expect="!result.ok"),
    )
    state = await house.state(tmp_path)

    def look(event: object) -> None:
        for path in (state / "runs").glob("*/keys/*"):
            assert path.stat().st_mode & 0o777 == 0o600
            assert path.parent.stat().st_mode & 0o777 == 0o700
            secrets[path.name] = path.read_text().strip()

    async with house.world(state, one, watch=look) as world:
        report = await fire(world, one)
        assert repr(world.chain.signer).find(next(iter(secrets.values()))) < 0
    assert len(secrets) == 4
    assert [row.state for row in report.findings] == ["posted"]
    standing = [(state / "keys" / name).read_text() for name in ("identity", "sponsor")]
    written = b"".join(
        path.read_bytes() for path in state.rglob("*") if path.is_file() and path.parent.name != "keys"
    )
    for secret in [*secrets.values(), *standing]:
        assert secret.encode() not in written
        assert bytes.fromhex(secret) not in written
    left = sorted(os.listdir(state / "runs" / report.run))
    brief = ["CHARTER.md", "GUARDRAILS.md", "MISSION.md"]
    records = ["trajectory.jsonl", "trajectory.head", "egress.jsonl", "egress.head", "egress.open"]
    assert left == sorted([*brief, *records, "PLAN.md", "evidence", "state.json", "state.copy.json"])
