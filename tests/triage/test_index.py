"""The incremental fold: neither the pieces it is given nor strangers change the list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.clock import iso
from fleet.errors import ChainError
from fleet.findings.envelope import Envelope, write
from fleet.findings.reader import read, skim, tail_of
from fleet.findings.records import write_record
from fleet.findings.recurrence import Recurrence
from fleet.store.rows import DecisionRow, MirroredEntry
from fleet.triage.items import index as index_module
from fleet.triage.items import merging
from fleet.triage.items.decisions import named, record_of
from fleet.triage.items.fold import TriageFold
from fleet.triage.items.index import PER_SENDER, TriageIndex
from fleet.triage.items.pass_inputs import PassInputs
from fleet.triage.items.reports import ECHOES, REPORTS, TEXTS
from fleet.triage.items.similar import NearLink
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.run import decide
from tests.triage.test_rank import ENTRIES
from tests.triage.triage_log import EV, FLEET, HUMAN, START, TRUSTED, finding, inputs, log

SEEN = st.builds(
    lambda source, run, seen, title, former: finding(source, run=run, seen=seen, title=title, former=former),
    st.sampled_from("ab"),
    st.sampled_from(["r1", "r2", "r3"]),
    st.sampled_from(["", "a" * 12, "b" * 12]),
    st.sampled_from(["t1", "t2"]),
    st.sampled_from([(), ("a" * 12,), ("b" * 12, "c" * 12)]),
)
HOUR = timedelta(hours=1)
LOGS = st.lists(st.tuples(st.sampled_from([FLEET, HUMAN]), SEEN), max_size=15)


def ours(items: Sequence[WorklistItem]) -> list[WorklistItem]:
    return [item for item in items if item.trusted]


@given(ENTRIES | LOGS, st.lists(st.integers(1, 6), max_size=8))
def test_pieces_and_passes_between_them_change_nothing(
    pairs: list[tuple[str, str]], sizes: list[int]
) -> None:
    entries, fold = log(*pairs), TriageFold(TRUSTED)
    whole, rest = decide(entries, TRUSTED, inputs()), list(entries)
    for size in sizes:
        fold.add(rest[:size])
        fold.decide(inputs())
        rest = rest[size:]
    fold.add(rest)
    assert fold.decide(inputs()) == whole
    assert fold.decide(inputs()) == whole


@given(ENTRIES | LOGS, st.randoms(use_true_random=False))
def test_any_order_is_the_logs_order(pairs: list[tuple[str, str]], random: object) -> None:
    entries = log(*pairs)
    whole = decide(entries, TRUSTED, inputs())
    random.shuffle(entries)  # type: ignore[attr-defined]
    assert decide(entries, TRUSTED, inputs()) == whole


def test_an_entry_is_folded_once() -> None:
    index, entries = TriageIndex(TRUSTED), log(finding("a"), finding("b"))
    index.add(entries)
    with pytest.raises(ChainError, match="entry 1 of the log was folded already"):
        index.add(entries[1:])


@pytest.mark.parametrize("imitate", [False, True])
def test_a_thousand_strangers_move_nothing_of_ours(imitate: bool) -> None:
    """Fresh addresses that repeat our claims, or write their own grave ones: our items, byte for byte."""
    mine = [finding(name, title=name, sev=sev) for name, sev in (("a", "low"), ("b", "high"), ("c", "high"))]
    claim = mine[2] if imitate else finding("x", title="grave", sev="critical", surface="security")
    crowd = [(f"0x{number:040x}", claim) for number in range(1_000)]
    quiet = ours(decide(log(*mine), TRUSTED, inputs()).items)
    loud = decide(log(*mine, *crowd), TRUSTED, inputs())
    told = [re.sub("; a stranger reports it too", "", repr(item)) for item in ours(loud.items)]
    assert told == [repr(item) for item in quiet]
    assert len(loud.items) == len(quiet) + (not imitate)
    before = [(FLEET, text) for text in mine]
    front = log(*crowd, *before)
    assert [one.fingerprint for one in ours(decide(front, TRUSTED, inputs()).items)] == [
        one.fingerprint for one in quiet
    ]


def test_what_strangers_write_is_read_within_bounds_and_the_rest_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flood = [(HUMAN, f"note {number}") for number in range(PER_SENDER + 7)]
    done = decide(log(*flood, finding()), TRUSTED, inputs())
    assert (len(done.items), done.unread, done.items[0].trusted) == (PER_SENDER + 1, 7, True)
    monkeypatch.setattr(index_module, "STRANGERS_ITEMS", 3)
    monkeypatch.setattr(index_module, "STRANGERS_READ", 6)
    crowd = [(f"0x{number:040x}", f"note {number}") for number in range(9)]
    done = decide(log(*crowd, finding()), TRUSTED, inputs())
    assert (len(done.items), done.unread) == (4, 6)


def test_what_is_kept_of_an_item_is_bounded_and_its_count_is_not() -> None:
    many = [finding(run=f"r{number}") for number in range(3 * REPORTS)]
    echoes = [(f"0x{number:040x}", finding()) for number in range(2 * ECHOES)]
    index = TriageIndex(TRUSTED)
    index.add(log(*many, *echoes))
    (item,) = index.items()
    assert (len(item.reports), len(item.theirs), item.others) == (REPORTS, ECHOES, 2 * ECHOES)
    assert sum(bool(report.text) for report in item.reports) <= TEXTS + 1
    (listed,) = decide(log(*many, *echoes), TRUSTED, inputs()).items
    assert (listed.count, listed.title, listed.entry) == (3 * REPORTS, "compile panics", 0)


@settings(max_examples=300)
@given(
    st.from_regex(
        r"\Aqa/v1 source=x sev=(high|meta|odd) surface=ux( run=r1)? fp=0123456789ab( was=0123456789ab)?"
        rf"( rate=[0-9]/[0-9])?( ev=sha256:{EV})? ?\n(t.{{0,3}}|\s)?\n?(repro: (none|ev|qa_x\(a=1\)|x))?\Z"
    )
    | SEEN
)
def test_the_quick_way_reads_what_read_reads(text: str) -> None:
    fields, entry = skim(text), read(text)
    slow = read(text.replace(" sev=", "  sev=", 1))  # two blanks: not as the fleet writes it
    assert entry == slow or (entry.grammar, slow.grammar) == ("free", "free")
    said = tail_of(fields[-1]) if fields else None
    if not fields or said is None or (fields[6] and int(fields[6]) > int(fields[7])):
        return
    source, severity, surface, run, fp, was, hits, tries, ev, _ = fields
    rate = (int(hits), int(tries)) if hits else None
    assert (source, severity, surface, run) == (entry.source, entry.severity, entry.surface, entry.run)
    assert (fp, was, rate, ev) == (entry.fp, entry.was, entry.rate, entry.ev)
    assert (*said, "canonical") == (entry.title, entry.repro, entry.repro_state, entry.grammar)


class Links:
    """Links every text to the first one, exact or not."""

    def __init__(self) -> None:
        self.first = ""
        self.links: dict[str, NearLink] = {}

    def add(
        self, key: str, surface: str, title: str, body: str = "", *, exact: bool = False, ours: bool = True
    ) -> None:
        if "error" in title:
            raise RuntimeError("no comparison")
        if self.first and not exact:
            self.links[key] = NearLink(key, self.first, 0.9, "much alike")
        self.first = self.first or key

    def settle(self) -> bool:
        return True


class Bridged(Links):
    """Links every text to the stranger's, where it came first."""

    def add(
        self, key: str, surface: str, title: str, body: str = "", *, exact: bool = False, ours: bool = True
    ) -> None:
        self.first = self.first or (key if title == "bridge" else "")
        if self.first not in ("", key):
            self.links[key] = NearLink(key, self.first, 0.9, "much alike")


def test_the_same_in_other_words_is_one_item_until_a_person_splits_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(merging, "SimilarTexts", Links)
    prose = finding("p", title="the compiler falls over", calls=False, run="r2")
    entries = log(finding("a", title="one"), prose, finding("b", title="two", seen="b" * 12))
    one, two = decide(entries, TRUSTED, inputs()).items
    assert (one.title, one.count, len(one.names), two.title) == ("one", 2, 2, "two")
    (link,) = one.links
    assert (link.kind, link.why, link.by, link.suggested) == ("duplicate", "much alike", "similarity", False)
    split = named(
        DecisionRow(item=link.other, kind="split", reason="not so", who="alice", at="2026-06-12T11:00:00Z")
    )
    assert len(decide(entries, TRUSTED, inputs(decisions=(split,))).items) == 3


def test_a_comparison_that_fails_merges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "SimilarTexts", Links)
    entries = log(*[finding(str(n), title=f"error {n}", calls=False) for n in range(3)])
    assert len(decide(entries, TRUSTED, inputs()).items) == 3


def test_a_stranger_between_two_items_of_ours_joins_neither_to_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(merging, "SimilarTexts", Bridged)
    entries = log((HUMAN, "bridge"), finding("a", title="one"), finding("b", title="two"))
    items = decide(entries, TRUSTED, inputs()).items
    assert [(item.title, item.count) for item in items] == [("one", 1), ("two", 1)]


def test_a_person_merges_and_corrects_the_severity_and_the_list_says_who() -> None:
    entries = log(finding("a", title="one", sev="low"), finding("b", title="two", sev="low", run="r2"))
    names = [item.fingerprint for item in decide(entries, TRUSTED, inputs()).items]
    at = "2026-06-12T11:00:00Z"
    rows = (
        DecisionRow(item=names[1], kind="merge", other=names[0], reason="one cause", who="alice", at=at),
        DecisionRow(item=names[0], kind="severity", severity="critical", reason="leaks", who="bob", at=at),
    )
    (item,) = decide(entries, TRUSTED, inputs(decisions=tuple(map(named, rows)))).items
    assert (item.count, item.severity, item.severity_by, item.names) == (
        2,
        "critical",
        "bob",
        tuple(sorted(names)),
    )
    assert [(link.other, link.why, link.by) for link in item.links] == [(names[1], "one cause", "alice")]
    assert item.why.startswith("critical 8 (set by bob) x 2 runs 2 x compiler 3 = 48; ")
    assert [(factor.name, factor.by) for factor in item.factors] == [
        ("severity", "bob"),
        ("recurrence", "log"),
        ("surface", "persona weights"),
        ("verification", "log"),
        ("age", "log"),
    ]


def test_age_weighs_a_little_by_whole_days() -> None:
    entries = log(finding())
    day = datetime.fromtimestamp(START, UTC).replace(hour=0, minute=0, second=1)
    scores = []
    for later in (0, 1, 30, 365, 4_000):
        (item,) = decide(entries, TRUSTED, PassInputs(now=day + timedelta(days=later))).items
        scores.append(item.score)
    assert scores == [12.0, 12.75, 15.716, 18.387, 18.387]
    same = [decide(entries, TRUSTED, PassInputs(now=day + timedelta(hours=hour))) for hour in (0, 23)]
    assert same[0] == same[1]


def test_figures_are_posted_once_in_a_period_and_then_are_the_logs() -> None:
    fp = "a" * 12
    seen = Recurrence()
    for number in range(9):
        seen = seen.shown(f"2026-06-{13 + number}T10:00:00Z", f"r{number}", f"qa-{number}")
    now = datetime(2026, 6, 21, 12, tzinfo=UTC)
    known = PassInputs(now=now, figures={fp: seen})
    entries = log(finding(seen=fp))
    early = PassInputs(now=datetime(2026, 6, 14, tzinfo=UTC), figures={fp: seen})
    assert decide(entries, TRUSTED, early).records == ()
    done = decide(entries, TRUSTED, known)
    (text,) = done.records
    after = [*entries, MirroredEntry(epoch=0, index=1, sender=FLEET, timestamp=START + 9, text=text)]
    again = decide(after, TRUSTED, known)
    assert again.records == ()
    (item,) = decide(after, TRUSTED, PassInputs(now=now)).items  # the journal is lost
    assert (item.count, item.days, item.last_seen) == (9, 9, "2026-06-21T10:00:00Z")
    assert next(one for one in again.items[0].factors if one.name == "recurrence").by == "log"


def test_what_was_only_confirmed_again_is_recorded_too_and_moves_no_place() -> None:
    fp, now = "a" * 12, datetime(2026, 6, 21, 12, tzinfo=UTC)
    seen = Recurrence()
    for number in range(9):
        seen = seen.shown(f"2026-06-{13 + number}T10:00:00Z", f"r{number}", "qa-x")
    entries, known = log(finding(seen=fp)), PassInputs(now=now, figures={fp: seen})
    done = decide(entries, TRUSTED, known)
    (text,) = done.records
    after = [*entries, MirroredEntry(epoch=0, index=1, sender=FLEET, timestamp=START + 9, text=text)]
    assert decide(after, TRUSTED, known).records == ()
    (item,) = decide(after, TRUSTED, PassInputs(now=now)).items  # the journal is lost
    assert (item.count, item.days, item.last_seen) == (1, 9, "2026-06-21T10:00:00Z")
    (once,) = decide(entries, TRUSTED, PassInputs(now=now)).items
    assert item.score == done.items[0].score == once.score


def test_figures_that_moved_change_only_their_item_and_as_a_new_fold_would() -> None:
    entries = log(finding(seen="a" * 12), finding("hangs", run="r2", seen="b" * 12))
    fold, now = TriageFold(TRUSTED), datetime(2026, 6, 14, tzinfo=UTC)
    fold.add(entries)
    once = Recurrence().shown("2026-06-13T10:00:00Z", "r8")
    counts = []
    for figures in ({}, {"a" * 12: once}, {"a" * 12: once.shown("2026-06-14T10:00:00Z", "r9", "qa-x")}, {}):
        known = PassInputs(now=now, figures=figures)
        items = fold.decide(known).items
        assert items == decide(entries, TRUSTED, known).items
        counts.append([item.count for item in items])
    assert counts == [[1, 1], [1, 1], [2, 1], [1, 1]]


def test_a_published_snooze_ends_within_the_day_though_the_journal_is_lost() -> None:
    begin = datetime.fromtimestamp(START, UTC).replace(hour=1, minute=0)
    row = DecisionRow(
        item="a" * 12, kind="snooze", reason="later", who="alice", at=iso(begin), until=iso(begin + HOUR * 2)
    )
    record = write_record(record_of(named(row)), surface="compiler", title="compile panics")
    fold = TriageFold(TRUSTED)
    fold.add(log(finding(seen="a" * 12), record))
    states = [fold.decide(PassInputs(now=begin + HOUR * hours)).items[0].state for hours in (1, 3)]
    assert states == ["snoozed", "confirmed"]


@pytest.mark.parametrize(
    "why",
    [
        "the budget of 120 writes is spent",
        "the budget of 1 call a day of this persona is spent",
        "model: the budget of 0.50 usd is spent",
    ],
)
def test_the_end_of_a_run_is_no_item_of_the_platform(why: str) -> None:
    def end(run: str, **more: str) -> str:
        fields = {"title": f"run ended: {why}", "body": "budget-exceeded: the remaining probes were not run"}
        return write(
            Envelope(source="qa-x", sev="info", surface="ux", run=run, fp="c" * 12, **(fields | more))
        )

    defect = finding("qa-x", run="r3", seen="a" * 12, title="t1")
    entries = log((FLEET, end("r1")), (FLEET, defect), (FLEET, end("r2")))
    assert [item.fingerprint for item in decide(entries, TRUSTED, inputs()).items] == ["a" * 12]
    other = log((FLEET, end("r1", title="the run ended: badly")), (FLEET, end("r2", body="a note")))
    assert {item.fingerprint for item in decide(other, TRUSTED, inputs()).items if item.rank} == {"c" * 12}
