from __future__ import annotations

import pytest

from fleet.errors import ConfigError
from fleet.store.rows import MirroredEntry
from fleet.triage.cluster import cluster, read_log
from fleet.triage.rank import rank
from fleet.triage.resolve import Resolution, apply, read_resolutions, write_resolutions
from fleet.triage.worklist import WorklistItem
from tests.triage.triage_log import HUMAN, START, TRUSTED, finding, log

KEY = cluster(read_log(log(finding()), TRUSTED))[0].fingerprint


def worklist(entries: list[MirroredEntry], *resolutions: Resolution) -> tuple[WorklistItem, ...]:
    return rank(apply(cluster(read_log(entries, TRUSTED)), resolutions))


def resolved(minute: int, epoch: int = 0) -> Resolution:
    return Resolution(key=KEY, at=START + 60 * minute, epoch=epoch)


def test_row_45_a_resolved_item_is_gone() -> None:
    entries = log(finding(run="r1"), finding(run="r2"), finding("other"))
    assert len(worklist(entries)) == 2
    assert [item.repro for item in worklist(entries, resolved(1))] == ['qa_compile(source="other")']


def test_row_45_a_later_report_is_a_regression_with_both_dates() -> None:
    entries = log(finding(run="r1"), finding("other"), finding(run="r2"))
    item = next(i for i in worklist(entries, resolved(1)) if i.regression)
    assert (item.fingerprint, item.count, item.state) == (KEY, 1, "verified")
    assert (item.resolved_at, item.first_seen) == ("2026-06-12T10:21:48Z", "2026-06-12T10:22:48Z")
    assert item.why.endswith("regression: resolved 2026-06-12T10:21:48Z, reported again 2026-06-12T10:22:48Z")


def test_resolving_the_regression_hides_it_again() -> None:
    entries = log(finding(run="r1"), finding(run="r2"))
    assert worklist(entries, resolved(0), resolved(1)) == ()


def test_row_44_an_old_epoch_hides_nothing() -> None:
    entries = log(finding(run="r1"), finding("other"), (HUMAN, "third"), epoch=1)
    found = worklist(entries, resolved(1_000, epoch=0))
    assert [(item.regression, item.count) for item in found] == [(False, 1)] * 3


def test_only_strangers_after_a_fix_make_an_untrusted_item() -> None:
    entries = log(finding(run="r1"), (HUMAN, finding(run="r2", sev="critical")))
    item = worklist(entries, resolved(0))[0]
    assert (item.fingerprint, item.state, item.trusted, item.regression) == (KEY, "untrusted", False, True)


def test_resolutions_round_trip_and_damage_is_loud() -> None:
    made = (resolved(1), Resolution(key=KEY, at=5, epoch=2, note="fixed"))
    assert read_resolutions(write_resolutions(made)) == made
    assert read_resolutions(None) == ()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_resolutions('[{"key": "x"}]')
