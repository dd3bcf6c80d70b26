"""How well triage tells which entries of the log are about the same thing.

    python -m bench.duplicates [--part build|held_out|unseen|…] [--json]

Prints pair precision and recall, the items, the false premises that were promoted (must be none) and each
wrong pair. Exit code 1 when a pair was merged wrongly, recall is below the mark, or a premise was promoted.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import get_args

from bench.duplicates.labelled import Part, labelled
from bench.duplicates.score import DuplicateScore, scored

AMONG: dict[Part, tuple[Part, ...]] = {
    "build": (),
    "held_out": (),
    "unseen": ("build", "held_out"),
    "drawn": ("build", "held_out", "unseen"),
    "drawn_again": ("build", "held_out", "unseen", "drawn"),
    "fresh": ("build", "held_out", "unseen", "drawn", "drawn_again"),
    "independent": ("build", "held_out", "unseen", "drawn", "drawn_again", "fresh"),
    "independent_again": ("build", "held_out", "unseen", "drawn", "drawn_again", "fresh"),
}
"""Entries that are on the log before those of a part which has the same findings as they."""
RECALL = 0.95
"""The mark for pair recall; precision has to be 1."""


def good(score: DuplicateScore) -> bool:
    """Whether a part meets its marks."""
    return score.precision == 1 and score.recall >= RECALL and not score.promoted


def report(score: DuplicateScore, texts: dict[str, str]) -> str:
    """The score in lines for a person."""
    lines = [
        f"{score.entries} entries, {score.findings} findings, {score.items} items",
        f"pairs: precision {score.precision:.4f} ({score.right} of {score.joined}), "
        f"recall {score.recall:.4f} ({score.right} of {score.same})",
        f"false premises promoted: {len(score.promoted)} {' '.join(score.promoted)}".rstrip(),
    ]
    for name, pairs in (("merged wrongly", score.merged_wrongly), ("missed", score.missed)):
        lines += [f"{name}: {a} | {b}\n    {texts[a]}\n    {texts[b]}" for a, b in pairs]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.duplicates")
    parser.add_argument("--part", choices=get_args(Part), default="build")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    entries = labelled(given.part)
    among = [one for part in AMONG[given.part] for one in labelled(part)]
    score = scored(entries, among)
    if given.json:
        print(json.dumps(asdict(score) | {"precision": score.precision, "recall": score.recall}, indent=1))
    else:
        print(report(score, {one.id: " ".join(one.text.split())[:160] for one in (*among, *entries)}))
    return 0 if good(score) else 1


if __name__ == "__main__":
    sys.exit(main())
