"""Marks: an explorer's batch keeps up with a bare loop, and costs a fraction of single-use jails.

    python -m bench.explore [--rounds 6]

B17, requests a second: whole batches through desk, gate, ledger, one warm jail, broker, records and oracles,
against a loop over one kept httpx connection to the same target. B20, processor seconds a request, of this
process and its jails together, start-up included: in a batch, against the same questions one jail each. They
take turns and only ratios count. A single jail is forked, as in a run, or started by bubblewrap from nothing.
Exit status 1 below a floor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import httpx

from fleet.broker.broker import EgressPolicy
from fleet.config import Platform
from fleet.drivers.desk import Question
from fleet.gate.gate import Rate
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import Image
from fleet.personas.model import PolicySection, Step
from fleet.runs.context import way_out
from sandbox.guest import MAX_CALLS
from tests.runs.table import PLATFORM, Table, persona, seated

FLOORS = {"explorer_to_httpx": 0.1, "single_to_batch_cpu": 2.0, "new_to_single_cpu": 2.0}
MARKS = {"explorer_to_httpx": 0.6, "batch_cpu_s": 0.02, "single_cpu_s": 0.04}
"""Of one machine, and only reported; the loop neither records nor judges what it gets."""
SINGLE = 6
"""Questions of a round in single jails."""
TARGET: list[int] = []
"""Pid of the target."""
PAGE = b"<!doctype html><html lang=en><title>x</title><p>" + b"hello " * 200
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n%s" % (len(PAGE), PAGE)


async def serve() -> None:
    """The target, in a process of its own: says its port and answers until its standard input ends."""

    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    server = await asyncio.start_server(page, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


def cpu_s() -> float:
    """Processor seconds of this process and of all below it, ended or alive, but the target."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    found = {int(path.parent.name): fields(path) for path in Path("/proc").glob("[0-9]*/stat")}
    ticks = sum(sum(map(int, one[11:15])) for pid, one in found.items() if one and below(pid, found))
    return sum(one.ru_utime + one.ru_stime for one in used) + ticks / os.sysconf("SC_CLK_TCK")


def fields(path: Path) -> list[str]:
    """Of `/proc/<pid>/stat` from the state on: then comes the parent; from the twelfth on four times."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:
        return []


def below(pid: int, found: Mapping[int, list[str]]) -> bool:
    """Whether a process descends from this one, and not from the target."""
    while pid > 1 and found.get(pid) and pid not in TARGET:
        pid = int(found[pid][1])
        if pid == os.getpid():
            return True
    return False


async def batch(table: Table, count: int) -> None:
    questions = [Question((Step(tool="qa_fetch", args={"url": "{site}/"}),))] * count
    async with table.desk.turn() as turn:
        found = await turn.pose(questions)
    assert all(one and one[0]["status"] == 200 for one in found), found


async def singly(table: Table, count: int) -> None:
    for _ in range(count):
        await batch(table, 1)


async def bare(url: str, count: int) -> None:
    async with httpx.AsyncClient() as client:
        for _ in range(count):
            assert (await client.get(url)).status_code == 200


async def timed(work: Callable[[], Awaitable[None]], count: int) -> tuple[float, float]:
    """Wall and processor seconds a request."""
    wall, used = time.perf_counter(), cpu_s()
    await work()
    return (time.perf_counter() - wall) / count, (cpu_s() - used) / count


async def measure(rounds: int, site: str) -> dict[str, float]:
    web = PLATFORM.web.model_dump() | {"site": site, "requests_per_second": 10_000.0}
    platform = Platform.model_validate(PLATFORM.model_dump() | {"web": web})
    one = persona(policy=PolicySection(max_turns_per_run=10_000), calls=10_000)
    ways = ("httpx", "batch", "single", "new")
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        way = partial(way_out, EgressPolicy.of(platform))
        for name in "wc":
            (root / name).mkdir()
        warm, cold = (BwrapJail(Image(), pool=size, spool=root / name) for size, name in ((1, "w"), (0, "c")))
        try:
            for number in range(rounds):
                taken["httpx"].append(await timed(partial(bare, site, MAX_CALLS), MAX_CALLS))
                await warm.warm()
                for name, jail, work, count in (
                    ("batch", warm, batch, MAX_CALLS),
                    ("single", warm, singly, SINGLE),
                    ("new", cold, singly, SINGLE),
                ):
                    where = root / f"{name}{number}"
                    rate = Rate(calls=100_000)
                    async with seated(
                        where, one, platform=platform, real=jail, egress=way, rate=rate
                    ) as table:
                        taken[name].append(await timed(partial(work, table, count), count))
        finally:
            await warm.aclose()
            await cold.aclose()
    wall = {name: statistics.median(one[0] for one in all_) for name, all_ in taken.items()}
    used = {name: statistics.median(one[1] for one in all_) for name, all_ in taken.items()}
    return {
        "httpx_per_s": round(1 / wall["httpx"]),
        "explorer_per_s": round(1 / wall["batch"]),
        "explorer_to_httpx": round(wall["httpx"] / wall["batch"], 3),
        "single_cpu_s": round(used["single"], 4),
        "batch_cpu_s": round(used["batch"], 4),
        "new_cpu_s": round(used["new"], 4),
        "single_wall_s": round(wall["single"], 4),
        "new_wall_s": round(wall["new"], 4),
        "single_to_batch_cpu": round(used["single"] / used["batch"], 1),
        "new_to_single_cpu": round(used["new"] / used["single"], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve())
        return 0
    command = [sys.executable, "-m", "bench.explore", "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout
        TARGET.append(target.pid)
        found = asyncio.run(measure(given.rounds, f"http://127.0.0.1:{target.stdout.readline().strip()}/"))
        target.communicate()
    missed = [name for name, floor in FLOORS.items() if found[name] < floor]
    print(json.dumps({"explore": found, "marks": MARKS, "floors": FLOORS, "missed": missed}, indent=2))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
