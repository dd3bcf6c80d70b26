"""Keys without a run: the journal was lost, or an older copy was restored.

Their holdings are returned in the normal way: the run is written into the journal again, with a key and a
name for each file, and settled like one whose process was killed. Only the chain shows what the keys hold.
"""

from __future__ import annotations

import re
from pathlib import Path

from fleet.chain.run_keys import RunKeys
from fleet.errors import UsageError
from fleet.events.model import Header
from fleet.events.trajectory import read
from fleet.runs.context import FleetContext
from fleet.runs.settlement.settle import waits_key
from fleet.store.journal import Journal
from fleet.store.rows import NewRun, RunRow

_RUN = re.compile(r"[a-z2-7]{8}")
_MARK = "@lost:"


async def keys_without_runs(state: Path, journal: Journal) -> list[str]:
    """Runs whose keys are here and which the journal does not know, or knows only from here."""
    found = []
    for folder in sorted(state.glob("runs/*/keys")):
        run = folder.parent.name
        if _RUN.fullmatch(run) and folder.is_dir() and not folder.is_symlink():
            row = await _row(journal, run)
            if row is None or (_MARK in row.key and row.state in ("queued", "running")):
                found.append(run)
    return found


async def take_back(world: FleetContext) -> dict[str, str]:
    """Restore such runs to be settled; return a message for each, by run.

    Call it before anything else runs. On a shared journal, and for another platform, they are only reported:
    their own journal, or their own platform, may be elsewhere.
    """
    said = {}
    for run in await keys_without_runs(world.state, world.journal):
        path = world.folder(run) / "trajectory.jsonl"
        first = next(iter(read(path)), None) if path.exists() else None
        head = first if isinstance(first, Header) else None
        here = (world.platform.name, world.platform.chain.id)
        if world.journal.shared or head is None or (head.platform, head.chain_id) != here:
            keys = world.folder(run) / "keys"
            where = f"a run of {head.platform}" if head else "a run without a trajectory"
            said[run] = f"keys of {where} that the journal does not know: {keys}; check what they hold"
            continue
        await _put_back(world, run, head)
        said[run] = "the journal did not know this run (was it lost, or an older copy restored?): settling it"
    return said


async def _put_back(world: FleetContext, run: str, head: Header) -> None:
    """The next start completes these steps after a crash between two of them."""
    lost = NewRun(
        run_id=run,
        persona=head.persona,
        key=f"{head.persona}{_MARK}{run}.",
        platform=world.platform.name,
        trigger=head.trigger,
        rung=head.rung,
        budget={},
    )
    await world.source.trigger(lost, hand=True)
    keys = RunKeys(world.folder(run))
    owners = keys.addresses()
    known = {(effect.kind, effect.ref) for effect in await world.journal.effects(run, ["key", "name"])}
    for label in keys.labels():
        if ("key", label) not in known:
            await world.journal.intend(run, "key", label, {})
        if label.startswith(f"qa-{run}-") and label in owners and ("name", label) not in known:
            await world.journal.intend(run, "name", label, {"owner": owners[label]})
    await world.journal.put(
        waits_key(run), "crashed\nthe journal had lost it; its keys were found at start-up"
    )
    await world.source.begin(run)


async def _row(journal: Journal, run: str) -> RunRow | None:
    try:
        return await journal.run(run)
    except UsageError:
        return None
