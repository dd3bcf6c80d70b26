"""A queue that is held, because the disk is full: nothing begins, and it is told once."""

from __future__ import annotations

import anyio
import pytest

from tests.runs.conftest import Shop, firing
from tests.runs.test_queue_executor import until

pytestmark = pytest.mark.anyio


async def test_nothing_begins_while_the_queue_is_held_and_its_end_goes_on(shop: Shop) -> None:
    shop.signals.held = "the disk is full: 0 MiB free"
    await shop.queue.fire(firing("qa-a"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await anyio.sleep(0.2)
        assert shop.began == []
        shop.signals.held = ""
        shop.signals.work.set()
        await until(lambda: len(shop.ended) == 1)
        shop.executor.drain(0)
    assert [event.reason for event in shop.told("queue.paused")] == ["the disk is full: 0 MiB free"]
    assert len(shop.told("queue.resumed")) == 1
