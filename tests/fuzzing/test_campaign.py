"""A campaign: what rounds claim is capped, merged and kept; which suspects wait; what the next round asks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.findings.proof import TRIES
from fleet.fuzzing.campaign import FEWEST_INPUTS, MOST_ROUGH, MOST_SUSPECTS, SENT_CHARS, Campaign
from fleet.fuzzing.claims import INPUT_BYTES, SOURCE_BYTES
from fleet.fuzzing.inputs import MOST_BYTES, MOST_INPUTS
from sandbox.tools.qa_fuzz import GIVEN_BYTES
from tests.fuzzing.campaign_samples import answered, defect

ASKED = {"part": "compiler", "corpus": []}
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = ("ok", "executions", "accepted", "behaviours", "seconds", "defects", "corpus", "runner", "stopped")
SMALL = st.lists(
    st.tuples(st.sampled_from(["panic a", "panic b", "hang", "crash c"]), st.text("xyz{", min_size=1)),
    max_size=6,
)


def merged(*results: dict[str, Any], part: str = "compiler") -> Campaign:
    campaign = Campaign()
    for one in results:
        campaign.merge({"part": part, "corpus": []}, one)
    return campaign


@given(st.lists(SMALL, max_size=4), st.randoms())
def test_the_order_of_rounds_does_not_matter_for_what_is_suspected(rounds: list[Any], chance: Any) -> None:
    results = [answered(*(defect(name, source) for name, source in one)) for one in rounds]
    other = list(results)
    chance.shuffle(other)
    kept = [
        [(one.signature, one.source, one.seen) for one in merged(*some).suspects] for some in (results, other)
    ]
    assert kept[0] == kept[1]


def test_one_recursion_of_two_rounds_is_one_suspect_and_another_is_another() -> None:
    def of(*frames: str, kind: str = "internal-error") -> str:
        return f"{kind} {' < '.join(frames)} recursion"

    first = of("a.js:atom", "a.js:unary", "a.js:expression")
    campaign = merged(
        answered(defect(first, "((((1"), defect(of("a.js:block", "a.js:statement"), "{{{{")),
        answered(defect(of("a.js:atom", "a.js:call", "a.js:expression"), "f(")),
        answered(defect(of("a.js:unary", kind="crash"), "----")),
    )
    assert [(one.signature, one.source, one.seen) for one in campaign.suspects] == [
        (of("a.js:unary", kind="crash"), "----", 1),
        (first, "f(", 2),
        (of("a.js:block", "a.js:statement"), "{{{{", 1),
    ]


@given(st.dictionaries(st.sampled_from(KEYS), ANY), st.dictionaries(st.text(max_size=9), ANY, max_size=3))
def test_a_hostile_claim_costs_nothing_but_itself(result: dict[str, Any], raw: dict[str, Any]) -> None:
    campaign = merged(answered(defect(), corpus=("fn a() {}",)))
    campaign.merge(ASKED, result)
    campaign.merge(ASKED, answered(raw, defect() | raw, corpus=("x",)))
    assert ("panic a.rs:1", "enum E{}") in [(one.signature, one.source) for one in campaign.suspects]
    text = json.dumps(campaign.state())
    assert Campaign.of(json.loads(text)).state() == campaign.state()


@given(ANY, st.dictionaries(st.sampled_from(list(Campaign().state())), ANY))
def test_a_state_that_is_not_understood_is_ignored(value: Any, table: dict[str, Any]) -> None:
    for state in (table, Campaign().state() | {"version": value}, Campaign().state() | {"inputs": value}):
        Campaign.of(state).begin_round("compiler", seed=1, seconds=5)


def test_everything_is_bounded() -> None:
    campaign = Campaign()
    for at in range(12):
        corpus = tuple(f"{at}/{n} " + "y" * 900 for n in range(60))
        found = (defect(f"panic {at} {n}", "z" * (n + 1)) for n in range(80))
        campaign.merge(ASKED, answered(*found, corpus=corpus))
    inputs = campaign.inputs("compiler")
    assert len(inputs) <= MOST_INPUTS
    assert MOST_BYTES * 0.9 < inputs.size <= MOST_BYTES
    assert len(campaign.suspects) == MOST_SUSPECTS
    asked = campaign.begin_round("compiler", seed=0, seconds=60)
    assert sum(map(len, asked["corpus"])) <= SENT_CHARS
    long = merged(answered(defect(source="s" * (SOURCE_BYTES + 1)), corpus=("c" * (INPUT_BYTES + 1),)))
    assert (long.suspects, len(long.inputs("compiler"))) == ((), 0)
    huge = merged(answered(executions=10**30, seconds=1e300)).of_part["compiler"]
    assert (huge.executions, huge.seconds) == (1_000_000, 120.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "accepted"},
        {"kind": "crash"},
        {"source": ""},
        {"source": "\ud800"},
        {"source": 7},
        {"variant": None},
        {"signature": ["panic a"]},
    ],
)
def test_a_defect_that_is_none_is_left_out(wrong: dict[str, Any]) -> None:
    assert merged(answered(defect() | wrong)).suspects == ()


def test_inputs_of_a_loader_are_hex() -> None:
    campaign = merged(
        answered(defect("crash", "00ff"), defect("panic", "xyz"), corpus=("0g", "00")), part="loader"
    )
    assert [(one.source, one.size) for one in campaign.suspects] == [("00ff", 2)]
    assert campaign.inputs("loader").best(9, 99, _chance()) == ("00",)


def _chance() -> Any:
    from random import Random

    return Random(1)


def test_dry_counts_rounds_since_new_behaviour_of_the_part_that_dried_up_last() -> None:
    campaign = merged(answered(corpus=("a",)), answered(), answered(corpus=("a",)))
    assert (campaign.dry, campaign.of_part["compiler"].dry) == (2, 2)
    campaign.merge({"part": "loader", "corpus": []}, answered(corpus=("00",)))
    assert campaign.dry == 0
    assert Campaign().dry == 0


def test_the_next_round_asks_with_its_own_seed_what_is_worth_most_and_what_is_known() -> None:
    campaign = Campaign()
    first = campaign.begin_round("compiler", seed=100, seconds=20)
    assert (first["seed"], first["corpus"], first["known"], first["part"]) == (100, [], [], "compiler")
    campaign.merge(first, answered(defect(), corpus=("aa", "b"), executions=10_000))
    again = campaign.begin_round("compiler", seed=100, seconds=20)
    assert (again["seed"], again["corpus"], again["known"]) == (101, ["b", "aa"], ["panic a.rs:1"])
    assert campaign.begin_round("loader", seed=100, seconds=20)["known"] == []


def test_a_slow_program_is_sent_no_more_than_it_can_execute() -> None:
    campaign = merged(answered(corpus=tuple(f"{n}" for n in range(200)), executions=40, seconds=20.0))
    asked = campaign.begin_round("compiler", seed=0, seconds=20)
    assert len(asked["corpus"]) == FEWEST_INPUTS


def test_inputs_whose_rounds_brought_nothing_go_first() -> None:
    campaign = merged(answered(corpus=("old", "good")))
    for _ in range(3):
        campaign.merge({"part": "compiler", "corpus": ["old"]}, answered())
        campaign.merge({"part": "compiler", "corpus": ["good"]}, answered(behaviours=9))
    assert campaign.inputs("compiler").best(2, 99, _chance()) == ("good", "old")


def test_a_suspect_waits_until_it_was_shown_or_given_up() -> None:
    campaign = merged(answered(defect("panic a", "aaaa"), defect("hang", "b")))
    short, long = campaign.waiting
    assert (short.signature, long.signature) == ("hang", "panic a")
    campaign.looked(short, shown=True)
    for _ in range(TRIES):
        assert campaign.waiting == (long,)
        campaign.looked(long, shown=False)
    assert list(campaign.waiting) == []
    campaign.merge(ASKED, answered(defect("panic a", "aa"), defect("hang", "")))
    assert [one.source for one in campaign.waiting] == ["aa"]
    campaign.merge(ASKED, answered(defect("hang", "c"), defect("hang", "a")))
    assert [one.source for one in campaign.suspects if one.shown] == ["b"]
    campaign.ask_again()
    assert len(campaign.waiting) == 2


@pytest.mark.parametrize(
    ("part", "one", "expected"),
    [
        ("compiler", defect(), [{"source": "enum E{}"}]),
        ("compiler", defect("metamorphic", "a", variant="b"), [{"source": "a"}, {"source": "b"}]),
        ("compiler", defect("non-determinism", "a"), [{"source": "a"}, {"source": "a"}]),
        ("compiler", defect("differential", "a"), [{"source": "a"}, {"source": "a", "other": True}]),
        ("compiler", defect("round-trip", "a"), [{"source": "a"}, {"source": "a", "printed": True}]),
        ("loader", defect("crash", "00"), [{"module_hex": "00"}]),
        ("compiler", defect(source="enum E{name}"), []),
    ],
)
def test_the_calls_that_show_a_suspect(part: str, one: dict[str, Any], expected: list[Any]) -> None:
    (suspect,) = merged(answered(one), part=part).suspects
    assert [dict(step.args) for step in suspect.steps()] == expected
    assert {step.tool for step in suspect.steps()} <= {"qa_compile"}


def test_seeds_go_on_where_the_last_round_ended_and_a_claim_of_too_many_is_capped() -> None:
    campaign = merged(answered(seeds_done=24))
    assert campaign.begin_round("compiler", seed=1, seconds=20)["seeds_done"] == 24
    campaign.merge(ASKED, answered(seeds_done=3))
    assert campaign.begin_round("compiler", seed=1, seconds=20)["seeds_done"] == 24
    assert Campaign.of(campaign.state()).of_part["compiler"].seeds_done == 24
    campaign.merge(ASKED, answered(seeds_done=10**9))
    assert campaign.begin_round("compiler", seed=1, seconds=20)["seeds_done"] == 100_000


def test_a_round_goes_on_with_a_few_rough_defects_and_knows_the_others() -> None:
    names = [f"panic {letter}" for letter in "abcdefgh"]
    campaign = merged(answered(*(defect(one, one * 9, minimal=False) for one in names)))
    rounds = [campaign.begin_round("compiler", seed=1, seconds=20) for _ in range(30)]
    for asked in rounds:
        sent = {one[:7] for one in asked["corpus"]}
        assert len(sent) == MOST_ROUGH
        assert set(asked["known"]) == {*names} - sent
    assert {one[:7] for asked in rounds for one in asked["corpus"]} == {*names}
    long = (defect(f"crash {at}", f"{at}" * 2 * INPUT_BYTES, minimal=False) for at in range(4))
    campaign = merged(answered(*long), part="loader")
    campaign.start_from("loader", (f"{n:04x}" * 2_000 for n in range(40)))
    asked = campaign.begin_round("loader", seed=1, seconds=20)
    assert SENT_CHARS < sum(map(len, asked["corpus"])) <= GIVEN_BYTES


def test_a_defect_whose_shrink_was_cut_short_is_sent_again_until_it_is_minimal() -> None:
    campaign = merged(answered(defect("panic a", "aaaa", minimal=False)))
    (suspect,) = campaign.suspects
    campaign.looked(suspect, shown=True)
    asked = campaign.begin_round("compiler", seed=1, seconds=20)
    assert (asked["known"], asked["corpus"]) == ([], ["aaaa"])
    campaign.merge(asked, answered(defect("panic a", "a")))
    assert (suspect.source, suspect.waits) == ("a", True)
    again = campaign.begin_round("compiler", seed=1, seconds=20)
    assert (again["known"], again["corpus"]) == (["panic a"], [])


def test_a_part_that_dried_up_has_every_fourth_turn_until_it_gives_something_again() -> None:
    campaign, turns = Campaign(), list[str]()
    for number in range(24):
        turns.append(part := campaign.due(("compiler", "loader")))
        asked = campaign.begin_round(part, seed=0, seconds=20)
        new = part == "compiler" or number > 20
        campaign.merge(asked, answered(corpus=(f"{number:02x}",) if new else ()) | {"behaviours": int(new)})
    assert turns[:2] == ["compiler", "loader"]
    assert turns[2:20].count("loader") in (3, 4)
    assert campaign.due(("loader",)) == "loader"


def test_a_small_input_that_hangs_is_not_sent_again() -> None:
    campaign = merged(answered(defect("hang a", "a" * 65, kind="hang", minimal=False)))
    assert campaign.begin_round("compiler", seed=1, seconds=20)["known"] == []
    campaign = merged(answered(defect("hang a", "a" * 64, kind="hang", minimal=False)))
    assert campaign.begin_round("compiler", seed=1, seconds=20)["known"] == ["hang a"]


def test_a_shrink_that_takes_long_goes_on_in_each_third_round() -> None:
    campaign = merged(answered(defect("hang a", "a" * 65, kind="hang", minimal=False)))
    asked = [campaign.begin_round("compiler", seed=1, seconds=20)["known"] for _ in range(6)]
    assert asked == [[], ["hang a"], ["hang a"]] * 2
    quick = merged(answered(defect("panic a", "a" * 65, minimal=False)))
    assert [quick.begin_round("compiler", seed=1, seconds=20)["known"] for _ in range(3)] == [[]] * 3
