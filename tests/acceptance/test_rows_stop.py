"""STOP while something is in flight: the jail ends, nothing more is asked, the run ends as stopped."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.clock import SystemClock
from fleet.drivers.desk import Desk, Question, Turn
from fleet.events.model import Event, Footer
from fleet.events.trajectory import read
from fleet.gate.stop import resume, stop, stopped
from fleet.personas.model import Step
from fleet.runs.driver_choice import DriverChoice
from fleet.runs.run import fire, recover
from tests.acceptance.conftest import CREATE, House, persona, probe, step
from tests.acceptance.doubles import between, hanging

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]

SOON_S = 5.0
"""Until everything in flight has ended."""
FRONT = 'tools = ["qa_create", "qa_fetch", "qa_chain", "qa_fuzz"]\nbudget = { calls = 60, writes = 20 }'
Fly = Callable[[Turn], Awaitable[object]]


def one_call(tool: str, **args: Any) -> Fly:
    return lambda turn: turn.ask("1", tool, args)


def batch(*pages: str) -> Fly:
    steps = tuple(Step(tool="qa_fetch", args={"url": "{site}/" + page}) for page in pages)
    asked = [Question((step,)) for step in steps]
    return lambda turn: turn.pose(asked)


@dataclass
class Slow:
    """A node that holds reads of the chain back once it is told to."""

    holds: bool = False

    async def tamper(self, method: str, params: list[Any], answer: Any) -> Any:
        if self.holds and method == "eth_call":
            await anyio.sleep(40)
        return answer


@pytest.mark.parametrize(
    ("tool", "fly"),
    [
        ("qa_fetch", one_call("qa_fetch", url="{site}/llms.txt")),
        ("qa_chain", one_call("qa_chain", function="feedbackCount")),
        ("qa_fuzz", one_call("qa_fuzz", seconds=60.0)),
        ("qa_fetch", batch("a", "b", "c")),
    ],
    ids=["a page", "a chain read", "a search", "a batch"],
)
async def test_stop_ends_what_is_in_flight(house: House, tmp_path: Path, tool: str, fly: Fly) -> None:
    one, node = persona(tmp_path, FRONT, probe("mint", CREATE, expect="result.ok")), Slow()

    async def drive(desk: Desk) -> str:
        async with desk.turn() as turn:
            node.holds = True
            await fly(turn)
        return "went on"

    async with hanging() as (url, asked), between(house.rpc, node.tamper) as rpc:
        changes = (f'site = "{house.devnet.url}"', f'site = "{url}"'), (house.devnet.chain.url, rpc)
        state = await house.state(tmp_path, *changes)
        stopped_at = 0.0

        async def pull() -> None:
            nonlocal stopped_at
            while tool not in [one.tool for one in house.said("tool.requested")]:  # noqa: ASYNC110
                await anyio.sleep(0.05)
            await anyio.sleep(1.0)  # it is on its way
            stop(state, "test", "enough", SystemClock())
            stopped_at = time.monotonic()

        async with house.world(state, one) as world:
            with anyio.fail_after(30):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(pull)
                    driver = DriverChoice(name="mcp", drive=drive)
                    report = await fire(world, one, driver=driver)
            assert time.monotonic() - stopped_at < SOON_S
            assert (report.outcome, report.settled) == ("stopped", True)
            assert "enough" in report.detail
            assert list((state / "jails").glob("*.jail")) == []
            seen = len(asked)
            await anyio.sleep(0.5)
            assert len(asked) == seen
    ends = [e for e in read(state / "runs" / report.run / "trajectory.jsonl") if isinstance(e, Footer)]
    assert [end.outcome for end in ends] == ["stopped"]


async def test_stop_while_a_run_settles_asks_nothing_more_and_the_rest_waits(
    house: House, tmp_path: Path
) -> None:
    one = persona(tmp_path, FRONT, probe("mint", CREATE, expect="result.ok"))
    calls: list[str] = []
    state = await house.state(tmp_path)

    async def tamper(method: str, params: list[Any], answer: Any) -> Any:
        calls.append(method)
        if method == "eth_sendRawTransaction" and len(house.said("tool.responded")):  # the release
            stop(state, "test", "enough", SystemClock())
            await anyio.sleep(40)
        return answer

    async with between(house.rpc, tamper) as rpc:
        profile = state / "devnet" / "devnet.toml"
        profile.write_text(profile.read_text().replace(house.devnet.chain.url, rpc))
        async with house.world(state, one) as world:
            with anyio.fail_after(20):
                report = await fire(world, one)
            assert (report.outcome, report.settled) == ("done", False)
            seen = len(calls)
            await anyio.sleep(1.0)
            assert len(calls) == seen
        assert resume(state)
        async with house.world(state, one) as world:
            (again,) = await recover(world)
            assert (again.outcome, again.settled) == ("done", True)
            assert await world.chain.names.owner_of_name(f"qa-{report.run}-1") == ""


async def test_stop_ends_the_wait_for_a_receipt_and_the_transaction_is_settled_after_the_resume(
    house: House, tmp_path: Path
) -> None:
    one, sent, stopped_at = persona(tmp_path, FRONT, probe("mint", CREATE, expect="result.ok")), 0, 0.0
    state = await house.state(tmp_path)

    async def tamper(method: str, params: list[Any], answer: Any) -> Any:
        nonlocal sent, stopped_at
        sent += method == "eth_sendRawTransaction"
        if sent == 2 and not stopped_at:  # the stipend was the first
            stop(state, "test", "enough", SystemClock())
            stopped_at = time.monotonic()
        return None if method == "eth_getTransactionReceipt" and stopped(state) else answer

    async with between(house.rpc, tamper) as rpc:
        profile = state / "devnet" / "devnet.toml"
        profile.write_text(profile.read_text().replace(house.devnet.chain.url, rpc))
        async with house.world(state, one) as world:
            with anyio.fail_after(30):
                report = await fire(world, one)
            assert time.monotonic() - stopped_at < SOON_S
            assert (report.outcome, report.settled, sent) == ("stopped", False, 2)
            assert len(await world.journal.effects(report.run, ["tx"], ["open"])) == 1
        assert resume(state)
        async with house.world(state, one) as world:
            (again,) = await recover(world)
            assert (again.outcome, again.settled) == ("stopped", True), again.detail
            assert await world.journal.effects(report.run, states=["open"]) == []
            assert await world.chain.names.owner_of_name(f"qa-{report.run}-1") == ""


@pytest.mark.parametrize(
    ("at", "ends", "kept"),
    [
        ("finding.raised", {"stopped"}, "unverified"),
        # nothing is left to ask: it is posted by this run, or by the recovery if the run sees STOP before it
        ("finding.verified", {"done", "stopped"}, "posted"),
        ("finding.posted", {"done", "stopped"}, "posted"),
    ],
)
async def test_a_candidate_is_carried_through_stop_and_posted_once(
    house: House, tmp_path: Path, at: str, ends: set[str], kept: str
) -> None:
    fetch = step("qa_fetch", url="{site}/llms.txt")
    one = persona(tmp_path, FRONT, probe("seen", fetch, expect="result.status == 418"))
    state = await house.state(tmp_path)

    def pull(event: Event) -> None:
        if event.type == at:
            stop(state, "test", "enough", SystemClock())

    async with house.world(state, one, watch=pull) as world:
        first = await fire(world, one)
        assert first.outcome in ends
        (seen,) = first.findings
    assert resume(state)
    async with house.world(state, one) as world:
        await recover(world)
        (row,) = await world.journal.findings(first.run)
        assert row.state == kept  # seen, and kept with why it is not proven; or finished as it was begun
        second = await fire(world, one)
        assert second.outcome == "done"
        (again,) = second.findings
        assert (again.fingerprint, again.state) == (
            seen.fingerprint,
            "posted" if kept == "unverified" else "repeated",
        )
        entries = await world.chain.log.range(0, await world.chain.log.count())
        ours = [one for one in entries if one.sender == world.chain.identity]
        assert [seen.fingerprint in one.text for one in ours] == [True]
