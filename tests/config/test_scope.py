"""`[schedule]`, `[hosts]` and `[authorisation]` of a profile."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.clock import iso
from fleet.config import Platform, parse
from fleet.config.scope import HostSection, ScheduleSection
from fleet.errors import ConfigError

PROFILE = f'name = "x"\n[chain]\nrpc = "http://127.0.0.1:1"\nid = 1\ndiamond = "0x{"0" * 40}"\n'


def schedule(text: str) -> ScheduleSection:
    return parse(Platform, f"{PROFILE}[schedule]\n{text}\n", file="x.toml").schedule


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


BERLIN = 'zone = "Europe/Berlin"\n'
NIGHTS = BERLIN + 'windows = ["Mon-Fri 22:00-06:00"]'
FREEZE = 'excluded = ["2026-12-20/2027-01-02"]'
GAP = BERLIN + 'windows = ["Sun 02:30-04:00"]'
"""On 2026-03-29 Berlin's clocks go from 02:00 to 03:00; on 2026-10-25 the hour from 02:00 comes twice."""


@pytest.mark.parametrize(
    ("text", "now", "inside", "changes"),
    [
        ("", "2026-11-27T12:00", True, ""),
        (NIGHTS, "2026-11-27T12:00", False, "2026-11-27T21:00:00Z"),  # a Friday
        (NIGHTS, "2026-11-27T20:59:59", False, "2026-11-27T21:00:00Z"),
        (NIGHTS, "2026-11-27T21:00", True, "2026-11-28T05:00:00Z"),
        (NIGHTS, "2026-11-28T04:59:59", True, "2026-11-28T05:00:00Z"),
        (NIGHTS, "2026-11-28T05:00", False, "2026-11-30T21:00:00Z"),
        (NIGHTS, "2026-11-28T21:30", False, "2026-11-30T21:00:00Z"),
        (NIGHTS, "2026-07-01T20:00", True, "2026-07-02T04:00:00Z"),
        (GAP, "2026-03-29T00:59", False, "2026-03-29T01:00:00Z"),
        (GAP, "2026-03-29T01:00", True, "2026-03-29T02:00:00Z"),
        (GAP, "2026-10-25T00:45", True, "2026-10-25T01:00:00Z"),
        (GAP, "2026-10-25T01:10", False, "2026-10-25T01:30:00Z"),
        ('windows = ["Sat-Sun,Wed 00:00-24:00"]', "2026-11-29T23:59", True, "2026-11-30T00:00:00Z"),
        ("not_after = 2026-11-27", "2026-11-27T23:59", True, "2026-11-28T00:00:00Z"),
        ("not_after = 2026-11-27", "2026-11-28T00:00", False, ""),
        (BERLIN + "not_after = 2026-11-27T18:00:30", "2026-11-27T17:00:29", True, "2026-11-27T17:00:30Z"),
        (BERLIN + "not_after = 2026-11-27T18:00:00Z", "2026-11-27T18:00", False, ""),
        ("not_before = 2026-12-24", "2026-11-27T12:00", False, "2026-12-24T00:00:00Z"),
        (NIGHTS + "\nnot_before = 2026-12-24", "2026-11-27T22:00", False, "2026-12-23T23:00:00Z"),
        (NIGHTS + "\nnot_after = 2026-11-27T23:00:00", "2026-11-27T21:30", True, "2026-11-27T22:00:00Z"),
        (NIGHTS + "\nnot_after = 2026-11-27", "2026-11-28T03:00", False, ""),
        (BERLIN + FREEZE, "2026-12-19T22:59:59", True, "2026-12-19T23:00:00Z"),
        (BERLIN + FREEZE, "2026-12-19T23:00", False, "2027-01-02T23:00:00Z"),
        (BERLIN + FREEZE, "2027-01-02T23:00", True, ""),
        (NIGHTS + "\n" + FREEZE, "2026-12-21T22:00", False, "2027-01-04T21:00:00Z"),
        ('excluded = ["Sun 02:00-04:00"]', "2026-11-29T03:00", False, "2026-11-29T04:00:00Z"),
        ('excluded = ["Sun 02:00-04:00"]', "2026-11-29T04:00", True, "2026-12-06T02:00:00Z"),
        (NIGHTS + '\nexcluded = ["Mon-Sun 23:00-24:00"]', "2026-11-27T22:30", False, "2026-11-27T23:00:00Z"),
        ('excluded = ["2026-11-27"]', "2026-11-27T12:00", False, "2026-11-28T00:00:00Z"),
    ],
)
def test_when_a_platform_may_be_tested(text: str, now: str, inside: bool, changes: str) -> None:
    made = schedule(text)
    assert (made.is_open(at(now)), made.changes(at(now))) == (inside, changes)
    why = (
        ""
        if inside
        else f"outside the profile's testing windows: {f'next from {changes}' if changes else ''}"
    )
    assert made.closed(at(now)).startswith(why)
    assert bool(made.closed(at(now))) != inside


MINUTES = st.integers(0, 24 * 60 - 1)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia"])


@settings(max_examples=30, deadline=None)
@given(ZONES, MINUTES, MINUTES, st.integers(0, 6), st.integers(0, 366 * 24 * 60))
def test_a_window_is_what_the_zones_clock_shows_and_changes_where_is_said(
    zone: str, begin: int, end: int, day: int, minute: int
) -> None:
    end = end if end != begin else (begin + 1) % (24 * 60)
    name = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[day]
    window = f"{name} {begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02}"
    made = ScheduleSection(zone=zone, windows=(window,))
    now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
    local = now.astimezone(ZoneInfo(zone))
    shown = local.hour * 60 + local.minute - begin + 24 * 60 * ((local.weekday() - day) % 7)
    assert made.is_open(now) == (0 <= shown < (end - begin) % (24 * 60))
    edge = datetime.fromisoformat(made.changes(now))
    assert now < edge
    assert made.is_open(edge) != made.is_open(now)
    assert made.is_open(edge - timedelta(minutes=1)) == made.is_open(now)
    assert iso(edge) == made.changes(edge - timedelta(seconds=1))


@pytest.mark.parametrize(
    "text",
    [
        'zone = "Berlin"',
        'zone = "../etc/passwd"',
        'windows = ["22-6"]',
        'windows = ["Mo 22:00-06:00"]',
        'windows = ["Mon 22:00-22:00"]',
        'windows = ["25:00-26:00"]',
        "not_after = 2026-01-01\nnot_before = 2026-01-02",
        'window = ["22:00-06:00"]',
        'excluded = ["2026-13-01"]',
        'excluded = ["2026-12-24/2026-12-20"]',
        'excluded = ["December"]',
    ],
)
def test_a_schedule_that_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"x\.toml: schedule"):
        schedule(text)


def test_an_excluded_time_is_noticed_a_minute_before_it() -> None:
    made = schedule('zone = "Europe/Berlin"\nexcluded = ["Sun 02:00-04:00", "2026-12-20/2027-01-02"]')
    for at, found in (
        ("2026-11-29T00:58:59+00:00", ""),
        ("2026-11-29T00:59:00+00:00", "Sun 02:00-04:00"),
        ("2026-11-29T02:59:59+00:00", "Sun 02:00-04:00"),
        ("2026-11-29T03:00:00+00:00", ""),
        ("2026-12-19T22:58:59+00:00", ""),
        ("2026-12-19T22:59:00+00:00", "2026-12-20/2027-01-02"),
        ("2027-01-02T23:00:00+00:00", ""),
    ):
        assert made.maintenance(datetime.fromisoformat(at)) == found, at
    assert (made.resume, schedule('resume = "itself"').resume) == ("person", "itself")


def test_who_answers_for_the_tests_stands_in_a_comment_of_a_user_agent() -> None:
    profile = PROFILE + '[authorisation]\ncontact = "qa@x.test"\n'
    made = parse(
        Platform, profile + 'reference = "QA-7, https://x.test/bounty"\n', file="x.toml"
    ).authorisation
    assert made.comment == " (qa@x.test; QA-7, https://x.test/bounty)"
    assert parse(Platform, PROFILE, file="x.toml").authorisation.comment == ""
    for bad in ("a) Mozilla", "a\\\\", "a\\nhost: b", "ä", " a"):
        with pytest.raises(ConfigError, match="authorisation"):
            parse(Platform, profile + f'reference = "{bad}"\n', file="x.toml")


def test_what_hangs_on_a_host_says_whether_it_is_changed_and_how_fast_it_is_asked() -> None:
    tables = {
        "api.x.test": 'criticality = "critical"\napproved = "ada, QA-7"',
        "*.y.test": 'criticality = "non-production"\nrequests_per_second = 3',
        "shop.test": 'criticality = "production"',
        "till.test": 'criticality = "production"\napproved = "ada, QA-8"',
    }
    text = PROFILE + "".join(f'[hosts."{name}"]\n{table}\n' for name, table in tables.items())
    made = parse(Platform, text, file="x.toml")
    barred = {host: made.care.bars(f"https://{host}/a") for host in ("API.x.test.", "a.y.test", "shop.test")}
    assert barred["API.x.test."] == "api.x.test is critical: nothing is changed there"
    assert barred["a.y.test"] == made.care.bars("https://till.test/") == made.care.bars("no URL") == ""
    assert barred["shop.test"].startswith("shop.test is in production: nothing is changed there without")
    assert made.care.bars("https://10.0.0.7/").startswith("10.0.0.7 is unknown, so as if in production")
    assert [made.care.bars(f"http://{own}:8080/") for own in ("127.0.0.1", "[::1]", "localhost")] == [""] * 3
    assert made.care.untouched == ("api.x.test", "shop.test")
    assert made.care.listed.match("https://a.y.test/") == "*.y.test"
    assert [host.rate(10) for host in made.hosts.values()] == [1.0, 3.0, 10.0, 10.0]
    fast = HostSection(criticality="critical", approved="ada", requests_per_second=5)
    assert (fast.rate(10), HostSection().rate(10), HostSection().criticality) == (5.0, 10.0, "unknown")
    with pytest.raises(ConfigError, match='needs approved = "who'):
        parse(Platform, PROFILE + '[hosts."x.test"]\ncriticality = "critical"\n', file="x.toml")
    with pytest.raises(ConfigError, match="hosts"):
        parse(Platform, PROFILE + '[hosts."x.test/a"]\n', file="x.toml")


def test_four_fifths_of_the_agreed_time_are_told_before_the_last_hour() -> None:
    agreed = ScheduleSection(not_before=at("2026-12-01T00:00:00Z"), not_after=at("2026-12-11T00:00:00Z"))
    said = "80% of the agreed time are over, until 2026-12-11T00:00:00Z (schedule.not_after)"
    moments = ("2026-12-08T23:59:59Z", "2026-12-09T00:00:00Z", "2026-12-10T22:59:59Z")
    assert [agreed.countdown(at(moment)) for moment in moments] == ["", said, said]
    assert "in less than 60 minutes" in agreed.countdown(at("2026-12-10T23:00:00Z"))
    assert agreed.countdown(at("2026-12-11T00:00:00Z")) == ""
