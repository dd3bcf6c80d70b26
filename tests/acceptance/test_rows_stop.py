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
from sandbox.browser.devtools import installed
from tests.acceptance.conftest import CREATE, House, persona, probe, step
from tests.acceptance.doubles import between, hanging

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]

SOON_S = 5.0
"""Until everything in flight has ended."""
TOOLS = '["qa_create", "qa_fetch", "qa_call", "qa_chain", "qa_fuzz", "qa_compile", "qa_publish", "qa_browse"]'
FRONT = f"tools = {TOOLS}\nbudget = {{ calls = 60, writes = 20 }}"
GOOD = "fn frame(t: i32) -> i32 { t + 1 }"
HANGS = "fn frame(t: i32) -> i32 { let mut i = 0; loop { i += 1; if i > t { break; } } i }"
Fly = Callable[[Turn], Awaitable[object]]


def one_call(tool: str, **args: Any) -> Fly:
    return lambda turn: turn.ask("1", tool, args)


def batch(tool: str, *args: dict[str, Any]) -> Fly:
    asked = [Question((Step(tool=tool, args=one),)) for one in args]
    return lambda turn: turn.pose(asked)


PAGES = [{"url": "{site}/" + page} for page in "abc"]
READS = [{"function": name} for name in ("feedbackCount", "nextId", "mainCost")]
FLIGHTS: dict[str, tuple[str, Fly]] = {
    "a page": ("qa_fetch", one_call("qa_fetch", url="{site}/llms.txt")),
    "a call of an agent": ("qa_call", one_call("qa_call", target="claude", message="hello")),
    "a chain read": ("qa_chain", one_call("qa_chain", function="feedbackCount")),
    "a batch of chain reads": ("qa_chain", batch("qa_chain", *READS)),
    "a search": ("qa_fuzz", one_call("qa_fuzz", seconds=60.0)),
    "a compilation": ("qa_compile", one_call("qa_compile", source=HANGS, timeout_s=15.0)),
    "a publication": ("qa_publish", one_call("qa_publish", name="{name}", source=GOOD)),
    "an explorer's batch": ("qa_fetch", batch("qa_fetch", *PAGES)),
    **({"a browser": ("qa_browse", one_call("qa_browse", url="{site}/"))} if installed() else {}),
}
"""By kind of call: its tool, and what is asked. A proof and a post are below, a proposal is in tests/fix."""


@dataclass
class Slow:
    """A node that holds reads of the chain back once it is told to."""

    holds: bool = False

    async def tamper(self, method: str, params: list[Any], answer: Any) -> Any:
        if self.holds and method in ("eth_call", "eth_getTransactionReceipt"):
            while self.holds:  # noqa: ASYNC110 -- until the test lets go
                await anyio.sleep(0.05)
        return answer


async def test_stop_ends_every_kind_of_call_in_flight(house: House, tmp_path: Path) -> None:
    one, node = persona(tmp_path, FRONT, probe("mint", CREATE, expect="result.ok")), Slow()
    flying, ended = "", {}
    stopped_at = 0.0

    async def drive(desk: Desk) -> str:
        async with desk.turn() as turn:
            node.holds = True
            await FLIGHTS[flying][1](turn)
        return "went on"

    async def pull(before: int) -> None:
        nonlocal stopped_at
        asks = FLIGHTS[flying][0]
        while asks not in [one.tool for one in house.said("tool.requested")[before:]]:  # noqa: ASYNC110
            await anyio.sleep(0.05)
        await anyio.sleep(0.5)  # it is on its way
        stop(state, "test", "enough", SystemClock())
        stopped_at = time.monotonic()

    async with hanging() as (url, asked), between(house.rpc, node.tamper) as rpc:
        changes = [(house.devnet.url, url), (house.devnet.chain.url, rpc)]
        state = await house.state(tmp_path, *changes)
        async with house.world(state, one) as world:
            for flying in FLIGHTS:  # one world for all: opening it takes longer than a flight
                node.holds = False
                with anyio.fail_after(30):
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(pull, len(house.said("tool.requested")))
                        report = await fire(world, one, driver=DriverChoice(name="mcp", drive=drive))
                soon = time.monotonic() - stopped_at < SOON_S
                seen = len(asked)
                await anyio.sleep(0.2)
                ended[flying] = (report.outcome, "enough" in report.detail, soon, len(asked) - seen)
                assert list((state / "jails").glob("*.jail")) == []
                assert resume(state)
            assert ended == dict.fromkeys(FLIGHTS, ("stopped", True, True, 0))
            node.holds = False
            await recover(world)  # what some of them owe: a key, a name
            trails = [read(path) for path in state.glob("runs/*/trajectory.jsonl")]
            footers = [[one.outcome for one in trail if isinstance(one, Footer)] for trail in trails]
            assert footers == [["stopped"]] * len(FLIGHTS)


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
