"""Every mark in one table, docs/bench/marks.md: measured now, or when it was measured last.

    make marks [ARGS="--only explore,triage --long"]

Each bench is run as a process of its own, one after another. Its figures stay in docs/bench/marks.json with
the date, the commit and the load of their run; the table is made from that file. `--long` adds those that
take more than five minutes. A bench beyond its mark is a row that says so, not an error; exit status 1 only
where one gave no figures.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet.files import ROOT

KEPT = ROOT / "docs" / "bench" / "marks.json"
TABLE = KEPT.with_suffix(".md")
HEAD = """# All marks

`make marks` (long ones: `ARGS=--long`; one: `ARGS="--only explore"`) measures them and writes this table from
marks.json. Ratios are of turns taken in one run. Load is the machine's average when the bench began (two
processors): above 2, a figure of wall time says little. A dash has no number in the list of marks.

| mark | what | figure | mark | met | load | date | commit |
|---|---|---|---|---|---|---|---|
"""
ELSEWHERE = """
By commands of their own: B4 and B5 `make bench-fuzzing-peers`, B6 `make bench-shrink`, B19
`make bench-findings` ([unseen platforms](unseen-platforms.md)), B21 `make bench-look` ([look](look.md)),
pages `make bench-pages` ([pages](pages.md)).
"""


@dataclass(frozen=True)
class Mark:
    """`path` leads to the figure in the JSON of the bench; `most` and `least` are what is asked."""

    id: str
    what: str
    path: tuple[str, ...]
    least: float | None = None
    most: float | None = None

    def verdict(self, value: float) -> str:
        if self.least is None and self.most is None:
            return ""
        return "yes" if (self.least or value) <= value <= (self.most or value) else "**no**"

    @property
    def name(self) -> str:
        return "/".join(self.path)

    @property
    def asked(self) -> str:
        if self.least is not None and self.most is not None:
            return f"{self.least:g} to {self.most:g}"
        least = None if self.least is None else f"≥ {self.least:g}"
        return least or ("–" if self.most is None else f"≤ {self.most:g}")


def _rate(name: str, least: float) -> Mark:
    mark, _, what = name.partition(" ")
    return Mark(mark, f"executions of a compiler, {what}", ("ratios", name), least)


_POSTED = ("to_posted_s", "median")
BENCHES: dict[str, tuple[Mark, ...]] = {
    "fuzz_rate": (
        _rate("B1 ours / bwrap for each", 6),
        _rate("B1 ours / limit (C driver)", 0.85),
        _rate("B1 ours / posix_spawn", 1.5),
        _rate("B2 two jails / one", 1.8),
        _rate("B3 vyper ours / cold", 10),
        _rate("B3 vyper ours / in process", 0.65),
        _rate("B3 solc-js ours / cold", 30),
    ),
    "mirror": (
        Mark("B7", "mirror of a log, 300 bytes each / web3 by pages", ("B7 peer",), 10),
        Mark("B7", "the same / raw bytes", ("B7 limit",), 0.75),
        Mark("B7", "the same into SQLite / raw bytes", ("B7 limit, stored",), 0.5),
        Mark("B8", "mirror, 2,048 bytes each, under a gas cap / web3", ("B8 peer",), 4),
        Mark("B8", "the same / raw bytes", ("B8 limit",), 0.85),
        Mark("B9", "decoding / eth_abi", ("B9", "ratio"), 10),
    ),
    "triage": (
        Mark("B10", "triage of 100,000 from cold / json + dict", ("base", "B10_ratio"), 2.5),
        Mark("B11", "100 new ones on 100,000 / json + dict", ("base", "B11_ratio"), 50),
        Mark("B11", "100 new ones on 100,000, ms", ("base", "medians", "ours", "new_ms"), None, 1),
    ),
    "duplicates": (
        Mark("B12", "strangers' entries joined, precision", ("precision",), 0.99),
        Mark("B12", "the same, recall: similar ones are only suggested", ("recall",)),
    ),
    "posting": (
        Mark("B13", "findings posted / web3 pipelined", ("B13", "ratio_to_peer"), 4),
        Mark("B13", "the same / signed beforehand", ("B13", "ratio_to_limit"), 0.5),
        Mark("B14", "gas of 300 bytes / of 2,048", ("B14", "ratio"), None, 0.2),
    ),
    "scheduler": (
        Mark("B15", "10,000 due at once / bare", ("scheduler", "ratio", "burst_last_ms"), None, 1.1),
        Mark("B15", "10,000 in five seconds, p99 / bare", ("scheduler", "ratio", "steady_p99_ms"), None, 1.1),
        Mark("B15", "at once, each a row / bare", ("scheduler", "journal_ratio", "burst_last_ms"), None, 2),
    ),
    "daemon": (
        Mark("B16", "daemon ready / import of its libraries", ("daemon", "ready_to_libraries"), None, 1.1),
        Mark("B16", "its memory / of that process", ("daemon", "rss_to_libraries"), None, 1.15),
        Mark("B16", "processor when idle, %", ("daemon", "idle_cpu_percent"), None, 0.2),
    ),
    "startup": (
        Mark("–", "`fleet --help` / Python with asyncio", ("startup", "ratio"), None, 4),
        Mark("–", "`fleet dial --json`, ms", ("startup", "dial_ms"), None, 250),
        Mark("–", "`fleet status --json`, ms", ("startup", "status_ms"), None, 250),
        Mark("–", "`fleet items --offline --json`, ms", ("startup", "worklist_ms"), None, 250),
    ),
    "explore": (
        Mark("B17", "explorer's requests / bare httpx", ("explore", "explorer_to_httpx"), 0.6),
        Mark("B20", "processor of a request in a batch, s", ("explore", "batch_cpu_s"), None, 0.02),
        Mark("B20", "processor of one jailed call, s", ("explore", "single_cpu_s"), None, 0.04),
    ),
    "latency": (
        Mark("B18", "error of the p95 at a server that stalls", ("open_loop", "error"), -0.05, 0.05),
    ),
    "compile": (Mark("–", "a warm jailed compile / the bare compiler", ("compile", "ratio"), None, 2),),
    "fetch": (Mark("–", "a cold jailed fetch / a script with httpx", ("fetch", "cold_to_script"), None, 1),),
    "events": (
        Mark("–", "events through the record with fsync / raw writes", ("events", "ratio_sync"), 0.25),
        Mark("–", "the same without fsync / raw writes", ("events", "ratio"), 0.03),
    ),
    "runs": (
        Mark("–", "runs, shared journal / Procrastinate", ("runs_per_s", "shared_to_procrastinate"), 0.08),
        Mark("–", "runs by SQLite, a second", ("runs_per_s", "sqlite")),
    ),
    "seen_posted": (
        Mark(
            "B22", "critical, seen to posted, s", ("severity", "critical", "to_posted_s", "median"), None, 60
        ),
        Mark("B22", "high: seen to posted, s", ("severity", "high", *_POSTED), None, 300),
    ),
}
ARGS: dict[str, tuple[str, ...]] = {
    "duplicates": ("--json",),
    "fuzz_rate": tuple(
        word
        for name in ("vyper", "solc")
        if (folder := ROOT / ".targets" / name).is_dir()  # of `make targets`
        for word in (f"--{name}", str(folder))
    ),
}
LONG = ("seen_posted",)
TO_FILE = ("fuzz_rate",)
"""Those that print for people, and write JSON into a file."""


def figures(bench: str) -> dict[str, Any]:
    """What a bench measured, as it says it; empty where it says nothing."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        words = [*ARGS.get(bench, ()), *(("--json", str(file)) if bench in TO_FILE else ())]
        ran = subprocess.run(
            [sys.executable, "-m", f"bench.{bench}", *words], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        text = file.read_text() if file.exists() else ran.stdout
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def figure(found: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    """The number at a path; None where there is none."""
    value: Any = found
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) else None


def table(kept: Mapping[str, Mapping[str, Any]]) -> str:
    """The page: a row for each mark; one that was never measured says so."""
    rows = []
    for bench, marks in BENCHES.items():
        at = kept.get(bench, {})
        for mark in marks:
            value = at.get("figures", {}).get(mark.name)
            shown = ["not measured", mark.asked, "", "", "", ""]
            if value is not None:
                shown = [f"{value:.3g}", mark.asked, mark.verdict(value), *(str(at[name]) for name in WHEN)]
            rows.append(f"| {' | '.join([mark.id, mark.what, *shown])} |")
    return HEAD + "\n".join(rows) + "\n" + ELSEWHERE


WHEN = ("load", "date", "commit")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help=f"comma-separated: {', '.join(BENCHES)}")
    parser.add_argument("--long", action="store_true")
    given = parser.parse_args()
    chosen = given.only.split(",") if given.only else [n for n in BENCHES if given.long or n not in LONG]
    if unknown := set(chosen) - set(BENCHES):
        parser.error(f"--only: no bench {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
    silent = []
    for number, bench in enumerate(chosen, 1):
        print(f"marks: {number}/{len(chosen)} {bench}", file=sys.stderr)
        load = round(os.getloadavg()[0], 1)
        found = figures(bench)
        wanted = {mark.name: figure(found, mark.path) for mark in BENCHES[bench]}
        if not any(value is not None for value in wanted.values()):
            silent.append(bench)
            continue
        kept[bench] = {
            "load": load,
            "date": time.strftime("%Y-%m-%d"),
            "commit": commit,
            "figures": {name: value for name, value in wanted.items() if value is not None},
        }
        KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")
        TABLE.write_text(table(kept), "utf-8")
    if silent:
        print(f"marks: no figures from {', '.join(silent)}; python -m bench.NAME says why", file=sys.stderr)
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
