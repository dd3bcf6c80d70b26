"""Runs and questions a second of 1, 2 and 4 daemons of one machine on one journal, and what each costs.

    make bench-scale [ARGS="--seconds 60 --personas 24 --daemons 1,2,4"]

Every daemon has a state directory of its own; chain, platform, jails and PostgreSQL are real. More small runs
are due than can be done (each asks one page twice), so what is measured is the most that the machine carries.
Each run must end once, each firing be one run, nothing be left. docs/bench/scale.md is what it printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from fleet.store.journal import Journal
from tests.service.conftest import FETCH, Up, opened_devnet, opened_up, persona
from tests.store.cluster import Cluster, running

TICK = os.sysconf("SC_CLK_TCK")


def processor_s(pids: Sequence[int]) -> float:
    """Processor time of these processes and of all their children that ended."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(sum(map(int, found[11:15])) for found in fields) / TICK


def memory_mb(pids: Sequence[int]) -> float:
    """Memory of each of these processes that no other one has, on average."""
    texts = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids]
    private = [
        sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_"))
        for text in texts
    ]
    return sum(private) / len(private) / 1024


def works(host: Up) -> bool:
    """Whether a daemon has begun a run."""
    return any((host.state / "runs").glob("*/trajectory.jsonl"))


async def counted(journal: Journal) -> Counter[str]:
    rows = await journal.runs(limit=1_000_000)
    spent = [await journal.spent(row.run_id) for row in rows if row.state == "ended"]
    return Counter(runs=len(spent), calls=sum(one.get("calls", 0) for one in spent))


async def of(count: int, cluster: Cluster, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One machine with so many daemons, for so many seconds after all of them work."""
    folder.mkdir()
    async with AsyncExitStack() as stack:
        devnet = await stack.enter_async_context(opened_devnet(folder / "devnet"))
        first = await stack.enter_async_context(opened_up(devnet, folder / "0"))
        first.place = cluster.place()
        for number in range(options.personas):
            name = f"qa-{number}"
            first.drop(name, persona(name, FETCH, FETCH, trigger='continuous = "1s"'))
        hosts = [first]
        for number in range(1, count):
            for name in ("state", "personas", "config"):
                shutil.copytree(folder / "0" / name, folder / str(number) / name)
            hosts.append(Up(folder / str(number) / "state", devnet, place=first.place))
        for host in hosts:
            config = host.state.parent / "config" / "fleet.toml"
            config.write_text(f'concurrency = {options.concurrency}\n[store]\nurl = "{first.place}"\n')
            host.start("--grace", "0")
        try:
            for host in hosts:
                await host.until(partial(works, host), 300)
            pids = [host.processes[0].pid for host in hosts]
            async with await Journal.open(first.place) as journal:
                before, cpu, began = await counted(journal), processor_s(pids), time.monotonic()
                await asyncio.sleep(options.seconds)
                after, used, took = await counted(journal), processor_s(pids), time.monotonic() - began
                memory = memory_mb(pids)
            codes = [await host.end(host.processes[0]) for host in hosts]
            async with await Journal.open(first.place) as journal:
                rows = await journal.runs(limit=1_000_000)
        finally:
            for host in hosts:
                if host.processes[0].poll() is None:
                    host.processes[0].kill()
                    host.processes[0].wait()
        made = after - before
        ends = Counter(
            len(host.footers(path.name)) for host in hosts for path in (host.state / "runs").iterdir()
        )
        wrong = [f"exit codes {codes}"] * any(codes)
        wrong += [f"a run has {ends} ends"] * bool(set(ends) - {1})
        wrong += ["a firing is two runs"] * (len({row.key for row in rows}) != len(rows))
        wrong += [f"left {row.run_id}: {row.state}" for row in rows if row.state not in ("ended", "queued")]
        outcomes = Counter(row.outcome for row in rows if row.state == "ended")
        wrong += [f"outcomes {outcomes}"] * bool(
            set(outcomes) - {"done", "cancelled"}
        )  # cut short by the end
        return {
            "daemons": count,
            "runs": made["runs"] / took,
            "calls": made["calls"] / took,
            "cpu": (used - cpu) / max(made["runs"], 1),
            "memory": memory,
            "wrong": wrong,
        }


async def measure(options: argparse.Namespace) -> int:
    found = []
    with tempfile.TemporaryDirectory() as folder, running() as cluster:
        for count in map(int, options.daemons.split(",")):
            found.append(await of(count, cluster, Path(folder) / str(count), options))
            print(json.dumps(found[-1]), file=sys.stderr)
    print(
        "| daemons | runs a second | calls a second | processor time of a run, s | memory of a daemon, MB |"
    )
    print("|---|---|---|---|---|")
    for one in found:
        rates = f"{one['runs']:.2f} | {one['calls']:.2f} | {one['cpu']:.2f} | {one['memory']:.0f}"
        print(f"| {one['daemons']} | {rates} |")
    best = max(found, key=lambda one: one["runs"])
    hour = best["runs"] * 3600
    print(
        f"\nAt {best['runs']:.2f} runs a second this machine carries {hour:,.0f} small runs an hour: "
        f"{hour / 8:,.0f} platforms whose eight personas run once an hour."
    )
    wrong = [why for one in found for why in one["wrong"]]
    print("\n".join(wrong) or "Every run ended once, every firing was one run, nothing was left.")
    return bool(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--personas", type=int, default=24)
    parser.add_argument("--daemons", default="1,2,4")
    parser.add_argument("--concurrency", type=int, default=8, help="most runs at a time of each daemon")
    return asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    raise SystemExit(main())
