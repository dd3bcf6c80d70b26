"""Marks B1 to B3: executions of a compiler in one second, beside the ways that are usual.

    python -m bench.fuzz_rate [--rounds 5] [--seconds 1] [--vyper FOLDER] [--solc FOLDER] [--json FILE]

B1: Debian's `wat2wasm` (or any `--native` program that reads WAT on stdin) on a module of 250 bytes. The
peer is a bubblewrap and `subprocess.run` for each; the limit is the same fork server driven from C, without a
jail. B2: two jails at once against one. B3: Vyper's command line started for each input, with its bytecode
compiled, against ours; the limit is the same function called in one process. FOLDER is where `pip install
--target` put vyper, and where `npm install` put solc; without them their marks are left out, by name.
All take turns in one run; only ratios count. Exit status 1 below a floor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from bench.fuzzing.warm import contests
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.locate import find_bwrap
from fleet.jail.model import Image
from sandbox.programs.program import Program
from sandbox.runners.choice import LIBRARY

HERE = Path(__file__).parent / "fuzzing"
SOURCE = """\
(module
  (func $twice (param i32) (result i32) local.get 0 i32.const 2 i32.mul)
  (func (export "frame") (param $t i32) (result i32) (local $i i32)
    (loop $next
      (local.set $i (i32.add (local.get $i) (i32.const 3)))
      (br_if $next (i32.lt_s (local.get $i) (local.get $t))))
    (call $twice (local.get $i))))
"""
TARGETS = {
    "B1 ours / bwrap for each": (6.0, 4.0),
    "B1 ours / limit (C driver)": (0.85, 0.0),
    "B1 ours / posix_spawn": (1.5, 0.0),
    "B2 two jails / one": (1.8, 1.5),
    "B3 vyper ours / cold": (10.0, 8.0),
    "B3 vyper ours / in process": (0.65, 0.0),
    "B3 solc-js ours / cold": (30.0, 0.0),
}
"""Ratio -> target and floor (0: none)."""

Rate = Callable[[float], float]
"""Executions a second, tried for this many seconds."""


def repeated(once: Callable[[], None]) -> Rate:
    def rate(seconds: float) -> float:
        began, done = time.monotonic(), 0
        while time.monotonic() - began < seconds:
            once()
            done += 1
        return done / (time.monotonic() - began)

    return rate


def by_subprocess(argv: list[str]) -> Rate:
    def once() -> None:
        subprocess.run(argv, input=SOURCE.encode(), capture_output=True, check=True)

    return repeated(once)


def by_posix_spawn(argv: list[str], folder: Path) -> Rate:
    """With files that are used again: what costs least without a fork server."""
    given, output = (
        os.open(folder / "in", os.O_RDWR | os.O_CREAT),
        os.open(folder / "out", os.O_RDWR | os.O_CREAT),
    )
    os.write(given, SOURCE.encode())

    def once() -> None:
        os.lseek(given, 0, os.SEEK_SET)
        os.lseek(output, 0, os.SEEK_SET)
        os.ftruncate(output, 0)
        actions = [(os.POSIX_SPAWN_DUP2, given, 0), (os.POSIX_SPAWN_DUP2, output, 1)]
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
        assert os.waitpid(pid, 0)[1] == 0
        assert os.pread(output, 1 << 16, 0)

    return repeated(once)


def by_c(argv: list[str], folder: Path) -> Rate:
    subprocess.run(["cc", "-O2", "-o", folder / "drive", HERE / "drive.c"], check=True)
    (folder / "source").write_text(SOURCE)

    def rate(seconds: float) -> float:
        words: list[str | Path] = [
            folder / "drive",
            LIBRARY,
            folder / "source",
            str(int(1000 * seconds)),
            *argv,
        ]
        return float(subprocess.run(words, capture_output=True, check=True).stdout)

    return rate


def in_jails(jail: BwrapJail, argv: list[str], many: int) -> Rate:
    program = Program(command=tuple(argv), warm="fork-server", output="wasm", sample=SOURCE)

    async def all_of(seconds: float) -> float:
        line = json.dumps({"program": asdict(program), "source": SOURCE, "seconds": seconds}).encode() + b"\n"
        calls = [jail.call(line, deadline_s=60, resources="fuzz") for _ in range(many)]
        said = []
        for outcome in await asyncio.gather(*calls):
            assert outcome.code == 0, outcome.stderr
            said.append(json.loads(outcome.stdout))
        assert {one["name"] for one in said} == {"fork-server"}, said
        return float(sum(one["rate"] for one in said))

    return lambda seconds: LOOP.run_until_complete(all_of(seconds))


LOOP = asyncio.new_event_loop()


def native(argv: list[str], folder: Path, jail: BwrapJail) -> dict[str, Rate]:
    fence = [
        find_bwrap(),
        "--ro-bind",
        "/usr",
        "/usr",
        "--symlink",
        "usr/lib",
        "/lib",
        "--symlink",
        "usr/lib64",
    ]
    fence += ["/lib64", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    return {
        "bwrap for each": by_subprocess([*fence, *argv]),
        "subprocess.run": by_subprocess(argv),
        "posix_spawn": by_posix_spawn(argv, folder),
        "limit (C driver)": by_c(argv, folder),
        "ours": in_jails(jail, argv, 1),
        "ours, two jails": in_jails(jail, argv, 2),
    }


def measure(contestants: dict[str, Rate], rounds: int, seconds: float) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, rate in contestants.items():
            taken[name].append(rate(seconds))
    return taken


def ratio(taken: dict[str, list[float]], one: str, other: str) -> float:
    """The median of the rounds' ratios: both ran in the same seconds."""
    return statistics.median(a / b for a, b in zip(taken[one], taken[other], strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--native", default=shutil.which("wat2wasm") or "")
    parser.add_argument("--vyper", type=lambda folder: Path(folder).resolve())
    parser.add_argument("--solc", type=lambda folder: Path(folder).resolve())
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rates: dict[str, float] = {}
    found: dict[str, float] = {}
    missing = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "spool").mkdir()
        if options.native and shutil.which("cc") and Path(LIBRARY).exists():
            argv = [os.path.realpath(options.native), "-", "--output=-"]
            jail = BwrapJail(
                Image(mounts=((HERE, "bench"),), guest="bench.rate_guest"), pool=0, spool=folder / "spool"
            )
            try:
                taken = measure(native(argv, folder, jail), options.rounds, options.seconds)
            finally:
                LOOP.run_until_complete(jail.aclose())
            rates |= {f"native {name}": statistics.median(each) for name, each in taken.items()}
            for peer in ("bwrap for each", "limit (C driver)", "posix_spawn"):
                found[f"B1 ours / {peer}"] = ratio(taken, "ours", peer)
            found["B2 two jails / one"] = ratio(taken, "ours, two jails", "ours")
        else:
            missing.append("B1, B2: needs wat2wasm, cc and `make setup`")
        for name, contest in contests(options.vyper, options.solc, folder, missing):
            with contest as contestants:
                taken = measure(contestants, options.rounds, options.seconds)
            rates |= {f"{name} {who}": statistics.median(each) for who, each in taken.items()}
            for peer in set(contestants) - {"ours"}:
                found[f"B3 {name} ours / {peer}"] = ratio(taken, "ours", peer)
    LOOP.close()
    return report(rates, found, missing, options.json)


def report(rates: dict[str, float], found: dict[str, float], missing: list[str], place: Path | None) -> int:
    for name, value in rates.items():
        print(f"{value:10.1f}/s  {name}")
    below = []
    for name, value in found.items():
        target, floor = TARGETS.get(name, (0.0, 0.0))
        below += [name] if value < floor else []
        print(f"{value:10.2f}x  {name}  (target {target}, floor {floor or 'none'})")
    for why in missing:
        print(f"left out: {why}")
    if place:
        text = json.dumps({"rates": rates, "ratios": found, "left_out": missing}, indent=2)
        place.write_text(text + "\n", "utf-8")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
