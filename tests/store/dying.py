"""A program that dies: runs `STEPS` in a child that is killed at each durable step in turn.

Each entry of `STEPS` is exactly one journal write. For every n the child dies at step n; what a new
process then finds must be what the first n writes alone would have left. Prints one JSON line per n.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg  # noqa: F401 (once here, not in each child)
import sqlalchemy.dialects.postgresql.psycopg  # noqa: F401

import fleet.store.sql.postgres  # noqa: F401
from fleet.chain.node.codec import Entry
from fleet.store.journal import MEMORY, Journal
from fleet.store.rows import FindingRow, NewRun, SampleRow


class StillClock:
    """A clock that stands still, so that two journals are equal to the byte."""

    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def _trigger(journal: Journal) -> Awaitable[Any]:
    return journal.trigger(
        NewRun(
            run_id="r1",
            persona="qa-x",
            key="k",
            platform="d",
            trigger="t",
            rung="exercise",
            budget={"writes": 3},
        )
    )


_HELD: dict[int, str] = {}


async def _reserve(journal: Journal) -> None:
    _HELD[id(journal)] = await journal.reserve("r1", {"tokens": 80}, {"run": {"tokens": 90}})


STEPS: list[Callable[[Journal], Awaitable[Any]]] = [
    _trigger,
    lambda j: j.claim("r1", pid=1, pid_start=2),
    lambda j: j.spend("r1", "writes", 1, 3),
    lambda j: j.intend("r1", "name", "qa-r1-1", {"chain": 1}),
    lambda j: j.spend("r1", "writes", 1, 3),
    lambda j: _reserve(j),
    lambda j: j.settle(_HELD[id(j)], {"tokens": 30}),
    lambda j: j.resolve(1, "done", {"id": 7}),
    lambda j: j.add_finding(FindingRow(run_id="r1", fingerprint="ab", title="t")),
    lambda j: j.add_finding(FindingRow(run_id="r1", fingerprint="ab", title="t")),
    lambda j: j.set_finding("r1", "ab", state="confirmed", confirmed=3),
    lambda j: j.claim_posting("r1", "ab"),
    lambda j: j.mirror(0, 0, [Entry("0x1", 1, "a"), Entry("0x1", 2, "b")]),
    lambda j: j.new_epoch(),
    lambda j: j.note("p95", 4.5),
    lambda j: j.keep_sample("p", SampleRow(measure="m", own=(4.5,))),
    lambda j: j.put("cursor", "3"),
    lambda j: j.start_settling("r1"),
    lambda j: j.finish("r1", "completed"),
]


async def _apply(path: str, count: int) -> None:
    async with await Journal.open(path, clock=StillClock()) as journal:
        for step in STEPS[:count]:
            await step(journal)


async def _dump(journal: Journal) -> dict[str, Any]:
    return {
        "runs": [asdict(row) for row in await journal.runs()],
        "effects": [asdict(row) for row in await journal.effects(None)],
        "findings": [asdict(row) for row in await journal.findings()],
        "spent": await journal.spent("r1"),
        "day": await journal.spent_today(),
        "cursor": await journal.mirror_cursor(),
        "entries": [asdict(row) for row in await journal.entries()],
        "fact": await journal.get("cursor"),
        "past": {name: [asdict(one) for one in rows] for name, rows in (await journal.past("p")).items()},
    }


async def _dumps(path: str, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    clock = StillClock()
    async with (
        await Journal.open(path, clock=clock) as killed,
        await Journal.open(MEMORY, clock=clock) as clean,
    ):
        for step in STEPS[:count]:
            await step(clean)
        return await _dump(killed), await _dump(clean)


def _die_at(place: str, count: Path, number: int) -> int:
    child = os.fork()
    if child == 0:
        os.environ["QA_CRASH_AT"] = str(number)
        os.environ["QA_CRASH_COUNT"] = str(count)
        asyncio.run(_apply(place, len(STEPS)))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path, places: list[str]) -> None:
    """Opening is the first step; the last round survives."""
    codes = [_die_at(place, folder / f"{n}.count", n) for n, place in enumerate(places, 1)]
    for n, (place, code) in enumerate(zip(places, codes, strict=True), 1):
        killed, clean = asyncio.run(_dumps(place, min(n - 1, len(STEPS))))
        count = (folder / f"{n}.count").read_text(encoding="utf-8")
        print(
            json.dumps({"n": n, "code": code, "count": count, "killed": killed, "clean": clean}), flush=True
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
