"""Mark: one warm `qa_compile` in its jail against the bare compiler process (at most 2x).

    python -m bench.compile [--rounds 15] [--json FILE]

The peer is the reference compiler started the way the platform starts it, outside any jail. Ours is a whole
tool call: a jail that waits with its imports done, the same compiler process in it, the module checked by a
real engine, one typed result. Both take turns in one run; only ratios count. Exit status 1 above the mark.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Awaitable, Callable
from compileall import compile_dir
from pathlib import Path

from fleet.files import ROOT
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import Image
from fleet.runs.call.guest_protocol import answer, request_line
from sandbox.programs.program import Program
from sandbox.spec import Context
from sandbox.tools import TOOLS

MARK = 2.0
COMPILER = ROOT / "fleet" / "devnet" / "compiler"
FLAGS = ("-S", "-B", "-P", "-s")
ENVIRONMENT = {"PATH": os.defpath, "PYTHONPATH": sysconfig.get_path("purelib")}
SOURCE = """\
const STEP: i32 = 3;
// 250 bytes, as the peers' programs are: a loop, a branch, a call and a match
fn twice(n: i32) -> i32 { n * 2 }
fn frame(t: i32) -> i32 {
    let mut i = 0;
    while i < t { i += STEP; }
    match i { 0 => -1, _ => twice(i) }
}
"""
COMMAND = ("{python}", "-I", "-S", "-B", "/opt/tc/rustlite")
CONTEXT = Context(
    run="bench", prefix="qa-bench-", program=Program(command=COMMAND, loader=(*COMMAND, "--entry"))
)
SPEC = TOOLS["qa_compile"]

Contestant = Callable[[], Awaitable[float]]


def process(*args: str, source: str = SOURCE, status: int = 0) -> Contestant:
    """Milliseconds of one bare process."""
    argv = [sys.executable, *FLAGS, *args]

    def spend() -> float:
        started = time.perf_counter()
        done = subprocess.run(argv, input=source.encode(), capture_output=True, env=ENVIRONMENT, check=False)
        assert done.returncode == status, done.stderr
        return (time.perf_counter() - started) * 1e3

    return lambda: asyncio.to_thread(spend)


def jailed(jail: BwrapJail) -> Contestant:
    """Milliseconds of one warm tool call; the pool refills before the clock starts."""

    async def run() -> float:
        await jail.warm()
        started = time.perf_counter()
        outcome = await jail.call(request_line(SPEC, {"source": SOURCE}, CONTEXT), deadline_s=30)
        elapsed = (time.perf_counter() - started) * 1e3
        result = answer(SPEC, outcome)
        assert result["valid"], result
        assert result["has_entry"], result
        return elapsed

    return run


async def measure(rounds: int) -> dict[str, float]:
    """Medians in milliseconds and their ratio."""
    compile_dir(COMPILER, quiet=2)
    compiler = str(COMPILER / "rustlite")
    with tempfile.TemporaryDirectory() as spool:
        jail = BwrapJail(Image(mounts=((COMPILER, "tc"),)), pool=1, spool=Path(spool))
        contestants: dict[str, Contestant] = {
            "interpreter": process("-c", "pass"),
            "loader": process(compiler, "--entry"),
            "refused": process(compiler, source="fn f() -> i32 { y }", status=1),
            "bare": process(compiler),
            "jailed": jailed(jail),
        }
        taken: dict[str, list[float]] = {name: [] for name in contestants}
        try:
            for _ in range(rounds):
                for name, run in contestants.items():
                    taken[name].append(await run())
        finally:
            await jail.aclose()
    medians = {f"{name}_ms": round(statistics.median(values), 1) for name, values in taken.items()}
    return {**medians, "ratio": round(medians["jailed_ms"] / medians["bare_ms"], 2)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = asyncio.run(measure(options.rounds))
    text = json.dumps({"compile": found, "mark": MARK}, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", "utf-8")
    return 0 if found["ratio"] <= MARK else 1


if __name__ == "__main__":
    sys.exit(main())
