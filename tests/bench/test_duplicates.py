"""The labelled set of duplicates: what it holds, how pairs are counted, the score of the build part."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from bench.duplicates.__main__ import AMONG, good, report
from bench.duplicates.labelled import SEED, LabelledEntry, Part, labelled
from bench.duplicates.score import scored
from fleet.findings.reader import read

BUILD = sorted(random.Random(SEED).sample(range(1, 41), 20))
FALSE_PREMISES = (3, 31, 32, 33, 34, 35, 36)
"""Verdict F of the maintainers; 3 was filed as a defect, but the nonce is the key that it misses."""
NOT_DEFECTS = (37, 38, 39)


def entry(number: int, finding: str, text: str, **given: str) -> LabelledEntry:
    made = LabelledEntry(str(number), finding, text, "stranger", "paraphrase", "")
    return replace(made, **given)  # type: ignore[arg-type]  # literals


def test_the_set_is_large_split_by_findings_and_in_every_grammar() -> None:
    build, held_out = labelled("build"), labelled("held_out")
    assert {int(one.finding.partition(".")[0]) for one in build} == set(BUILD)
    assert {int(one.finding.partition(".")[0]) for one in held_out} == set(range(1, 41)) - set(BUILD)
    every = [*build, *held_out]
    assert len(every) >= 300
    assert len({one.text for one in every}) == len(every)
    assert all(len(one.text.encode()) <= 2_048 for one in every)
    grammars = Counter(read(one.text).grammar for one in every)
    assert min(grammars[one] for one in ("canonical", "design", "sop", "shipped", "free")) >= 30
    sizes = Counter(one.finding for one in every if one.kind != "near-miss")
    assert min(sizes.values()) >= 5
    assert max(sizes.values()) <= 10


def test_kinds_follow_the_findings() -> None:
    kinds = dict.fromkeys(map(str, FALSE_PREMISES), "false-premise")
    kinds |= dict.fromkeys(map(str, NOT_DEFECTS), "not-a-defect")
    for one in [*labelled("build"), *labelled("held_out")]:
        wanted = "near-miss" if "." in one.finding else kinds.get(one.finding, "paraphrase")
        assert one.kind == wanted, one.id


def test_what_was_written_later_is_about_the_same_findings_and_promotes_no_false_premise() -> None:
    first = [*labelled("build"), *labelled("held_out")]
    parts: tuple[Part, ...] = ("unseen", "drawn", "drawn_again", "fresh")
    later = [one for part in parts for one in labelled(part)]
    assert len({one.text for one in (*first, *later)}) == len(first) + len(later)
    assert {one.finding.partition(".")[0] for one in later} < {one.finding for one in first}
    assert scored(later, first).promoted == ()


def test_pairs_are_counted_by_item_and_by_label() -> None:
    entries = [
        entry(0, "1", "the page is blank"),
        entry(1, "1", "The  PAGE is blank"),
        entry(2, "1", "zzz unrelated qqq xxx"),
        entry(3, "2", "the page is blank"),
    ]
    score = scored(entries)
    assert (score.items, score.joined, score.same, score.right) == (2, 3, 3, 1)
    assert score.merged_wrongly == (("0", "3"), ("1", "3"))
    assert score.missed == (("0", "2"), ("1", "2"))
    assert len(score.suggested) == 0
    assert (score.precision, score.recall) == (1 / 3, 1 / 3)
    assert not good(score)
    assert "merged wrongly: 0 | 3" in report(score, {one.id: one.text for one in entries})
    after = scored(entries[3:], entries[:3])
    assert (after.joined, after.same, after.merged_wrongly) == (2, 0, (("0", "3"), ("1", "3")))


def test_a_false_premise_in_a_proven_item_is_promoted() -> None:
    text = (
        "qa/v1 source=qa-fuzz sev=high surface=compiler fp=0123456789ab rate=3/3\n"
        'it panics\nrepro: qa_compile(source="x")'
    )
    claim = entry(0, "31", text, kind="false-premise")
    assert scored([claim]).promoted == ()
    assert scored([replace(claim, sender="fleet")]).promoted == ("0",)


def test_pairs_that_are_suggested_are_counted_apart() -> None:
    texts = ("the page of the shop is blank", "the page of the shop is blank on monday")
    score = scored([entry(0, "1", texts[0]), entry(1, "1", texts[1]), entry(2, "2", f"{texts[1]} morning")])
    assert score.joined == 0
    assert {*score.suggested} == {("0", "1"), ("0", "2"), ("1", "2")}
    assert {*score.suggested_wrongly} == {("0", "2"), ("1", "2")}
    assert not good(score)


@pytest.mark.parametrize("part", AMONG)
def test_nothing_is_joined_suggested_or_promoted_wrongly(part: Part) -> None:
    among = [one for other in AMONG[part] for one in labelled(other)]
    assert good(scored(labelled(part), among))
