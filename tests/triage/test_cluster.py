from __future__ import annotations

import random

import pytest

from fleet.findings.fingerprint import fingerprint
from fleet.store.rows import MirroredEntry
from fleet.triage.items.cluster import Cluster, recurrence
from fleet.triage.items.index import TriageIndex
from tests.triage.triage_log import FALSE_PREMISES, FLEET, HUMAN, LONG, NOT_DEFECTS, finding, folded, log


def clusters(entries: list[MirroredEntry]) -> list[Cluster]:
    return folded(entries)


def counts(entries: list[MirroredEntry]) -> list[int]:
    return [recurrence(item.reports) for item in clusters(entries)]


def test_row_40_wording_does_not_split_what_has_no_repro() -> None:
    one = finding(title="Compile  PANIC", calls=False, run="r1")
    two = finding(title="compile panic", calls=False, run="r2")
    assert counts(log(one, two)) == [2]


def test_row_40_a_different_repro_is_a_different_defect() -> None:
    assert counts(log(finding("enum E{}", run="r1"), finding("enum F{}", run="r2"))) == [1, 1]
    assert counts(log(finding("enum E{}", run="r1"), finding("enum E{}", surface="ux", run="r2"))) == [1, 1]


def test_a_repro_joins_whatever_the_wording() -> None:
    assert counts(log(finding(title="it panics", run="r1"), finding(title="crash!", run="r2"))) == [2]


def test_row_49_twenty_times_in_one_run_counts_once() -> None:
    assert counts(log(*[finding(run="r1")] * 20)) == [1]


def test_a_repro_kept_in_the_evidence_joins_by_its_fingerprint() -> None:
    long = finding(LONG, run="r1")
    assert long.endswith("repro: ev")
    other = finding(LONG + "y", run="r2")
    assert counts(log(long, finding(LONG, run="r3"), other)) == [2, 1]


def test_row_51_one_sender_or_a_thousand_add_nothing() -> None:
    flood = [(HUMAN, finding())] * 50
    crowd = [(f"0x{n:040x}", finding(run=f"s{n}")) for n in range(1_000)]
    for strangers in (flood, crowd):
        assert counts(log(finding(), *strangers)) == [1]
        assert counts(log(*strangers)) == [1]


def test_a_strangers_fingerprint_is_ignored() -> None:
    ours = finding("enum E{}")
    key = fingerprint("compiler", (), "nonsense")
    real = clusters(log(ours))[0].fingerprint
    forged = f"qa/v1 source=qa-fuzz sev=critical surface=compiler run=r9 fp={real} rate=3/3\nnonsense"
    found = clusters(log(ours, (HUMAN, forged)))
    assert [item.fingerprint for item in found] == [real, key]


def test_a_trusted_fingerprint_joins_what_normalises_differently() -> None:
    ours = finding("enum E{}", run="r1")
    fp = clusters(log(ours))[0].fingerprint
    moved = ours.replace("enum E{}", "enum  Other{}").replace("run=r1", "run=r2")
    assert f"fp={fp}" in moved
    found = clusters(log(ours, finding("enum  Other{}", run="r3"), moved))
    assert [recurrence(item.reports) for item in found] == [3]


def test_a_stranger_who_came_first_does_not_name_the_cluster() -> None:
    ours = finding().replace(f"fp={clusters(log(finding()))[0].fingerprint}", "fp=0123456789ab")
    assert [item.fingerprint for item in clusters(log((HUMAN, finding()), ours))] == ["0123456789ab"]


def test_a_stranger_cannot_bridge_two_clusters() -> None:
    one, two = finding("a"), finding("b")
    second = clusters(log(two))[0].fingerprint
    first_text_second_fp = one.replace(clusters(log(one))[0].fingerprint, second)
    assert len(clusters(log(one, two, (HUMAN, first_text_second_fp)))) == 2


def test_trust_is_the_address_in_any_case_of_letters() -> None:
    entries = log(
        (FLEET.upper().replace("0X", "0x"), finding()), (HUMAN, "qa/v1 source=qa-security sev=high\nx")
    )
    index = TriageIndex(frozenset({FLEET.upper()}))
    index.add(entries)
    assert [report.trusted for item in index.items() for report in item.cluster().reports] == [True, False]


def test_summaries_of_ours_are_no_findings_and_those_of_strangers_are() -> None:
    meta = finding(sev="meta", surface="triage", calls=False)
    assert clusters(log(meta)) == []
    assert len(clusters(log((HUMAN, meta)))) == 1


@pytest.mark.parametrize("sender", [FLEET, HUMAN])
def test_nothing_is_dropped(sender: str) -> None:
    texts = [*FALSE_PREMISES.values(), *NOT_DEFECTS.values(), "", "\x00", "qa/v1 ", "x" * 100_000]
    found = clusters(log(*[(sender, text) for text in texts]))
    assert sum(len(item.reports) for item in found) == len(texts)


def test_any_order_gives_the_same_clusters() -> None:
    entries = log(
        *[finding(str(n % 7), run=f"r{n}") for n in range(30)], *[(HUMAN, f"say {n % 3}") for n in range(9)]
    )
    expected = clusters(entries)
    for seed in range(5):
        random.Random(seed).shuffle(entries)
        assert clusters(entries) == expected


def test_the_order_of_clusters_and_of_their_reports_is_the_logs_over_its_epochs() -> None:
    """Whatever order they are given in, and although indices begin anew with each epoch."""
    first = log((HUMAN, "hm"), finding("a", run="r1"), finding("b", run="r1"))
    second = log(finding("b", run="r2"), finding("c", run="r2"), finding("a", run="r2"), epoch=1)
    entries = [*first, *second]
    for seed in range(5):
        random.Random(seed).shuffle(entries)
        found = folded(entries)
        places = [[(report.epoch, report.index) for report in item.reports] for item in found]
        assert places == [[(0, 0)], [(0, 1), (1, 2)], [(0, 2), (1, 0)], [(1, 1)]]


def test_one_repro_that_shows_two_defects_is_two_items() -> None:
    one, other = (finding(run=run, seen=seen) for run, seen in (("r1", "a" * 12), ("r2", "b" * 12)))
    assert counts(log(one, other)) == [1, 1]
    assert counts(log(one, finding("other", run="r2", seen="a" * 12))) == [2]


def test_an_older_entry_is_the_same_item_as_the_first_newer_one_with_its_name() -> None:
    old, one, other = finding(run="r0"), finding(run="r1", seen="a" * 12), finding(run="r2", seen="b" * 12)
    for entries in (log(old, one, other), log(one, old, other), log(one, other, old)):
        found = {frozenset(report.run for report in item.reports) for item in clusters(entries)}
        assert found == {frozenset({"r0", "r1"}), frozenset({"r2"})}


def test_a_stranger_names_nothing_by_what_was_seen() -> None:
    mine, theirs = finding(run="r1", seen="a" * 12), finding("theirs", run="r9", seen="a" * 12)
    assert counts(log(mine, (HUMAN, theirs))) == [1, 1]


THIRD, SECOND, OTHER = "3" * 12, "2" * 12, "4" * 12


def names(*texts: str | tuple[str, str]) -> list[set[str]]:
    return [set(item.keys) for item in clusters(log(*texts))]


def test_an_entry_of_version_3_is_one_with_those_of_versions_2_and_1() -> None:
    """In whatever order they stand on the log; a rebuild reads the same."""
    first, second = finding("a", run="r1"), finding("a", seen=SECOND, run="r2")
    third = finding("b", seen=THIRD, former=[SECOND], run="r3")
    for texts in ((first, second, third), (third, second, first), (second, third, first)):
        assert counts(log(*texts)) == [3], texts
    assert counts(log(finding("b", run="r1"), third)) == [2]


def test_only_the_first_newer_entry_takes_over_an_older_name() -> None:
    older = finding("a", seen=SECOND, run="r1")
    one, other = (finding("a", seen=fp, former=[SECOND], run=fp[:2]) for fp in (THIRD, OTHER))
    assert names(older, one, other) == [{SECOND, THIRD}, {OTHER}]


def test_two_defects_of_one_kind_are_two_items() -> None:
    one, other = finding("a", seen=THIRD, former=[SECOND]), finding("a", seen=OTHER, former=["5" * 12])
    assert names(one, other) == [{THIRD}, {OTHER}]


def test_a_strangers_former_names_join_nothing() -> None:
    ours = finding("a", seen=SECOND, run="r1")
    forged = (HUMAN, finding("b", seen=THIRD, former=[SECOND], run="r2"))
    assert len(clusters(log(ours, forged))) == 2
    assert len(clusters(log(forged, ours))) == 2
