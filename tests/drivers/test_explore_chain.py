"""The chain's explorer as a pure thing: what it asks, in which order, and what it remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from fleet.config import Platform
from fleet.drivers.desk import Question
from fleet.drivers.explore.chain import explorer as chain
from fleet.drivers.explore.chain.arguments import ArgumentPool, Thing, rounds, types_of
from fleet.drivers.explore.chain.publishing import grown
from fleet.drivers.explore.port import Explorer, ExplorerContext
from fleet.drivers.explore.table import chosen
from fleet.oracles.chain import fourbyte
from fleet.runs.call.guest_protocol import bad_args
from sandbox.tools import TOOLS

DIAMOND, FACET, ALICE = "0x" + "d1" * 20, "0x" + "fa" * 20, "0x" + "a1" * 20
CODE, OTHER = "c0" * 8, "c1" * 8
SET, GIVE = "setRelayFee(uint256)", "transferName(uint256,address)"
READS = ("nextId()", "relayFee()", "ownerOfId(uint256)", "nameOfId(uint256)", "idOfName(string)")
UNKNOWN = "0x00c0ffee"
SAMPLE = "fn frame(t: i32) -> i32 { t + 1 }"


def ground(*, acts: bool = False, sample: str = "") -> ExplorerContext:
    profile: dict[str, Any] = {
        "name": "p",
        "chain": {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": DIAMOND},
    }
    if sample:
        profile["compiler"] = {"root": "/x", "command": ["c"], "sample": sample}
    return ExplorerContext(platform=Platform.model_validate(profile), tools=frozenset(TOOLS), acts=acts)


def selectors(*signatures: str) -> list[str]:
    return [fourbyte.selector_of(one) for one in signatures]


VIEWS = {
    "nextId": 3,
    fourbyte.selector_of("relayFee()"): f"0x{5:064x}",
    "ownerOfId(1)": ALICE,
    "nameOfId(1)": "alpha",
    "ownerOfId(2)": ALICE,
    "nameOfId(2)": "qa-abcd2345-1",
    "idOfName(alpha)": 1,
}


class Contract:
    """Answers the explorer's calls; `effects` are the views that a function changes."""

    def __init__(
        self, *, code: str = CODE, more: Sequence[str] = (), effects: Mapping[str, Any] | None = None
    ) -> None:
        names = [*selectors(*READS, SET, GIVE), *more]
        self.surface = [{"facet": FACET, "code": code, "size": 9, "selectors": names, "missing": []}]
        self.effects = effects or {}

    def answer(self, args: Mapping[str, Any]) -> dict[str, Any]:
        if args.get("surface"):
            return {"ok": True, "value": self.surface}
        before = [VIEWS.get(view) for view in args.get("watch", ())]
        if not args.get("simulate"):
            return {"ok": True, "before": before}
        effects = self.effects.get(args["simulate"])
        after = [(effects or {}).get(view, VIEWS.get(view)) for view in args.get("watch", ())]
        return {"ok": True, "succeeded": effects is not None, "before": before, "after": after}


def run(explorer: Explorer, contract: Contract, *, most: int = 5, turns: int = 99) -> list[Question]:
    asked: list[Question] = []
    for _ in range(turns):
        questions = explorer.ask(most)
        assert sum(len(one.steps) for one in questions) <= most
        for one in questions:
            explorer.learn(one, [contract.answer(step.args) for step in one.steps if step.tool == "qa_chain"])
        asked += questions
        if not questions:
            break
    return asked


def simulated(asked: Sequence[Question]) -> list[str]:
    return [one.steps[-1].args["simulate"] for one in asked if one.steps[-1].args.get("simulate")]


def make(seed: int = 1, state: Mapping[str, Any] | None = None, **more: Any) -> Explorer:
    return chain.make(ground(**more), Random(seed), state or {})


def test_it_is_in_the_table_and_needs_its_tool() -> None:
    assert chosen(["chain"], frozenset({"qa_chain"})) == {"chain": chain.make}
    assert chosen(["chain"], frozenset({"qa_fetch"})) == {}


def test_every_function_once_before_any_twice_and_no_view() -> None:
    asked = simulated(run(make(), Contract(more=[UNKNOWN])))
    functions = {*selectors(SET, GIVE), UNKNOWN}
    assert set(asked[:3]) == functions == set(asked)
    assert set(asked[3:6]) == functions


def test_every_call_is_valid_and_reads_at_most_what_a_call_may() -> None:
    for question in run(make(), Contract(more=[UNKNOWN, *selectors("register(string)")])):
        for step in question.steps:
            assert bad_args(TOOLS[step.tool], step.args) is None
            assert len(step.args.get("watch", ())) <= 48
            assert "function" not in step.args


def test_what_exists_is_watched_and_what_a_run_minted_comes_last() -> None:
    asked = run(make(), Contract())
    first = next(
        one.steps[0].args for one in asked if one.steps[0].args.get("simulate") == selectors(GIVE)[0]
    )
    assert first["args"][0] == "1"
    assert {"ownerOfId(1)", "nameOfId(1)", "idOfName(alpha)", "nextId"} <= set(first["watch"])
    assert "ownerOf(1)" not in first["watch"]  # not offered


def test_what_a_call_changed_is_asked_again_without_the_rest() -> None:
    effects = {selectors(GIVE)[0]: {"ownerOfId(1)": "0x" + "b0" * 20}}
    asked = run(make(), Contract(effects=effects))
    narrow = [one.steps[0].args for one in asked if one.steps[0].args.get("watch") == ["ownerOfId(1)"]]
    assert [one["simulate"] for one in narrow] == selectors(GIVE)


def test_the_same_seed_asks_the_same_and_another_does_not() -> None:
    more = [f"0x0000000{digit}" for digit in "123456789"]
    first, again, other = (run(make(seed), Contract(more=more)) for seed in (1, 1, 2))
    assert first == again != other


def test_what_was_asked_is_remembered_by_the_code_of_its_facet() -> None:
    explorer = make()
    asked = simulated(run(explorer, Contract()))
    state = explorer.state()
    assert simulated(run(make(state=state), Contract())) == []
    assert simulated(run(make(state=state), Contract(code=OTHER))) == asked


def test_a_run_that_ends_early_is_continued() -> None:
    explorer = make()
    whole = simulated(run(make(), Contract()))
    begun = simulated(run(explorer, Contract(), turns=5))
    assert 0 < len(begun) < len(whole)
    rest = simulated(run(make(state=explorer.state()), Contract()))
    assert sorted(begun + rest) == sorted(whole)


@pytest.mark.parametrize("state", [{"asked": 3}, {"asked": {"x": "y"}}, {"other": 1}])
def test_a_state_that_it_does_not_understand_is_ignored(state: dict[str, Any]) -> None:
    assert len(simulated(run(make(state=state), Contract()))) == len(simulated(run(make(), Contract())))


@pytest.mark.parametrize(
    "surface",
    [
        None,
        "x",
        [],
        [{}],
        [3],
        [{"facet": FACET, "code": CODE, "selectors": 7}],
        [{"facet": 1, "code": CODE, "selectors": ["0x00000001"]}],
        [{"facet": FACET, "code": "<script>", "selectors": ["0x00000001"]}],
        [{"facet": FACET, "code": CODE, "selectors": ["0x1", 7, None, "0x" + "z" * 8]}],
    ],
)
def test_a_surface_that_is_not_well_formed_is_not_believed(surface: Any) -> None:
    contract = Contract()
    contract.surface = surface
    assert simulated(run(make(), contract)) == []


def test_a_refused_question_ends_nothing() -> None:
    explorer = make()
    while questions := explorer.ask(9):
        for one in questions:
            explorer.learn(one, [])
    assert explorer.state() == {"asked": {}}


def test_publishes_of_two_sizes_where_the_run_may_act() -> None:
    asked = [one for one in run(make(acts=True, sample=SAMPLE), Contract()) if one.acts]
    assert [[step.tool for step in one.steps] for one in asked] == [["qa_create", "qa_publish"]] * 2
    assert [one.steps[1].args["source"] for one in asked] == [SAMPLE, grown(SAMPLE)]
    assert len(grown(SAMPLE)) > 10 * len(SAMPLE)
    assert grown("(module)") == "(module)"
    assert not any(one.acts for one in run(make(acts=False, sample=SAMPLE), Contract()))
    assert not any(one.acts for one in run(make(acts=True), Contract()))


POOL = ArgumentPool((Thing(7, ALICE, "alpha"),), "app", 1 << 71, "qx-fresh")


@pytest.mark.parametrize(
    ("signature", "given"),
    [
        ("pause()", [()]),
        (SET, [("7",), (str(1 << 71),), (str((1 << 256) - 1),)]),
        ("setPort(uint16)", [("7",), ("65535",)]),
        (
            "give(uint256,address)",
            [
                ("7", ALICE),
                (str(1 << 71), "stranger"),
                ("7", "stranger"),
                (str((1 << 256) - 1), "0x" + "0" * 40),
            ],
        ),
        ("burnAll(uint256[])", [(["7"],), ([str(1 << 71)],), ([],)]),
        ("setText(bytes32,string)", [("app", "alpha"), ("app", "qx-fresh"), ("app", "")]),
    ],
)
def test_arguments_by_type(signature: str, given: list[tuple[Any, ...]]) -> None:
    found = [one for _, one in rounds(signature, POOL)]
    assert found == given
    assert all(kinds == types_of(signature) for kinds, _ in rounds(signature, POOL))


def test_a_function_of_unknown_types_gets_words() -> None:
    assert [len(given[0]) for _, given in rounds("", POOL)] == [256, 256]
    assert {kinds for kinds, _ in rounds("", POOL)} == {("raw",)}
