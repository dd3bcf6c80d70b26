"""Mark: events per second through stream, trajectory and spans, against raw writes of the same bytes.

    python -m bench.events [--rounds 5] [--calls 60] [--json FILE]

One run of a model-driven kind (turns, pieces of a message, calls and their answers) goes through the real
stream into the real file, with a tracer that folds its spans. Its peer writes the very same bytes, a line at
a time, by os.write and fsync. With fsync the disk is nearly all of the cost, so the ratio says what we add to
it. Without fsync the peer that counts is json.dumps and os.write of the same records: ours also delivers
the pieces of messages, checks, puts together, masks and folds. All take turns in one run; only ratios
count. Exit status 1 below a floor.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fleet.clock import SystemClock
from fleet.events.model import (
    Event,
    Footer,
    Header,
    MessageDelta,
    MessageDone,
    MessageStarted,
    ToolRequested,
    ToolResponded,
    TurnEnded,
    TurnStarted,
    TurnUsage,
)
from fleet.events.spans import Observer
from fleet.events.stream import Stream
from fleet.events.trajectory import TrajectoryFile

FLOOR_SYNC = 0.25
"""Records per second with fsync, as a part of what the raw writes with fsync reach."""
FLOOR = 0.03
"""Records per second without fsync, as a part of what json.dumps and os.write of the same records reach."""
PIECES = 8


def script(calls: int) -> list[Event]:
    """The events of one run."""
    events: list[Event] = [
        Header(
            persona="qa-bench",
            persona_sha256="0" * 64,
            driver="model",
            platform="devnet",
            chain_id=31337,
            rung="observe",
            jail="bwrap/standard",
            budget={"calls": float(calls)},
            trigger="manual",
        )
    ]
    for call in range(calls):
        events += [TurnStarted(index=call), MessageStarted(index=0, kind="text")]
        events += [MessageDelta(index=0, text="I look at the page. ") for _ in range(PIECES)]
        result = {"ok": True, "status": 200, "latency_ms": 12.5, "text": "word " * 100}
        events += [
            MessageDone(index=0),
            ToolRequested(call=call, call_id=f"c{call}", tool="qa_fetch", args={"url": "http://127.0.0.1/"}),
            ToolResponded(
                call=call, call_id=f"c{call}", tool="qa_fetch", is_error=False, result=result, seconds=0.1
            ),
            TurnEnded(index=call, executed=(call,), usage=TurnUsage(input_tokens=900, output_tokens=40)),
        ]
    return [*events, Footer(outcome="done", calls=calls)]


def ours(events: list[Event], path: Path, *, sync: bool) -> float:
    """Seconds for the whole run."""
    sink = TrajectoryFile(path, sync=sync)
    seen: list[object] = []
    stream = Stream("bench", clock=SystemClock(), sink=sink, readers=(Observer(seen.append).observe,))
    started = time.perf_counter()
    for event in events:
        stream.emit(event)
    elapsed = time.perf_counter() - started
    sink.close()
    assert seen, "no spans"
    return elapsed


def raw(lines: list[bytes], path: Path, *, sync: bool) -> float:
    """Seconds for the same bytes, with nothing of ours."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    started = time.perf_counter()
    for line in lines:
        os.write(fd, line)
        if sync:
            os.fsync(fd)
    elapsed = time.perf_counter() - started
    os.close(fd)
    return elapsed


def plain(records: list[object], path: Path) -> float:
    """Seconds for the same records by the least that could write them."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    started = time.perf_counter()
    for record in records:
        os.write(fd, json.dumps(record).encode() + b"\n")
    elapsed = time.perf_counter() - started
    os.close(fd)
    return elapsed


def measure(rounds: int, calls: int) -> dict[str, float]:
    """Medians per second, and the ratios that are judged."""
    events = script(calls)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        ours(events, place / "first", sync=False)
        lines = (place / "first").read_bytes().splitlines(keepends=True)
        records = [json.loads(line) for line in lines]
        contestants: dict[str, Callable[[Path], float]] = {
            "ours_sync": lambda path: ours(events, path, sync=True),
            "raw_sync": lambda path: raw(lines, path, sync=True),
            "ours": lambda path: ours(events, path, sync=False),
            "raw": lambda path: raw(lines, path, sync=False),
            "plain": lambda path: plain(records, path),
        }
        taken: dict[str, list[float]] = {name: [] for name in contestants}
        for count in range(rounds):
            for name, run in contestants.items():
                taken[name].append(run(place / f"{name}-{count}"))
    median = {name: statistics.median(values) for name, values in taken.items()}
    return {
        "events": len(events),
        "records": len(lines),
        "bytes": sum(map(len, lines)),
        "records_per_s_sync": round(len(lines) / median["ours_sync"]),
        "raw_per_s_sync": round(len(lines) / median["raw_sync"]),
        "ratio_sync": round(median["raw_sync"] / median["ours_sync"], 3),
        "events_per_s": round(len(events) / median["ours"]),
        "records_per_s": round(len(lines) / median["ours"]),
        "raw_per_s": round(len(lines) / median["raw"]),
        "plain_per_s": round(len(lines) / median["plain"]),
        "ratio": round(median["plain"] / median["ours"], 3),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = measure(options.rounds, options.calls)
    text = json.dumps({"events": found, "floor_sync": FLOOR_SYNC, "floor": FLOOR}, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", "utf-8")
    return 0 if found["ratio_sync"] >= FLOOR_SYNC and found["ratio"] >= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
