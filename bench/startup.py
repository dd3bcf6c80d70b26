"""Mark: `fleet --help` within 4x of a bare interpreter that imports asyncio.

    python -m bench.startup [--rounds 15]

Both are whole processes and take turns in one run; only the ratio counts. Exit status 1 above the mark.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

MARK = 4.0
CONTESTANTS = {
    "bare": [sys.executable, "-c", "import asyncio"],
    "help": [sys.executable, "-m", "fleet.cli", "--help"],
    "dial": [sys.executable, "-m", "fleet.cli", "dial", "--json"],
    "worklist": [sys.executable, "-m", "fleet.cli", "items", "--offline", "--json"],
}


def milliseconds(argv: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) * 1e3


def measure(rounds: int) -> dict[str, float]:
    """Medians in milliseconds and the ratio of the help to the bare interpreter."""
    taken: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for _ in range(rounds):
        for name, argv in CONTESTANTS.items():
            taken[name].append(milliseconds(argv))
    medians = {f"{name}_ms": round(statistics.median(values), 1) for name, values in taken.items()}
    return {**medians, "ratio": round(medians["help_ms"] / medians["bare_ms"], 2)}


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
