"""What `fleet fuzz` finds in compilers with defects that it was not written for.

    make bench-fuzzing [ARGS="--seeds 1-3 --minutes 5 --clean 4 --burn 2 --write"]

For each seed a copy of the bundled compiler with generated defects is searched in one budget, with real
jails. Each confirmed report is explained by running its inputs with one defect on at a time. `--clean K`
searches K copies with every defect off: they must be silent. Results go to bench/results/ as JSON and to
stdout as Markdown; with `--write` to docs/bench/fuzzing.md as well. Exit status 1 when there is a false
finding, or a clean copy is not silent.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.findings.__main__ import numbers
from bench.fuzzing.campaign import SAMPLE, CampaignOutcome, campaign
from bench.fuzzing.generate import generated
from bench.fuzzing.reference import ReferenceStand
from bench.fuzzing.report import data_of, markdown
from bench.fuzzing.score import RecallScore, scored
from fleet.files import ROOT
from tests.devnet.corpus import CASES
from tests.platforms.served import burning

DOCUMENT = ROOT / "docs" / "bench" / "fuzzing.md"
RESULTS = ROOT / "bench" / "results" / "fuzzing.json"
ORDINARY = (SAMPLE.encode(), *(case.source for case in CASES))


def processors() -> int:
    return len(os.sched_getaffinity(0))


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.fuzzing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=numbers, default=[1, 2, 3], help="such as 1-3 or 4,7 (default 1-3)")
    parser.add_argument("--defects", type=int, default=12, help="in each compiler")
    parser.add_argument("--minutes", type=float, default=5.0, help="of each search, as qa-fuzz has")
    parser.add_argument(
        "--jobs", type=int, default=processors(), help="jails at once (default: a jail for each processor)"
    )
    parser.add_argument("--clean", type=int, default=0, help="copies without a defect")
    parser.add_argument("--clean-only", action="store_true", help="no copy with defects")
    parser.add_argument("--burn", type=int, default=0, help="processes that keep a core busy meanwhile")
    parser.add_argument("--keep", type=Path, help="work here, and leave the copies and logs")
    parser.add_argument("--json", action="store_true", help="print the data instead of the tables")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.relative_to(ROOT)}")
    return parser.parse_args(argv)


def searched(seed: int, folder: Path, options: argparse.Namespace) -> RecallScore:
    """One compiler with defects, and what was found in it."""
    made = generated(seed, options.defects, folder / "tc", ORDINARY)
    outcome = campaign(folder / "search", made.copy, made.all_on, seed, options.minutes, jobs=options.jobs)
    with ReferenceStand(made.copy) as stand:
        score = scored(seed, made.faults, outcome, stand)
    found, false = len(score.found), len(score.false)
    _say(f"seed {seed}: {found} of {len(made.faults)}, {false} false, {score.twice} twice", outcome)
    return score


def silent(seed: int, folder: Path, options: argparse.Namespace) -> CampaignOutcome:
    """The same copy with every defect off."""
    made = generated(seed, options.defects, folder / "tc", ORDINARY)
    outcome = campaign(folder / "search", made.copy, "", seed, options.minutes, jobs=options.jobs)
    _say(f"clean {seed}: {len(outcome.defects)} found", outcome)
    return outcome


def _say(words: str, outcome: CampaignOutcome) -> None:
    trouble = f"; {outcome.trouble}" if outcome.trouble else ""
    print(f"{words}, {outcome.executions} executions{trouble}", file=sys.stderr, flush=True)


def main(options: argparse.Namespace) -> int:
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-fuzz-")))
        if options.burn:
            stack.enter_context(burning(options.burn))
        seeds = [] if options.clean_only else options.seeds
        scores = [searched(seed, folder / f"seed-{seed}", options) for seed in seeds]
        first = options.seeds[0]
        clean = [silent(first + i, folder / f"clean-{first + i}", options) for i in range(options.clean)]
    data, text = data_of(scores, clean, about()), markdown(scores, clean, about())
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    print(json.dumps(data, indent=1) if options.json else text)
    if options.write:
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(text, "utf-8")
    troubled = any(one.false or one.outcome.trouble for one in scores)
    return 1 if troubled or any(one.defects or one.trouble for one in clean) else 0


def about() -> dict[str, Any]:
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "command": " ".join(["python -m bench.fuzzing", *sys.argv[1:]]),
        "commit": commit or "unknown",
        "date": datetime.now(UTC).date().isoformat(),
        "versions": [f"Python {platform.python_version()}, {platform.system()} {platform.machine()}."],
    }


if __name__ == "__main__":
    sys.exit(main(arguments(sys.argv[1:])))
