"""Texts that say the same: what is joined, what is suggested, what is neither, and what stays bounded."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.triage.items.similar import (
    CANDIDATES,
    EACH,
    EQUAL,
    MAX_CHARS,
    MAX_WORDS,
    POSTINGS,
    SUGGESTED,
    WORD_CHARS,
    SimilarTexts,
    Wording,
    wording,
)

PAIRS = tomllib.loads((Path(__file__).parent / "similar_pairs.toml").read_text(encoding="utf-8"))
FIRST, AGAIN = "empty message is charged before validation", "Before validation, empty messages: is charged"
MORE = f"{FIRST}, says nova"


def texts_of(*entries: tuple[str, str, str], exact: bool = False, ours: bool = True) -> SimilarTexts:
    """All entries (key, surface, title), in this order."""
    texts = SimilarTexts()
    for key, surface, title in entries:
        texts.add(key, surface, title, exact=exact, ours=ours)
    return texts


def leads(texts: SimilarTexts) -> dict[str, str]:
    return {link.a: link.b for link in texts.links.values()}


def found(first: str, second: str, surfaces: tuple[str, str] = ("s", "s"), *, exact: bool = False) -> str:
    """What comes of two texts: `joined`, `suggested` or nothing."""
    texts = texts_of(("a", surfaces[0], first), ("b", surfaces[1], second), exact=exact)
    pairs = [(one.a, one.b) for one in texts.similar()]
    assert (leads(texts), pairs) in (({"b": "a"}, []), ({}, [("a", "b")]), ({}, []))
    return "joined" if texts.links else "suggested" if pairs else ""


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        *((*pair, "joined") for pair in PAIRS["equal"]),
        *((*pair, "suggested") for pair in PAIRS["similar"]),
        *((*pair, "") for pair in PAIRS["other"]),
    ],
)
def test_what_comes_of_two_titles_in_either_order(first: str, second: str, what: str) -> None:
    assert found(first, second) == found(second, first) == what


def test_the_reason_is_for_people() -> None:
    (pair,) = texts_of(("a", "s", FIRST), ("b", "s", MORE)).similar()
    assert (pair.a, pair.b, pair.similarity) == ("a", "b", 0.89)
    assert pair.why == "0.89 alike; only one says nova, says"
    assert texts_of(("a", "s", FIRST), ("b", "s", AGAIN)).links["b"] == ("b", "a", 1.0, EQUAL)


def test_two_observed_entries_are_neither_joined_nor_suggested_but_a_note_joins_the_first() -> None:
    assert found(FIRST, FIRST, exact=True) == found(FIRST, MORE, exact=True) == ""
    texts = texts_of(("a", "s", FIRST), ("b", "s", FIRST), exact=True)
    texts.add("c", "s", AGAIN)
    assert leads(texts) == {"c": "a"}


def test_a_surface_divides_and_a_note_without_one_is_suggested() -> None:
    assert found(FIRST, FIRST, ("billing", "docs")) == ""
    assert found(FIRST, MORE, ("billing", "unknown")) == found(FIRST, AGAIN, ("", "billing")) == "suggested"


def test_the_first_of_ours_leads_whenever_it_comes() -> None:
    texts = texts_of(("s1", "s", FIRST), ("s2", "s", AGAIN), ours=False)
    assert texts.settle()
    assert not texts.settle()
    assert leads(texts) == {"s2": "s1"}
    texts.add("o1", "s", FIRST)
    texts.add("o2", "s", FIRST)
    assert texts.settle()
    assert leads(texts) == {"s1": "o1", "s2": "o1", "o2": "o1"}


def test_a_short_text_says_too_little_to_be_similar() -> None:
    assert found("it is broken", "it is broken again") == ""
    assert found("It is broken!", "is it broken") == "joined"
    assert found("0x" + "a" * 64, "0x" + "b" * 64) == ""


@given(st.permutations(range(12)))
def test_the_order_changes_no_pair(order: list[int]) -> None:
    titles = [title for pair in PAIRS["similar"] for title in pair]
    texts = texts_of(*((str(at), "s", titles[at]) for at in order))
    wanted = {frozenset((str(at), str(at + 1))) for at in range(0, 12, 2)}
    assert {frozenset((one.a, one.b)) for one in texts.similar()} == wanted


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(alphabet="qwxyz ", min_size=1, max_size=30), max_size=20), st.booleans())
def test_unrelated_entries_change_nothing(others: list[str], between: bool) -> None:
    strange = [(f"o{at}", "s" if between else "unknown", other) for at, other in enumerate(others)]
    texts = texts_of(("a", "s", FIRST), *strange, ("b", "s", AGAIN), ("c", "s", MORE))
    assert {key: other for key, other in leads(texts).items() if key in "abc"} == {"b": "a"}
    assert [(one.a, one.b) for one in texts.similar() if one.b == "c"] == [("a", "c")]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.text(max_size=200))
def test_any_two_texts_are_compared_alike_both_ways(first: str, second: str) -> None:
    one, two = wording(first), wording(second)
    assert one.similarity(two) == pytest.approx(two.similarity(one))
    assert wording(first) == one


@pytest.mark.parametrize(
    "text",
    [
        "e" + "\u0301" * 20_000,
        "a" * 16_384,
        "a_" * 8_192,
        "0x" + "f" * 16_384,
        "/" * 16_384,
        "-" * 16_384,
        "\ud800" * 100 + FIRST,
        "`" * 16_384 + "<a>",
        "word " * 4_000,
        "1:" * 8_000,
        "\x00\x1b[2J" * 4_000,
    ],
)
def test_hostile_text_is_read_within_bounds(text: str) -> None:
    found = wording(text, text)
    assert len(found.text) <= MAX_CHARS * 4
    assert len(found.words) <= MAX_WORDS
    assert all(len(word) <= WORD_CHARS for word in found.words)
    texts_of(("a", "s", text), ("b", "s", f"{text} "))


def test_what_is_suggested_is_bounded_and_the_likeliest() -> None:
    texts = SimilarTexts()
    words = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "bdfgklmnprst"]
    for at in range(SUGGESTED + 50):
        base = [words[(at * 7 + step * 53) % len(words)] + "x" for step in range(12)]
        for turn in range(EACH + 2):
            texts.add(f"{at}-{turn}", f"s{at}", " ".join([*base, *(f"own{n}q" for n in "abc"[:turn])]))
    pairs = texts.similar()
    assert len(pairs) == SUGGESTED
    assert [one.similarity for one in pairs] == sorted((one.similarity for one in pairs), reverse=True)


def test_a_flood_cannot_make_a_comparison_dear_nor_displace_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = texts_of(("ours", "s", FIRST))
    for at in range(2_000):
        title = f"empty message charged flood{at:x}q other{at:x}w third{at:x}e"
        texts.add(f"x{at}", "s", title, ours=False)
    assert max(len(listed) for table in texts._index.values() for listed in table.values()) <= POSTINGS
    compared: list[Wording] = []
    compare = Wording.similarity

    def counted(one: Wording, other: Wording) -> float:
        compared.append(other)
        return compare(one, other)

    monkeypatch.setattr(Wording, "similarity", counted)
    texts.add("again", "s", MORE)
    assert len(compared) <= CANDIDATES * 2
    pairs = texts.similar()
    assert (pairs[0].a, pairs[0].b, len(pairs)) == ("ours", "again", SUGGESTED)
