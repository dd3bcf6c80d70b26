"""Keeps the figures of items in the journal, whatever other runs and daemons count at the same time."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller

from fleet.clock import iso
from fleet.findings import audit
from fleet.findings.recurrence import Recurrence, key_of, read_recurrence
from fleet.runs.context import FleetContext
from fleet.store.rows import FindingState

PROVEN: frozenset[FindingState] = frozenset({"confirmed", "posting", "posted", "repeated"})
"""States of a finding that its run has proven."""


async def figures_of(world: FleetContext) -> dict[str, Recurrence]:
    """All figures of this platform, by fingerprint."""
    prefix = key_of(world.platform.name)
    facts = await world.journal.facts(prefix)
    return {key.removeprefix(prefix): read_recurrence(text) for key, text in facts.items()}


async def count(world: FleetContext, item: str, change: Callable[[Recurrence], Recurrence]) -> None:
    """Change the figures of one item, in one step."""
    key = key_of(world.platform.name, item)
    await _swapped(world, key, lambda text: change(read_recurrence(text)).model_dump_json())


async def count_shown(world: FleetContext, run: str) -> None:
    """Count what a run has proven, posted or not: once for each run, however often this is called."""
    at = iso(world.clock.now())
    for row in await world.journal.findings(run, PROVEN):
        await count(world, row.fingerprint, methodcaller("shown", at, run, row.persona))
        for name in row.names[1:]:  # an item whose entries are older
            if await world.journal.get(key_of(world.platform.name, name)) is not None:
                await count(world, name, methodcaller("shown", at, run, row.persona))


async def keep_audit(world: FleetContext, result: audit.AuditResult) -> None:
    """Add one result to its day."""
    key = audit.key_of(world.platform.name, result.at[:10])
    await _swapped(world, key, lambda text: audit.read_day(text).with_result(result).model_dump_json())


async def _swapped(world: FleetContext, key: str, change: Callable[[str | None], str]) -> None:
    while True:
        before = await world.journal.get(key)
        after = change(before)
        if after == before or await world.journal.swap(key, before, after):
            return
