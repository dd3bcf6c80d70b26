"""The tables of an evaluation: JSON for a program, Markdown for a reader. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.findings.score import Judged, tallied, union

FLEET = "fleet"
COLUMNS = ["finder", "platforms", "seeded", "found", "recall", "of reachable", "items", "precision", "titles"]
COLUMNS += ["first proof", "calls", "time"]


def data_of(results: Sequence[Judged], about: dict[str, Any]) -> dict[str, Any]:
    """Everything, as JSON."""
    return about | {
        "results": [
            {"finder": finder, "kind": kind} | tally.as_data()
            for (finder, kind), tally in tallied(results).items()
        ]
    }


def markdown(results: Sequence[Judged], about: dict[str, Any]) -> str:
    """The same for a reader."""
    tallies = tallied(results)
    lines = [
        "# What the fleet finds, and what others find",
        "",
        f"Made by `{about['command']}` at commit {about['commit']}.",
        "",
        "An item counts for a defect when its evidence shows the defect's effect, by a rule per class that",
        "does not know which probe or explorer made the item; all other items are false. *Titles* is the",
        "share of true items whose title says what the evidence shows. Platforms are generated from a seed",
        "(`bench/findings/`); a clean twin is the same platform without any switch. Peers see the same",
        "platforms; a scanner of the web cannot see agents or the chain, and its advice on headers counts",
        "as an item like any other.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
    ]
    for (finder, kind), tally in tallies.items():
        row = tally.as_data()
        first = f"{row['first_proof_s']:.0f} s" if row["first_proof_s"] else "-"
        cells = [finder, f"{kind} ({row['targets']})", row["seeded"], row["found"], _share(row["recall"])]
        cells += [_share(row["recall_of_reachable"])]
        cells += [row["items"], _share(row["precision"]), _share(row["titles_true"]), first]
        cells += [row["calls"] or "-", f"{row['seconds']:.0f} s"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", *_against_peers(results), *_classes(results), *_details(results)]
    lines += [f"- {note}" for note in about["notes"]]
    return "\n".join(lines).rstrip() + "\n"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def _against_peers(results: Sequence[Judged]) -> list[str]:
    """Found by the fleet, and by the union of its peers, on the same targets."""
    peers = sorted({one.finder for one in results} - {FLEET})
    seeded = [one for one in results if one.target.wanted]
    if not peers or not seeded:
        return []
    shared = {one.target.name for one in seeded if one.finder in peers}
    same = [one for one in seeded if one.target.name in shared]
    there = {(one.target.name, wanted.name) for one in same for wanted in one.target.wanted}
    return [
        f"On the {len(shared)} platforms that peers saw as well, with {len(there)} defects: the fleet found "
        f"{union(same, [FLEET])}, {' and '.join(peers)} together {union(same, peers)}.",
        "",
    ]


def _classes(results: Sequence[Judged]) -> list[str]:
    """Recall by class on generated platforms, one column for each finder."""
    tallies = {finder: tally for (finder, kind), tally in tallied(results).items() if kind == "generated"}
    if not tallies:
        return []
    names = sorted({name for tally in tallies.values() for name in tally.classes})
    lines = ["## By class, on generated platforms", "", f"| class | {' | '.join(tallies)} |"]
    lines.append("|---" * (len(tallies) + 1) + "|")
    for name in names:
        cells = [tally.classes.get(name, [0, 0]) for tally in tallies.values()]
        lines.append(
            f"| {name} | " + " | ".join(f"{found}/{of}" if of else "-" for found, of in cells) + " |"
        )
    return [*lines, ""]


def _details(results: Sequence[Judged]) -> list[str]:
    lines = []
    for (finder, kind), tally in tallied(results).items():
        for title, rows in (("missed", tally.missed), ("false", tally.false), ("troubles", tally.troubles)):
            if rows and (finder == FLEET or title == "troubles"):
                lines += [f"## {finder}, {kind}: {title}", "", *(f"- {_plain(one)}" for one in rows), ""]
    return lines


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:300]
