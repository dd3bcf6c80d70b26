"""How often an item was seen: by runs, once each, by days; clean until it is seen again."""

from __future__ import annotations

import pytest

from fleet.errors import ConfigError
from fleet.findings.reader import read
from fleet.findings.recurrence import DAYS, Recurrence, is_fixed, key_of, read_recurrence


def test_a_run_counts_once_and_a_day_once() -> None:
    one = Recurrence().shown("2026-11-22T10:00:00Z", "a").shown("2026-11-22T10:01:00Z", "a")
    assert (one.runs, one.days, one.last) == (1, ("2026-11-22",), "2026-11-22T10:00:00Z")
    two = one.shown("2026-11-22T11:00:00Z", "b", "qa-x").shown("2026-11-23T11:00:00Z", "c", "qa-y")
    assert (two.runs, two.days) == (3, ("2026-11-22", "2026-11-23"))
    many = two
    for day in range(DAYS + 5):
        many = many.shown(f"2027-{1 + day // 28:02}-{1 + day % 28:02}T00:00:00Z", str(day))
    assert (len(many.days), many.runs, many.again) == (DAYS, 3, DAYS + 5)


def test_what_is_seen_again_on_schedule_is_confirmed_again_and_no_new_report() -> None:
    """Asked every hour for a day, it would stand above anything grave that was just seen."""
    at = "2026-11-22T10:00:00Z"
    one = Recurrence().shown(at, "r0", "qa-x")
    for hour in range(24):
        one = one.shown(at, f"r{hour + 1}", "qa-x" if hour % 2 else "")  # its persona's run, or a re-run
    assert (one.runs, one.again, one.by) == (1, 24, ("qa-x",))
    other = one.shown(at, "s", "qa-y")
    assert (other.runs, other.again, other.by) == (2, 24, ("qa-x", "qa-y"))
    back = other.clean(at, "c").shown(at, "t", "qa-x")
    assert (back.runs, back.again) == (3, 24)


def test_runs_that_see_it_at_the_same_time_are_counted_once_each() -> None:
    at = "2026-11-22T10:00:00Z"
    one = (
        Recurrence()
        .shown(at, "a", "qa-x")
        .shown(at, "b", "qa-y")
        .shown(at, "a", "qa-x")
        .shown(at, "b", "qa-y")
    )
    assert (one.runs, one.again) == (2, 0)


def test_clean_holds_until_it_is_seen_again_and_unreached_is_not_clean() -> None:
    seen = Recurrence().shown("2026-11-22T10:00:00Z", "a")
    assert seen.unreached("2026-11-22T11:00:00Z").clean_at == ""
    clean = seen.clean("2026-11-22T12:00:00Z", "b")
    assert (clean.clean_at, clean.clean_run, clean.runs) == ("2026-11-22T12:00:00Z", "b", 1)
    assert clean.shown("2026-11-22T13:00:00Z", "c").clean_at == ""


def test_what_is_stored_is_read_back_and_damage_is_an_error() -> None:
    one = Recurrence().shown("2026-11-22T10:00:00Z", "a")
    assert read_recurrence(one.model_dump_json()) == one
    assert read_recurrence(None) == Recurrence()
    with pytest.raises(ConfigError):
        read_recurrence("{")
    assert key_of("p", "ab") == "item.p/ab"


def test_what_an_older_journal_holds_is_read() -> None:
    old = '{"runs":2,"days":["2026-11-22"],"last":"2026-11-22T10:00:00Z","run":"a","looked":"x"}'
    one = read_recurrence(old)
    assert (one.runs, one.unreached_since, one.opened) == (2, "", "")
    assert one.shown("2026-11-23T10:00:00Z", "b").opened == ""


def test_unreached_has_a_beginning_and_an_answer_ends_it() -> None:
    seen = Recurrence().shown("2026-11-22T10:00:00Z", "a")
    lost = seen.unreached("2026-11-22T11:00:00Z").unreached("2026-11-22T12:00:00Z")
    assert (lost.unreached_since, lost.looked) == ("2026-11-22T11:00:00Z", "2026-11-22T12:00:00Z")
    assert lost.shown("2026-11-22T13:00:00Z", "b").unreached_since == ""
    assert lost.clean("2026-11-22T13:00:00Z", "b").unreached_since == ""


def test_the_run_that_posts_is_the_first_since_it_was_clean() -> None:
    seen = Recurrence().shown("2026-11-22T10:00:00Z", "a").shown("2026-11-22T11:00:00Z", "b")
    assert seen.opened == "a"
    back = seen.clean("2026-11-22T12:00:00Z", "c").shown("2026-11-22T13:00:00Z", "d")
    assert (back.opened, back.shown("2026-11-22T14:00:00Z", "e").opened) == ("d", "d")


def test_a_resolve_record_is_known_by_its_title_and_needs_a_fingerprint() -> None:
    title = "verified-fixed: it is wrong"
    head = "qa/v1 source=qa-triage sev=info surface=ux"
    assert is_fixed(read(f"{head} fp=0123456789ab\n{title}\n"))
    assert not is_fixed(read(f"{head}\n{title}\n"))
    assert not is_fixed(read(f"{head} fp=0123456789ab\nit is wrong\n"))
