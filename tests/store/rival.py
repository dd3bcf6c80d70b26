"""One of two daemons on one journal: triggers the same ticks, claims the same runs, spends the same budget.

Waits for a line on stdin, so that both begin at once; prints one JSON line of what it won.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

from fleet.errors import BudgetExceeded
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow, NewRun

TICKS = 500
SPENDS = 200
LIMIT = 150
FINGERPRINTS = 20
AT_ONCE = 4


async def _each(count: int, wins: Callable[[int], Awaitable[bool]]) -> list[int]:
    """The numbers below `count` for which this process won, `AT_ONCE` in flight."""
    numbers, won = iter(range(count)), []

    async def worker() -> None:
        for number in numbers:
            if await wins(number):
                won.append(number)

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return sorted(won)


async def _trigger(journal: Journal, me: str, number: int) -> bool:
    return await journal.trigger(
        NewRun(
            run_id=f"{number}-{me}",
            persona="p",
            key=f"p@{number}",
            platform="d",
            trigger="t",
            rung="observe",
            budget={},
        )
    )


async def _spend(journal: Journal, run_id: str) -> bool:
    try:
        await journal.spend(run_id, "calls", 1, LIMIT)
    except BudgetExceeded:
        return False
    return True


async def _post(journal: Journal, me: str, number: int) -> bool:
    await journal.add_finding(FindingRow(run_id=me, fingerprint=f"{number}", state="confirmed"))
    return await journal.claim_posting(me, f"{number}")


async def main(place: str, me: str) -> None:
    async with await Journal.open(place, busy_s=30) as journal:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        took = {"begin": time.monotonic()}
        triggered = await _each(TICKS, lambda n: _trigger(journal, me, n))
        took["trigger"] = time.monotonic()
        runs = sorted(row.run_id for row in await journal.queued_runs() if row.key.startswith("p@"))[:50]
        claimed = await _each(len(runs), lambda n: journal.claim(runs[n], pid=1, pid_start=1))
        took["claim"] = time.monotonic()
        spent = await _each(SPENDS, lambda _n: _spend(journal, "shared"))
        took["spend"] = time.monotonic()
        posting = await _each(FINGERPRINTS, lambda n: _post(journal, me, n))
        took["post"] = time.monotonic()
    names = {"triggered": triggered, "claimed": [runs[n] for n in claimed], "posting": posting}
    print(json.dumps(names | {"spent": len(spent), "took": took}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
