"""Where a run's records end: kept in the journal when it ends, and in the evidence of what it found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from fleet.broker.egress_record import EGRESS
from fleet.events.chain import Place, read_head
from fleet.store.journal import Journal
from fleet.store.rows import SEALED

TRAJECTORY = "trajectory.jsonl"


async def seal_records(journal: Journal, run: str, ends: Mapping[str, Place]) -> None:
    """Keep the ends of a run's records, by name of the file."""
    await journal.put(f"{SEALED}{run}", json.dumps(dict(ends)), run=run)


async def sealed_at_end(journal: Journal, run: str) -> dict[str, Place]:
    """The ends of a run's records as kept when it ended; {} before, and of an older version."""
    text = await journal.get(f"{SEALED}{run}")
    return {name: Place(*place) for name, place in json.loads(text or "{}").items()}


def heads_now(folder: Path) -> dict[str, dict[str, int | str]]:
    """How far the records of a run in progress go, for its evidence: lines, and the hash behind the last."""
    heads = {name: read_head(folder / name) for name in (TRAJECTORY, EGRESS)}
    return {
        name.partition(".")[0]: {"lines": head.end.lines, "sha256": head.end.head}
        for name, head in heads.items()
        if head is not None
    }
