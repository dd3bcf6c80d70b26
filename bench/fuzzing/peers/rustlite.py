"""Mark B4: generated defects that ours and its peers find in the same time on one core."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from bench.fuzzing.campaign import search, target_file
from bench.fuzzing.generate import FaultyCompiler
from bench.fuzzing.reference import ReferenceStand
from bench.fuzzing.score import scored
from fleet.files import ROOT

AFL = shutil.which("afl-fuzz")
PIN = ["taskset", "-c", "0"] if shutil.which("taskset") else []
GRACE_S = 120
LARGEST = 4096
"""AFL's inputs beyond this are not looked at."""


def contestants() -> list[str]:
    return ["ours", "bytes", "lark", *(["afl++ -n"] if AFL else [])]


def classes_found(name: str, made: FaultyCompiler, seeds: Path, folder: Path, seconds: float) -> set[str]:
    """The ids of the defects that one contestant found."""
    folder.mkdir(parents=True)
    with ReferenceStand(made.copy) as stand:
        if name == "ours":
            target = target_file(folder, made.copy, made.all_on, seeds)
            outcome = search(target, folder, made.seed, seconds / 60, PIN)
            return set(scored(made.seed, made.faults, outcome, stand).found)
        if name == "afl++ -n":
            return shown(_afl(made, seeds, folder, seconds), made, stand)
        inputs = blind(name, command(made), seeds, folder, seconds)
        return shown(inputs, made, stand)


def shown(inputs: Iterable[bytes], made: FaultyCompiler, stand: ReferenceStand) -> set[str]:
    """The defects of the compiler that any of these inputs shows alone."""
    found: set[str] = set()
    for source in inputs:
        for fault in made.faults:
            if fault.id not in found and fault.part == "compiler":
                found |= {fault.id} if stand.shows(source, "compiler", [fault.id]) else set()
    return found


def command(made: FaultyCompiler) -> list[str]:
    return [sys.executable, "-S", "-B", str(made.copy), "--faults", made.all_on]


def environment(*path: str) -> dict[str, str]:
    """Ours, with these folders for modules before the installed ones."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*path, sysconfig.get_path("purelib")])}


def blind(how: str, program: Sequence[str], seeds: Path, folder: Path, seconds: float) -> Sequence[bytes]:
    """The inputs that a search of `blind.py` kept."""
    out = folder / "bad"
    argv = [*PIN, sys.executable, "-m", "bench.fuzzing.peers.blind", how, str(seeds), str(seconds), str(out)]
    subprocess.run(
        [*argv, "--", *program], cwd=ROOT, env=environment(), timeout=seconds + GRACE_S, check=True
    )
    return [path.read_bytes() for path in sorted(out.iterdir())]


def _afl(made: FaultyCompiler, seeds: Path, folder: Path, seconds: float) -> Sequence[bytes]:
    assert AFL is not None
    variables = environment() | {
        "AFL_NO_UI": "1",
        "AFL_SKIP_CPUFREQ": "1",
        "AFL_NO_AFFINITY": "1",
        "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1",
        "AFL_SKIP_BIN_CHECK": "1",
    }
    argv = [*PIN, AFL, "-n", "-i", str(seeds), "-o", str(folder / "afl"), "-t", "2000", "-m", "none"]
    argv += ["-V", str(int(seconds)), "--", *command(made)]
    with suppress(subprocess.TimeoutExpired):  # still at its seeds, on a busy machine: judged by what it kept
        subprocess.run(
            argv,
            env=variables,
            timeout=seconds + 2 * GRACE_S,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    kept = [*(folder / "afl").glob("default/crashes/id*"), *(folder / "afl").glob("default/hangs/id*")]
    return [data for path in sorted(kept) if len(data := path.read_bytes()) <= LARGEST]
