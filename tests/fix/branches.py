"""Branches in memory: what a publisher by git does for one on GitHub, with the stand-in's own table."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from fleet.errors import FixError
from fleet.fix.model import CheckedPatch, FixTask, Published, StepResult


@dataclass
class MemoryBranches:
    """PublisherPort without requests; `heads` is shared with the server, `own` are the commits we pushed."""

    heads: dict[str, str]
    own: set[str] = field(default_factory=set)

    async def find(self, task: FixTask) -> Published | None:
        head = self.heads.get(task.branch)
        return Published(task.branch, task.branch, head, "pushed") if head else None

    async def push(self, task: FixTask, patch: CheckedPatch, message: str) -> Published:
        head = hashlib.sha1(patch.base.encode() + patch.text + message.encode()).hexdigest()
        if self.heads.get(task.branch, head) not in self.own | {head}:
            raise FixError(f"{task.branch} is not ours")
        self.heads[task.branch] = head
        self.own.add(head)
        return Published(task.branch, task.branch, head, "pushed")

    async def open(self, task: FixTask, title: str, body: str) -> Published:
        raise AssertionError("a request is opened by the API")

    async def close(self, task: FixTask, why: str) -> Published | None:
        if self.heads.get(task.branch) not in self.own:
            return None
        return Published(task.branch, task.branch, self.heads.pop(task.branch), "closed")

    async def answer(self, task: FixTask, comment: int, steps: Sequence[StepResult]) -> str:
        raise AssertionError("a comment is answered by the API")
