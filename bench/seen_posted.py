"""From the moment a finding is seen to its entry on the log, by severity, in a daemon with explorers.

    python -m bench.seen_posted [--minutes 12] [--defects all] [--keep FOLDER] [--json FILE]

The real `fleet up` with the bundled personas on a devnet with every seeded defect; then the times of the
first `finding.raised` and of the `finding.posted` of each fingerprint, from the records of the runs (whole
seconds); what is on the log by another name already (`finding.repeated`) counts from there. The load average
is of the same time.
Exit status 1 when a critical finding is not posted, or the median of critical ones is not below a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio

from bench.daemon import Place, daemon
from fleet.devnet.defects import chosen
from fleet.devnet.devnet import Devnet
from fleet.events.model import FindingPosted, FindingRaised, FindingRepeated, FindingVerified
from fleet.events.trajectory import read
from fleet.files import ROOT
from fleet.severity import SEVERITIES
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow

MARK_S = 60.0
"""Most seconds from seen to posted, as the median of critical findings on a free machine."""
LOOK_S = 5.0


def seconds_between(state: Path) -> Iterator[tuple[str, float | None, float | None]]:
    """Of each finding seen: its fingerprint, and the seconds until it was proven and until it was posted.

    What was seen in the last minute and is not posted was cut off by the end of the bench: it is left out.
    """
    seen: dict[str, datetime] = {}
    proven: dict[str, float] = {}
    posted: dict[str, float] = {}
    events = [event for file in state.glob("runs/*/trajectory.jsonl") for event in read(file)]
    for event in sorted(events, key=lambda one: one.at):
        if not isinstance(event, FindingRaised | FindingVerified | FindingPosted | FindingRepeated):
            continue
        at, name = datetime.fromisoformat(event.at), event.fingerprint
        since = (at - seen.setdefault(name, at)).total_seconds()
        if isinstance(event, FindingPosted | FindingRepeated) and event.index >= 0:
            posted.setdefault(name, since)
        elif isinstance(event, FindingVerified) and event.state == "confirmed":
            proven.setdefault(name, since)
    late = max(datetime.fromisoformat(event.at) for event in events) - timedelta(seconds=MARK_S)
    kept = [name for name, at in seen.items() if name in posted or at < late]
    return ((name, proven.get(name), posted.get(name)) for name in kept)


def figures(state: Path, rows: list[FindingRow]) -> dict[str, dict[str, Any]]:
    """By severity: how many were seen, the seconds until proven and posted, and what is not posted."""
    last = {row.fingerprint: row for row in rows}
    found = [(last[name], proven, posted) for name, proven, posted in seconds_between(state) if name in last]
    return {
        severity: {
            "seen": len(mine),
            "to_proven_s": _spread([proven for _, proven, _ in mine if proven is not None]),
            "to_posted_s": _spread([posted for *_, posted in mine if posted is not None]),
            "slow": [f"{posted:g} s: {row.title}" for row, _, posted in mine if posted and posted > MARK_S],
            "not_posted": [f"{row.state}: {row.title}" for row, _, posted in mine if posted is None],
        }
        for severity in SEVERITIES
        if (mine := [one for one in found if one[0].severity == severity])
    }


def _spread(values: list[float]) -> dict[str, float]:
    """How many, their median and the worst; nothing of none."""
    if not values:
        return {}
    return {"count": len(values), "median": statistics.median(values), "worst": max(values)}


def serve(place: Place, minutes: float) -> float:
    """Let the daemon work; the mean load meanwhile."""
    started, loads = daemon(place), list[float]()
    until = time.monotonic() + minutes * 60
    while time.monotonic() < until and started.process.poll() is None:
        loads.append(os.getloadavg()[0])
        time.sleep(LOOK_S)
    started.process.terminate()
    started.process.wait(240)  # its grace, then its settling
    return statistics.mean(loads)


async def run(minutes: float, defects: str, keep: Path | None) -> dict[str, Any]:
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with Devnet(folder / "devnet", keys=folder / "keys", defects=chosen(defects)) as devnet:
            place = Place.make(folder, devnet)
            for file in (ROOT / "personas").glob("*.md"):
                (place.personas / file.name).write_bytes(file.read_bytes())
            load = await anyio.to_thread.run_sync(serve, place, minutes)
            async with await Journal.open(place.state / "fleet.db") as journal:
                rows = await journal.findings()
                runs = Counter(row.persona for row in await journal.runs(limit=1_000))
            by = figures(place.state, rows)
            return {"minutes": minutes, "load": round(load, 1), "runs": runs, "severity": by}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=12.0)
    parser.add_argument("--defects", default="all", help="comma-separated ids of seeded defects, or all")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="use this new folder, and leave it")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    found = anyio.run(run, options.minutes, options.defects, options.keep)
    text = json.dumps(found, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    critical = found["severity"].get("critical", {"to_posted_s": {}, "not_posted": []})
    median = critical["to_posted_s"].get("median", 0.0)
    return 0 if median < MARK_S and not critical["not_posted"] else 1


if __name__ == "__main__":
    sys.exit(main())
