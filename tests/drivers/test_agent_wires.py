"""The explorer of agents by every wire of `[agents]`: each defect it can show is seen, its twin is silent."""

from __future__ import annotations

import pytest

from fleet.devnet.surfaces.herbarium import DEFECTS, DIALECTS, PAGES, Dialect
from fleet.devnet.surfaces.herbarium_wires import TASKS as TASK_DEFECTS
from fleet.devnet.surfaces.herbarium_wires import open_herbarium
from fleet.drivers.explore.port import Reporter
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from sandbox.agents.wires import KEYED
from sandbox.agents.wires.port import CHARGES, LISTS, OTHER, OWNER, SIGNATURES, TASKS, TOOLS, TURNS
from tests.drivers.mcp_visits import way_out
from tests.drivers.wire_visits import asked, explored, profile

NEEDS = {
    "paid-refusal": CHARGES,
    "overcharged": CHARGES,
    "uneven-price": CHARGES,
    "turns": TURNS,
    "stranger-acts": TOOLS,
    "task-listed": LISTS,
    "version-ignored": LISTS,
}
"""What a defect needs of a wire to be seen; a list of tasks and a check of versions are those of A2A 1.0."""
ORACLE = {
    "stream-undone": "card-declared",
    "push-undone": "card-declared",
    "push-undeclared": "card-declared",
    "extended-open": "card-extended-open",
    "card-forged": "card-signature",
    "given-obeyed": "letter-obeyed",
}
"""The oracle of a defect, where it has another name."""
SEEN = [
    (wire, defect)
    for wire, adapter in KEYED.items()
    for defect in (*DEFECTS, *PAGES, *(TASK_DEFECTS if TASKS not in adapter.LACKS else ()))
    if NEEDS.get(defect) not in adapter.LACKS
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("wire", "defect"), SEEN, ids=["/".join(one) for one in SEEN])
def test_each_defect_that_a_wire_can_show_is_seen_by_its_own_oracle_alone(wire: str, defect: str) -> None:
    with open_herbarium(wire, defect) as office:
        platform = profile(office)
        with way_out(platform):
            found, steps, _ = explored(platform, calls=170)
            opened = {"task-read", "task-cancelled"} | ({"task-listed"} if wire == "a2a-1.0" else set())
            expected = opened if defect == "task-open" else {ORACLE.get(defect, defect)}
            assert set(found) == expected, (len(steps), found)
            shown = next(iter(found.values()))
            seen = tuple(Exchange(one.tool, one.args, asked(platform, one.args)) for one in shown.calls)
            again = {one.sighting.signature for one in judge(seen, Facts.of(platform))}
            assert shown.sighting.signature in again  # as a proof does: its calls alone, once more


def test_what_a_card_gives_as_an_example_makes_the_task_that_others_are_asked_about() -> None:
    with open_herbarium("a2a-1.0", "task-read", brief=True) as office:
        platform = profile(office)
        with way_out(platform):
            found, _, _ = explored(platform, calls=170)
    assert set(found) == {"task-read"}


@pytest.mark.parametrize(("wire", "words"), list(zip(KEYED, DIALECTS.values(), strict=True)), ids=KEYED)
def test_the_clean_twin_is_silent_whatever_is_asked(wire: str, words: Dialect) -> None:
    how = {"chatty": wire == "a2a-0.3", "pushing": wire == "a2a-1.0"}
    with open_herbarium(wire, words=words, **how, opens="links" if wire == "chat" else "page") as office:
        platform = profile(office)
        with way_out(platform):
            found, steps, explorer = explored(platform)
    assert ({key: one.sighting.title for key, one in found.items()}, len(steps) > 100) == ({}, True)
    assert isinstance(explorer, Reporter)
    missed = {one.part.partition(" of the agent")[0] for one in explorer.left()}
    common = {CHARGES, TURNS, OWNER, SIGNATURES}
    assert missed == common | {"chat": {TASKS}, "a2a-1.0": {TOOLS}, "a2a-0.3": {TOOLS, LISTS}}[wire]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("accounts", [True, False], ids=["with accounts", "without"])
@pytest.mark.parametrize("wire", KEYED)
def test_an_agent_that_takes_anybody_is_no_finding(wire: str, accounts: bool) -> None:
    with open_herbarium(wire, anyone=True) as office:
        platform = profile(office, accounts=accounts)
        with way_out(platform):
            found, steps, _ = explored(platform)
    assert ({key: one.sighting.title for key, one in found.items()}, len(steps) > 60) == ({}, True)


def test_without_accounts_nothing_is_asked_of_a_second_caller_and_that_is_said() -> None:
    with open_herbarium("chat") as office:
        platform = profile(office, accounts=False)
        with way_out(platform):
            _, steps, explorer = explored(platform, calls=60)
    assert {step.args.get("token", "good") for step in steps} == {"good"}
    assert not [step for step in steps if step.args.get("caller") or step.args.get("claim_from")]
    assert isinstance(explorer, Reporter)
    assert OTHER in {one.part.partition(" of the agent")[0] for one in explorer.left()}
