"""How often an item was seen: by runs, once each, by days; clean until it is seen again."""

from __future__ import annotations

import pytest

from fleet.errors import ConfigError
from fleet.findings.reader import read
from fleet.findings.recurrence import DAYS, Recurrence, fixed_title, is_fixed, key_of, read_recurrence


def test_a_run_counts_once_and_a_day_once() -> None:
    one = Recurrence().shown("2026-11-22T10:00:00Z", "a").shown("2026-11-22T10:01:00Z", "a")
    assert (one.runs, one.days, one.last) == (1, ("2026-11-22",), "2026-11-22T10:00:00Z")
    two = one.shown("2026-11-22T11:00:00Z", "b").shown("2026-11-23T11:00:00Z", "c")
    assert (two.runs, two.days) == (3, ("2026-11-22", "2026-11-23"))
    many = two
    for day in range(DAYS + 5):
        many = many.shown(f"2027-{1 + day // 28:02}-{1 + day % 28:02}T00:00:00Z", str(day))
    assert (len(many.days), many.runs) == (DAYS, 3 + DAYS + 5)


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


def test_a_resolve_record_is_known_by_its_title_and_needs_a_fingerprint() -> None:
    title = fixed_title("it is wrong", Recurrence().clean("2026-11-22T12:00:00Z", "b"))
    head = "qa/v1 source=qa-triage sev=info surface=ux"
    assert is_fixed(read(f"{head} fp=0123456789ab\n{title}\n"))
    assert not is_fixed(read(f"{head}\n{title}\n"))
    assert not is_fixed(read(f"{head} fp=0123456789ab\nit is wrong\n"))
