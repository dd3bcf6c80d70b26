"""One `fleet fuzz` on one copy of the compiler, as a process of its own; what it reports, read back."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from fleet.files import ROOT
from fleet.findings.repro import ReproError, parse_repro
from fleet.runs.fuzz import LEAST_COUNTED

SAMPLE = "fn frame(t: i32) -> i32 { t + 1 }"
SPARE_S = 600
"""For proofs after the search, and for a busy machine."""
_PROGRESS = re.compile(r"^([\d.]+) s: .*?(\d+) defects")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedDefect:
    """One defect of the report; `inputs` are those of its repro, `part` which program takes them."""

    klass: str
    title: str
    repro: str
    size: int
    confirmed: bool
    part: str
    inputs: tuple[bytes, ...]


@dataclass(slots=True, kw_only=True)
class CampaignOutcome:
    """`first_s` is when the first defect was listed, -1 without one; `trouble` why there is no report."""

    defects: list[ReportedDefect] = field(default_factory=list)
    executions: int = 0
    accepted: int = 0
    seconds: float = 0.0
    first_s: float = -1.0
    runners: list[str] = field(default_factory=list)
    trouble: str = ""


def target_file(folder: Path, compiler: Path, faults: str, corpus: Path | None) -> Path:
    """A target of `fleet fuzz`: the copy with these defects on. It names the folder above the copy."""
    command = ["{python}", "-S", "-B", "-m", compiler.name]
    command += ["--faults", faults] if faults else []
    told: dict[str, Any] = {
        "root": str(compiler.parent),
        "command": command,
        "loader": [*command, "--entry"],
        "environment": {"PYTHONPATH": "/opt/tc:/opt/site"},
        "language": "rustlite",
        "family": "rust",
        "tool_chain": "rust",
        "sample": SAMPLE,
        "output": "wasm",
        "entries": ["frame", "render"],
        "warm": "python",
        "warm_entry": "rustlite.cli:main",
    } | ({"corpus": str(corpus)} if corpus else {})
    path = folder / "target.toml"
    environment = told.pop("environment")
    lines = [f"{key} = {json.dumps(value)}" for key, value in told.items()]
    lines += [
        "[compiler.environment]",
        *(f"{name} = {json.dumps(value)}" for name, value in environment.items()),
    ]
    path.write_text("\n".join(['name = "copy"', "", "[compiler]", *lines, ""]), "utf-8")
    return path


def campaign(  # noqa: PLR0913  a round, as it is asked for
    folder: Path,
    compiler: Path,
    faults: str,
    seed: int,
    minutes: float,
    corpus: Path | None = None,
    jobs: int = 1,
) -> CampaignOutcome:
    """Search the copy for this long, with files in `folder` only; `corpus` are sources to start from."""
    folder.mkdir(parents=True, exist_ok=True)
    return search(target_file(folder, compiler, faults, corpus), folder, seed, minutes, jobs=jobs)


def search(
    target: Path, folder: Path, seed: int, minutes: float, pin: Sequence[str] = (), jobs: int = 1
) -> CampaignOutcome:
    """`fleet fuzz` on a target's file in `jobs` jails, behind the words of `pin`."""
    argv = [*pin, sys.executable, "-m", "fleet.cli", "fuzz", str(target), "--jobs", str(jobs)]
    argv += ["--minutes", str(minutes), "--seed", str(seed), "--state", str(folder / "state"), "--json"]
    argv += ["--by-clock"] if pin else []  # as peers on one processor do
    outcome = CampaignOutcome()
    began = time.monotonic()
    with (folder / "stdout").open("w+") as out, (folder / "stderr").open("w") as log:
        child = subprocess.Popen(argv, cwd=ROOT, stdout=out, stderr=subprocess.PIPE, text=True)
        assert child.stderr is not None
        reader = threading.Thread(target=_watch, args=(child.stderr, log, outcome, began))
        reader.start()
        try:
            child.wait(minutes * 60 / LEAST_COUNTED + SPARE_S)
        except subprocess.TimeoutExpired:
            child.terminate()
            child.wait(30)
            outcome.trouble = "did not end in time"
        reader.join()
        out.seek(0)
        text = out.read()
    try:
        _read(json.loads(text), outcome)
    except (ValueError, KeyError) as error:
        last = (folder / "stderr").read_text("utf-8").strip().splitlines()[-1:]
        outcome.trouble = outcome.trouble or f"status {child.returncode}, {error!r}: {' '.join(last)}"
    return outcome


def _watch(lines: IO[str], log: IO[str], outcome: CampaignOutcome, began: float) -> None:
    for line in lines:
        log.write(line)
        log.flush()
        found = _PROGRESS.match(line)
        if found and found[2] != "0" and outcome.first_s < 0:
            outcome.first_s = round(time.monotonic() - began, 1)


def _read(data: dict[str, Any], outcome: CampaignOutcome) -> None:
    outcome.executions, outcome.accepted = data["executions"], data["accepted"]
    outcome.seconds, outcome.runners = data["seconds"], list(data.get("runner", []))
    outcome.defects = [_defect(one) for one in data["defects"]]


def _defect(one: dict[str, Any]) -> ReportedDefect:
    part, inputs = repro_inputs(one["repro"])
    return ReportedDefect(
        klass=one["class"],
        title=one["title"],
        repro=one["repro"],
        size=one["size"],
        confirmed=one["confirmed"] == one["tries"],
        part=part,
        inputs=tuple(inputs),
    )


def repro_inputs(repro: str) -> tuple[str, Sequence[bytes]]:
    """The part and the inputs that a repro's calls name."""
    try:
        calls = parse_repro(repro)
    except ReproError:
        return "compiler", []
    loader = any(call.args.get("module_hex") for call in calls)
    if loader:
        return "loader", [bytes.fromhex(str(call.args.get("module_hex", ""))) for call in calls]
    return "compiler", [str(call.args.get("source", "")).encode() for call in calls]
