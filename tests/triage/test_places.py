"""Where an item stands: by counts as by its reports, and after a pass that judges little as from cold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.findings.records import write_record
from fleet.store.rows import DecisionRow
from fleet.triage.items import merging
from fleet.triage.items.decisions import named, record_of
from fleet.triage.items.fold import TriageFold
from fleet.triage.items.index import TriageIndex
from fleet.triage.items.rank import SURFACES, ItemFacts, judge, reported_order
from fleet.triage.items.reports import OLDEST, REPORTS, RunHashes
from fleet.triage.items.similar import NearLink
from fleet.triage.run import decide
from tests.triage.triage_log import FLEET, HUMAN, START, TRUSTED, finding, inputs, log

CLAIMS = st.builds(
    lambda run, sev, rate, title: finding("a", run=run, sev=sev, rate=rate, title=title),
    st.sampled_from(["r1", "r2", "r3"]),
    st.sampled_from(["critical", "low", "info"]),
    st.sampled_from([(3, 3), (2, 3), (1, 9), (0, 3)]),
    st.sampled_from(["t1", "t1", "t1", "t2"]),
)


class ByLetter:
    """Links a title to the first one with its letter, once the log has a title that begins with `z`."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._found: dict[str, NearLink] = {}
        self.links: dict[str, NearLink] = {}

    def add(
        self, key: str, surface: str, title: str, body: str = "", *, exact: bool = False, ours: bool = True
    ) -> None:
        first = self._first.setdefault(title[0], key)
        if first != key:
            self._found[key] = NearLink(key, first, 0.9, "one letter")

    def settle(self) -> bool:
        now = self._found if "z" in self._first else {}
        changed, self.links = now != self.links, dict(now)
        return changed


@given(st.lists(st.tuples(st.sampled_from([FLEET, FLEET, HUMAN]), CLAIMS), max_size=3 * REPORTS))
def test_the_place_by_counts_is_the_place_by_reports(pairs: list[tuple[str, str]]) -> None:
    index, day = TriageIndex(TRUSTED), datetime.fromtimestamp(START, UTC).date() + timedelta(3)
    index.add(log(*pairs))
    for item in index.items():
        by_counts = reported_order(item, SURFACES, day)
        assert (by_counts is None) == (not item.reports)
        assert by_counts in (None, judge(item.cluster(), SURFACES, ItemFacts(), day).order)


@pytest.mark.parametrize(("odd", "others"), [("low", "critical"), ("critical", "low")])
def test_the_gravest_report_is_kept_and_one_that_is_not_says_nothing_of_the_place(
    odd: str, others: str
) -> None:
    index, day = TriageIndex(TRUSTED), datetime.fromtimestamp(START, UTC).date()
    said = [others] * OLDEST * 2 + [odd] + [others] * REPORTS
    index.add(log(*(finding("a", run=f"r{at}", sev=sev) for at, sev in enumerate(said))))
    (item,) = index.items()
    assert (odd in {one.severity for one in item.reports}) == (odd == "critical")
    assert reported_order(item, SURFACES, day) == judge(item.cluster(), SURFACES, ItemFacts(), day).order


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 99), max_size=300))
def test_runs_are_counted_once_each(numbers: list[int]) -> None:
    runs = RunHashes()
    for number in numbers:
        runs.add(number)
    assert len(runs) == len(set(numbers))
    assert set(runs) == set(numbers)


def note(title: str, run: str) -> str:
    return finding(title=title, run=run, calls=False)


def test_a_group_stands_by_the_runs_of_all_its_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "SimilarTexts", ByLetter)
    texts = [note("b", "r1"), note("b", "r2"), note("b", "r3"), note("a1", "r1")]
    entries = log(*texts, *(note("a2", f"q{number}") for number in range(4)), note("z", "r1"))
    items = decide(entries, TRUSTED, inputs()).items
    assert [(item.rank, item.title, item.count) for item in items] == [(1, "a1", 5), (2, "b", 3), (3, "z", 1)]


def test_a_link_that_a_new_entry_makes_between_old_items_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "SimilarTexts", ByLetter)
    entries, fold = (
        log(note("a1", "r1"), note("a2", "r2"), note("b", "r1"), note("z", "r1")),
        TriageFold(TRUSTED),
    )
    fold.add(entries[:3])
    assert [item.title for item in fold.decide(inputs()).items] == ["a1", "a2", "b"]
    fold.add(entries[3:])
    done = fold.decide(inputs())
    assert [(item.title, item.count) for item in done.items] == [("a1", 2), ("b", 1), ("z", 1)]
    assert done == decide(entries, TRUSTED, inputs())


def test_a_merge_that_comes_by_the_log_is_done_in_that_pass() -> None:
    one, two = finding("a", title="one"), finding("b", title="two", run="r2")
    names = [item.fingerprint for item in decide(log(one, two), TRUSTED, inputs()).items]
    at = "2026-06-12T11:00:00Z"
    row = DecisionRow(item=names[1], kind="merge", other=names[0], reason="one cause", who="alice", at=at)
    record = write_record(record_of(named(row)), surface="compiler", title="two")
    entries, fold = log(one, two, record), TriageFold(TRUSTED)
    fold.add(entries[:2])
    assert len(fold.decide(inputs()).items) == 2
    fold.add(entries[2:])
    done = fold.decide(inputs())
    assert [item.count for item in done.items] == [2]
    assert done == decide(entries, TRUSTED, inputs())
