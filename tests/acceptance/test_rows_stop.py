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
from fleet.events.model import Footer
from fleet.events.trajectory import read
from fleet.gate.stop import resume, stop
from fleet.personas.model import Step
from fleet.runs.driver_choice import DriverChoice
from fleet.runs.lifecycle import fire, recover
from tests.acceptance.conftest import CREATE, House, persona, probe
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
