"""How long STOP takes on a real daemon at work: until nothing more is asked, and until no jail is left.

`make test` stops it once; `make stop` a hundred times at random moments, and prints a table by kind of call.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import pytest

from fleet.clock import SystemClock
from fleet.gate.stop import resume, stop
from tests.service.conftest import Up

TIMES = int(os.environ.get("STOP_TIMES", "1"))
pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.timeout(120 + 30 * TIMES)]
ACTING_S, GONE_S = 5.0, 60.0
HANGS = "fn frame(t: i32) -> i32 { let mut i = 0; loop { i += 1; if i > t { break; } } i }"
KINDS = {
    "qa_fetch": '{ url = "{site}/llms.txt" }',
    "qa_chain": '{ function = "feedbackCount" }',
    "qa_call": '{ target = "claude", message = "hello" }',
    "qa_compile": f'{{ source = "{HANGS}", timeout_s = 10.0 }}',
    "qa_fuzz": "{ seconds = 30.0 }",
    "qa_publish": '{ name = "{name}", source = "fn frame(t: i32) -> i32 { t + 1 }" }',
}
"""By tool, its arguments; a run of each kind begins again as soon as one has ended."""


def persona(tool: str, args: str) -> str:
    """A persona that asks this one call, and believes to have seen a finding: so it is proven too."""
    create = '{ tool = "qa_create", args = { name = "{name}" } },' if tool == "qa_publish" else ""
    return (
        f'+++\nname = "{tool.replace("_", "-")}"\nsurface = "ux"\ntools = ["qa_create", "{tool}"]\n'
        'triggers = [{ continuous = "1s" }]\nbudget = { calls = 60, writes = 30, wall = "3m" }\n'
        f'[[probe]]\nid = "look"\nseverity = "low"\nsteps = [{create} {{ tool = "{tool}", args = {args} }}]\n'
        f'expect = \'result.ok || result.error != ""\'\nfinding = "never seen: {tool}"\n+++\nA test.\n'
    )


@asynccontextmanager
async def slow_way(url: str, asked: list[float]) -> AsyncIterator[str]:
    """A server in front of another that keeps each connection waiting, and notes what arrives when."""
    host, _, port = url.partition("//")[2].rstrip("/").partition(":")

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, notes: bool) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                if notes:
                    asked.append(time.monotonic())
                    await asyncio.sleep(1.0)
                writer.write(data)
                await writer.drain()
            writer.write_eof()

    serving = set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        up_reader, up_writer = await asyncio.open_connection(host, int(port))
        try:
            await asyncio.gather(pipe(reader, up_writer, notes=True), pipe(up_reader, writer, notes=False))
        finally:
            up_writer.close()
            writer.close()
            serving.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


def in_flight(up: Up, tool: str) -> bool:
    """Whether a call of this tool has been asked for and not answered."""
    for path in (up.state / "runs").glob("*/trajectory.jsonl"):
        events = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
        if events and events[-1]["type"] == "tool.requested" and events[-1]["tool"] == tool:
            return True
    return False


def at_rest(up: Up) -> bool:
    """Whether every run that began has its footer: a stop between two runs meets none, and tells of none."""
    runs = [path.read_text() for path in (up.state / "runs").glob("*/trajectory.jsonl")]
    return all('"footer"' in text for text in runs)


def more(up: Up, kind: str, before: int) -> bool:
    """Whether the daemon has told more events of a kind."""
    return len(up.told(kind)) > before


async def test_stop_ends_all_acting_and_every_jail_in_time(up: Up) -> None:
    chance, asked = random.Random(TIMES), list[float]()
    took: dict[str, list[tuple[float, float]]] = defaultdict(list)
    profile = up.state / "devnet" / "devnet.toml"
    (up.state.parent / "config" / "fleet.toml").write_text("concurrency = 2\n")
    async with slow_way(up.devnet.url, asked) as url:
        profile.write_text(profile.read_text().replace(up.devnet.url, url))
        for tool, args in KINDS.items():
            up.drop(tool.replace("_", "-"), persona(tool, args))
        process = up.start("--grace", "0")
        for number in range(TIMES):
            tool = list(KINDS)[number % len(KINDS)]
            await up.until(partial(in_flight, up, tool), 240)
            await anyio.sleep(chance.uniform(0, 1.0))
            before = len(up.told("flights.ended"))
            stop(up.state, "test", f"stop {number}", SystemClock())
            began = time.monotonic()
            await up.until(lambda: more(up, "flights.ended", before) or at_rest(up), GONE_S)  # noqa: B023
            await up.until(lambda: not list((up.state / "jails").glob("*.jail")), GONE_S)
            gone = time.monotonic() - began
            await anyio.sleep(1.0)
            took[tool].append((max(0.0, max(asked, default=0.0) - began), gone))
            assert resume(up.state)
            await up.until(partial(more, up, "queue.resumed", number), 60)
        assert await up.end(process) == 0
    print(f"\n{'kind':12} stops  acting: median  worst   gone: median  worst   (s)")
    for tool, pairs in took.items():
        acting, gone_ = zip(*pairs, strict=True)
        print(
            f"{tool:12} {len(pairs):5} {statistics.median(acting):15.2f} {max(acting):6.2f}"
            f" {statistics.median(gone_):14.2f} {max(gone_):6.2f}"
        )
    every = [pair for pairs in took.values() for pair in pairs]
    assert max(acting for acting, _ in every) <= ACTING_S
    assert max(gone for _, gone in every) <= GONE_S
