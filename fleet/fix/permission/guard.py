"""A guard around what a proposal does outside of this process: asked before each act and during it.

A fence (STOP, dial, token, lease) that closes cancels it: git ends with its children, a request is cut off.
What a server had received by then may happen all the same, so `sent` says that one was begun.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import anyio

from fleet.drivers.session import RunOver
from fleet.fix.model import CheckedPatch, FixTask, Published, StepResult
from fleet.fix.permission.preconditions import ProposeRefusal
from fleet.fix.ports import PublisherPort

LOOK_S = 0.25
"""Seconds between two looks at the fences while an act is in flight."""
_OUTCOMES = {"stop": "stopped", "lease": "crashed"}

T = TypeVar("T")


class FenceClosed(RunOver):
    """A fence that closed before an act or during one; `sent`: something may have reached a server."""

    def __init__(self, found: ProposeRefusal, *, sent: bool = False) -> None:
        super().__init__(_OUTCOMES.get(found.rule, "refused"), in_words(found))
        self.found, self.sent = found, sent


def in_words(found: ProposeRefusal) -> str:
    """A refusal as it is recorded and shown."""
    return f"{found.rule}: {found.reason}"


@dataclass(slots=True)
class ActGuard:
    """`refused` reads the fences afresh; `sent` is set once an act that changes a server was begun."""

    refused: Callable[[], Awaitable[ProposeRefusal | None]]
    sent: bool = False

    async def ask(self) -> None:
        """Right before a push or a writing request; FenceClosed when it is not permitted now."""
        await self._look()
        self.sent = True

    async def watch(self, act: Callable[[], Awaitable[T]]) -> T:
        """Do it while it is permitted; FenceClosed once it is not. What was done before that is kept."""
        await self._look()
        done: list[T] = []
        failed: list[Exception] = []

        async def work() -> None:
            try:
                done.append(await act())
            except Exception as error:  # raised below, not within a group
                failed.append(error)
            tasks.cancel_scope.cancel()

        found = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            try:
                while found is None:
                    await anyio.sleep(LOOK_S)
                    found = await self.refused()
            except Exception as error:
                failed.append(error)
            tasks.cancel_scope.cancel()
        if done:
            return done[0]
        if failed:
            raise failed[0]
        assert found is not None
        raise FenceClosed(found, sent=self.sent)

    async def _look(self) -> None:
        """FenceClosed when nothing may be begun now."""
        if (found := await self.refused()) is not None:
            raise FenceClosed(found, sent=self.sent)


@dataclass(frozen=True, slots=True)
class GuardedPublisher:
    """A PublisherPort around another one, whose every act is watched."""

    inner: PublisherPort
    guard: ActGuard

    async def find(self, task: FixTask) -> Published | None:
        return await self.guard.watch(lambda: self.inner.find(task))

    async def push(self, task: FixTask, patch: CheckedPatch, message: str) -> Published:
        return await self.guard.watch(lambda: self.inner.push(task, patch, message))

    async def open(self, task: FixTask, title: str, body: str) -> Published:
        return await self.guard.watch(lambda: self.inner.open(task, title, body))

    async def close(self, task: FixTask, why: str) -> Published | None:
        return await self.guard.watch(lambda: self.inner.close(task, why))

    async def answer(self, task: FixTask, comment: int, steps: Sequence[StepResult]) -> str:
        return await self.guard.watch(lambda: self.inner.answer(task, comment, steps))
