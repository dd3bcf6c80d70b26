"""Copies the fleet's own entries of one log to another: each once, in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass

from fleet.chain.log.feedback import PAGE
from fleet.chain.node.codec import Entry
from fleet.chain.ports import FeedbackPort
from fleet.errors import Unreachable


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """`texts` are still to be posted, in order; `there` were copied before; `foreign` are of strangers, whose
    words are not ours to repeat."""

    texts: tuple[str, ...]
    there: int
    foreign: int


async def entries_of(log: FeedbackPort) -> AsyncIterator[tuple[int, Entry]]:
    """Every entry with its index, up to where the log ends now; Unreachable when it ends earlier."""
    start, total = 0, await log.count()
    while start < total:
        entries = await log.range(start, PAGE)
        if not entries:
            raise Unreachable(f"the log ends at entry {start}, short of its own count of {total}")
        for index, entry in enumerate(entries, start):
            yield index, entry
        start += len(entries)


async def copy_plan(
    source: FeedbackPort, target: FeedbackPort, *, ours: Collection[str], author: str
) -> CopyPlan:
    """What a copy would post to `target` as `author`, whose entries there count as copied before."""
    before = Counter([entry.text async for _, entry in entries_of(target) if entry.sender == author])
    texts, there, foreign = list[str](), 0, 0
    async for _, entry in entries_of(source):
        if entry.sender not in ours:
            foreign += 1
        elif before[entry.text]:
            before[entry.text] -= 1
            there += 1
        else:
            texts.append(entry.text)
    return CopyPlan(tuple(texts), there, foreign)
