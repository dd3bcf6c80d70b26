"""Entries that say the same in other words: what must be linked, what must not, and what stays bounded."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.triage.same import similar, wording
from fleet.triage.same.likeness import Likeness, compare
from fleet.triage.same.similar import CANDIDATES, POSTINGS, SimilarTexts
from fleet.triage.same.word_atoms import WORD_CHARS
from fleet.triage.same.word_lists import lists, stem
from fleet.triage.same.wording import Reader

PAIRS = tomllib.loads((Path(__file__).parent / "similar_pairs.toml").read_text(encoding="utf-8"))
FIRST, SECOND = (
    "empty message is charged before validation",
    "an empty prompt is debited before it is validated",
)


def links_of(*entries: tuple[str, str, str], exact: bool = False) -> dict[str, str]:
    """Whom each entry (key, surface, title) is linked to, once all are in."""
    texts = SimilarTexts()
    for key, surface, title in entries:
        texts.add(key, surface, title, exact=exact)
    texts.settle()
    return {link.a: link.b for link in texts.links.values()}


def linked(first: str, second: str, *, surfaces: tuple[str, str] = ("s", "s"), exact: bool = False) -> bool:
    found = links_of(("a", surfaces[0], first), ("b", surfaces[1], second), exact=exact)
    assert found in ({}, {"b": "a"})
    return bool(found)


@pytest.mark.parametrize(("first", "second"), PAIRS["same"])
def test_the_same_in_other_words_is_linked_in_either_order(first: str, second: str) -> None:
    assert linked(first, second)
    assert linked(second, first)


@pytest.mark.parametrize(("first", "second"), PAIRS["other"])
def test_a_near_miss_is_not_linked_in_either_order(first: str, second: str) -> None:
    assert not linked(first, second)
    assert not linked(second, first)


def test_there_are_enough_pairs() -> None:
    assert min(len(PAIRS["same"]), len(PAIRS["other"])) >= 40


def test_the_reason_names_what_both_say() -> None:
    texts = SimilarTexts()
    texts.add("a", "s", FIRST)
    texts.add("b", "s", "empty message is charged before validation of the payload, says nova")
    assert texts.settle()
    assert texts.links["b"].why == "0.92 alike: charge, empty, message, validate; only one says nova, print"


def test_two_observed_entries_are_never_linked_nor_joined_by_a_third() -> None:
    assert not linked(FIRST, FIRST, exact=True)
    texts = SimilarTexts()
    texts.add("a", "s", FIRST, exact=True)
    texts.add("b", "s", SECOND, exact=True)
    texts.add("c", "s", FIRST)
    texts.settle()
    assert {link.a: link.b for link in texts.links.values()} == {"c": "a"}


def test_a_named_surface_divides_and_a_note_has_none() -> None:
    assert not linked(FIRST, FIRST, surfaces=("billing", "docs"))
    assert linked(FIRST, SECOND, surfaces=("billing", "unknown"))
    assert linked(FIRST, SECOND, surfaces=("unknown", "billing"))


SILENT = (
    "The CLI had silently used testnet, and the browser shows mainnet.",
    "browser on mainnet but cli on testnet, silently",
    "Default chain differs: CLI = testnet, browser = mainnet, and the CLI is silent about it.",
    "the CLI talks to testnet by default and doesn't tell you (silently!), the browser to mainnet.",
)


def test_who_tells_of_something_else_than_most_is_not_one_of_them() -> None:
    other = "CLI refuses to start on mainnet. Testnet works. The browser is not involved."
    found = links_of(*((str(at), "s", title) for at, title in enumerate((*SILENT, other))))
    assert found == {"1": "0", "2": "0", "3": "0"}


def test_a_short_text_that_says_something_else_happens_stays_outside_a_core() -> None:
    core = (
        ("a", "s", "Push subscriptions that are dead are reported as sent."),
        ("b", "s", "dead push subscriptions reported as sent"),
        ("c", "s", "push to a dead subscription is reported as sent"),
    )
    other = "A notification is sent to a subscription that was deleted an hour before."
    assert links_of(*core, ("d", "s", other)) == {"b": "a", "c": "a"}


def test_of_few_texts_those_that_each_report_something_else_stay_apart() -> None:
    twice = (
        "a push is delivered twice to one device with two subscriptions",
        "Notifications to live push subscriptions are sent twice.",
    )
    other = "A notification is sent to a subscription that was deleted an hour before."
    assert links_of(("a", "s", twice[0]), ("b", "s", twice[1]), ("c", "s", other)) == {"b": "a"}


def test_a_core_of_things_alone_takes_in_only_what_is_much_alike() -> None:
    invites = (
        "an invite with 1 wei is shown with the value 0.00",
        "dust (1 wei) in an invite shown as 0.00",
        "invite holding a single wei is displayed as 0.00",
        "I accepted an invite which said value 0.00 and then there was 1 wei on my account. It's only dust, "
        "but shown as 0.00 is simply not true",
    )
    price = (
        "I set .price(10_000_000_000_000_00) by mistake, one zero short, and sold at a tenth for a day. "
        "A builder that takes raw wei invites this; take a decimal string for the price."
    )
    found = links_of(*((str(at), "s", title) for at, title in enumerate((*invites, price))))
    assert found == {"1": "0", "2": "0", "3": "0"}


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("topup moves nothing and says done", {"topup": 1, "move": 2, "print": 1}),
        ("topup moves nothing", {"topup": 1, "move": 2}),
        ("nothing moves the wallet", {"move": 2, "wallet": 1}),
        ("the wallet looks like nothing moves", {"wallet": 1, "move": 2}),
    ],
)
def test_nothing_denies_the_word_that_it_belongs_to(text: str, signs: dict[str, int]) -> None:
    assert Reader().read(text).signs == signs


def test_a_chain_of_weak_links_cannot_drift() -> None:
    words = [f"{a}{b}x" for a in "bdfgklmnprst" for b in ("alo", "emi", "oru")]
    ends = links_of(*((str(at), "s", " ".join(words[at : at + 8])) for at in range(0, len(words) - 8, 2)))
    assert ends.get(str(len(words) - 10)) != "0"
    assert len(set(ends.values())) > 1


def test_a_comparison_that_fails_links_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = SimilarTexts()
    texts.add("a", "s", FIRST)
    monkeypatch.setattr(similar, "compare", lambda *_: 1 / 0)
    texts.add("b", "s", f"{FIRST}, says nova")
    assert not texts.settle()
    assert texts.links == {}


def test_a_decision_that_fails_links_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = SimilarTexts()
    texts.add("a", "s", FIRST)
    texts.add("b", "s", f"{FIRST}, says nova")
    assert texts.settle()
    monkeypatch.setattr(similar, "grouped", lambda *_: 1 / 0)
    texts.add("c", "s", f"{FIRST} on a monday, and so forth")
    assert texts.settle()
    assert texts.links == {}


DIVERSE = [title for pair in (*PAIRS["same"][:12], *PAIRS["other"][:12]) for title in pair]


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(len(DIVERSE))), st.integers(1, 40))
def test_the_order_and_the_settling_between_change_no_group(order: list[int], often: int) -> None:
    def groups(places: Sequence[int], often: int) -> set[frozenset[str]]:
        texts = SimilarTexts()
        for count, at in enumerate(places):
            texts.add(DIVERSE[at] + str(at), "s", DIVERSE[at])
            if count % often == 0:
                texts.settle()
        texts.settle()
        found: dict[str, set[str]] = {}
        for at in places:
            key = DIVERSE[at] + str(at)
            link = texts.links.get(key)
            found.setdefault(link.b if link else key, set()).add(key)
        return {frozenset(keys) for keys in found.values()}

    assert groups(order, often) == groups(range(len(DIVERSE)), 1_000)


def test_what_a_stranger_writes_never_joins_two_of_ours() -> None:
    ours = ("charged for an empty message", "the payment of an empty answer is taken twice at night")
    between = f"{ours[0]}: {ours[1]}"
    assert not linked(*ours)
    texts = SimilarTexts()
    for at in range(4):
        texts.add(f"s{at}", "s", f"{between} {'xyz'[:at]}", ours=False)
    for at, title in enumerate(ours):
        texts.add(f"o{at}", "s", title)
    for at in range(4, 8):
        texts.add(f"s{at}", "s", f"{between} {'uvwxyz'[:at]}", ours=False)
    texts.settle()
    leads = {texts.links[key].b if key in texts.links else key for key in ("o0", "o1")}
    assert leads == {"o0", "o1"}


def test_what_is_doubtful_is_bounded_and_the_likeliest() -> None:
    texts = SimilarTexts()
    words = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "bdfgklmnprst"]
    for at in range(similar.DOUBTFUL + 50):
        base = [words[(at * 7 + step * 53) % len(words)] + "x" for step in range(6)]
        for turn in range(2):
            texts.add(f"{at}-{turn}", f"s{at}", " ".join([*base, *(f"own{turn}{n}q" for n in range(3))]))
    texts.settle()
    doubtful = texts.doubtful()
    assert texts.links == {}
    assert len(doubtful) == similar.DOUBTFUL
    assert {pair.similarity for pair in doubtful} == {0.67}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(alphabet="qwxyz ", min_size=1, max_size=30), max_size=20), st.booleans())
def test_unrelated_entries_never_change_a_link(others: list[str], between: bool) -> None:
    strange = [(f"o{at}", "s" if between else "unknown", other) for at, other in enumerate(others)]
    found = links_of(("a", "s", FIRST), *strange, ("b", "s", SECOND))
    assert {key: other for key, other in found.items() if key in "ab"} == {"b": "a"}


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.text(max_size=200))
def test_any_two_texts_are_compared_alike_both_ways_and_each_time(first: str, second: str) -> None:
    one, two = Reader().read(first), Reader().read(second)
    assert compare(one, two).score == pytest.approx(compare(two, one).score)
    assert bool(compare(one, two).against) == bool(compare(two, one).against)
    assert Reader().read(first) == one


@pytest.mark.parametrize(
    "text",
    [
        "e" + "\u0301" * 20_000,
        "a" * 16_384,
        "a_" * 8_192,
        "0x" + "f" * 16_384,
        "/" * 16_384,
        "-" * 16_384,
        "aA" * 8_192,
        "\ud800" * 100 + FIRST,
        "[" * 16_384,
        "`" * 16_384 + "<a>",
        ("word " * 4_000),
        "a." * 8_000 + "com",
        "\x00\x1b[2J" * 4_000,
    ],
)
def test_hostile_text_is_read_within_bounds(text: str) -> None:
    found = Reader().read(text, text)
    assert len(found.signs) <= wording.MAX_WORDS * 4
    assert all(len(name) <= WORD_CHARS for name in found.signs)
    SimilarTexts().add("a", "s", text, text)


def test_a_flood_cannot_make_a_comparison_dear_nor_displace_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = SimilarTexts()
    texts.add("ours", "s", FIRST)
    for at in range(2_000):
        title = f"empty charge {stem('validated')} flood{at:x}q other{at:x}w third{at:x}e"
        texts.add(f"x{at}", "s", title, ours=False)
    assert max(len(listed) for table in texts._index.values() for listed in table.values()) <= POSTINGS
    count = 0

    def counted(*pair: wording.Wording) -> Likeness:
        nonlocal count
        count += 1
        return compare(*pair)

    monkeypatch.setattr(similar, "compare", counted)
    texts.add("again", "s", f"{SECOND}, says nova")
    assert count <= CANDIDATES * 2
    texts.settle()
    assert texts.links["again"].b == "ours"


def test_each_word_of_the_lists_is_in_one_of_them() -> None:
    assert len(lists().concepts) > 1_000
