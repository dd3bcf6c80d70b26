"""A clock that a test sets, and a sink that keeps what it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from fleet.personas.model import Trigger
from fleet.triggers.clock.schedule import Clockwork
from fleet.triggers.model import Firing
from tests.doubles.triggers import FiringRecorder

START = datetime(2026, 11, 21, 12, tzinfo=UTC)


@dataclass
class FakeClock:
    """`advance` is time that passes; `step` is somebody setting the wall clock."""

    wall: datetime = START
    mono: float = 1000.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.mono

    def advance(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.mono += seconds

    def step(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def sink() -> FiringRecorder:
    return FiringRecorder()


def every(period: str) -> Trigger:
    return Trigger(every=period)


def ticks_of(sink: FiringRecorder, persona: str) -> list[datetime]:
    return [firing.due for firing in sink.fired if firing.persona == persona]


async def turns(count: int = 8) -> None:
    """Let the loop work off what is ready."""
    for _ in range(count):
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def running(*parts: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run loops for the length of a block."""
    async with anyio.create_task_group() as tasks:
        for part in parts:
            tasks.start_soon(part)
        await turns()
        yield
        tasks.cancel_scope.cancel()


@dataclass
class Ticking:
    """A running clockwork on a fake clock."""

    clock: FakeClock
    sink: FiringRecorder
    work: Clockwork

    async def pass_time(self, seconds: float) -> list[str]:
        """Keys that fire when this much time has passed at once."""
        before = len(self.sink.fired)
        self.clock.advance(seconds)
        return await self.look(before)

    async def look(self, before: int | None = None) -> list[str]:
        seen = len(self.sink.fired) if before is None else before
        await self.work.wake()
        await turns()
        return self.sink.keys[seen:]


@pytest.fixture
async def ticking(clock: FakeClock, sink: FiringRecorder, anyio_backend: str) -> AsyncIterator[Ticking]:
    work = Clockwork(sink, clock=clock)
    async with running(work.run):
        yield Ticking(clock, sink, work)


class Refusing(FiringRecorder):
    """Raises for the personas it is told to."""

    def __init__(self, *personas: str) -> None:
        super().__init__()
        self.refused = set(personas)

    async def fire(self, firing: Firing) -> bool:
        if firing.persona in self.refused:
            raise OSError("no space left")
        return await super().fire(firing)


async def until(holds: Callable[[], object], seconds: float = 20) -> None:
    """Wait for something that another task does."""
    with anyio.fail_after(seconds):
        while not holds():  # noqa: ASYNC110 - it is another task's, and has no event
            await anyio.sleep(0.005)
