"""The pages of a large fleet: 100 runs, 10,000 items, 1,000,000 entries, and 1,000 followers.

    python -m bench.pages [--entries 1000000] [--defects 10000] [--runs 100] [--followers 1000] [--rounds 30]

A journal with that log is folded into its worklist as triage does; each run has findings and a trajectory.
The pages are served over it by the daemon's own server, in a process of its own, and asked by another one
over real sockets: each room in turn, first alone, then while the followers are there and events come. `cpu`
is the server's processor time meanwhile, followers included: the median of a page, in milliseconds. An
event's time is in its words, so a delay is from the moment when it is published until a follower has read
it. Some followers read nothing; the others are measured with and without them. Memory is the serving
process, and `fleet up` on a devnet without and with a port. Exit status 1 beyond a mark.
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
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from starlette.applications import Starlette

from bench import triage as log
from bench.daemon import Place, Started, daemon
from fleet.chain.node.codec import Entry
from fleet.devnet.devnet import Devnet
from fleet.events.daemon_events import PersonaAdded
from fleet.events.model import Footer, Header, ToolRequested, ToolResponded
from fleet.events.trajectory import TrajectoryFile
from fleet.service.http_server import listen
from fleet.service.listeners import loopback
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow, NewRun
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.log.mirror import MirrorState
from fleet.triage.outputs.document import LogPosition, WorklistHeader
from fleet.triage.outputs.files import save
from fleet.triage.run import folded, item_row
from fleet.web.site import WebPages

MARKS = {"first_byte_p95_ms": 100.0, "update_p95_ms": 500.0}
AT = "2026-11-21T04:10:00.000Z"
GIVEN_UP_S = 60.0
PLATFORM = "devnet"
CALLS = 60
"""Calls of a run's trajectory."""
SLOW = 50
"""Followers that read nothing."""
PORT = 18_471
EVENTS = 40
"""Events of one measurement, four a second."""


async def fill(state: Path, entries: int, defects: int, runs: int) -> str:
    """The state directory of such a fleet; the fingerprint of one item."""
    log.DEFECTS = defects
    async with await Journal.open(state / "fleet.db") as journal:
        at = 0
        for batch in log.batches(0, entries):
            await journal.mirror(0, at, [Entry(sender, when, text) for sender, when, text, _ in batch])
            at += len(batch)
        fold = await folded(journal, frozenset({log.OURS}), MirrorState(0, entries, 0, 0), None)
        ranked = fold.decide(log.known()).items
        ours = [one for one in ranked if one.trusted]
        items = [*ours, *(one for one in ranked if not one.trusted)][:defects]
        header = WorklistHeader(platform=PLATFORM, as_of=LogPosition(0, entries, AT))
        save(state, items, header)
        await journal.put_items(PLATFORM, [item_row(one) for one in ours])
        await _runs(state, journal, ours, runs)
    print(f"{entries} entries, {len(items)} items, {runs} runs", file=sys.stderr)
    return items[0].fingerprint


async def _runs(state: Path, journal: Journal, items: Sequence[WorklistItem], runs: int) -> None:
    budget = {"calls": 200}
    for number in range(runs):
        run = f"run{number:05}"
        row = NewRun(
            run_id=run,
            persona=f"qa-{number % 6}",
            key=run,
            platform=PLATFORM,
            trigger="every 1h",
            rung="",
            budget=budget,
        )
        await journal.trigger(row)
        await journal.claim(run, pid=1, pid_start=1)
        for item in items[number::runs]:
            await journal.add_finding(
                FindingRow(
                    run_id=run,
                    fingerprint=item.fingerprint,
                    title=item.title,
                    severity=item.severity,
                    surface=item.surface,
                    repro=item.repro,
                    persona=row.persona,
                    state="posted",
                    index=item.entry,
                    at=AT,
                )
            )
        folder = state / "runs" / run
        folder.mkdir(parents=True)
        sink = TrajectoryFile(
            folder / "trajectory.jsonl",
        )
        head: dict[str, Any] = {"rung": "observe", "jail": "bwrap", "budget": {}, "trigger": "every 1h"}
        told = {"persona_sha256": "0", "driver": "playbook", "platform": PLATFORM, "chain_id": 1}
        sink.write(Header(run=run, at=AT, persona=row.persona, **told, **head))
        for call in range(1, CALLS + 1):
            sink.write(
                ToolRequested(
                    run=run, at=AT, call=call, tool="qa_fetch", args={"url": f"http://a.test/{call}"}
                )
            )
            sink.write(
                ToolResponded(
                    run=run,
                    at=AT,
                    call=call,
                    tool="qa_fetch",
                    is_error=False,
                    result={"status": 200},
                    seconds=0.1,
                )
            )
        sink.write(Footer(run=run, at=AT, outcome="done", calls=CALLS))
        sink.close()
        await journal.spend(run, "calls", CALLS, 10**9)
        await journal.finish(run, "done")


async def serve(state: Path) -> None:
    """Serve the pages, and publish an event for each line of standard input; say the port first."""
    os.environ["STATE_DIRECTORY"] = os.environ["CONFIGURATION_DIRECTORY"] = str(state)
    pages, line = WebPages(state), loopback(0)

    async def facts() -> Mapping[str, Any]:
        return {"loaded": [{"name": f"qa-{number}"} for number in range(6)], "next": {}, "refused": {}}

    async def events() -> None:
        async for _ in anyio.wrap_file(sys.stdin):
            pages.daemon(PersonaAdded(at=AT, persona=f"qa-{time.monotonic_ns()}", sha256="0"))

    line.listen()
    print(line.getsockname()[1], flush=True)
    async with aclosing(pages), anyio.create_task_group() as tasks:
        tasks.start_soon(events)
        await listen(Starlette(routes=pages.routes(facts, {})), [line])


class Server:
    """The serving process."""

    def __init__(self, state: Path) -> None:
        command = [sys.executable, "-m", "bench.pages", "--serve", str(state)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.events = self.process.stdin
        self.port = int(self.process.stdout.readline())

    @property
    def memory_mb(self) -> float:
        return Started(self.process, 0).rss_mb

    def publish(self) -> None:
        self.events.write(b"\n")
        self.events.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


async def ask(port: int, path: str) -> tuple[float, int]:
    """Milliseconds from the request to the first byte of its answer, and its size. One that had to make room
    for others of this address (service/connections.py) comes again, as a browser's does; its time goes on."""
    head = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n"
    began, text = time.perf_counter(), b""
    while not text and time.perf_counter() - began < GIVEN_UP_S:
        with suppress(ConnectionError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head.encode())
            text = await reader.read(1)
            ms = (time.perf_counter() - began) * 1e3
            text += await reader.read()
            writer.close()
    if not text.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"{path}: {text[:200]!r}")
    return ms, len(text)


class Reading:
    """One follower: what it read, and when. It connects again, as a browser does."""

    def __init__(self, port: int, delays: list[float]) -> None:
        self._port, self._delays = port, delays
        self.here = asyncio.Event()
        self.refused = 0

    async def follow(self) -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                try:
                    writer.write(f"GET /changes HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\n\r\n".encode())
                    while line := await reader.readline():
                        await self._read(line)
                finally:
                    writer.close()
            await asyncio.sleep(1)

    async def _read(self, line: bytes) -> None:
        if line.startswith(b"HTTP/1.1"):
            self.refused += b" 200" not in line
        elif line.startswith(b"retry:"):
            self.here.set()
        elif line.startswith(b"data: "):
            now = time.monotonic_ns()
            told = json.loads(line[6:])["lines"]
            self._delays.extend((now - int(one["words"].split()[1][3:])) / 1e6 for one in told)


async def deaf(port: int) -> None:
    """A follower that reads nothing."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(f"GET /changes HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
    try:
        await asyncio.sleep(3_600)
    finally:
        writer.transport.abort()


@asynccontextmanager
async def following(port: int, readers: int, slow: int) -> AsyncIterator[tuple[list[float], list[Reading]]]:
    """So many followers, once all are there; the delays that they measure."""
    delays: list[float] = []
    crowd = [Reading(port, delays) for _ in range(readers)]
    tasks = [asyncio.create_task(one.follow()) for one in crowd]
    tasks += [asyncio.create_task(deaf(port)) for _ in range(slow)]
    try:
        async with asyncio.timeout(120):
            for one in crowd:
                await one.here.wait()
        yield delays, crowd
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def figures(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    at = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    found = {name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] for name, share in at.items()}
    return {name: round(value, 1) for name, value in (found | {"most": ordered[-1]}).items()}


def cpu_ms(pid: int) -> float:
    """Processor time of a process so far, of all its threads, in milliseconds."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) / 1e6


async def rooms(port: int, pid: int, item: str, rounds: int) -> None:
    """Print the first byte of each room, and the processor time of the server `pid`, as JSON."""
    places = (
        "/",
        "/worklist",
        "/worklist?q=timeout&state=all&group=kind",
        f"/items/{item}",
        "/runs",
        "/runs/run00007",
        "/personas",
        "/platform",
        "/log",
    )
    took: dict[str, list[float]] = {path: [] for path in places}
    spent: dict[str, list[float]] = {path: [] for path in places}
    sizes: dict[str, int] = {}
    for number in range(rounds + 1):
        for path in places:
            before = cpu_ms(pid)
            ms, sizes[path] = await ask(port, path)
            if number:  # the first round reads the list
                took[path].append(ms)
                spent[path].append(cpu_ms(pid) - before)
    told = {
        path: {**figures(values), "cpu": round(statistics.median(spent[path]), 1), "bytes": sizes[path]}
        for path, values in took.items()
    }
    print(json.dumps(told))


async def asked(server: Server, item: str, rounds: int) -> dict[str, Any]:
    """`rooms` in a process of its own: it waits for no follower of ours."""
    words = ["--ask", str(server.port), str(server.process.pid), item, "--rounds", str(rounds)]
    made = await anyio.run_process([sys.executable, "-m", "bench.pages", *words], stderr=None)
    found: dict[str, Any] = json.loads(made.stdout)
    return found


async def updates(server: Server, delays: list[float], events: int) -> dict[str, float]:
    delays.clear()
    for _ in range(events):
        server.publish()
        await asyncio.sleep(0.25)
    await asyncio.sleep(1)
    return {**figures(delays), "read": len(delays)}


async def measure(state: Path, item: str, options: argparse.Namespace) -> dict[str, Any]:
    server = Server(state)
    try:
        found: dict[str, Any] = {"memory_mb": {"before a page was read": round(server.memory_mb, 1)}}
        found["first_byte_ms"] = await asked(server, item, options.rounds)
        found["memory_mb"]["every room read"] = round(server.memory_mb, 1)
        async with following(server.port, 1, 0) as (delays, _):
            found["update_ms"] = {"one follower": await updates(server, delays, EVENTS)}
        for slow in (0, SLOW):
            async with following(server.port, options.followers - slow, slow) as (delays, crowd):
                name = f"{options.followers} followers" + (f", {slow} of them read nothing" if slow else "")
                found["memory_mb"][name] = round(server.memory_mb, 1)
                found["update_ms"][name] = await updates(server, delays, EVENTS)
                told = asyncio.create_task(asked(server, item, options.rounds))
                while not told.done():
                    server.publish()
                    await asyncio.sleep(0.25)
                found[f"first_byte_ms, {name}"] = await told
                found["update_ms"][name]["refused"] = sum(one.refused for one in crowd)
        return found
    finally:
        server.end()


async def resident() -> dict[str, float]:
    """`fleet up` at rest on a devnet, without and with the pages, each asked for once; megabytes."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with Devnet(folder / "devnet", keys=folder / "keys") as devnet:
            place = Place.make(folder, devnet)
            for port in (0, PORT):
                words = ["--port", str(port)] if port else []
                started = await anyio.to_thread.run_sync(partial(daemon, place, words=words))
                await asyncio.sleep(5)
                for path in ("/", "/worklist", "/runs", "/personas", "/platform", "/log") if port else ():
                    await ask(port, path)
                found["with the pages" if port else "without"] = round(started.rss_mb, 1)
                await anyio.to_thread.run_sync(started.end)
    return found


async def run(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        state = Path(name)
        item = await fill(state, options.entries, options.defects, options.runs)
        return await measure(state, item, options) | {"fleet_up_mb": await resident()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in {
        "entries": 1_000_000,
        "defects": 10_000,
        "runs": 100,
        "followers": 1_000,
        "rounds": 30,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--ask", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 16_384)), hard))
    if options.serve:
        anyio.run(serve, options.serve)
        return 0
    if options.ask:
        port, pid, item = options.ask
        anyio.run(rooms, int(port), int(pid), item, options.rounds)
        return 0
    found = anyio.run(run, options)
    rooms_ = [
        one["p95"] for name, told in found.items() if name.startswith("first_byte") for one in told.values()
    ]
    worst = {
        "first_byte_p95_ms": max(rooms_),
        "update_p95_ms": max(one["p95"] for one in found["update_ms"].values()),
    }
    found |= {"worst": worst, "marks": MARKS, "load": os.getloadavg()}
    print(json.dumps(found, indent=2))
    return 0 if all(worst[name] <= mark for name, mark in MARKS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
