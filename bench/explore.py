"""Marks: an explorer's batch keeps up with a bare loop, and costs a fraction of single-use jails.

    python -m bench.explore [--rounds 6]

B17, requests a second: whole batches through desk, gate, ledger, one warm jail, broker, records and oracles,
against a loop over one kept httpx connection to the same target. B20, processor seconds a request, of this
process and its jails together, start-up included: in a batch, against the same questions one jail each. They
take turns and only ratios count. Exit status 1 below a floor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
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

FLOORS = {"explorer_to_httpx": 0.1, "single_to_batch_cpu": 6.0}
MARKS = {"explorer_to_httpx": 1.0, "batch_cpu_s": 0.02}
"""Of one machine, and only reported; the loop neither records nor judges what it gets."""
SINGLE = 6
"""Questions of a round in single jails."""
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
    """Processor seconds of this process and of every jail that has ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


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
    taken: dict[str, list[tuple[float, float]]] = {"httpx": [], "batch": [], "single": []}
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
                    ("single", cold, singly, SINGLE),
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
        "single_to_batch_cpu": round(used["single"] / used["batch"], 1),
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
        found = asyncio.run(measure(given.rounds, f"http://127.0.0.1:{target.stdout.readline().strip()}/"))
        target.communicate()
    missed = [name for name, floor in FLOORS.items() if found[name] < floor]
    print(json.dumps({"explore": found, "marks": MARKS, "floors": FLOORS, "missed": missed}, indent=2))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
