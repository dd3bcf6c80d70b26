"""A part of the daemon never ends unnoticed, and one that is being ended has not died."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import anyio.lowlevel
import pytest

from fleet.service.supervise import SideTaskDied, side

pytestmark = pytest.mark.anyio
Run = Callable[[], Awaitable[None]]


async def _fails() -> None:
    raise ValueError("no such thing")


async def _returns() -> None:
    await anyio.lowlevel.checkpoint()


async def _fails_when_cancelled() -> None:
    try:
        await anyio.sleep_forever()
    except BaseException:
        raise ConnectionError("closed by the other side") from None


async def _returns_when_cancelled() -> None:
    with suppress(BaseException):
        await anyio.sleep_forever()


@pytest.mark.parametrize(
    ("run", "said"),
    [(_fails, "the part died: ValueError: no such thing"), (_returns, "the part ended unexpectedly")],
)
async def test_a_part_that_ends_ends_the_daemon(run: Run, said: str) -> None:
    with pytest.raises(SideTaskDied, match=f"^{said}$"):
        await side("the part", run)


@pytest.mark.parametrize("run", [_fails_when_cancelled, _returns_when_cancelled])
async def test_a_part_that_is_being_ended_does_not_fail_the_stop(run: Run) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(side, "the part", run)
        await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
