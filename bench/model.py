"""Marks: a turn of the model driver within 1.5x of a bare agent's; a gated call within 10x of its writes.

    python -m bench.model [--rounds 5] [--turns 20]

Turns: the same scripted endpoint, in a process of its own, answers a bare pydantic-ai agent (streamed, one
tool that does nothing) and the driver at a desk in memory; they take turns, only the ratio counts. Calls:
the gate's decision with its durable count and the two records of the call, against the same made durable by
hand: a count in SQLite and two lines with fsync. On a disk that syncs at once the decision itself is the
larger part. Exit status 1 above a mark.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from fleet.clock import SystemClock
from fleet.config import FleetConfig, ModelSection, load_platform, parse
from fleet.devnet.model import Answer, ModelPrompt, Say, ScriptedCall, serve_model
from fleet.events.model import Header, ToolRequested, ToolResponded
from fleet.events.stream import Stream
from fleet.events.trajectory import TrajectoryFile
from fleet.gate.budget import Budget, Ledger
from fleet.gate.gate import Gate
from fleet.gate.model import Action
from fleet.gate.scope import Scope
from fleet.personas.model import BudgetSection
from fleet.store.journal import Journal
from fleet.store.rows import NewRun
from sandbox.chain.contract import VIEWS
from sandbox.spec import Effect
from sandbox.tools import TOOLS
from tests.doubles.drivers import MemoryDesk

TURN_MARK, CALL_MARK = 1.5, 10.0
URL = "https://example.org/"
LINE = b"x" * 300 + b"\n"


def script(turns: int) -> Any:
    """One call a turn until the conversation has N answers, then a text."""

    def answer(asked: ModelPrompt) -> Answer:
        if len(asked.answers()) < turns:
            return Say(text="I look.", calls=[ScriptedCall("qa_fetch", {"url": URL}, id=f"c{asked.number}")])
        return Say(text="done")

    return answer


async def serve(turns: int) -> None:
    async with serve_model(script(turns)) as model:
        print(model.url, flush=True)
        await anyio.sleep_forever()


async def bare(section: ModelSection) -> None:
    """The peer: pydantic-ai's own agent, streaming, without a desk."""
    from pydantic_ai import Agent, UsageLimits

    from fleet.drivers.model.endpoint import open_endpoint

    async def events(_: Any, stream: AsyncIterable[Any]) -> None:
        async for _event in stream:
            pass

    async with open_endpoint(section, "", 60.0) as model:
        agent = Agent(model)

        @agent.tool_plain
        async def qa_fetch(url: str) -> dict[str, Any]:
            """Look at a page."""
            return {"ok": True}

        await agent.run("go", event_stream_handler=events, usage_limits=UsageLimits(request_limit=None))


async def ours(section: ModelSection) -> None:
    """The driver at a desk in memory."""
    from fleet.drivers.model.driver import ModelDriver

    desk = MemoryDesk(probes=(), tokens=10**9)
    await ModelDriver(section, "")(desk)


@contextmanager
def endpoint(count: int) -> Iterator[ModelSection]:
    """The scripted endpoint in a process of its own."""
    argv = [sys.executable, "-m", "bench.model", "--serve", str(count)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            text = f'[model]\nname = "openai:scripted"\nbase_url = "{server.stdout.readline().strip()}"\n'
            section = parse(FleetConfig, text, file="bench").model
            assert section is not None
            yield section
        finally:
            server.kill()


async def turns(section: ModelSection, rounds: int, count: int) -> dict[str, float]:
    """Medians in milliseconds a turn, and the ratio of the driver to the bare agent."""
    taken: dict[str, list[float]] = {"bare": [], "driver": []}
    for number in range(rounds + 1):
        for name, run in (("bare", bare), ("driver", ours)):
            started = time.perf_counter()
            await run(section)
            if number:  # the first imports
                taken[name].append((time.perf_counter() - started) * 1e3 / (count + 1))
    medians = {f"{name}_ms": round(statistics.median(values), 2) for name, values in taken.items()}
    return {**medians, "ratio": round(medians["driver_ms"] / medians["bare_ms"], 2)}


async def calls(rounds: int, count: int) -> dict[str, float]:
    """Medians in milliseconds a call: direct, with the same promises by hand, and gated with its records."""
    taken: dict[str, list[float]] = {"direct": [], "by_hand": [], "gated": []}
    with TemporaryDirectory() as root:
        state = Path(root)
        state.chmod(0o700)
        async with await Journal.open(state / "fleet.db") as journal:
            gate, stream = await _gate(state, journal)
            hand = ByHand(state)
            for _ in range(rounds):
                for name in taken:
                    started = time.perf_counter()
                    for number in range(count):
                        await _one(name, number, gate, stream, hand)
                    taken[name].append((time.perf_counter() - started) * 1e3 / count)
            hand.close()
    medians = {f"{name}_ms": round(statistics.median(values), 4) for name, values in taken.items()}
    return {**medians, "ratio": round(medians["gated_ms"] / medians["by_hand_ms"], 2)}


async def _gate(state: Path, journal: Journal) -> tuple[Gate, Stream]:
    platform, _ = load_platform("example", state)
    budget = Budget.of(BudgetSection(calls=10_000), file="bench")
    limits = {str(unit): limit for unit, limit in budget.limits().items()}
    await journal.trigger(
        NewRun(
            run_id="bench",
            persona="qa-bench",
            key="bench",
            platform="x",
            trigger="manual",
            rung="",
            budget=limits,
        )
    )
    await journal.claim("bench", pid=os.getpid(), pid_start=0)
    gate = Gate(
        state=state,
        run="bench",
        grant=("qa_fetch",),
        tools=TOOLS,
        scope=Scope.of(platform, VIEWS),
        ledger=Ledger(journal, "bench", budget),
        clock=SystemClock(),
        deadline=SystemClock().monotonic() + 600,
    )
    stream = Stream("bench", clock=SystemClock(), sink=TrajectoryFile(state / "trajectory.jsonl"))
    stream.emit(
        Header(
            persona="qa-bench",
            persona_sha256="",
            driver="bench",
            platform="x",
            chain_id=1,
            rung="observe",
            jail="none",
            budget={},
            trigger="manual",
        )
    )
    return gate, stream


async def _one(name: str, number: int, gate: Gate, stream: Stream, hand: ByHand) -> None:
    args: Mapping[str, Any] = {"url": URL}
    if name == "gated":
        action = Action(run="bench", persona="qa-bench", tool="qa_fetch", effect=Effect.LOOK, args=args)
        verdict = await gate.decide(action)
        assert verdict.permit, verdict
        stream.emit(ToolRequested(call=number, tool="qa_fetch", args=dict(args)))
    result = await _nothing(args)
    if name == "gated":
        stream.emit(ToolResponded(call=number, tool="qa_fetch", is_error=False, result=result, seconds=0.0))
    if name == "by_hand":
        hand.write()


class ByHand:
    """The obvious way to the same on disk: a count in SQLite, and two log lines."""

    def __init__(self, state: Path) -> None:
        self._file = os.open(state / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._db = sqlite3.connect(state / "raw.db", isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute("CREATE TABLE spent (unit TEXT PRIMARY KEY, spent INTEGER NOT NULL)")

    def write(self) -> None:
        self._db.execute(
            "INSERT INTO spent VALUES ('calls', 1) ON CONFLICT (unit) DO UPDATE SET spent = spent + 1"
        )
        for _ in range(2):
            os.write(self._file, LINE)
            os.fsync(self._file)

    def close(self) -> None:
        self._db.close()
        os.close(self._file)


async def _nothing(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"ok": True}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve is not None:
        anyio.run(serve, asked.serve)
    with endpoint(asked.turns) as section:
        turn = anyio.run(turns, section, asked.rounds, asked.turns)
    call = anyio.run(calls, asked.rounds, asked.turns)
    marks = {"turn": TURN_MARK, "call": CALL_MARK}
    print(json.dumps({"model": {"turn": turn, "call": call}, "marks": marks}, indent=2))
    return 0 if turn["ratio"] <= TURN_MARK and call["ratio"] <= CALL_MARK else 1


if __name__ == "__main__":
    sys.exit(main())
