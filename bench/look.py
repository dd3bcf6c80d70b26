"""Where the time of a look goes: wall and processor time by part, on three small targets.

    make bench-look [ARGS="--minutes 2 --only marina --json FILE"]

`fleet look --exercise` of each target, by the command itself, in a process of its own. There a second thread
looks at the main one 200 times a second: the innermost of our modules on its stack says which part the time
since the last look belongs to, its processor clock how much of it was worked; the rest of the wall time it
waited. Jails, with what runs in them, are counted from outside, by the processor times of all processes below
(proc(5)). Nothing is held against a mark: a change is held against the table of the run before it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import anyio

from bench.explore import cpu_s
from fleet.events.model import ToolResponded
from fleet.events.trajectory import read
from fleet.files import ROOT
from tests.platforms.bare import PAGES
from tests.platforms.served import Served, free_port

PARTS = {
    "fleet/jail": "jails: start and end",
    "fleet/broker": "relay",
    "fleet/events": "record",
    "fleet/store": "record",
    "fleet/oracles": "oracles",
    "fleet/findings": "redaction, identity",
    "fleet/drivers": "explorers",
    "fleet/runs/proof": "proofs",
    "fleet/runs/call": "calls",
    "fleet/runs": "desk",
    "fleet/gate": "gate",
    "fleet/chain": "log",
    "fleet/triage": "triage",
    "fleet/app": "set-up",
    "fleet/cli": "command, event loop",
    "sandbox": "texts",
}
"""By the longest prefix that a module's file has."""
EVERY_S = 0.005
Words = Callable[[int], tuple[str, ...]]
TARGETS: dict[str, Words] = {
    "marina": lambda port: (sys.executable, "-m", "tests.practice.marina", str(port), "all"),
    "clinic": lambda port: (sys.executable, "-m", "tests.practice.clinic", str(port), "all"),
    "pages": lambda port: (
        *(sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"),
        *("--directory", str(PAGES)),
    ),
}


def part(frame: FrameType | None) -> str:
    """Which part a stack is in: its innermost module of ours, or an import."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib"):
            return "imports"
        if file.startswith(f"{ROOT}/"):
            inside = file.removeprefix(f"{ROOT}/")
            found = [prefix for prefix in PARTS if inside.startswith(prefix)]
            if found:
                return PARTS[max(found, key=len)]
        frame = frame.f_back
    return "other"


@contextmanager
def sampled() -> Iterator[dict[str, float]]:
    """Processor seconds of this thread by part, while it is inside; `waits`: seconds that it did not work."""
    main, over = threading.get_ident(), threading.Event()
    spent: dict[str, float] = defaultdict(float)
    clock = time.pthread_getcpuclockid(main)

    def watch() -> None:
        wall, used = time.perf_counter(), time.clock_gettime(clock)
        while not over.wait(EVERY_S):
            now, worked = time.perf_counter(), time.clock_gettime(clock)
            spent[part(sys._current_frames().get(main))] += worked - used
            spent["waits"] += max(0.0, now - wall - (worked - used))
            wall, used = now, worked

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield spent
    finally:
        over.set()
        thread.join()


def looks(url: str, minutes: float, to: Path) -> None:
    """The command itself, sampled; what it took goes to a file."""
    from fleet.cli import main

    words = ["look", url, "--exercise", "--minutes", str(minutes), "--json"]
    sys.argv = ["fleet", *words]
    began, before = time.perf_counter(), cpu_s()
    with sampled() as spent:
        try:
            main()
        except SystemExit as end:
            code = end.code
    own = sum(seconds for name, seconds in spent.items() if name != "waits")
    total = cpu_s() - before
    wall = time.perf_counter() - began
    to.write_text(json.dumps({"code": code, "wall": wall, "cpu": total, "jails": total - own, "by": spent}))


async def measured(name: str, minutes: float, folder: Path) -> dict[str, object]:
    """One target, one look: seconds by part, and calls."""
    port = free_port()
    async with Served(TARGETS[name](port), port, folder / "site.log"):
        command = [sys.executable, "-m", "bench.look", "--one", f"http://127.0.0.1:{port}"]
        command += ["--minutes", str(minutes), "--json", str(folder / "took.json")]
        env = {**os.environ, "STATE_DIRECTORY": str(folder / "state"), "HOME": str(folder)}
        done = await anyio.run_process(command, env=env, check=False, stderr=None)
    took = json.loads((folder / "took.json").read_text())
    calls = 0
    for path in folder.glob("**/trajectory.jsonl"):
        calls += sum(isinstance(record, ToolResponded) for record in read(path))
    (folder / "said.json").write_bytes(done.stdout)
    ordered = sorted(took["by"].items(), key=lambda one: -one[1])
    by = {one: round(seconds, 2) for one, seconds in ordered if seconds >= 0.01}
    return {
        "calls": calls,
        "wall_s": round(took["wall"], 1),
        "calls_per_s": round(calls / took["wall"], 1),
        "cpu_s": round(took["cpu"], 1),
        "cpu_ms_per_call": round(took["cpu"] / max(calls, 1) * 1e3, 1),
        "below_cpu_s": round(took["jails"], 1),
        "by_part_s": by,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--only", default=",".join(TARGETS), help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        looks(options.one, options.minutes, options.json)
        return 0
    found = {}
    for name in options.only.split(","):
        with tempfile.TemporaryDirectory(prefix="bench-look-") as folder:
            found[name] = anyio.run(measured, name, options.minutes, Path(folder))
        print(f"{name}: {json.dumps(found[name])}", file=sys.stderr)
    said = json.dumps(found, indent=2)
    print(said)
    if options.json:
        options.json.write_text(said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
