"""What is said and when, by tables: news, groups, windows, quiet hours, silences, tries again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.clock import iso
from fleet.config import EVENTS, NotifySection
from fleet.config.scope import ScheduleSection
from fleet.findings.outage import Outage, OutageBook, OutageEnd
from fleet.retry import NOTICE
from fleet.service.notify.news import (
    inert,
    of_budgets,
    of_ending,
    of_host,
    of_items,
    of_lost,
    of_outages,
    of_unanswered,
)
from fleet.service.notify.state import (
    GROUPS,
    Notice,
    NoticeState,
    due,
    is_quiet,
    read_state,
    tried,
    wanted,
)
from fleet.store.rows import ItemRow

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
NOW = iso(NOON)


def item(state: str, fp: str = "a" * 12, severity: str = "high", names: tuple[str, ...] = ()) -> ItemRow:
    return ItemRow(
        fingerprint=fp,
        state=state,
        severity=severity,
        surface="ux",
        title="the page is empty",
        persona="qa-ux",
        repro="qa/run",
        names=names,
    )


def texts(notices: NoticeState) -> list[tuple[str, str]]:
    return [(one.event, one.text) for one in notices.waiting]


def section(**keys: object) -> NotifySection:
    return NotifySection.model_validate(keys)


LIVES: list[tuple[list[str], list[str]]] = [
    (["new", "confirmed"], ["finding"]),
    (["confirmed", "confirmed"], ["finding"]),
    (["confirmed", "unreachable", "confirmed"], ["finding"]),
    (["confirmed", "snoozed", "confirmed"], ["finding"]),
    (["confirmed", "fixed", "verified-fixed"], ["finding", "fixed"]),
    (["confirmed", "fixed", "regression", "fixed"], ["finding", "fixed", "regression", "fixed"]),
    (["confirmed", "fixed", "confirmed"], ["finding", "fixed"]),
    (["confirmed", "dismissed", "regression"], ["finding", "regression"]),
    (["new", "fixed"], []),
    (["needs-repro", "flaky", "new"], []),
]


@pytest.mark.parametrize(("states", "said"), LIVES, ids=["-".join(states) for states, _ in LIVES])
def test_an_item_is_said_when_it_is_proven_fixed_or_back(states: list[str], said: list[str]) -> None:
    notices = of_items(NoticeState(), [], NOW)
    for state in states:
        notices = of_items(notices, [item(state)], NOW)
        notices = of_items(read_state(notices.model_dump_json()), [item(state)], NOW)  # a restart
    assert [one.event for one in notices.waiting] == said


def test_what_was_there_at_the_first_look_is_not_news_and_its_fix_is() -> None:
    notices = of_items(NoticeState(), [item("confirmed")], NOW)
    assert texts(notices) == []
    notices = of_items(notices, [item("verified-fixed")], NOW)
    assert texts(notices) == [("fixed", "fixed: high, ux: the page is empty (aaaaaaaaaaaa)")]


def test_the_end_of_the_tests_is_said_at_60_30_and_5_minutes_and_in_quiet_hours() -> None:
    schedule, state = ScheduleSection.model_validate({"not_after": NOON}), NoticeState()
    for minutes in (61, 60, 59, 31, 30, 29.5, 6, 5, 1, 0, -1):
        state = of_ending(state, schedule.countdown(NOON - timedelta(minutes=minutes)), "paper", NOW)
        state = read_state(state.model_dump_json())  # a restart
    assert [one.text[-21:] for one in state.waiting] == [
        f"in less than {mark} minutes"[-21:] for mark in (60, 30, 5)
    ]
    assert {(one.event, one.critical) for one in state.waiting} == {("schedule", True)}
    assert ScheduleSection().countdown(NOON) == ""


def test_a_list_that_is_made_anew_and_a_merged_item_say_nothing_twice() -> None:
    notices = of_items(of_items(NoticeState(), [], NOW), [item("confirmed")], NOW)
    notices = of_items(of_items(notices, [], NOW), [item("confirmed")], NOW)
    notices = of_items(notices, [item("confirmed", "b" * 12, names=("a" * 12, "b" * 12))], NOW)
    assert len(notices.waiting) == 1


def test_critical_findings_and_what_stops_the_fleet_are_critical() -> None:
    notices = of_items(of_items(NoticeState(), [], NOW), [item("confirmed", severity="critical")], NOW)
    notices = of_items(notices, [item("fixed", severity="critical")], NOW)
    assert [one.critical for one in notices.waiting] == [True, False]


OUTAGE = Outage(
    fp="0" * 12,
    targets=("site",),
    since="2026-11-23T11:00:00Z",
    run="r",
    persona="p",
    severity="high",
    title="t",
)
END = OutageEnd(fp="0" * 12, targets=("site",), since=OUTAGE.since, until=NOW, seconds=3600)
MORE = OUTAGE.model_copy(update={"fp": "1" * 12, "targets": ("node", "site")})
DOWN = "acme is down since 2026-11-23T11:00:00Z: site did not answer"
UP = "acme is up: site, since 2026-11-23T11:00:00Z, 60 min"


@pytest.mark.parametrize(
    ("books", "said"),
    [
        ([OutageBook(open=OUTAGE)], [DOWN]),
        ([OutageBook(open=OUTAGE), OutageBook(open=OUTAGE)], [DOWN]),
        ([OutageBook(open=OUTAGE), OutageBook(ended=(END,))], [DOWN, UP]),
        ([OutageBook(open=OUTAGE), OutageBook(ended=(END,)), OutageBook(ended=(END,))], [DOWN, UP]),
        ([OutageBook(ended=(END,))], [UP]),
        (
            [OutageBook(open=OUTAGE), OutageBook(open=MORE, ended=(END,))],
            [DOWN, "acme is down since 2026-11-23T11:00:00Z: node, site did not answer"],
        ),
    ],
)
def test_an_outage_is_said_at_its_begin_and_at_its_end(books: list[OutageBook], said: list[str]) -> None:
    notices = NoticeState()
    for one in books:
        notices = of_outages(notices, one, "acme", NOW)
    assert [one.text for one in notices.waiting] == said
    assert [one.critical for one in notices.waiting] == [
        one.event == "platform-down" for one in notices.waiting
    ]


def test_a_spent_budget_is_said_once_a_day() -> None:
    limits = {"": {"writes": 10, "reports": 0}, "qa-ux": {"usd_micro": 2_500_000}}
    left = {"": {"writes": 0, "reports": 0}, "qa-ux": {"usd_micro": 1}}
    notices = NoticeState()
    for _ in range(2):
        notices = of_budgets(notices, left, limits, NOW)  # type: ignore[arg-type]
    assert [text for _, text in texts(notices)] == ["budget of the fleet spent for today (UTC): 10 writes"]
    left["qa-ux"]["usd_micro"] = 0
    notices = of_budgets(notices, left, limits, NOW)  # type: ignore[arg-type]
    assert texts(notices)[1:] == [("budget-spent", "budget of qa-ux spent for today (UTC): 2.5 usd")]
    tomorrow = of_budgets(notices, left, limits, "2026-11-24T00:00:00Z")  # type: ignore[arg-type]
    assert len(tomorrow.waiting) == 4


def test_a_refused_persona_and_trouble_are_said_once_over_restarts() -> None:
    notices, why = NoticeState(), "qa-ux.md:3: budget: <!channel> @all https://evil.example"
    for refused in ({}, {"qa-ux": why}, {}, {"qa-ux": why}):  # a daemon that starts has not read it yet
        notices = of_host(notices, "one", refused, (), "", NOW)
    assert texts(notices) == [
        (
            "persona-refused",
            "persona qa-ux refused: qa-ux.md:3: budget: ‹!channel› (at)all https:/ /evil.example",
        )
    ]
    notices = of_host(notices, "one", {}, ("qa-ux",), "the disk is full", NOW)
    notices = of_host(notices, "one", {"qa-ux": why}, ("qa-ux",), "the disk is full", NOW)
    notices = of_host(notices, "one", {"qa-ux": why}, ("qa-ux",), "", NOW)
    assert [(one.event, one.critical) for one in notices.waiting[1:]] == [
        ("degraded", True),
        ("persona-refused", False),
        ("degraded", False),
    ]


def test_trouble_that_nobody_acknowledges_is_told_to_others() -> None:
    begun = of_host(NoticeState(), "one", {}, (), "the disk is full", "2026-11-23T03:00:00Z")
    told, roles = begun, []
    for minute in ("03:14", "03:15", "03:16", "03:59", "04:00", "04:30"):
        before = len(told.waiting)
        told = of_unanswered(told, "one", {}, f"2026-11-23T{minute}:00Z")
        roles += [(minute, one.to) for one in told.waiting[before:]]
    assert roles == [("03:15", "second"), ("04:00", "client")]
    assert told.waiting[-1].text == (
        "daemon degraded on one since 2026-11-23T03:00:00Z, and nobody has acknowledged it: the disk is full"
    )
    quiet = {"degraded": "2026-11-23T09:00:00Z"}
    assert of_unanswered(begun, "one", quiet, "2026-11-23T04:00:00Z") is begun
    over = of_host(told, "one", {}, (), "", "2026-11-23T05:00:00Z")
    again = of_host(over, "one", {}, (), "no jail", "2026-11-23T06:00:00Z")
    assert again.hosts["one"].since == "2026-11-23T06:00:00Z"
    assert of_unanswered(again, "one", {}, "2026-11-23T06:15:00Z").waiting[-1].to == "second"


def test_a_lost_daemon_is_said_once() -> None:
    notices, why = NoticeState(), "it died at 2026-11-23 03:00 UTC"
    for lost in (why, why, "", ""):  # at each round, and after a restart that was asked for
        notices = of_lost(notices, "one", lost, NOW)
    assert texts(notices) == [("degraded", f"daemon lost on one: {why}")]
    assert notices.waiting[0].critical
    assert len(of_lost(notices, "two", why, NOW).waiting) == 2


def test_hostile_words_become_one_inert_line() -> None:
    told = inert("\x1b]8;;http://evil\x07a\u202e\n\nb <http://x|y> @here" + "z" * 999)
    assert "\n" not in told
    assert "://" not in told
    assert "<" not in told
    assert "@" not in told
    assert "\x1b" not in told
    assert len(told) <= 240


@pytest.mark.parametrize(
    ("quiet", "zone", "clock", "is_it"),
    [
        ("", "UTC", "23:00", False),
        ("22:00-07:00", "UTC", "22:00", True),
        ("22:00-07:00", "UTC", "06:59", True),
        ("22:00-07:00", "UTC", "07:00", False),
        ("22:00-07:00", "Europe/Berlin", "06:30", False),
        ("22:00-07:00", "Europe/Berlin", "21:30", True),
        ("12:00-13:00", "UTC", "12:59", True),
        ("12:00-13:00", "UTC", "13:00", False),
    ],
)
def test_quiet_hours_are_those_of_the_time_zone(quiet: str, zone: str, clock: str, is_it: bool) -> None:
    hour, minute = map(int, clock.split(":"))
    rules = section(quiet=quiet, timezone=zone)
    assert is_quiet(rules, NOON.replace(hour=hour, minute=minute)) is is_it


def waiting(*events: str, critical: bool = False) -> NoticeState:
    notices = [
        Notice.model_validate({"event": event, "text": event, "at": NOW, "critical": critical})
        for event in events
    ]
    return NoticeState(waiting=tuple(notices))


def titles(notices: NoticeState) -> list[str]:
    """Without the severity, and what is to do (test_sent.py)."""
    return [one.title.partition("QA fleet, ")[2].partition(" (")[0] for one in notices.messages]


def test_one_message_of_a_group_in_a_window() -> None:
    rules = section(every="15m")
    notices = due(waiting("finding", "fixed", "finding", "degraded"), rules, ["a"], "acme", NOON)
    assert titles(notices) == ["acme: 2 finding, 1 fixed", "acme: 1 degraded"]
    assert notices.messages[0].body.splitlines() == [f"{NOW} finding", f"{NOW} fixed", f"{NOW} finding"]
    later = notices.model_copy(update={"waiting": waiting("regression", "platform-down").waiting})
    early = due(later, rules, ["a"], "acme", NOON + timedelta(minutes=14))
    assert titles(early)[2:] == ["acme: 1 platform-down"]
    assert [one.event for one in early.waiting] == ["regression"]
    assert titles(due(early, rules, ["a"], "acme", NOON + timedelta(minutes=15)))[3:] == [
        "acme: 1 regression"
    ]


def test_quiet_hours_hold_back_and_are_summed_up_and_critical_notices_pass() -> None:
    rules, night = section(quiet="22:00-07:00"), NOON.replace(hour=23)
    both = (*waiting("finding", "budget-spent").waiting, *waiting("platform-down", critical=True).waiting)
    notices = due(NoticeState(waiting=both), rules, ["a"], "acme", night)
    assert titles(notices) == ["acme: 1 platform-down"]
    morning = due(notices, rules, ["a"], "acme", NOON.replace(day=24, hour=7))
    assert titles(morning)[1:] == ["acme, while it was quiet: 1 finding, 1 budget-spent"]
    assert morning.waiting == ()


def test_what_is_for_a_role_reaches_its_receivers_alone_and_at_once() -> None:
    names = ["a", "client mailto 01", "second mailto 02"]
    mine = waiting("finding").waiting
    theirs = [
        Notice(event="sensitive-data", text=to, at=NOW, to=to) for to in ("client", "counsel", "second")
    ]
    state = NoticeState(waiting=(*mine, *theirs))
    kept = wanted(state, NoticeState(), ["finding"], {"sensitive-data": iso(NOON + timedelta(1))}, NOON)
    assert kept.waiting == state.waiting
    assert [one.event for one in kept.shown] == ["finding"]
    night = section(quiet="11:00-13:00")
    quiet = due(state, night, names, "acme", NOON)
    assert [(one.left, one.body[-6:]) for one in quiet.messages] == [
        (("second mailto 02",), "second"),
        (("client mailto 01",), "client"),
    ]
    assert [one.event for one in quiet.waiting] == ["finding"]
    assert due(state, section(), names, "acme", NOON).messages[-1].left == ("a",)
    assert due(state, section(), names[1:], "acme", NOON).waiting == mine


def test_silenced_and_unwanted_events_are_dropped_and_what_waited_stays() -> None:
    before = waiting("finding")
    notices = before.model_copy(update={"waiting": (*before.waiting, *waiting(*EVENTS).waiting)})
    silenced = {"fixed": iso(NOON + timedelta(hours=1)), "regression": NOW, "finding": iso(NOON)}
    events = section(events=["finding", "fixed", "regression"]).events
    assert [one.event for one in wanted(notices, before, events, silenced, NOON).waiting] == [
        "finding",
        "finding",
        "regression",
    ]


def test_a_message_is_long_at_most_and_says_how_much_it_leaves_out() -> None:
    notices = due(waiting(*["finding"] * 30), section(), ["a"], "acme", NOON)
    assert notices.messages[0].body.splitlines()[-1] == "and 10 more"
    assert len(notices.messages[0].body.splitlines()) == 21


def test_a_receiver_that_has_it_is_not_tried_again_and_one_without_is_until_a_day_is_over() -> None:
    notices = due(waiting("finding"), section(), ["a", "b", "gone"], "acme", NOON)
    ident = notices.messages[0].id
    notices = tried(notices, ident, ["a"], ["a", "b"], NOON, is_last=False)
    assert (notices.messages[0].left, notices.messages[0].tries) == (("b",), 0)
    waits = []
    for _ in range(9):
        notices = tried(notices, ident, [], ["a", "b"], NOON, is_last=True)
        waits.append(datetime.fromisoformat(notices.messages[0].again) - NOON)
    assert [int(wait.total_seconds() // 60) for wait in waits] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert tried(notices, ident, ["b"], ["a", "b"], NOON, is_last=False).messages == ()
    assert (
        tried(notices, ident, [], ["a", "b"], NOON + timedelta(seconds=NOTICE.total_s), is_last=True).messages
        == ()
    )


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 300),
            st.lists(st.tuples(st.sampled_from(EVENTS), st.booleans()), max_size=4),
        ),
        max_size=12,
    )
)
def test_whatever_comes_is_said_once_within_the_rules(
    rounds: Sequence[tuple[int, list[tuple[str, bool]]]],
) -> None:
    """Nothing lost, nothing twice, one message of a group in a window, only critical ones in quiet hours."""
    rules = section(quiet="22:00-07:00", every="15m")
    notices, now, put = NoticeState(), NOON, list[str]()
    spoken, shown, counted = dict[str, datetime](), list[str](), 0
    for minutes, events in [*rounds, (600, []), (600, [])]:
        now += timedelta(minutes=minutes)
        for event, critical in events:
            put.append(f"n{len(put)} {critical}")
            row = {"event": event, "text": put[-1], "at": iso(now), "critical": critical}
            notices = notices.model_copy(update={"waiting": (*notices.waiting, Notice.model_validate(row))})
        notices = due(notices, rules, ["a"], "acme", now)
        for message in notices.messages:
            lines = [text.partition(" ")[2] for text in message.body.splitlines()]
            shown += [text for text in lines if text.startswith("n")]
            counted += sum(int(word) for word in message.title.split() if word.isdigit())
            if is_quiet(rules, now):
                assert all(text.endswith("True") for text in lines)
            elif "quiet" in message.title:
                continue
            (group,) = {GROUPS[event] for event in message.events}
            waited = group not in spoken or now - spoken[group] >= timedelta(minutes=15)
            assert waited or group == "questions"  # said at once
            spoken[group] = now
        notices = notices.model_copy(update={"messages": ()})
    assert counted == len(put)
    assert len(set(shown)) == len(shown)
    assert notices.waiting == ()
