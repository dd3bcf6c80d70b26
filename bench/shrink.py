"""Mark B6: shrinking beside shrinkray and picire (at least 20x faster than shrinkray, at most 1.1x its size).

    make bench-shrink            or  python -m bench.shrink --peers DIR [--json FILE]

The same inputs and the same question for all: modules in text that `wat2wasm --no-check` accepts, and whose
output has a type mismatch. Peers ask it by a script, two at a time, as their manuals have it; ours through
the runner and the judge of a search, one at a time. All take turns in one run; only ratios count. DIR is the
`bin` folder of an environment with the peers. Exit status 1 beyond the mark, 3 where something is missing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from sandbox.fuzz.shrink import shrinker
from sandbox.judging.verdict import judge
from sandbox.programs.program import Program
from sandbox.runners.choice import runner
from sandbox.runners.port import Runner

FASTER, LARGER = 20.0, 1.1
PEER_S = 300.0
PROGRAM = Program(
    command=("/usr/bin/wat2wasm", "--no-check", "{source}", "-o", "{output}"),
    sample="(module)",
    family="wat",
    source_by="file",
    file_name="source.wat",
    output="wasm",
    output_file="out.wasm",
    warm="fork-server",
)
SCRIPT = """#!/bin/bash
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat "${1:-/dev/stdin}" >"$folder/in.wat"
wat2wasm --no-check "$folder/in.wat" -o "$folder/out" 2>/dev/null || exit 1
wasm-validate "$folder/out" 2>&1 | grep -q 'type mismatch'
"""
HELP = """  (func $half (param $n i32) (result i32)
    local.get $n
    i32.const 2
    i32.div_s)
  (func $sum (param $a i32) (param $b i32) (result i32)
    (i32.add (local.get $a) (local.get $b)))
"""
WRONG = {
    "mixed": """  (func $frame (export "frame") (param $t i32) (result i32)
    (local $i i32) (local $k f64)
    (block $done
      (loop $again
        (br_if $done (i32.ge_s (local.get $i) (local.get $t)))
        (local.set $i (call $sum (local.get $i) (i32.const 3)))
        (br $again)))
    (i32.add (local.get $i) (f64.const 2.5)))
""",
    "arms": """  (func $frame (export "frame") (param $t i32) (result i32)
    (if (result i32) (i32.gt_s (local.get $t) (i32.const 4))
      (then (call $half (local.get $t)))
      (else (i64.const 77)))
    (drop (call $sum (i32.const 1) (local.get $t)))
    (i32.const 5)
    (call $half))
""",
}
SAMPLES = {name: f"(module\n  (memory 1)\n{HELP}{wrong})\n".encode() for name, wrong in WRONG.items()}


def ours(source: bytes, by: Runner) -> tuple[float, bytes, int]:
    """Seconds, the smallest input, executions."""
    asked = 0

    def still(candidate: bytes) -> bool:
        nonlocal asked
        asked += 1
        verdict = judge(PROGRAM, candidate, by.run(candidate, 5.0))
        return verdict.kind == "invalid-output" and "type mismatch" in verdict.said

    assert still(source), (
        "the sample does not show the defect"
    )  # and the validator is imported, as in a round
    started = time.perf_counter()
    smallest = shrinker("compiler")(source, still)
    return time.perf_counter() - started, smallest, asked


def by_shrinkray(bins: Path, source: bytes, script: Path, folder: Path) -> tuple[float, bytes]:
    (folder / "in").write_bytes(source)
    command: list[str | Path] = [
        bins / "shrinkray",
        "--parallelism",
        "2",
        "--target",
        folder / "out",
        script,
        folder / "in",
    ]
    return _timed(command, folder / "out")


def by_picire(bins: Path, source: bytes, script: Path, folder: Path) -> tuple[float, bytes]:
    (folder / "in.wat").write_bytes(source)
    command: list[str | Path] = [
        bins / "picire",
        "-i",
        folder / "in.wat",
        "--test",
        script,
        "-a",
        "both",
        "-p",
        "-j",
        "2",
    ]
    return _timed([*command, "-l", "ERROR", "-o", folder / "done"], folder / "done" / "in.wat")


def _timed(command: Sequence[str | Path], out: Path) -> tuple[float, bytes]:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, timeout=PEER_S)
    return time.perf_counter() - started, out.read_bytes()


def measure(bins: Path) -> dict[str, dict[str, float]]:
    """By sample and contestant: seconds and bytes; ours also executions."""
    found: dict[str, dict[str, float]] = {}
    by = runner(PROGRAM, "compiler")
    print(f"runner: {by.name}", file=sys.stderr)
    for name, source in SAMPLES.items():
        with tempfile.TemporaryDirectory() as where:
            folder = Path(where)
            script = folder / "test.sh"
            script.write_text(SCRIPT, "utf-8")
            script.chmod(0o755)
            seconds, smallest, executions = ours(source, by)
            check = subprocess.run([script], input=smallest, check=False)
            assert check.returncode == 0, "the peers' question says otherwise of what is left"
            row = {"bytes": len(source), "ours_s": seconds, "ours_b": len(smallest), "executions": executions}
            for peer, run in {"shrinkray": by_shrinkray, "picire": by_picire}.items():
                row[f"{peer}_s"], left = run(bins, source, script, folder)
                row[f"{peer}_b"] = len(left)
            found[name] = {key: round(value, 3) for key, value in row.items()}
            print(name, found[name], smallest, file=sys.stderr)
    by.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", type=Path, default=Path(".venv-peers/bin"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    needed = (*(options.peers / one for one in ("shrinkray", "picire")), "wat2wasm", "wasm-validate")
    if missing := [str(one) for one in needed if not shutil.which(one)]:
        print(f"not here: {', '.join(missing)}", file=sys.stderr)
        return 3
    found = measure(options.peers)
    faster = statistics.median(row["shrinkray_s"] / row["ours_s"] for row in found.values())
    larger = statistics.median(row["ours_b"] / row["shrinkray_b"] for row in found.values())
    ratios = {"faster_than_shrinkray": round(faster, 1), "size_to_shrinkray": round(larger, 2)}
    text = json.dumps({"shrink": found, **ratios, "marks": [FASTER, LARGER]}, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", "utf-8")
    return 0 if faster >= FASTER and larger <= LARGER else 1


if __name__ == "__main__":
    sys.exit(main())
