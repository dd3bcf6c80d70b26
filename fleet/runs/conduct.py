"""Whether a run acted as the earlier ones of its persona did; what differs is a question to a person.

Measured of each run: its `calls`, the shares of them that were `acts`, `refused` by a rule and `unreached`,
its `requests` for each call, and the number of `hosts`. Unusual is what lies more than twice as far from the
median of the earlier runs as any of them did, and more than a stated distance. Nothing waits or ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from fleet.clock import iso
from fleet.runs.call.questions import put_question, question_of
from fleet.runs.context import FleetContext

CONDUCT = "conduct:"
"""Prefix of the journal's facts, by platform and persona: what the latest runs that ended well measured."""
KEPT, FEWEST, LEAST_CALLS = 20, 5, 10
"""Runs that are compared, how many there must be, and calls of one that says something."""
FARTHER = 2.0
LEAST: Mapping[str, float] = {
    "calls": 50.0,
    "acts": 0.2,
    "refused": 0.1,
    "unreached": 0.2,
    "requests": 5.0,
    "hosts": 2.0,
}
"""By metric, the distance from the median that is never unusual."""


def unusual(run: Mapping[str, float], earlier: Sequence[Mapping[str, float]]) -> list[str]:
    """What of a run is unusual beside earlier ones, in words with baseline and figure."""
    if len(earlier) < FEWEST:
        return []
    found = []
    for name, least in LEAST.items():
        usual = median(one[name] for one in earlier)
        farthest = max(abs(one[name] - usual) for one in earlier)
        if abs(run[name] - usual) > max(least, FARTHER * farthest):
            found.append(f"{name} {run[name]:.3g}, usually {usual:.3g} (at most {farthest:.2g} away from it)")
    return found


async def judge_conduct(
    world: FleetContext, run: str, persona: str, counts: Mapping[str, int], *, well: bool
) -> None:
    """Compare a run that is over with the earlier ones, ask a person where it differs, and keep what was
    measured of one that ended `well`. `counts`: of LEAST's names, whole numbers."""
    if world.trial or (calls := counts["calls"]) < LEAST_CALLS:
        return
    shares = {name: counts[name] / calls for name in ("acts", "refused", "unreached", "requests")}
    measured = {"calls": float(calls), "hosts": float(counts["hosts"]), **shares}
    key = f"{CONDUCT}{world.platform.name}:{persona}"
    earlier = json.loads(await world.journal.get(key) or "[]")
    if differs := unusual(measured, [one["measured"] for one in earlier]):
        last = f"{persona} acted unlike its last {len(earlier)} runs"
        what = f"{last}: {'; '.join(differs)}. Is that as it should be?"
        one = question_of(world.platform.name, run, persona, "unusual", f"run {run}", what)
        asked = replace(one, level="low")
        await put_question(world.journal, world.platform.escalation, world.clock, asked)
    if well:
        kept = [*earlier, {"run": run, "at": iso(world.clock.now()), "measured": measured}][-KEPT:]
        await world.journal.put(key, json.dumps(kept), run=run)
