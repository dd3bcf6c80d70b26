"""The fleet's own examination: what it finds on platforms without probes of their own, beside its peers.

    make bench-findings [ARGS="--seeds 1-3 --rounds 2 --peers none --write"]

Starts platforms (`--targets`), runs the shipped personas on each at `exercise` with real jails, in throwaway
state directories, and counts by rules over what was posted. Results go to bench/results/ as JSON and to
stdout as Markdown; with `--write` to docs/bench/findings.md as well. Exit status 1 when the fleet has an item
on a clean platform, or could not look at one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import anyio

from bench.findings.fleet_rounds import PERSONAS, FinderOutcome, FleetRounds
from bench.findings.peers import scanners
from bench.findings.peers.chance import Chance
from bench.findings.report import FLEET, data_of, markdown
from bench.findings.score import Judged, judged
from bench.findings.targets import KINDS, Examined, chosen
from fleet.files import ROOT
from tests.platforms.served import burning
from tests.platforms.stand import Stand

PEERS = ("random", "schemathesis", "wapiti")
STARTS = 2
"""Attempts at one finder on one platform; what went wrong is in the report."""
DOCUMENT = ROOT / "docs" / "bench" / "findings.md"
RESULTS = ROOT / "bench" / "results" / "findings.json"


class Finder(Protocol):
    """Anything that reports items of a running platform."""

    async def observe(self, folder: Path, stand: Stand) -> FinderOutcome:
        """Look at the platform, with files in `folder` only."""


def numbers(text: str) -> list[int]:
    """Seeds from `4`, `1-3` or `1,5,9`."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.findings", description=__doc__)
    parser.add_argument("--seeds", type=numbers, default=[1, 2], help="such as 1-3 or 4,7 (default 1-2)")
    parser.add_argument("--groups", type=int, default=3, help="groups of switches that are on together")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each persona on a platform")
    parser.add_argument("--targets", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--peers", default="all", help=f"all, none, or of {', '.join(PEERS)}")
    parser.add_argument("--personas", default=",".join(PERSONAS), help="which personas run")
    parser.add_argument("--without-own-probes", action="store_true", help="leave the devnet's own probes out")
    parser.add_argument("--burn", type=int, default=0, help="processes that keep a core busy meanwhile")
    parser.add_argument("--parallel", type=int, default=2, help="platforms at a time")
    parser.add_argument("--keep", type=Path, help="a folder for the platforms' files and the runs' records")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.relative_to(ROOT)}")
    options = parser.parse_args(argv)
    for key, known in (("targets", KINDS), ("peers", (*PEERS, "all", "none"))):
        if wrong := sorted(set(getattr(options, key).split(",")) - set(known)):
            parser.error(f"--{key}: {', '.join(wrong)} is not one of {', '.join(known)}")
    return options


async def examined(target: Examined, folder: Path, options: argparse.Namespace) -> list[Judged]:
    """The fleet on this target, then each peer on a fresh one."""
    personas = tuple(options.personas.split(","))
    fleet = FleetRounds(options.rounds, not options.without_own_probes, personas)
    results = [await looked_at(target, FLEET, fleet, folder)]
    calls = max(100, results[0].outcome.calls)
    for name, finder in peers(options, target, calls).items():
        results.append(await looked_at(target, name, finder, folder))
    return results


async def looked_at(target: Examined, name: str, finder: Finder, folder: Path) -> Judged:
    """What one finder reports of a fresh platform."""
    outcome = FinderOutcome()
    for attempt in range(STARTS):
        place = folder / f"{target.name}-{name}-{attempt}".replace(" ", "-")
        try:
            async with target.start(place / "platform") as stand:
                outcome = await finder.observe(place / name, stand)
            break
        except Exception as error:  # one platform that does not start must not lose the others' results
            outcome.troubles.append(f"attempt {attempt + 1}: {type(error).__name__}: {error}")
    result = judged(target, name, outcome)
    seeded = len(target.wanted)
    words = f"{len(result.found)} of {seeded} found, {len(result.false)} false of {len(outcome.items)} items"
    parts = ", ".join(f"{persona} {seconds:.0f}" for persona, seconds in outcome.parts.items())
    missed = ", ".join(one.name for one in target.wanted if one.name not in result.found)
    said = f"{words}, {outcome.seconds:.0f} s ({parts}); missed: {missed or 'none'}"
    print(f"{target.name}: {name}: {said}", file=sys.stderr, flush=True)
    return result


def peers(options: argparse.Namespace, target: Examined, calls: int) -> dict[str, Finder]:
    """The peers that are wanted, installed, and have something to look at."""
    wanted = PEERS if options.peers == "all" else tuple(options.peers.split(","))
    found: dict[str, Finder] = {}
    if "random" in wanted:
        found["random"] = Chance(calls)
    if "schemathesis" in wanted and target.described and scanners.version(scanners.Schemathesis.program):
        found["schemathesis"] = scanners.Schemathesis(calls)
    if "wapiti" in wanted and scanners.version(scanners.Wapiti.program):
        found["wapiti"] = scanners.Wapiti()
    return found


def notes(options: argparse.Namespace) -> list[str]:
    """What a reader should know of the peers."""
    wanted = PEERS if options.peers == "all" else tuple(options.peers.split(","))
    said = []
    for kind in (scanners.Schemathesis, scanners.Wapiti):
        name = kind.program.name
        if name in wanted:
            version = scanners.version(kind.program)
            said.append(f"{name} {version}" if version else f"{name} could not be installed and was left out")
    if "schemathesis" in wanted:
        said.append("schemathesis needs an OpenAPI description: it sees the platforms that have one")
    return said


async def main(options: argparse.Namespace) -> int:
    targets = chosen(options.targets.split(","), options.seeds, options.groups)
    by_target: dict[str, list[Judged]] = {}
    limit = anyio.CapacityLimiter(options.parallel)
    with ExitStack() as stack:
        folder = options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-findings-"))
        if options.burn:
            stack.enter_context(burning(options.burn))

        async def one(target: Examined) -> None:
            async with limit:
                by_target[target.name] = await examined(target, Path(folder), options)

        async with anyio.create_task_group() as tasks:
            for target in targets:
                tasks.start_soon(one, target)
    results = [result for target in targets for result in by_target[target.name]]
    return publish(results, options)


def publish(results: list[Judged], options: argparse.Namespace) -> int:
    """Write the tables; 1 when the fleet has an item on a clean platform, or could not look at one."""
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    command = " ".join(["python -m bench.findings", *sys.argv[1:]])
    about: dict[str, Any] = {"command": command, "commit": commit or "unknown", "notes": notes(options)}
    data, text = data_of(results, about), markdown(results, about)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    print(text)
    if options.write:
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(text, "utf-8")
    clean = [one for one in results if one.finder == FLEET and not one.target.wanted]
    return 1 if any(one.outcome.items or one.outcome.troubles for one in clean) else 0


if __name__ == "__main__":
    sys.exit(anyio.run(main, arguments(sys.argv[1:])))
