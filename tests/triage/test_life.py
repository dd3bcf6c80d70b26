"""The life of an item: every transition of the table, the order of what happened, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pytest

from fleet.findings.records import ItemRecord
from fleet.findings.recurrence import Recurrence
from fleet.store.rows import DecisionRow
from fleet.triage.items.decisions import record_of
from fleet.triage.items.life import BEGIN, OPEN, ItemState, Life, Stage, life
from tests.triage.life_table import at, decided, moment, record, report

DAY = 24 * 60
SEEN = Recurrence().shown(at(-1), "r1")


def lived(
    *,
    reports: Sequence[Any] = (report(0, minute=0),),
    proof: Any = "confirmed",
    figures: Recurrence | None = SEEN,
    records: Sequence[ItemRecord] = (),
    decisions: Sequence[DecisionRow] = (),
    now: float = 60,
) -> Life:
    return life(reports, proof=proof, figures=figures, records=records, decisions=decisions, now=moment(now))


CASES: Mapping[str, dict[str, Any]] = {
    "open": {},
    "proposed": {"records": [record("proposed", 1, minute=10)]},
    "fixed": {"decisions": [decided("fixed", 10)]},
    "verified-fixed": {"records": [record("verified-fixed", 1, minute=10)]},
    "regression": {
        "records": [record("verified-fixed", 1, minute=5)],
        "reports": [report(0, minute=0), report(2, minute=10, run="r2")],
    },
}
EVENTS: Mapping[str, dict[str, Any]] = {
    "reported": {"reports": [report(5, minute=20, run="r3")]},
    "shown": {"figures": SEEN.shown(at(20), "r3")},
    "clean": {"figures": SEEN.clean(at(20), "r3")},
    "clean record": {"records": [record("verified-fixed", 5, minute=20)]},
    "proposed": {"records": [record("proposed", 5, minute=20)]},
    "fixed": {"decisions": [decided("fixed", 20)]},
    "reopen": {"decisions": [decided("reopen", 20)]},
    "dismiss": {"decisions": [decided("dismiss", 20)]},
    "snooze": {"decisions": [decided("snooze", 20, until=at(DAY))]},
    "unreached": {"figures": SEEN.unreached(at(20))},
}
NAMES = ("open", "proposed", "fixed", "verified-fixed", "regression")
TABLE: Mapping[str, tuple[str, str, str, str, str]] = {
    "reported": ("confirmed", "proposed", "regression", "regression", "regression"),
    "shown": ("confirmed", "proposed", "regression", "regression", "regression"),
    "clean": ("verified-fixed",) * 5,
    "clean record": ("verified-fixed",) * 5,
    "proposed": ("proposed", "proposed", "fixed", "verified-fixed", "proposed"),
    "fixed": ("fixed", "fixed", "fixed", "verified-fixed", "fixed"),
    "reopen": ("confirmed",) * 5,
    "dismiss": ("dismissed",) * 5,
    "snooze": ("snoozed",) * 5,
    "unreached": ("unreachable", "proposed", "fixed", "verified-fixed", "regression"),
}


def both(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"reports": [report(0, minute=0)], "records": [], "decisions": []}
    for part in (one, two):
        for key, value in part.items():
            if key == "figures":
                made[key] = value
            else:
                made[key] = [*made[key], *(x for x in value if x not in made[key])]
    return made


@pytest.mark.parametrize("event", TABLE)
@pytest.mark.parametrize("state", NAMES)
def test_every_transition(state: str, event: str) -> None:
    found = lived(**both(CASES[state], EVENTS[event]))
    assert found.state == TABLE[event][NAMES.index(state)]
    before = lived(**both(CASES[state], {}))
    assert before.state == ("confirmed" if state == "open" else state)
    if found.state == before.state:
        again = state == "fixed" and event == "fixed"
        assert (found.since, found.stages) == (before.since, before.stages) or again
    else:
        assert (found.since, found.stages[:-1]) == (at(20), before.stages)


@pytest.mark.parametrize(("proof", "state"), sorted(BEGIN.items()))
def test_an_item_begins_by_its_proof(proof: Any, state: ItemState) -> None:
    found = lived(proof=proof, figures=None)
    assert (found.state, found.since, found.stages) == (state, at(0), (Stage(state, at(0), "qa-fuzz"),))


def test_the_arc_with_who_and_when() -> None:
    found = lived(
        reports=[report(0, minute=0), report(3, minute=50, run="r7")],
        records=[record("proposed", 1, minute=10), record("verified-fixed", 2, minute=30)],
        decisions=[decided("snooze", 15, until=at(18)), decided("fixed", 20)],
    )
    assert found.stages == (
        Stage("confirmed", at(0), "qa-fuzz"),
        Stage("proposed", at(10), "alice"),
        Stage("snoozed", at(15), "alice"),
        Stage("proposed", at(18), "its end"),
        Stage("fixed", at(20), "alice"),
        Stage("verified-fixed", at(30), "run r9"),
        Stage("regression", at(50), "qa-fuzz"),
    )
    assert (found.state, found.since, found.resolved_at) == ("regression", at(50), at(30))


@pytest.mark.parametrize("kind", ["dismiss", "snooze"])
def test_a_dismissed_item_that_is_seen_again_stays_so_until_it_ends(kind: Any) -> None:
    held = {"dismiss": "dismissed", "snooze": "snoozed"}[kind]
    given: dict[str, Any] = {
        "reports": [report(0, minute=0), report(1, minute=30, run="r2")],
        "figures": SEEN.shown(at(40), "r3").unreached(at(45)),
        "decisions": [decided(kind, 10, until=at(50))],
    }
    before = lived(**given, now=49)
    assert (before.state, before.since, before.until, before.reason) == (held, at(10), at(50), f"why {kind}")
    after = lived(**given, now=50)
    assert (after.state, after.until, after.stages[-2:]) == (
        "unreachable",
        "",
        (Stage("confirmed", at(50), "its end"), Stage("unreachable", at(45), "runs without an answer")),
    )


def test_what_happened_behind_a_dismissal_counts_when_it_ends() -> None:
    given: dict[str, Any] = {
        "decisions": [decided("dismiss", 10, until=at(50))],
        "figures": SEEN.clean(at(20), "r2"),
    }
    assert lived(**given, now=49).state == "dismissed"
    found = lived(**given, now=50)
    assert (found.state, found.since, found.resolved_at) == ("verified-fixed", at(50), at(20))


def test_an_ended_decision_brings_no_earlier_one_back() -> None:
    found = lived(decisions=[decided("dismiss", 5), decided("snooze", 10, until=at(20))])
    assert found.state == "confirmed"
    later = [decided("snooze", 10, until=at(20)), decided("dismiss", 15)]
    assert lived(decisions=later).state == "dismissed"


def test_a_published_decision_is_ordered_by_its_index_and_another_by_time() -> None:
    fixed = decided("fixed", 30)
    on_log = record_of(fixed).placed(0, 1)
    earlier = [report(0, minute=0), report(2, minute=20, run="r2")]
    assert lived(reports=earlier, decisions=[fixed], figures=None).state == "fixed"
    assert lived(reports=earlier, decisions=[fixed], records=[on_log], figures=None).state == "regression"
    same = [report(0, minute=0), report(2, minute=30, run="r2")]
    assert lived(reports=same, decisions=[fixed], figures=None).state == "fixed"
    late = [report(0, minute=40)]
    assert lived(reports=late, decisions=[fixed], figures=None).state == "regression"
    assert lived(reports=late, decisions=[fixed], records=[record_of(fixed).placed(0, 3)]).state == "fixed"


def test_two_entries_of_one_block_are_ordered_by_index() -> None:
    records = [record("verified-fixed", 1, minute=0)]
    reports = [report(0, minute=0), report(2, minute=0, run="r2")]
    assert lived(reports=reports, records=records, figures=None).state == "regression"
    assert lived(reports=reports[:1], records=records, figures=None).state == "verified-fixed"


def test_a_record_of_an_earlier_epoch_hides_nothing() -> None:
    records = [record("verified-fixed", 9, minute=30)]
    found = lived(reports=[report(0, minute=40, epoch=1)], records=records, figures=None)
    assert found.state == "regression"
    assert found.state in OPEN


def test_the_chains_clock_may_be_ahead_of_ours() -> None:
    reports = [report(0, minute=30)]
    clean = SEEN.clean(at(20), "r2")
    assert lived(reports=reports, figures=clean).state == "verified-fixed"
    foreign = [*reports, report(1, minute=31, run="theirs")]
    assert lived(reports=foreign, figures=clean).state == "regression"
    assert lived(reports=reports, decisions=[decided("fixed", 10)]).state == "fixed"


def test_a_sighting_after_a_record_counts_before_it_is_posted_and_its_entry_says_the_time() -> None:
    seen = SEEN.clean(at(10), "r2").shown(at(20), "r3")
    records = [record("verified-fixed", 1, minute=10, who="r2")]
    first = lived(records=records, figures=seen)
    assert (first.state, first.since, first.stages[-1].by) == ("regression", at(20), "run r3")
    reports = [report(0, minute=0), report(2, minute=25, run="r3")]
    there = lived(reports=reports, records=records, figures=seen)
    assert there == lived(reports=reports, records=records, figures=None)
    assert (there.since, there.stages[-1].by) == (at(25), "qa-fuzz")


def test_clean_looks_in_the_second_of_the_last_sighting_came_after_it() -> None:
    """Times are whole seconds; a sighting after the clean looks would have taken them away."""
    clean = SEEN.shown(at(5), "r2").clean(at(5), "r3")
    assert lived(figures=clean, records=[record("verified-fixed", 1, minute=5)]).state == "verified-fixed"
    again = clean.shown(at(5), "r4")
    assert lived(figures=again, records=[record("verified-fixed", 1, minute=5)]).state == "regression"


def test_the_log_alone_tells_the_same_life() -> None:
    seen = Recurrence().shown(at(-5), "r0").shown(at(1), "r1").clean(at(10), "r9")
    records = [record("verified-fixed", 1, minute=10)]
    assert lived(records=records, figures=seen) == lived(records=records, figures=None)


def test_strangers_reopen_and_hide_nothing_of_ours() -> None:
    theirs = report(5, minute=40, trusted=False)
    records = [record("verified-fixed", 1, minute=10)]
    found = lived(reports=[report(0, minute=0), theirs], records=records)
    assert (found.state, found.stuck) == (
        "verified-fixed",
        "a stranger reports it again: waits for a re-run",
    )
    early = report(0, minute=-10, trusted=False)
    assert lived(reports=[early, report(1, minute=0)]).stages == lived(reports=[report(1, minute=0)]).stages
    alone = lived(reports=[early, theirs], proof="untrusted", decisions=[decided("fixed", 10)], figures=None)
    assert (alone.state, alone.since) == ("regression", at(40))


def test_stale_is_neither_looked_at_nor_reported_for_a_week() -> None:
    assert not lived(now=7 * DAY).stale
    assert lived(now=7 * DAY + 1).stale
    assert not lived(now=7 * DAY + 1, figures=SEEN.unreached(at(DAY))).stale
    assert lived(now=8 * DAY + 1, figures=SEEN.unreached(at(DAY))).stale
    assert lived(now=7 * DAY + 1, decisions=[decided("dismiss", DAY)]).stale


STUCK: Sequence[tuple[dict[str, Any], str]] = [
    ({}, f"waits for a fix since {at(0)}"),
    ({"now": 9 * DAY}, f"waits for a fix since {at(0)}; nothing has looked at it since {at(0)}"),
    ({"proof": "flaky"}, f"waits for a fix since {at(0)}"),
    ({"proof": "needs-repro"}, "needs a runnable repro"),
    (
        {"proof": "unverified", "figures": None},
        f"waits for a re-run that confirms it since {at(0)}: its persona qa-fuzz has not run it",
    ),
    (
        {"proof": "untrusted", "figures": None},
        f"waits for your decision since {at(0)}: a stranger's repro never runs by itself",
    ),
    (EVENTS["unreached"], f"its surface has not answered since {at(20)}"),
    (
        {"figures": SEEN.unreached(at(20), "no compiler here")},
        f"could not be run again since {at(20)}: no compiler here",
    ),
    (CASES["proposed"], f"waits for your decision about the proposed fix since {at(10)}"),
    (
        CASES["fixed"],
        f"waits for 3 clean re-runs since {at(10)}: its persona qa-fuzz has not run it",
    ),
    (
        CASES["fixed"] | {"figures": SEEN.unreached(at(20))},
        f"waits for 3 clean re-runs since {at(10)}: its surface has not answered since {at(20)}",
    ),
    (CASES["verified-fixed"], "waits for nothing"),
    (EVENTS["dismiss"], "dismissed until it is undone"),
    (EVENTS["snooze"], f"snoozed until {at(DAY)}"),
    (CASES["regression"], f"waits for a fix since {at(10)}"),
    (
        CASES["regression"] | {"figures": SEEN.unreached(at(20))},
        f"waits for a fix since {at(10)}; its surface has not answered since {at(20)}",
    ),
]


@pytest.mark.parametrize(("given", "words"), STUCK)
def test_what_an_item_waits_for(given: dict[str, Any], words: str) -> None:
    assert lived(**given).stuck == words


def test_every_state_says_what_it_waits_for() -> None:
    assert {lived(**given).state for given, _ in STUCK} == set(get_args(ItemState))
