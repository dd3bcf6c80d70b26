"""How well triage tells which entries of the log are about the same thing.

    python -m bench.duplicates [--part build|held_out|unseen|…] [--json]

Prints precision and recall of the pairs that are joined and of those that are suggested, the items, the false
premises that were promoted and each wrong pair. Exit code 1 when a pair was joined or suggested wrongly, or a
premise was promoted: recall is what it is, precision has to be 1.
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


def good(score: DuplicateScore) -> bool:
    """Whether nothing was joined, suggested or promoted wrongly."""
    return not (score.merged_wrongly or score.suggested_wrongly or score.promoted)


def report(score: DuplicateScore, texts: dict[str, str]) -> str:
    """The score in lines for a person."""
    lines = [
        f"{score.entries} entries, {score.findings} findings, {score.items} items",
        f"pairs: precision {score.precision:.4f} ({score.right} of {score.joined}), "
        f"recall {score.recall:.4f} ({score.right} of {score.same})",
        f"suggested: {len(score.suggested)}, of which wrong: {len(score.suggested_wrongly)}",
        f"false premises promoted: {len(score.promoted)} {' '.join(score.promoted)}".rstrip(),
    ]
    wrong = {"merged wrongly": score.merged_wrongly, "suggested wrongly": score.suggested_wrongly}
    for name, pairs in wrong.items():
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
