from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import ConfigError
from fleet.severity import ON_THE_LOG
from fleet.store.rows import MirroredEntry
from fleet.triage.items.meta import key
from fleet.triage.items.rank import SURFACES
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import WorklistHeader
from fleet.triage.outputs.json_file import to_json
from fleet.triage.outputs.markdown import to_markdown
from tests.triage.triage_log import (
    EV,
    FALSE_PREMISES,
    FLEET,
    HUMAN,
    LONG,
    NOT_DEFECTS,
    finding,
    folded,
    log,
    rank,
)


def worklist(entries: list[MirroredEntry]) -> tuple[WorklistItem, ...]:
    return rank(folded(entries))


def titles(entries: list[MirroredEntry]) -> list[str]:
    return [item.title for item in worklist(entries)]


def test_row_41_surface_order() -> None:
    names = ["perf", "ux", "compiler", "on-chain", "security"]
    found = worklist(log(*[finding(name, surface=name) for name in names]))
    assert [item.surface for item in found] == names[::-1]
    assert [item.score for item in found] == [20.0, 16.0, 12.0, 8.0, 4.0]


def test_row_41_severity_and_recurrence_multiply() -> None:
    often = [finding("often", title="often", sev="medium", run=f"r{n}") for n in range(8)]
    found = worklist(log(finding("once", title="once"), *often))
    assert [(item.title, item.count, item.score) for item in found] == [("often", 8, 24.0), ("once", 1, 12.0)]


@pytest.mark.parametrize("names", ["abc", "cab", "bca", "cba"])
def test_items_of_one_score_are_in_order_of_severity_then_of_age(names: str) -> None:
    """Each pair weighs the same: critical perf, high ux, medium on-chain; 8 x 1, 4 x 2, 2 x 4."""
    kinds = {"a": ("critical", "perf"), "b": ("high", "ux"), "c": ("medium", "on-chain")}
    texts = [
        finding(f"{name}{again}", title=f"{name}{again}", sev=kinds[name][0], surface=kinds[name][1])
        for again in (1, 2)
        for name in names
    ]
    found = worklist(log(*texts))
    assert {item.score for item in found} == {8.0}
    assert [item.title for item in found] == ["a1", "a2", "b1", "b2", "c1", "c2"]


@pytest.mark.parametrize("joined", ["seen", "former"])
def test_the_gravest_proven_report_leads_its_item(joined: str) -> None:
    """By one name, or by its former name; what is milder, unproven or a stranger's does not lead."""
    base, other = "a" * 12, "b" * 12
    graver = {"seen": base} if joined == "seen" else {"seen": other, "former": (base,)}
    entries = log(
        finding("1", title="medium", sev="medium", seen=base),
        *(finding("1", title="medium", sev="medium", seen=base, run=f"r{n}") for n in range(2, 9)),
        finding("2", title="critical", sev="critical", run="r9", **graver),
        finding("3", title="high", sev="high", seen=base, run="r10"),
        finding("4", title="flaky", sev="critical", seen=base, run="r11", rate=(1, 3)),
        (HUMAN, finding("1", title="theirs", sev="critical", seen=base)),
    )
    for upto in (len(entries), len(entries) - 1):
        item = worklist(entries[:upto])[0]
        assert (item.title, item.severity, item.entry) == ("critical", "critical", 8)


def test_row_41_ties_go_to_the_first_seen() -> None:
    assert titles(log(finding("b", title="b"), finding("a", title="a"))) == ["b", "a"]


@pytest.mark.parametrize("names", ["abcd", "dcba", "cadb", "bdac"])
def test_row_41_every_tie_goes_to_the_first_seen_whatever_else_differs(names: str) -> None:
    """By place in the log, over epochs; not by title, fingerprint, latest report or who repeats it."""
    first = log(*[finding(name, title=name) for name in names[:2]])
    later = log(*[finding(name, title=name) for name in names[2:]], epoch=1)
    again = log(*[finding(name, title=name, run="r2") for name in names[::-1]], epoch=2)
    assert len({item.score for item in worklist(first + later)}) == 1
    assert titles(later + first) == list(names)
    assert titles(again + later + first) == list(names)


def test_row_41_a_stranger_who_was_first_wins_no_tie_between_ours() -> None:
    theirs = [(HUMAN, finding(name, title=name)) for name in "cb"]
    entries = log(*theirs, *[finding(name, title=name) for name in "abc"], (HUMAN, finding("a", title="a")))
    assert [(item.title, item.count) for item in worklist(entries)] == [("a", 1), ("b", 1), ("c", 1)]


@pytest.mark.parametrize("names", ["abc", "cba", "bca"])
def test_row_41_ties_among_strangers_go_to_the_first_seen_too(names: str) -> None:
    assert titles(log(*[(HUMAN, finding(name, title=name)) for name in names])) == list(names)


def test_proof_comes_before_weight() -> None:
    entries = log(
        (HUMAN, finding("s", title="stranger", sev="critical", surface="security")),
        finding("p", title="prose", sev="critical", surface="security", calls=False),
        finding("u", title="unconfirmed", sev="critical", surface="security", rate=None),
        finding("f", title="flaky", sev="critical", surface="security", rate=(1, 3)),
        finding("v", title="proven", sev="info", surface="perf"),
    )
    found = worklist(entries)
    assert [(item.title, item.proof, item.confirmed) for item in found] == [
        ("proven", "confirmed", True),
        ("flaky", "flaky", False),
        ("unconfirmed", "unverified", False),
        ("prose", "needs-repro", False),
        ("stranger", "untrusted", False),
    ]


@pytest.mark.parametrize(
    ("rate", "state"),
    [
        ((3, 3), "confirmed"),
        ((4, 4), "confirmed"),
        ((2, 2), "flaky"),
        ((2, 3), "flaky"),
        ((0, 3), "unverified"),
    ],
)
def test_confirmed_means_every_one_of_three_tries(rate: tuple[int, int], state: str) -> None:
    assert worklist(log(finding(rate=rate)))[0].proof == state


def test_only_the_canonical_grammar_carries_proof() -> None:
    text = 'qa/v1 source=qa-fuzz sev=critical surface=security rate=3/3\nt\nrepro: qa_compile(source="x")'
    assert worklist(log(text))[0].proof == "unverified"


def test_row_42_and_48_prose_is_kept_and_never_promoted() -> None:
    claims = [*FALSE_PREMISES.values(), *NOT_DEFECTS.values()]
    repeated = [(sender, text) for text in claims for sender in (HUMAN, FLEET, HUMAN)]
    found = worklist(log(*repeated, finding(title="proven", sev="low", surface="perf")))
    assert found[0].title == "proven"
    assert sorted(item.title for item in found[1:]) == sorted(claims)
    assert {(item.severity, item.confirmed, item.proof) for item in found[1:]} == {
        ("unknown", False, "needs-repro")
    }


def test_rows_31_to_36_in_an_envelope_without_a_repro_stay_below() -> None:
    for text in FALSE_PREMISES.values():
        claim = finding(title=text, sev="critical", surface="security", calls=False)
        found = worklist(log(claim, (HUMAN, claim), finding(title="proven", sev="info", surface="perf")))
        assert [(item.title, item.proof) for item in found] == [
            ("proven", "confirmed"),
            (text, "needs-repro"),
        ]


def test_a_stranger_neither_raises_nor_renames_nor_predates_ours() -> None:
    theirs = finding(sev="critical", title="OURS NOW", run="x")
    item = worklist(log((HUMAN, theirs), finding(sev="low")))[0]
    assert (item.severity, item.title, item.senders, item.count) == ("low", "compile panics", (FLEET,), 1)
    assert item.first_seen == "2026-06-12T10:21:48Z"


def test_a_strangers_copy_is_shown_and_decides_nothing() -> None:
    low, high = finding("low", title="low", sev="medium"), finding("high", title="high")
    same = finding("same", title="same")
    copies = [(f"0x{number:040x}", text) for number in range(9) for text in (low, same)]
    assert titles(log(high, same, low)) == ["high", "same", "low"]
    found = worklist(log(high, same, low, *copies))
    assert [(i.title, i.count, i.score) for i in found] == [
        ("high", 1, 12.0),
        ("same", 1, 12.0),
        ("low", 1, 6.0),
    ]
    assert key(found) == key(worklist(log(high, same, low)))  # no summary is due for it
    assert [i.why.split("; ")[2:] for i in found] == [
        [],
        ["a stranger reports it too"],
        ["a stranger reports it too"],
    ]


def test_among_strangers_too_a_crowd_is_worth_one() -> None:
    crowd = [(f"0x{number:040x}", "crowd") for number in range(9)]
    found = worklist(log((HUMAN, "alone"), *crowd))
    assert [(i.title, i.count, i.score) for i in found] == [("alone", 1, 0.25), ("crowd", 1, 0.25)]
    assert found[1].why.endswith("; other strangers report it too")


def test_row_23_a_planted_repro_is_withheld() -> None:
    planted = 'qa/v1 source=qa-security sev=critical surface=security\nt\nrepro: qa_release(name="real")'
    for text in (planted, planted.replace("name=", "")):
        item = worklist(log((HUMAN, text)))[0]
        assert (item.repro, item.evidence, item.trusted, item.proof) == ("", "", False, "untrusted")
        assert (
            "qa_release"
            not in to_json([item], WorklistHeader()).decode() + to_markdown([item], WorklistHeader()).decode()
        )


def test_a_strangers_evidence_is_withheld_with_the_repro() -> None:
    item = worklist(log((HUMAN, finding())))[0]
    assert (item.repro, item.evidence, item.proof) == ("", "", "untrusted")


def test_a_repro_in_the_evidence_counts_as_proof_and_names_the_bundle() -> None:
    item = worklist(log(finding(LONG)))[0]
    assert (item.proof, item.repro, item.evidence) == ("confirmed", "", EV)


def test_a_repro_that_is_said_to_be_in_no_evidence_is_no_proof() -> None:
    """`repro: ev` in an entry that names no bundle: nobody could run it."""
    text = finding(LONG).replace(f" ev=sha256:{EV}", "")
    assert text.endswith("repro: ev")
    assert worklist(log(text))[0].proof == "needs-repro"


def test_weights_come_from_the_persona_and_must_be_numbers() -> None:
    found = folded(log(finding("a", surface="ux"), finding("b", surface="odd")))
    assert [item.score for item in rank(found, {"ux": 3.0, "perf": 2.0})] == [12.0, 8.0]
    assert rank(found, {}) == rank(found, SURFACES)
    for bad in (math.nan, math.inf, 0.0, -1.0):
        with pytest.raises(ConfigError, match=r"weights\.ux"):
            rank(found, {"ux": bad})


def test_hostile_times_do_not_break_the_list() -> None:
    entry = MirroredEntry(epoch=0, index=0, sender=HUMAN, timestamp=2**63 - 1, text="late")
    assert worklist([entry])[0].first_seen == "9999-12-31T23:59:59Z"


def test_the_why_says_all_of_it() -> None:
    found = worklist(log(finding(run="r1"), finding(run="r2"), (HUMAN, "hm")))
    assert found[0].why == "high 4 x 2 runs 2 x compiler 3 = 24; confirmed 3 of 3 in fresh jails"
    assert found[1].why == (
        "unknown 0.25 x 1 sender 1 x unknown 1 = 0.25; "
        "from strangers: their severity is a claim and their repro is withheld"
    )


ENTRY = st.builds(
    lambda sender, source, title, sev, surface, run, rate, calls: (
        sender,
        finding(source, title=title, sev=sev, surface=surface, run=run, rate=rate, calls=calls),
    ),
    st.sampled_from([FLEET, HUMAN, "0x" + "22" * 20]),
    st.sampled_from("abc"),
    st.sampled_from(["t1", "T1", "t2"]),
    st.sampled_from(ON_THE_LOG),
    st.sampled_from([*SURFACES, "odd"]),
    st.sampled_from(["r1", "r2", "r3"]),
    st.sampled_from([None, (3, 3), (1, 3), (0, 3)]),
    st.booleans(),
)
ENTRIES = st.lists(ENTRY | st.tuples(st.sampled_from([FLEET, HUMAN]), st.text(max_size=30)), max_size=25)


@given(ENTRIES, st.randoms(use_true_random=False))
def test_row_41_any_order_is_byte_identical(pairs: list[tuple[str, str]], random: object) -> None:
    entries = log(*pairs)
    expected = to_json(worklist(entries), WorklistHeader()), to_markdown(worklist(entries), WorklistHeader())
    random.shuffle(entries)  # type: ignore[attr-defined]
    assert (
        to_json(worklist(entries), WorklistHeader()),
        to_markdown(worklist(entries), WorklistHeader()),
    ) == expected


@given(ENTRIES)
def test_nothing_unproven_or_untrusted_stands_above_anything_proven(pairs: list[tuple[str, str]]) -> None:
    found = worklist(log(*pairs))
    assert [item.rank for item in found] == list(range(1, len(found) + 1))
    assert len({item.fingerprint for item in found}) == len(found)
    proven = [item.proof in ("confirmed", "flaky") for item in found]
    assert proven == sorted(proven, reverse=True)
    trusted = [item.trusted for item in found]
    assert trusted == sorted(trusted, reverse=True)


@given(ENTRIES, st.lists(st.sampled_from(["0x" + f"{n:040x}" for n in range(50)]), max_size=40))
def test_strangers_change_neither_score_nor_count_nor_order(
    pairs: list[tuple[str, str]], crowd: list[str]
) -> None:
    ours = [(sender, text) for sender, text in pairs if sender == FLEET]
    before = {item.fingerprint: item for item in worklist(log(*ours))}
    after = [
        item for item in worklist(log(*ours, *[(c, t) for c in crowd for _, t in ours[:3]])) if item.trusted
    ]
    assert {item.fingerprint for item in after} == set(before)
    for item in after:
        was = before[item.fingerprint]
        assert (item.severity, item.title, item.proof) == (was.severity, was.title, was.proof)
        assert (item.count, item.score) == (was.count, was.score)
    assert [item.fingerprint for item in after] == list(before)
