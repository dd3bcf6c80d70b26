"""Which items are listed, and the digest: exact groups, and words for what does not exist."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from fleet.errors import UsageError
from fleet.triage.items.life import ItemState
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.digest import daily_digest, digest_json, digest_markdown
from fleet.triage.outputs.document import (
    AuditRate,
    LogPosition,
    WorklistHeader,
    audited,
    document,
    standing,
)
from fleet.triage.outputs.selection import Selection, moment
from tests.triage.outputs.test_formats import OWN, item

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OLD, DAY, LATE = "2026-11-01T00:00:00Z", "2026-11-20T12:00:00Z", "2026-11-21T11:00:00Z"
HEADER = WorklistHeader(as_of=LogPosition(0, 7, LATE))


def one(number: int, title: str, **more: Any) -> WorklistItem:
    made = item(number, title, **OWN | {"surface": "ux", "links": (), "first_seen": OLD, "last_seen": OLD})
    return replace(made, **more)


ITEMS = (
    one(1, "fresh panic", first_seen=LATE, last_seen=LATE, since=LATE, surface="compiler"),
    one(2, "old and open", since=OLD),
    one(3, "seen again", since=OLD, last_seen=LATE, severity="low"),
    one(4, "came back", since=LATE, regression=True, state="regression"),
    one(5, "back long ago", since=OLD, regression=True, state="regression"),
    one(0, "fixed today", since=LATE, state="verified-fixed"),
    one(0, "fixed by hand", since=LATE, state="fixed"),
    one(0, "fixed in spring", since=OLD, state="fixed"),
    one(0, "not a defect", since=LATE, state="dismissed"),
    one(0, "later", since=LATE, state="snoozed", names=("f00d" * 3,)),
)


@pytest.mark.parametrize(
    ("wanted", "titles"),
    [
        (Selection(), [1, 2, 3, 4, 5]),
        (Selection(state="fixed"), [6, 7, 8]),
        (Selection(state="dismissed"), [9]),
        (Selection(state="snoozed"), [10]),
        (Selection(state="all"), list(range(1, 11))),
        (Selection(new=True, since=DAY), [1, 4]),
        (Selection(since=DAY), [1, 3, 4]),
        (Selection(since=DAY, state="fixed"), [6, 7]),
        (Selection(severities=("low",)), [3]),
        (Selection(severities=("low", "high"), surfaces=("compiler",)), [1]),
        (Selection(text="PANIC fresh"), [1]),
        (Selection(text="f00d", state="all"), [10]),
        (Selection(text="panic old"), []),
    ],
)
def test_filters_combine(wanted: Selection, titles: list[int]) -> None:
    assert [ITEMS.index(found) + 1 for found in wanted.of(ITEMS)] == titles


def test_unknown_values_name_the_valid_ones() -> None:
    with pytest.raises(UsageError, match="--state: unknown value 'gone'") as error:
        Selection(state="gone")
    assert error.value.remedy == "choose one of open, fixed, dismissed, snoozed, all"
    with pytest.raises(UsageError, match="--severity"):
        Selection(severities=("worst",))
    with pytest.raises(UsageError, match="--surface") as error:
        Selection(surfaces=("kitchen",)).of(ITEMS)
    assert error.value.remedy == "choose one of compiler, on-chain, perf, security, ux"


def test_every_state_is_in_exactly_one_group() -> None:
    groups = ("open", "fixed", "dismissed", "snoozed")
    for state in get_args(ItemState):
        found = [name for name in groups if Selection(state=name).of([one(1, "x", state=state)])]
        assert len(found) == 1, state


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90m", "2026-11-21T10:30:00Z"),
        ("1d", "2026-11-20T12:00:00Z"),
        ("2w", "2026-11-07T12:00:00Z"),
        ("2026-11-01", "2026-11-01T00:00:00Z"),
        ("2026-11-01T02:00:00+02:00", "2026-11-01T00:00:00Z"),
        ("999999w", "0001-01-01T00:00:00Z"),
    ],
)
def test_a_moment(text: str, at: str) -> None:
    assert moment(text, NOW) == at


@pytest.mark.parametrize("text", ["yesterday", "1y", "0d", "-1d", "", "2026-13-01"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(UsageError, match="--since"):
        moment(text, NOW)


def test_the_digest_has_each_item_once() -> None:
    made = json.loads(digest_json(daily_digest(ITEMS, HEADER, DAY)))
    groups = {name: [line["title"] for line in made[name]] for name in ("new", "fixed", "regressed", "still")}
    assert groups == {
        "new": ["fresh panic"],
        "fixed": ["fixed today", "fixed by hand"],
        "regressed": ["came back"],
        "still": ["old and open", "seen again", "back long ago"],
    }
    assert (made["since"], made["as_of"]["entries"]) == (DAY, 7)
    assert [line["at"] for line in made["regressed"]] == [LATE]


def test_what_only_this_machine_saw_come_back_is_a_regression_too() -> None:
    seen = one(1, "fixed by hand, and seen since", first_seen=LATE, since=LATE, state="regression")
    made = daily_digest([seen], HEADER, DAY)
    assert [[line.title for line in group] for group in (made.regressed, made.new)] == [[seen.title], []]


def test_a_flood_of_strangers_hides_nothing_of_ours_in_the_digest() -> None:
    flood = [one(n, f"flood {n}", first_seen=LATE, trusted=False, proof="untrusted") for n in range(3, 80)]
    made = daily_digest([*flood, *ITEMS[:1], *ITEMS[3:4]], HEADER, DAY)
    assert (len(made.new), len(made.regressed), len(made.strangers)) == (1, 1, 77)
    lines = digest_markdown(made).decode().splitlines()
    assert lines[0].endswith(": 1 new, 1 regressed, 0 fixed, 0 still, 77 new from strangers")
    assert [line for line in lines if line.startswith("#")][1:] == [
        "## New: 1",
        "## Regressed: 1",
        "## New from strangers: 77",
    ]
    assert lines[-1] == "- 27 more"


def test_what_nothing_looked_at_is_said_of_open_items_of_ours() -> None:
    assert standing(one(1, "x", stale=True)) == "confirmed, stale"
    assert standing(one(1, "x", stale=True, proof="flaky")) == "confirmed, flaky, stale"
    assert standing(one(0, "x", stale=True, state="fixed")) == "fixed"
    assert (
        standing(one(1, "x", stale=True, state="new", trusted=False, proof="untrusted")) == "new, untrusted"
    )


def test_the_audit_has_its_rate() -> None:
    assert audited(AuditRate(8, 2)) == "8 dismissed or low items proven again, 2 overturned (25%)"
    found = AuditRate(8, 2, ("a" * 12,))
    assert audited(found).endswith(f"2 overturned (25%); dismissed, and there: {'a' * 12}")
    assert audited(AuditRate(1, 0)) == "1 dismissed or low item proven again, 0 overturned"


def test_the_digest_for_people() -> None:
    lines = digest_markdown(daily_digest(ITEMS[:2], HEADER, DAY)).decode().splitlines()
    assert lines == [
        "# Since 2026-11-20 12:00 UTC: 1 new, 0 regressed, 0 fixed, 1 still",
        "",
        "As of log entry 6 (2026-11-21 11:00 UTC).",
        "",
        "## New: 1",
        "",
        "- high, compiler: fresh panic (`000000000001`)",
        "",
        "## Still: 1",
        "",
        "- high, ux: old and open (`000000000002`)",
    ]


def test_a_digest_on_a_terminal_has_no_marks_of_markdown() -> None:
    hostile = replace(ITEMS[0], title="GET /a_b: [x](y) *z* `q`")
    text = digest_markdown(daily_digest([hostile], HEADER, DAY), terminal=True).decode()
    assert "GET /a_b: [x](y) *z* `q` (" in text
    assert not {"#", "\\"} & {*text}


def test_what_changed_since_is_all_that_a_digest_without_the_rest_needs() -> None:
    listed = document(ITEMS, HEADER)
    for since in (OLD, DAY, LATE, "2036-01-01T00:00:00Z"):
        every = daily_digest((*listed.items, *listed.closed), HEADER, since, ("still",))
        assert daily_digest(listed.changed(since), HEADER, since, ("still",)) == every
    assert [one.title for one in listed.changed(LATE)] == [
        one.title for one in (*listed.items, *listed.closed) if max(one.first_seen, one.since) == LATE
    ]
