"""The plan: what is open, what it looks like on the disk, and what no plan may begin as."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import ConfigError
from fleet.gate.model import Rung
from fleet.personas.model import Probe
from fleet.runs.desk.state import STATES, Plan, PlanItem, State, complete
from fleet.severity import Severity
from tests.runs.table import look

THREE = Plan.of([look("a"), look("b", tool="qa_call", target="claude", message="x"), look("c")])
STATE = st.sampled_from(STATES)


def test_a_plan_begins_with_everything_open_in_its_order() -> None:
    assert [item.id for item in THREE.open()] == ["a", "b", "c"]
    assert [item.rung for item in THREE.items] == [Rung.OBSERVE, Rung.EXERCISE, Rung.OBSERVE]
    assert (THREE.looked(), THREE.tried()) == (0, 0)


def test_what_could_not_be_looked_at_is_open_again_only_with_retries() -> None:
    plan = THREE.with_item("a", "inconclusive", "no answer", tried=True).with_item("b", "skipped", "the dial")
    assert [item.id for item in plan.open()] == ["c"]
    assert [item.id for item in plan.open(retries=1)] == ["c", "a"]
    assert plan.tried() == 2


def test_retries_go_in_turn_so_that_what_stays_silent_does_not_spend_them_all() -> None:
    plan = THREE
    for id_ in "abca":
        plan = plan.with_item(id_, "inconclusive", tried=True)
    assert [item.id for item in plan.open(1)] == ["b", "c", "a"]


@pytest.mark.parametrize(
    "items",
    [
        (PlanItem("a"), PlanItem("a")),
        (PlanItem(""),),
        (PlanItem("a", "healthy"),),
        (PlanItem("a", "finding"),),
        (PlanItem("a", tries=1),),
    ],
)
def test_no_plan_begins_like_this(items: tuple[PlanItem, ...]) -> None:
    with pytest.raises(ConfigError):
        Plan(items).born()


def test_a_probe_without_steps_is_no_plan() -> None:
    empty = Probe.model_construct(
        id="a", severity=Severity.LOW, steps=(), expect="true", finding="nothing at all"
    )
    with pytest.raises(ConfigError, match="has no steps"):
        Plan.of([empty])


def test_two_probes_with_one_id_are_no_plan() -> None:
    with pytest.raises(ConfigError, match="used twice"):
        Plan.of([look("a"), look("a")])


def test_an_item_that_is_not_in_the_plan_cannot_be_marked() -> None:
    with pytest.raises(KeyError):
        THREE.with_item("d", "healthy")


def test_nothing_planned_is_never_complete() -> None:
    assert not complete(Plan(()), 0)
    assert not complete(THREE, 0)


def test_the_file_is_what_a_person_reads() -> None:
    plan = THREE.with_item("a", "healthy", tried=True).with_item(
        "b", "inconclusive", "no `answer`", tried=True
    )
    assert plan.with_item("b", "inconclusive", "no `answer`\n# D9 - x", tried=True).render("r", "qa-x") == (
        "# Plan of run r, persona qa-x\n"
        "\n"
        "- [x] a: healthy\n"
        "- [?] b: inconclusive, 2 tries: ``no `answer` # D9 - x``\n"
        "- [ ] c: pending\n"
        "\n"
        "1 of 3 looked at, 1 not tried yet\n"
    )


@given(st.lists(st.tuples(st.sampled_from("abc"), STATE, st.text(max_size=40), st.booleans()), max_size=12))
def test_whatever_happens_no_item_is_lost_and_the_bytes_are_the_same(
    steps: list[tuple[str, State, str, bool]],
) -> None:
    plan = THREE
    for id_, state, reason, tried in steps:
        plan = plan.with_item(id_, state, reason, tried=tried)
    assert [item.id for item in plan.items] == ["a", "b", "c"]
    assert sum(item.tries for item in plan.items) == sum(tried for *_, tried in steps)
    assert plan.render("r", "p") == Plan(tuple(plan.items)).render("r", "p")
    assert len(plan.render("r", "p").splitlines()) == 7
    assert complete(plan, 0) == all(item.state != "pending" for item in plan.items)
    moved = plan.with_item("a", "pending", tried=True)
    assert moved.signature() != plan.with_item("a", "healthy").signature()
