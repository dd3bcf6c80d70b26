"""Where a run's records end: kept in the journal when it ends, and in the evidence of what it found."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from anyio import to_thread

from fleet.broker.egress_record import EGRESS
from fleet.events.chain import Place, read_head, verify
from fleet.events.daemon_events import FEED
from fleet.runs.call.decision_file import NAME, OLDER
from fleet.store.journal import Journal
from fleet.store.rows import SEALED

TRAJECTORY = "trajectory.jsonl"
FEED_BEFORE = Path(FEED).with_suffix(".1.jsonl")
ASKED_BEFORE = Path(EGRESS).with_suffix(".1.jsonl")


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


@dataclass(frozen=True, slots=True)
class CheckedRecord:
    """What a record's chain says; `fault` is "" while it holds."""

    record: str
    lines: int
    chained: int
    fault: str
    note: str


def longest_unlooked(state: Path, looked: Mapping[str, float], most: int) -> list[str]:
    """The runs here whose records are to be looked at next, with about so many bytes, one at least; `looked`
    says when each was looked at."""
    due, size = list[str](), 0
    for folder in sorted(state.glob("runs/*"), key=lambda one: (looked.get(one.name, -math.inf), one.name)):
        with suppress(OSError):  # retention removes runs meanwhile
            size += sum(path.stat().st_size for name in (TRAJECTORY, EGRESS) for path in folder.glob(name))
        if due and size > most:
            break
        due.append(folder.name)
    return due


async def checked(
    state: Path, journal: Journal | None, run: str, among: Iterable[str] | None = None
) -> list[dict[str, Any]]:
    """The records of one run, or with "" of all runs here, or those `among` them, of decisions, of the
    daemon, and of what the service asked."""
    found = []
    here = sorted(state.glob("runs/*")) if among is None else [state / "runs" / one for one in among]
    folders = [state / "runs" / run] if run else here
    for folder in folders:
        sealed = await sealed_at_end(journal, folder.name) if journal is not None else {}
        if folder.is_dir():
            for name in (TRAJECTORY, EGRESS):
                look = partial(_checked, state, folder / name, sealed=sealed.get(name))
                found.append(await to_thread.run_sync(look))
    if not run:
        for name, older in ((NAME, OLDER), (FEED, FEED_BEFORE), (EGRESS, ASKED_BEFORE)):
            path = state / name
            found.append(await to_thread.run_sync(partial(_checked, state, path, rotated=state / older)))
    return [asdict(one) for one in found if one is not None]


def _checked(
    state: Path, path: Path, *, rotated: Path | None = None, sealed: Place | None = None
) -> CheckedRecord | None:
    """One record; None where there is none and none was."""
    name = str(path.relative_to(state))
    try:
        said = verify(path, rotated=rotated, sealed=sealed)
    except FileNotFoundError:
        gone = "" if sealed is None or not sealed.lines else f"it is missing: {sealed.lines} lines"
        return CheckedRecord(name, 0, 0, gone, "") if gone else None
    except OSError as error:
        return CheckedRecord(name, 0, 0, f"it cannot be read: {error.strerror}", "")
    note = said.note
    if not said.chained and said.lines:
        note = "its writer was of a version that did not chain: nothing can be said of it"
    elif sealed is None and not note and path.parent != state:
        note = "the run has not ended: its end is not in the journal yet"
    return CheckedRecord(name, said.lines, said.chained, said.fault, note)
