"""Mark: `fleet --help` within 4x of a bare interpreter that imports asyncio.

    python -m bench.startup [--rounds 15]

Whole processes that take turns in one run; only the ratio counts. The other commands read a state directory
with a list of 32 items and a dial. `cpu` is their processor time. Exit status 1 above the mark.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fleet.clock import SystemClock
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.triage.outputs.files import save
from tests.cli.test_worklist_command import HEADER, ITEMS

MARK = 4.0
CONTESTANTS = {
    "bare": [sys.executable, "-c", "import asyncio"],
    "help": [sys.executable, "-m", "fleet.cli", "--help"],
    "dial": [sys.executable, "-m", "fleet.cli", "dial", "--json"],
    "status": [sys.executable, "-m", "fleet.cli", "status", "--json"],
    "worklist": [sys.executable, "-m", "fleet.cli", "items", "--offline", "--json"],
}


def milliseconds(argv: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Of the wall and of the processor."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=env)
    took, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took * 1e3, used * 1e3


def measure(rounds: int) -> dict[str, float]:
    """Medians in milliseconds and the ratio of the help to the bare interpreter."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in CONTESTANTS}
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder), ITEMS, HEADER)
        write_dial(Path(folder), Rung.OBSERVE, "a measurement", "bench", SystemClock())
        env = {"PATH": os.environ["PATH"], "STATE_DIRECTORY": folder, "CONFIGURATION_DIRECTORY": folder}
        for _ in range(rounds):
            for name, argv in CONTESTANTS.items():
                taken[name].append(milliseconds(argv, env))
    ms = {name: statistics.median(wall for wall, _ in all_) for name, all_ in taken.items()}
    cpu = {name: statistics.median(used for _, used in all_) for name, all_ in taken.items()}
    found = {f"{name}_ms": value for name, value in ms.items()}
    found |= {f"{name}_cpu_ms": value for name, value in cpu.items()}
    return {name: round(value, 1) for name, value in found.items()} | {
        "ratio": round(ms["help"] / ms["bare"], 2)
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    found = measure(parser.parse_args().rounds)
    print(json.dumps({"startup": found, "mark": MARK}, indent=2))
    return 0 if found["ratio"] <= MARK else 1


if __name__ == "__main__":
    sys.exit(main())
