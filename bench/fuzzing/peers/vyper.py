"""Mark B5: places of internal errors in Vyper that ours and its peers find in the same time on one core."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.findings.peers.scanners import VENV
from bench.fuzzing.campaign import search
from bench.fuzzing.faults import HERE
from bench.fuzzing.peers.rustlite import GRACE_S, PIN, blind, environment
from fleet.config.target import load_target
from fleet.files import ROOT
from sandbox.fuzz.inputs.table import seeds as suspicious

TARGET = ROOT / "config" / "targets" / "vyper.toml"
INSTALLED = Path(os.environ.get("BENCH_VYPER", ROOT / ".targets" / "vyper"))
"""Modules of Vyper, as `make targets` puts them."""
ATHERIS = VENV / "bin" / "python"


def contestants() -> list[str]:
    return ["ours", *(["atheris"] if _has_atheris() else []), "cold"] if INSTALLED.is_dir() else []


def _has_atheris() -> bool:
    argv = [str(ATHERIS), "-c", "import atheris"]
    return ATHERIS.exists() and not subprocess.run(argv, capture_output=True, check=False).returncode


def places_found(who: str, folder: Path, seed: int, seconds: float) -> set[str]:
    """The places, by one judge for all, of what a contestant kept."""
    folder.mkdir(parents=True)
    seeds = folder / "seeds"
    seeds.mkdir()
    program = load_target(str(TARGET), folder)[0].compiler.program
    for index, source in enumerate(suspicious(program, "compiler")):
        (seeds / f"{index:03}.vy").write_bytes(source)
    if who == "ours":
        outcome = search(_target(folder), folder, seed, seconds / 60, PIN)
        return places(source for one in outcome.defects for source in one.inputs)
    if who == "cold":
        argv = [sys.executable, "-m", "vyper.cli.vyper_compile", "-f", "bytecode", "{source}"]
        return places(blind("bytes", ["env", f"PYTHONPATH={INSTALLED}", *argv], seeds, folder, seconds))
    return places(_atheris(seeds, folder, seconds))


def places(sources: Iterable[bytes]) -> set[str]:
    texts = [source.decode("utf-8", "ignore") for source in sources]
    judge = (HERE / "peers" / "vyper_places.py.txt").read_text("utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", judge],
        input=json.dumps(texts),
        env=environment(str(INSTALLED)),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def _target(folder: Path) -> Path:
    """The shipped target, with its folders where they are."""
    text = TARGET.read_text("utf-8")
    text = text.replace('"{targets}/vyper"', json.dumps(str(INSTALLED)))
    text = text.replace('"adapters"', json.dumps(str(TARGET.parent / "adapters")))
    path = folder / "vyper.toml"
    path.write_text(text, "utf-8")
    return path


def _atheris(seeds: Path, folder: Path, seconds: float) -> Sequence[bytes]:
    out = folder / "kept"
    out.mkdir()
    script = folder / "atheris_vyper.py"
    script.write_text((HERE / "peers" / "atheris_vyper.py.txt").read_text("utf-8"), "utf-8")
    argv = [*PIN, str(ATHERIS), "-W", "ignore", str(script), str(seeds), str(out), str(int(seconds))]
    variables = {**os.environ, "PYTHONPATH": str(INSTALLED)}
    subprocess.run(argv, env=variables, timeout=seconds + GRACE_S, check=False, capture_output=True)
    return [path.read_bytes() for path in sorted(out.iterdir())]
