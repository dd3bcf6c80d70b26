"""What is grave and not proven is neither forgotten nor mixed with what is."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fleet.findings.outage import WORD
from fleet.service.retry_unproven import AFTER, TIMES, UnprovenRetry
from fleet.store.rows import CLOSING, DecisionKind, DecisionRow, FindingRow
from fleet.triage.items.unproven import beside, proving, unproven
from fleet.triage.outputs.document import WorklistHeader
from fleet.triage.outputs.html_page import to_html
from fleet.triage.outputs.json_file import to_json
from fleet.triage.outputs.markdown import to_markdown
from tests.cli.test_worklist_command import own
from tests.doubles.triggers import FiringRecorder
from tests.triggers.conftest import FakeClock

AT = "2026-11-21T10:00:00Z"
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def row(run: str, fp: str = "f" * 12, state: Any = "unverified", **more: Any) -> FindingRow:
    values: dict[str, Any] = {"severity": "critical", "persona": "qa-x", "title": "a key", "at": AT} | more
    return FindingRow(run_id=run, fingerprint=fp, state=state, **values)


def test_the_latest_run_decides() -> None:
    assert [(one.run, one.runs) for one in unproven([row("1"), row("2")], (), NOW)] == [("2", 2)]
    assert unproven([row("1"), row("2", state="dropped")], (), NOW) == ()
    assert unproven([row("1"), row("2", state="posted")], (), NOW) == ()
    assert [one.run for one in unproven([row("1", state="posted"), row("2")], (), NOW)] == ["2"]


def test_an_open_item_that_is_proven_needs_no_second_line() -> None:
    left = unproven([row("1"), row("2", "a" * 12)], (), NOW)
    item = own(1, "a key", fingerprint="e" * 12, names=("e" * 12, "f" * 12))
    assert [one.fingerprint for one in beside(left, [item], 9)] == ["a" * 12]
    assert beside(left, [replace(item, rank=0)], 9) == beside(left, [replace(item, proof="flaky")], 9) == left


def test_whatever_its_severity_and_nothing_that_waits_for_a_person() -> None:
    assert [one.severity for one in unproven([row("1", severity="low")], (), NOW)] == ["low"]
    assert unproven([row("1", data={"claim": {"review": True}})], (), NOW) == ()
    high = row("1", "a" * 12, severity="high", at="2026-11-21T09:00:00Z")
    assert [one.severity for one in unproven([high, row("2")], (), NOW)] == ["critical", "high"]


@pytest.mark.parametrize(
    ("kinds", "until", "left"),
    [
        ("dismiss", "", 0),
        ("snooze", "2026-11-22T00:00:01Z", 0),
        ("snooze", "2026-11-22T00:00:00Z", 1),
        ("dismiss reopen", "", 1),
        ("severity", "", 1),
    ],
)
def test_what_a_person_put_aside_is_not_tried_again(kinds: str, until: str, left: int) -> None:
    made = [
        DecisionRow(
            item="f" * 12,
            kind=cast(DecisionKind, kind),
            reason="x",
            who="a",
            at=f"2026-11-21T1{n}:00:00Z",
            name=f"{n:012x}",
            until=until,
            severity="low" if kind == "severity" else "",
        )
        for n, kind in enumerate(kinds.split())
    ]
    assert len(unproven([row("1")], made, NOW)) == left


@pytest.mark.parametrize("state", ["unverified", "raised"])
def test_what_a_person_dismissed_stays_so_under_a_fingerprint_of_a_newer_version(state: Any) -> None:
    made = DecisionRow(platform="p", item="f" * 12, kind="dismiss", reason="x", who="a", at=AT)
    seen = row("1", "3" * 12, state, data={"known_as": ["f" * 12]})
    assert (unproven([seen], [made], NOW), proving([seen], [made], NOW)) == ((), ())


def test_it_stands_in_a_section_of_its_own() -> None:
    left = unproven([row("r1", data={"why": "the | proxy"})], (), NOW)
    shown = to_markdown((), WorklistHeader(unproven=left)).decode()
    assert "## Not proven yet: 1" in shown
    assert "Nothing to do." not in shown
    assert "the \\| proxy" in shown
    assert json.loads(to_json((), WorklistHeader(unproven=left)))["unproven"][0]["title"] == "a key"
    assert "Not proven" not in to_markdown((), WorklistHeader()).decode()


class Journal:
    def __init__(self, *rows: FindingRow, platform: str = "devnet") -> None:
        self.rows, self.platform = rows, platform

    async def findings(self, run: str | None = None, states: Any = ()) -> list[FindingRow]:
        return [one for one in self.rows if not states or one.state in states]

    async def decisions(self, platform: str) -> list[DecisionRow]:
        return []

    async def run(self, run: str) -> Any:
        return SimpleNamespace(platform=self.platform)


async def looked(sink: FiringRecorder, *rows: FindingRow, times: int = 1, platform: str = "devnet") -> None:
    again = UnprovenRetry(cast(Any, Journal(*rows, platform=platform)), sink, FakeClock(), "devnet")
    for _ in range(times):
        await again.look()


@pytest.mark.anyio
async def test_it_is_looked_at_again_soon_and_a_few_times() -> None:
    sink, runs = FiringRecorder(), [row(str(number)) for number in range(TIMES + 1)]
    just = (FakeClock().now() - AFTER + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    lesser = [row("1", "a" * 12, severity="medium")]
    for rows in (runs[:1], runs[:2], runs, [row("1", at=just)], [row("1", state="posted")], lesser):
        await looked(sink, *rows)
    assert sink.keys == [f"qa-x@unproven:{'f' * 12}:1", f"qa-x@unproven:{'f' * 12}:2"]
    assert sink.fired[0].why == "not proven yet: a key"


@pytest.mark.anyio
async def test_a_chance_is_offered_once_and_only_on_its_own_platform() -> None:
    sink = FiringRecorder()
    await looked(sink, row("1"), times=3)
    await looked(sink, row("1", "a" * 12), platform="other")
    assert (sink.keys, sink.repeats) == ([f"qa-x@unproven:{'f' * 12}:1"], [])


def test_from_the_moment_it_is_seen_a_candidate_is_in_a_group_of_its_own() -> None:
    rows = [
        row("1"),
        row("2", state="raised"),
        row("2", "a" * 12, state="raised", severity="low", title="a slow page"),
        row("2", "b" * 12, state="raised", severity="high", title="<b>*a leak*</b>"),
        row("2", "c" * 12, state="raised", data={"claim": {"review": True}}),
        row("1", "d" * 12, state="raised"),
        row("2", "d" * 12, state="posted", index=3),
    ]
    seen = beside(proving(rows, (), NOW), (), 4)
    assert [one.fingerprint[0] for one in seen] == ["f", "b", "a"]
    assert {one.why for one in seen} == {"seen, being proven"}
    assert unproven(rows, (), NOW) == ()
    dismissed = DecisionRow(
        item="f" * 12, kind="dismiss", reason="x", who="a", at="2026-11-21T10:00:00Z", name="f" * 12
    )
    assert [one.fingerprint[0] for one in proving(rows, [dismissed], NOW)] == ["d", "b", "a"]
    header = WorklistHeader(proving=seen)
    listed = to_markdown((), header).decode()
    assert listed.index("## Seen, being proven: 3") < listed.index("Nothing is proven.")
    assert [one["fingerprint"][0] for one in json.loads(to_json((), header))["proving"]] == ["f", "b", "a"]
    page = to_html((), header).decode()
    assert "Seen, being proven: 3" in page
    assert "<b>" not in page
    assert "## Seen" not in to_markdown((), WorklistHeader()).decode()


@pytest.mark.parametrize(
    ("states", "why", "entry"),
    [
        ("raised", "seen, being proven", -1),
        ("raised confirmed", "proven, being posted", -1),
        ("posting", "proven, being posted", -1),
        ("posting repeated", "proven, being posted", -1),  # by another run at the same time
        ("posted", "posted, not read from the log yet", 5),
        ("unverified posted", "posted, not read from the log yet", 5),
        ("dropped", "", -1),
    ],
)
def test_it_vanishes_nowhere_between_sight_and_list(states: str, why: str, entry: int) -> None:
    rows = [
        row(str(number), state=state, at="2026-11-21T23:00:00Z", index=5 if state == "posted" else -1)
        for number, state in enumerate(states.split())
    ]
    seen = proving(rows, (), NOW)
    assert [(one.why, one.entry) for one in seen] == ([(why, entry)] if why else [])
    assert beside(seen, (), 5) == seen  # the list was read up to the entry before it
    assert beside(seen, (), 6) == (() if entry == 5 else seen)
    assert unproven(rows, (), NOW) == ()


def test_what_has_a_place_of_its_own_is_not_on_the_way_to_the_list() -> None:
    late = "2026-11-20T23:00:00Z"  # posted to a log that is another one by now
    rows = [
        row("1", "a" * 12, state="posted", index=5, at=late),
        row("1", "b" * 12, state="confirmed", probe=CLOSING),
        row("1", "c" * 12, state="confirmed", probe=WORD),
    ]
    assert proving(rows, (), NOW) == ()
    held = row("1", "d" * 12, state="confirmed", data={"held": True})
    assert [one.why for one in proving([held], (), NOW)] == ["proven, held until the node answers"]


def test_one_severity_is_in_order_of_age_then_of_fingerprint() -> None:
    rows = [
        row("1", "c" * 12, state="raised"),
        row("1", "b" * 12, state="raised", at="2026-11-21T09:00:00Z"),
        row("1", "a" * 12, state="raised"),
        row("1", "d" * 12, state="raised", severity="low", at="2026-11-21T08:00:00Z"),
    ]
    assert [one.fingerprint[0] for one in proving(rows, (), NOW)] == ["b", "a", "c", "d"]
