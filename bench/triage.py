"""Marks B10 and B11: a log of a million entries from cold, and one hundred new ones on a hundred thousand.

    python -m bench.triage [--rounds 3] [--entries 100000] [--json FILE]

One log of entries of 278 bytes: half are the fleet's, of 2,000 defects in different runs, half
are strangers', from senders with a hundred entries each. Each contestant reads its own store in a process
of its own and takes turns. Ours is the fleet's: rows of the journal's mirror, folded, merged, judged and
ranked with everything that a worklist shows. The peer reads the same facts as JSON lines: `json.loads`, the
title without numbers as a key, counts in a dictionary, the top hundred; polars does that too, where it is
installed in `.venv-peers`. B11 compares the fold of new entries with the peer's only way: all of it again.
Ratios are of processor time: other work on the machine does not count. Ours compares wordings and judges the
life of every item, which the peer does not, so it is slower cold, and below the mark. From a million entries
on, MOST_S and MOST_MB count too.
Exit status 1 below a mark.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fleet.chain.node.codec import Entry
from fleet.store.journal import Journal
from fleet.triage.items.fold import TriageFold
from fleet.triage.items.pass_inputs import PassInputs
from fleet.triage.log.mirror import MirrorState
from fleet.triage.run import folded

FLOOR_COLD = 2.5
"""B10: at least this many times json + dict at 100,000."""
FLOOR_NEW = 50.0
"""B11: at least this many times json + dict over everything."""
MILLION = 1_000_000
MOST_S, MOST_MB = 10.0, 300.0
"""A million from cold, in seconds of processor time."""
SIZE = 278
OURS = "0x" + "aa" * 20
AT = 1_790_000_000
DEFECTS = 2_000
WORDS = "timeout balance gas nonce header quota publish compile facet route token face wallet page reply"


def defect(number: int) -> dict[str, str]:
    """What one defect is called, by its number; wordings differ as defects do."""
    name = hashlib.sha256(str(number).encode()).hexdigest()
    words = random.Random(number).sample(WORDS.split(), 4)
    surface = ("security", "on-chain", "compiler", "ux", "perf")[number % 5]
    title = f"GET {{site}}/{name[:8]} {' '.join(words)} answers {400 + number % 100}"
    return {"fp": name[:12], "was": name[12:24], "surface": surface, "title": title, "path": name[:8]}


def entry(place: int) -> tuple[str, int, str, dict[str, Any]]:
    """Sender, time and text of an entry, and its facts for a peer."""
    if place % 2:
        number, run, sender = place // 2 % DEFECTS, place // 2, OURS
    else:
        number, run, sender = 10**9 + place, place, f"0x{place // 200:040x}"
    one = defect(number)
    severity = ("critical", "high", "medium", "low")[number % 4]
    head = f"qa/v1 source=qa-ux sev={severity} surface={one['surface']} run=r{run} fp={one['fp']}"
    head += f" was={one['was']} rate=3/3 ev=sha256:{one['fp'] * 5}{one['fp'][:4]}"
    repro = f'repro: qa_fetch(url="{{site}}/{one["path"]}")'
    text = f"{head}\n{one['title']}\n{repro}"
    text = text.replace(one["title"], one["title"] + "." * max(0, SIZE - len(text)))
    facts = {"sev": severity, "surface": one["surface"], "run": f"r{run}", "title": one["title"]}
    return sender, AT + place, text, {"sender": sender, "at": AT + place, "fp": one["fp"], **facts}


def batches(
    start: int, count: int, size: int = 20_000
) -> Iterator[list[tuple[str, int, str, dict[str, Any]]]]:
    for at in range(start, start + count, size):
        yield [entry(place) for place in range(at, min(at + size, start + count))]


async def write_store(folder: Path, count: int) -> None:
    """The journal with the mirror, and the JSON lines."""
    with (folder / "log.jsonl").open("w") as lines:
        async with await Journal.open(folder / "fleet.db") as journal:
            at = 0
            for batch in batches(0, count):
                await journal.mirror(0, at, [Entry(sender, when, text) for sender, when, text, _ in batch])
                lines.writelines(json.dumps(facts) + "\n" for *_, facts in batch)
                at += len(batch)


def known() -> PassInputs:
    return PassInputs(now=datetime.fromtimestamp(AT, UTC))


async def ours(folder: Path) -> dict[str, float]:
    """From cold: rows, fold, worklist. Then one hundred new entries, several times."""
    async with await Journal.open(folder / "fleet.db") as journal:
        _, upto = await journal.mirror_cursor()
        started, cpu = time.perf_counter(), time.process_time()
        state = MirrorState(0, upto, 0, 0)
        fold: TriageFold = await folded(journal, frozenset({OURS}), state, None)
        read = time.perf_counter() - started
        items = fold.decide(known()).items
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    new = []
    for turn in range(10):
        rows = [
            (place, sender, at, text.encode())
            for place in range(upto + 100 * turn, upto + 100 * (turn + 1))
            for sender, at, text, _ in [entry(place)]
        ]
        started = time.process_time()
        fold.index.add_rows(0, rows)
        fold.refresh(known())
        new.append(time.process_time() - started)
    return {
        "s": seconds,
        "cpu_s": cpu,
        "fold_s": read,
        "rss_mb": rss,
        "items": len(items),
        "new_ms": statistics.median(new) * 1000,
    }


PEER = """
import collections, json, re, resource, sys, time
started = time.perf_counter()
numbers = re.compile(r"0x[0-9a-f]+|[0-9]+")
weights = {"critical": 8, "high": 4, "medium": 2, "low": 1}
groups = {}
for text in open(sys.argv[1]):
    one = json.loads(text)
    key = one["surface"], numbers.sub("#", one["title"].lower())
    known = groups.get(key)
    if known is None:
        groups[key] = known = [0, 0, set()]
    known[0] += 1
    known[1] = max(known[1], weights.get(one["sev"], 0))
    known[2].add(one["run"])
best = sorted(groups, key=lambda key: -groups[key][1] * len(groups[key][2]))[:100]
print(json.dumps({"s": time.perf_counter() - started, "cpu_s": time.process_time(), "items": len(groups),
    "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""
POLARS = """
import json, resource, sys, time
import polars as pl
started = time.perf_counter()
rank = {"critical": 8, "high": 4, "medium": 2, "low": 1}
rows = pl.scan_ndjson(sys.argv[1]).with_columns(
    pl.col("title").str.to_lowercase().str.replace_all(r"0x[0-9a-f]+|[0-9]+", "#"),
    pl.col("sev").replace_strict(rank, default=0))
found = rows.group_by("surface", "title")
found = found.agg(pl.len(), pl.col("sev").max(), pl.col("run").n_unique().alias("runs"))
score = (pl.col("sev") * pl.col("runs")).alias("score")
found.with_columns(score).sort("score", descending=True).head(100).collect()
print(json.dumps({"s": time.perf_counter() - started,
    "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def run(name: str, folder: Path) -> dict[str, float] | None:
    """One contestant, in a process of its own; None when it is not installed."""
    peers = Path(".venv-peers/bin/python")
    words = {
        "ours": [sys.executable, "-m", "bench.triage", "--one", str(folder)],
        "json + dict": [sys.executable, "-c", PEER, str(folder / "log.jsonl")],
        "polars": [str(peers), "-c", POLARS, str(folder / "log.jsonl")],
    }[name]
    if name == "polars" and not peers.is_file():
        return None
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    if done.returncode:
        if name == "polars":
            return None
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(rounds: int, count: int) -> dict[str, Any]:
    """Medians and ratios of all contestants on one log."""
    found: dict[str, list[dict[str, float]]] = {"ours": [], "json + dict": [], "polars": []}
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(write_store(Path(place), count))
        order = list(found)
        for _ in range(rounds):
            for name in order:
                if (one := run(name, Path(place))) is not None:
                    found[name].append(one)
            order = order[1:] + order[:1]
    medians = {
        name: {key: round(statistics.median(one[key] for one in ones), 3) for key in ones[0]}
        for name, ones in found.items()
        if ones
    }
    peer = [one["cpu_s"] for one in found["json + dict"]]
    cold = [other / one["cpu_s"] for one, other in zip(found["ours"], peer, strict=True)]
    new = [other * 1000 / one["new_ms"] for one, other in zip(found["ours"], peer, strict=True)]
    return {
        "count": count,
        "medians": medians,
        "B10_ratio": round(statistics.median(cold), 2),
        "B11_ratio": round(statistics.median(new), 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="triage marks B10 and B11")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asyncio.run(ours(options.one))))
        return 0
    base = measure(options.rounds, options.entries)
    result = {"floors": {"B10": FLOOR_COLD, "B11": FLOOR_NEW}, "base": base}
    good = base["B10_ratio"] >= FLOOR_COLD and base["B11_ratio"] >= FLOOR_NEW
    if options.entries >= MILLION:
        own = base["medians"]["ours"]
        good = good and own["cpu_s"] < MOST_S and own["rss_mb"] < MOST_MB
    text = json.dumps(result, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
