"""Runs per second through the journal: queued, claimed, one effect intended and resolved, settled, ended.

    python -m bench.runs [--runs 60] [--rounds 2]

The exercise does nothing, so this is what the records cost: on SQLite with every commit on the disk, and on
a PostgreSQL of its own, by the shared queue. Peers in the same run: a bare APScheduler job in memory, which
records nothing, and Procrastinate alone with a job that does nothing. They take turns and only ratios count.
Without a PostgreSQL server its rows are left out, and that is said. Exit status 1 below the floor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC
from pathlib import Path

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from fleet.store.dispatch.dispatcher import Dispatcher
from fleet.store.dispatch.source import Embedded, Owner, Source
from fleet.store.journal import Journal
from fleet.store.rows import NewRun
from tests.store.cluster import ABSENT, Cluster, binaries

FLOORS = {"shared_to_procrastinate": 0.08}
"""A run is five more durable steps than a job; the floor says that nothing has become far worse."""
OWNER = Owner(1, 1, "bench")


async def bare(count: int) -> float:
    """APScheduler alone, in memory."""
    done = asyncio.Event()
    left = count

    async def job() -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    scheduler = AsyncIOScheduler(timezone=UTC)
    scheduler.start()
    started = time.perf_counter()
    for _ in range(count):
        scheduler.add_job(job)
    await done.wait()
    taken = time.perf_counter() - started
    scheduler.shutdown(wait=False)
    return count / taken


async def through(journal: Journal, source: Source, count: int) -> float:
    """Whole lives of runs, one after the other."""
    started = time.perf_counter()
    for number in range(count):
        run = f"r{number}"
        queued = await source.trigger(
            NewRun(
                run_id=run,
                persona=run,
                key=run,
                platform="bench",
                trigger="bench",
                rung="observe",
                budget={"calls": 1},
            )
        )
        row = await source.take({run: 1}, ())
        assert queued, run
        assert row is not None, run
        effect = await journal.intend(row.run_id, "name", "qa-bench", {})
        await journal.resolve(effect, "released", {})
        await journal.start_settling(row.run_id)
        await journal.finish(row.run_id, "done")
        await source.done(row.run_id)
    return count / (time.perf_counter() - started)


async def sqlite(count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        async with await Journal.open(Path(folder) / "fleet.db") as journal:
            return await through(journal, Embedded(journal, "bench", OWNER), count)


async def shared(url: str, count: int) -> float:
    async with (
        await Journal.open(url) as journal,
        Dispatcher(url, journal, "bench", OWNER).open() as source,
    ):
        return await through(journal, source, count)


async def procrastinate(url: str, count: int) -> float:
    """Its own worker, one job at a time, deferred one by one as a trigger would."""
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=4))

    @app.task(name="nothing")
    async def job() -> None:
        """Do nothing."""

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        started = time.perf_counter()
        for _ in range(count):
            await job.defer_async()
        await app.run_worker_async(wait=False, concurrency=1, install_signal_handlers=False)
        return count / (time.perf_counter() - started)


async def measure(contestants: dict[str, Callable[[], Awaitable[float]]], rounds: int) -> dict[str, float]:
    """Medians of runs per second, after one round that fills caches, and the ratios to the peers."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, contestant in contestants.items():
            rate = await contestant()
            if number:
                taken[name].append(rate)
    found = {name: statistics.median(rates) for name, rates in taken.items()}
    ratios = {"sqlite_to_bare": found["sqlite"] / found["bare"]}
    if "shared" in found:
        ratios |= {
            "shared_to_procrastinate": found["shared"] / found["procrastinate"],
            "sqlite_to_procrastinate": found["sqlite"] / found["procrastinate"],
        }
    return {name: round(value, 4) for name, value in (found | ratios).items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    count, folder = options.runs, binaries()
    logging.disable()
    contestants: dict[str, Callable[[], Awaitable[float]]] = {
        "bare": lambda: bare(count),
        "sqlite": lambda: sqlite(count),
    }
    cluster = None
    if folder is None:
        print(f"without PostgreSQL and Procrastinate: {ABSENT}", file=sys.stderr)
    else:
        cluster = Cluster(folder)
        cluster.start()
        place = cluster.place
        contestants |= {
            "shared": lambda: shared(place(), count),
            "procrastinate": lambda: procrastinate(place(), count),
        }
    try:
        found = asyncio.run(measure(contestants, options.rounds))
    finally:
        if cluster is not None:
            cluster.remove()
    print(json.dumps({"runs_per_s": found, "floors": FLOORS}, indent=2))
    return 0 if all(found.get(name, floor) >= floor for name, floor in FLOORS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
