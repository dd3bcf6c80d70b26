"""Marks B4 and B5: what ours and its peers find in the same time on one core, in turns.

    python -m bench.fuzzing.peers [--marks B4,B5] [--seeds 1-3] [--seconds 60]

B4: a compiler with generated defects for each seed; byte mutation and Hypothesis's from_lark with a process
per input, and AFL++ without instrumentation when it is installed. B5: Vyper of `.targets/vyper` (`make
targets`); unique places of internal errors, against atheris (`make bench-fuzzing-peers`) and its cold command
line. The same seeds, the same judge. Only ratios count; exit status 1 below a mark's floor.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from bench.findings.__main__ import numbers
from bench.fuzzing.__main__ import ORDINARY
from bench.fuzzing.generate import generated
from bench.fuzzing.peers import rustlite, vyper

FLOORS = {"B4": 2.0, "B5": 1.0}
"""Ours against the best peer: unique classes, and unique places (marks 2.5 and 1.5)."""
ENTRIES_OF_SEEDS = 61


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--marks", default="B4,B5")
    parser.add_argument("--seeds", type=numbers, default=[1, 2, 3])
    parser.add_argument("--seconds", type=float, default=60.0)
    return parser.parse_args(argv)


def main(options: argparse.Namespace) -> int:
    counts: dict[str, dict[str, list[int]]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-power-") as name:
        for seed in options.seeds:
            for mark in options.marks.split(","):
                folder = Path(name) / f"{mark}-{seed}"
                found = (
                    b4(seed, folder, options.seconds) if mark == "B4" else b5(seed, folder, options.seconds)
                )
                for who, number in found.items():
                    counts.setdefault(mark, {}).setdefault(who, []).append(number)
                    print(f"{mark} seed {seed} {who}: {number}", file=sys.stderr, flush=True)
    return publish(counts)


def publish(counts: dict[str, dict[str, list[int]]]) -> int:
    """Print the table; 1 when ours is below a floor."""
    low = False
    print("| mark | who | found | median |\n|---|---|---|---|")
    for mark, rows in counts.items():
        for who, found in rows.items():
            print(f"| {mark} | {who} | {', '.join(map(str, found))} | {statistics.median(found):g} |")
        best = max((statistics.median(found) for who, found in rows.items() if who != "ours"), default=0.0)
        ratio = statistics.median(rows["ours"]) / best if best else float("inf")
        low |= ratio < FLOORS[mark]
        print(f"\n{mark}: ours is {ratio:.2f} of the best peer; floor {FLOORS[mark]:g}\n")
    return 1 if low else 0


def b4(seed: int, folder: Path, seconds: float) -> dict[str, int]:
    made = generated(seed, 12, folder / "tc", ORDINARY)
    seeds = folder / "seeds"
    seeds.mkdir()
    for index, source in enumerate(ORDINARY[:ENTRIES_OF_SEEDS]):
        (seeds / f"{index:03}.rl").write_bytes(source)
    return {
        who: len(rustlite.classes_found(who, made, seeds, folder / who.split()[0], seconds))
        for who in rustlite.contestants()
    }


def b5(seed: int, folder: Path, seconds: float) -> dict[str, int]:
    folder.mkdir(parents=True)
    return {who: len(vyper.places_found(who, folder / who, seed, seconds)) for who in vyper.contestants()}


if __name__ == "__main__":
    sys.exit(main(arguments(sys.argv[1:])))
