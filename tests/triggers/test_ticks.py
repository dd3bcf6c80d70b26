"""Ticks are the same everywhere, in any order asked for, and cheap over any gap."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from apscheduler.triggers.interval import IntervalTrigger
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.clock import iso, rest
from fleet.triggers.clock.ticks import EPOCH, SECOND, Cron, Every, Schedule, Ticks, TickSpan, named

MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))
EVERY = st.builds(Every, st.integers(1, 90_000), st.integers(0, 80_000))
CRONS = st.sampled_from(("* * * * *", "0 0 29 2 *", "*/7 3-5 * * *", "0,59 0,23 1,31 */2 *", "30 6 * * mon"))
TICKS: st.SearchStrategy[Ticks] = st.one_of(EVERY, CRONS.map(Cron.of))


@given(st.datetimes(datetime(1000, 1, 2), timezones=st.just(UTC)), st.integers(-23, 23))
def test_a_time_is_written_in_whole_seconds_of_utc(moment: datetime, hours: int) -> None:
    here = moment if moment.year == 9999 else moment.astimezone(timezone(timedelta(hours=hours)))
    assert iso(here) == moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@given(st.floats(0.001, 3600))
def test_all_who_look_now_and_then_wake_at_one_moment(period: float) -> None:
    before, left, after = time.monotonic(), rest(period), time.monotonic()
    assert 0 < left <= period
    multiple = math.ceil((before + left - 1e-6) / period) * period
    assert multiple <= after + left + 1e-6


@given(TICKS, MOMENTS)
def test_after_and_latest_are_neighbours(ticks: Ticks, moment: datetime) -> None:
    coming, latest = ticks.after(moment), ticks.latest(moment)
    assert latest <= moment < coming
    assert ticks.after(latest) == coming
    assert ticks.latest(coming - SECOND) == latest
    assert ticks.latest(coming) == coming
    assert (coming.microsecond, coming.tzinfo) == (0, UTC)


@given(EVERY, MOMENTS)
def test_an_interval_is_apschedulers_own(ticks: Every, moment: datetime) -> None:
    start = EPOCH + timedelta(seconds=ticks.offset)
    oracle = IntervalTrigger(seconds=ticks.period, start_date=start, timezone=UTC)
    latest = oracle.get_next_fire_time(None, max(moment, start))
    assert ticks.latest(latest) == latest
    assert ticks.after(latest) == oracle.get_next_fire_time(latest, latest)


@given(EVERY, MOMENTS)
def test_the_first_tick_is_after_one_full_period(ticks: Every, moment: datetime) -> None:
    wait = ticks.first(moment) - moment
    assert ticks.period <= wait.total_seconds() < 2 * ticks.period
    tick = ticks.after(moment)
    assert ticks.first(tick) == ticks.after(tick)


@given(st.integers(1, 90_000), st.text(max_size=20))
def test_the_offset_is_the_personas_own_and_within_the_period(period: int, persona: str) -> None:
    assert 0 <= Every.of(period, persona).offset == Every.of(period, persona).offset < period


def test_personas_spread_over_the_period() -> None:
    offsets = {Every.of(3600, f"qa-{number}").offset // 360 for number in range(200)}
    assert offsets == set(range(10))


@given(TICKS, MOMENTS, st.timedeltas(timedelta(0), timedelta(days=4000)))
def test_one_step_leads_to_the_latest_due(ticks: Ticks, moment: datetime, gap: timedelta) -> None:
    coming, now = ticks.after(ticks.latest(moment)), moment + gap
    schedule = Schedule(ticks, coming)
    taken = schedule.take(now)
    latest = ticks.latest(now)
    assert taken == ((coming, latest) if coming <= now else None)
    assert schedule.next == max(coming, ticks.after(now))


@given(TICKS, MOMENTS, st.timedeltas(timedelta(0), timedelta(days=4000)))
def test_the_scheduler_is_asked_back_once_after_any_gap(
    ticks: Ticks, moment: datetime, gap: timedelta
) -> None:
    previous = ticks.latest(moment)
    assert ticks.get_next_fire_time(previous, moment + gap) == ticks.after(moment + gap)
    assert ticks.get_next_fire_time(previous, moment - gap) == ticks.after(previous)


@settings(max_examples=300)
@given(TICKS, MOMENTS, st.lists(st.integers(-400_000, 400_000), min_size=1, max_size=8))
def test_whatever_the_clock_is_set_to_no_tick_of_the_span_fires_again(
    ticks: Ticks, moment: datetime, steps: list[int]
) -> None:
    now, schedule = moment, Schedule(ticks, ticks.first(moment))
    for step in steps:
        now += timedelta(seconds=step)
        schedule.reset(now)
        span = schedule.span
        due = schedule.next
        taken = schedule.take(now)
        if due <= now:
            tick = max(due, ticks.latest(now))
            assert taken == (None if span is not None and tick in span else (due, tick))
            assert schedule.next == ticks.after(tick)
        elif span is None:
            assert schedule.next <= ticks.first(now)
        else:
            before = ticks.latest(schedule.next - SECOND)  # nothing is passed over but what fired
            assert before <= now or before in span


def test_set_back_into_what_fired_waits_for_the_end_of_it() -> None:
    hour, noon = timedelta(hours=1), datetime(2026, 11, 21, 12, tzinfo=UTC)

    def schedule(span: TickSpan | None, hours: int) -> datetime:
        found = Schedule(Every(3600), noon + hour, span)
        found.reset(noon + hours * hour)
        return found.next

    fired = TickSpan(noon - 5 * hour, noon)
    assert schedule(fired, -2) == noon + hour
    assert schedule(fired, -9) == noon - 8 * hour
    assert schedule(fired, 9) == noon + hour
    assert schedule(None, -9) == noon - 8 * hour


def test_a_span_with_a_gap_starts_anew() -> None:
    hour, noon = timedelta(hours=1), datetime(2026, 11, 21, 12, tzinfo=UTC)
    span = TickSpan(noon, noon + hour)
    assert span.grown(noon + 2 * hour, missed=False) == TickSpan(noon, noon + 2 * hour)
    assert span.grown(noon + 9 * hour, missed=True) == TickSpan(noon + 9 * hour, noon + 9 * hour)
    assert span.grown(noon - hour, missed=False) == span
    assert noon in span
    assert noon + 2 * hour not in span


def test_a_skip_names_some_and_the_last() -> None:
    minute = Every(60)
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert named(minute, noon, noon) == ""
    assert named(minute, noon, noon + 120 * SECOND) == "2026-11-21T12:00:00Z, 2026-11-21T12:01:00Z"
    many = named(minute, noon, noon + timedelta(days=3650))
    assert many.count("Z") == 6
    assert many.endswith("and more, up to 2036-11-18T11:59:00Z")


@pytest.mark.parametrize(
    ("expression", "moment", "tick"),
    [
        ("0 * * * *", "2026-11-21T12:00:00", "2026-11-21T13:00:00"),
        ("30 6 * * 1-5", "2026-11-20T06:30:00", "2026-11-23T06:30:00"),  # Friday, then Monday
        ("0 0 * * 0", "2026-11-21T12:00:00", "2026-11-22T00:00:00"),  # 0 is Sunday
        ("0 0 * * 7", "2026-11-21T12:00:00", "2026-11-22T00:00:00"),  # and so is 7
        ("0 0 29 2 *", "2096-02-29T00:00:00", "2104-02-29T00:00:00"),
        ("59 23 31 12 *", "2026-12-31T23:58:59.999999", "2026-12-31T23:59:00"),
        ("*/20 * * * *", "2026-11-21T12:20:00.5", "2026-11-21T12:40:00"),
    ],
)
def test_cron_as_crontab_has_it(expression: str, moment: str, tick: str) -> None:
    found = Cron.of(expression).after(datetime.fromisoformat(moment).replace(tzinfo=UTC))
    assert found == datetime.fromisoformat(tick).replace(tzinfo=UTC)
