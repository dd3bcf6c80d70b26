"""The audit sample: which items, and what the results come to."""

from __future__ import annotations

import random

import pytest

from fleet.errors import ConfigError
from fleet.findings.audit import AuditDay, AuditFigures, AuditResult, AuditVerdict, audit_of, key_of, sample


def result(item: str, verdict: AuditVerdict, day: str = "2026-11-23", run: str = "r1") -> AuditResult:
    return AuditResult(
        item=item, state="dismissed", severity="low", run=run, at=f"{day}T07:00:00Z", verdict=verdict
    )


@pytest.mark.parametrize(("items", "size"), [(0, 0), (1, 1), (9, 1), (19, 1), (20, 2), (39, 3), (1000, 3)])
def test_a_tenth_at_least_one_at_most_three(items: int, size: int) -> None:
    assert len(sample([f"{n:012x}" for n in range(items)], "run")) == size


def test_the_same_seed_and_items_give_the_same_sample_in_any_order() -> None:
    names = [f"{n:012x}" for n in range(30)]
    shuffled = random.Random(7).sample(names, len(names))
    assert sample(names, "abcdefgh") == sample(shuffled, "abcdefgh")
    assert len({sample(names, f"run{n}") for n in range(20)}) > 10


def test_the_figures_count_what_could_tell_and_name_what_is_overturned_now() -> None:
    first = AuditDay().with_result(result("a", "overturned")).with_result(result("b", "upheld"))
    first = first.with_result(result("c", "unreached")).with_result(result("d", "overturned"))
    second = AuditDay().with_result(result("a", "upheld", "2026-11-24", "r2"))
    facts = {
        key_of("devnet", "2026-11-24"): second.model_dump_json(),
        key_of("devnet", "2026-11-23"): first.model_dump_json(),
    }
    assert audit_of(facts) == AuditFigures(
        sampled=4,
        overturned=2,
        unreached=1,
        days=(("2026-11-23", 3, 2), ("2026-11-24", 1, 0)),
        overturned_items={"d": "2026-11-23T07:00:00Z"},
    )
    assert audit_of(facts).rate == 0.5
    assert audit_of({}) == AuditFigures()
    assert AuditFigures().rate == 0.0


def test_a_run_counts_an_item_once() -> None:
    day = AuditDay().with_result(result("a", "upheld")).with_result(result("a", "overturned"))
    assert [one.verdict for one in day.results] == ["overturned"]


def test_a_damaged_day_is_said() -> None:
    with pytest.raises(ConfigError, match="audit cannot be read"):
        audit_of({key_of("devnet", "2026-11-23"): "{"})
