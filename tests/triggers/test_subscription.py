"""The subscription made again and again: how long it waits, what it reports, when it wakes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import NoReturn

import anyio
import pytest

from fleet.errors import Unreachable
from fleet.triggers.chain.subscription import STEADY_S, HeadSubscription
from tests.triggers.conftest import FakeClock


class Node:
    """Each attempt goes as one of `turns`: for how many seconds it holds (None: not at all), why it ends."""

    def __init__(self, clock: FakeClock, *turns: tuple[float | None, str]) -> None:
        self.clock, self.turns = clock, list(turns)
        self.waits: list[float] = []
        self.reports: list[str] = []
        self.wakes = 0

    async def follow(self, url: str, *, subscribed: Callable[[], None], head: Callable[[], None]) -> NoReturn:
        assert url == "ws://node"
        if not self.turns:
            await anyio.sleep_forever()
        held, reason = self.turns.pop(0)
        if held is not None:
            subscribed()
            self.clock.advance(held)
        raise Unreachable(reason)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.advance(seconds)
        await anyio.lowlevel.checkpoint()

    def wake(self) -> None:
        self.wakes += 1

    async def goes_through(self) -> None:
        heads = HeadSubscription(
            "ws://node",
            self.wake,
            self.reports.append,
            follow=self.follow,
            clock=self.clock,
            sleep=self.sleep,
        )
        count = len(self.turns)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(heads.run)
            while len(self.waits) < count:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_what_cannot_be_made_is_tried_less_and_less_and_reported_once(clock: FakeClock) -> None:
    node = Node(clock, *[(None, "connection refused")] * 11)
    await node.goes_through()
    assert node.waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert (node.reports, node.wakes) == (["connection refused"], 0)


@pytest.mark.anyio
async def test_each_beginning_wakes_and_is_reported_with_each_end(clock: FakeClock) -> None:
    node = Node(clock, (1, "cut"), (None, "refused"), (None, "refused"), (5, "cut"))
    await node.goes_through()
    assert node.reports == ["", "cut", "refused", "", "cut"]
    assert node.wakes == 2


@pytest.mark.anyio
async def test_only_one_that_held_makes_the_next_wait_short_again(clock: FakeClock) -> None:
    """A server that takes every subscription and drops it at once is not asked once a second."""
    node = Node(clock, *[(0, "cut")] * 4, (STEADY_S, "cut"), (0, "cut"))
    await node.goes_through()
    assert node.waits == [1, 2, 4, 8, 1, 2]


@pytest.mark.parametrize("module", ["fleet.cli", "fleet.cli.operate.up", "fleet.service.triggers"])
def test_web3_is_not_imported_before_a_profile_asks_for_it(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'web3', 'websockets'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
