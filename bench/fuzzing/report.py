"""The bench's results as Markdown and as data."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bench.fuzzing.campaign import CampaignOutcome, ReportedDefect
from bench.fuzzing.faults import classes
from bench.fuzzing.score import RecallScore


def data_of(
    scores: Sequence[RecallScore], clean: Sequence[CampaignOutcome], about: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "about": dict(about),
        "recall": recall(scores),
        "seeds": [_seed(one) for one in scores],
        "clean": [
            {"executions": one.executions, "trouble": one.trouble, "defects": [d.repro for d in one.defects]}
            for one in clean
        ],
    }


def recall(scores: Sequence[RecallScore]) -> float:
    """The share of the generated defects that were found."""
    wanted = sum(len(one.faults) for one in scores)
    return round(sum(len(one.found) for one in scores) / wanted, 3) if wanted else 0.0


def markdown(
    scores: Sequence[RecallScore], clean: Sequence[CampaignOutcome], about: Mapping[str, Any]
) -> str:
    lines = ["# What the search finds in compilers with generated defects", ""]
    lines += [f"`{about['command']}`, commit {about['commit']}, {about['date']}.", *about["versions"], ""]
    if scores:
        lines += [*_summary(scores), "", *_by_class(scores), "", *_by_seed(scores), "", *_missed(scores)]
    lines += _listed("False findings", [one for score in scores for one in score.false])
    lines += _listed("Defects of the bundled compiler itself", [one for score in scores for one in score.own])
    lines += _listed("Not confirmed every time", [one for score in scores for one in score.flaky])
    if clean:
        lines += _clean(clean)
    return "\n".join(lines).rstrip() + "\n"


def _summary(scores: Sequence[RecallScore]) -> list[str]:
    wanted, found = sum(len(one.faults) for one in scores), sum(len(one.found) for one in scores)
    false = sum(len(one.false) for one in scores)
    firsts = [one.outcome.first_s for one in scores if one.outcome.first_s >= 0]
    first = f"{statistics.median(firsts):.0f} s" if firsts else "none"
    return [
        f"Found {found} of {wanted} ({100 * recall(scores):.0f} %), false {false}, "
        f"reported twice {sum(s.twice for s in scores)}; the first is listed after {first} (median)."
    ]


def _by_class(scores: Sequence[RecallScore]) -> list[str]:
    rows = ["| class | found | of |", "|---|---|---|"]
    for klass in classes():
        here = [(one, score) for score in scores for one in score.faults if one.klass == klass]
        if here:
            rows.append(f"| {klass} | {sum(one.id in score.found for one, score in here)} | {len(here)} |")
    return rows


def _by_seed(scores: Sequence[RecallScore]) -> list[str]:
    rows = ["| seed | found | of | false | twice | executions | accepted | searched | first |"]
    rows.append("|---|---|---|---|---|---|---|---|---|")
    for one in scores:
        done = one.outcome
        rows.append(
            f"| {one.seed} | {len(one.found)} | {len(one.faults)} | {len(one.false)} | {one.twice} "
            f"| {done.executions} | {100 * done.accepted // max(done.executions, 1)} % "
            f"| {done.seconds:.0f} s | {done.first_s:.0f} s |"
        )
    return rows + [f"\nSeed {one.seed}: {one.outcome.trouble}" for one in scores if one.outcome.trouble]


def _missed(scores: Sequence[RecallScore]) -> list[str]:
    rows = [
        f"| {score.seed} | {one.klass} | {one.stage} | {one.place.id} | `{_short(one.do)}` |".replace(
            "||", "\\|\\|"
        )
        for score in scores
        for one in score.missed
    ]
    head = ["Missed:", "", "| seed | class | stage | place | does |", "|---|---|---|---|---|"]
    return [*head, *rows, ""] if rows else []


def _listed(title: str, defects: Sequence[ReportedDefect]) -> list[str]:
    return (
        [f"{title}:", "", *(f"- {d.klass}: {d.title}: `{_short(d.repro)}`" for d in defects), ""]
        if defects
        else []
    )


def _clean(clean: Sequence[CampaignOutcome]) -> list[str]:
    silent = sum(not one.defects and not one.trouble for one in clean)
    executions = sum(one.executions for one in clean)
    rows = [f"Clean twins: silent in {silent} of {len(clean)}, {executions} executions.", ""]
    rows += [f"- {one.trouble}" for one in clean if one.trouble]
    return rows + _listed("Found in a clean twin", [d for one in clean for d in one.defects])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _short(text: str, most: int = 160) -> str:
    text = text.replace("\n", " ").replace("`", "'")
    return text if len(text) <= most else text[: most - 1] + "…"


def _seed(score: RecallScore) -> dict[str, Any]:
    return {
        "seed": score.seed,
        "found": sorted(score.found),
        "faults": [
            {
                "id": one.id,
                "class": one.klass,
                "stage": one.stage,
                "place": one.place.id,
                "do": one.do,
                "witness": one.place.witness,
                "found": one.id in score.found,
            }
            for one in score.faults
        ],
        "reports": [
            {"class": one.klass, "title": one.title, "repro": one.repro, "is": name, "size": one.size}
            for one, name in score.by
        ],
        "flaky": [one.repro for one in score.flaky],
        "executions": score.outcome.executions,
        "accepted": score.outcome.accepted,
        "seconds": score.outcome.seconds,
        "first_s": score.outcome.first_s,
        "runners": score.outcome.runners,
        "trouble": score.outcome.trouble,
    }
