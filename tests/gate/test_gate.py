"""The gate of a run: fresh facts at every decision, and a charge that survives everything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.errors import BudgetExceeded, ConfigError, TryAgain
from fleet.gate.budget import LOOK_ONLY, Budget, Ledger, Room, Unit, parse_wall
from fleet.gate.dial import write_dial
from fleet.gate.gate import Gate, Rate
from fleet.gate.model import Action, Rung
from fleet.gate.scope import Scope
from fleet.gate.stop import resume, stop
from fleet.personas.model import BudgetSection
from fleet.store.journal import Journal
from sandbox.spec import Effect
from sandbox.tools import TOOLS
from tests.doubles.journal import new_run
from tests.gate.conftest import HandClock

pytestmark = pytest.mark.anyio
BUDGET = Budget(calls=20, writes=3, reports=2, wall_s=60.0, acts=True)
SCOPE = Scope(functions=frozenset({"feedbackCount"}))


Make = Callable[..., Gate]


@pytest.fixture
async def journal(state: Path, anyio_backend: str) -> AsyncIterator[Journal]:
    async with await Journal.open(state / "fleet.db") as opened:
        await opened.trigger(new_run("r1", "qa-x", key="k"))
        yield opened


@pytest.fixture
def make(state: Path, journal: Journal, clock: HandClock) -> Make:
    def make(budget: Budget = BUDGET, **changes: Any) -> Gate:
        fields: dict[str, Any] = {
            "state": state,
            "run": "r1",
            "grant": TOOLS,
            "tools": TOOLS,
            "scope": SCOPE,
            "clock": clock,
            "ledger": Ledger(journal, "r1", budget),
            "deadline": clock.monotonic() + budget.wall_s,
        }
        return Gate(**fields | changes)

    return make


def _action(tool: str, **args: Any) -> Action:
    return Action(run="r1", persona="qa-x", tool=tool, effect=TOOLS[tool].effect, args=args)


LOOK = _action("qa_chain", function="feedbackCount")
CREATE = _action("qa_create", name="qa-r1-1")
CALL = _action("qa_call", target="qa-r1-1", message="hi")


def _turn(state: Path, rung: Rung, clock: HandClock) -> None:
    write_dial(state, rung, "a test", "ada", clock)


async def test_a_flip_of_the_dial_acts_on_the_next_decision(
    make: Make, state: Path, clock: HandClock
) -> None:
    gate = make()
    assert ((await gate.decide(CREATE)).rule, gate.rung()) == ("dial", "observe")
    _turn(state, Rung.EXERCISE, clock)
    assert (await gate.decide(CREATE)).permit
    assert gate.rung() == "exercise"
    _turn(state, Rung.OBSERVE, clock)
    assert (await gate.decide(CREATE)).rule == "dial"
    assert (await gate.decide(LOOK)).permit
    _turn(state, Rung.PROPOSE, clock)
    (state / "autonomy").chmod(0o666)
    assert ((await gate.decide(CREATE)).rule, gate.rung()) == ("dial", "observe")


async def test_stop_is_below_them_all_and_nothing_here_removes_it(
    make: Make, state: Path, clock: HandClock, journal: Journal
) -> None:
    gate = make()
    _turn(state, Rung.PROPOSE, clock)
    assert (await gate.decide(LOOK)).permit
    stop(state, "ada", "enough", clock)
    for _ in range(3):
        verdict = await gate.decide(LOOK)
        assert (verdict.permit, verdict.rule, verdict.ends_run) == (False, "stop", True)
        assert "enough" in verdict.reason
    assert gate.rung() == "stop"
    assert (state / "STOP").exists()
    assert await journal.spent("r1") == {"calls": 1}
    resume(state)
    assert (await gate.decide(LOOK)).permit


async def test_a_dial_that_is_not_believed_is_told_once_per_reason(
    make: Make, state: Path, clock: HandClock
) -> None:
    told: list[str] = []

    async def tell(why: str) -> None:
        told.append(why)

    gate = make(distrusted=tell)
    for _ in range(3):
        await gate.decide(LOOK)
    (state / "autonomy").write_text("EXERCISE!!")
    for _ in range(3):
        await gate.decide(LOOK)
    _turn(state, Rung.OBSERVE, clock)
    await gate.decide(LOOK)
    assert told == ["autonomy: missing", "autonomy: not one of observe, exercise, propose: 'EXERCISE!!'"]


async def test_the_dial_that_decides_is_read_after_anybody_was_told(
    make: Make, state: Path, clock: HandClock
) -> None:
    async def tell(why: str) -> None:
        _turn(state, Rung.EXERCISE, clock)

    assert (await make(distrusted=tell).decide(CREATE)).permit


async def test_the_last_call_goes_to_one_of_many(make: Make, journal: Journal) -> None:
    gate = make(Budget(calls=5, writes=0, reports=0, wall_s=60.0, acts=False))
    verdicts = []

    async def ask() -> None:
        verdicts.append(await gate.decide(LOOK))

    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(ask)
    assert sum(v.permit for v in verdicts) == 5
    assert {(v.rule, v.ends_run) for v in verdicts if not v.permit} == {("budget", True)}
    assert await journal.spent("r1") == {"calls": 5}


async def test_the_charge_itself_is_a_fence(make: Make, journal: Journal) -> None:
    class Blind(Ledger):
        """Says that plenty is left: another call spent it since."""

        async def room(self) -> dict[Any, Room]:
            return {"calls": Room(99), "writes": Room(99), "reports": Room(99)}

    budget = Budget(calls=1, writes=0, reports=0, wall_s=60.0, acts=False)
    gate = make(ledger=Blind(journal, "r1", budget))
    assert (await gate.decide(LOOK)).permit
    verdict = await gate.decide(LOOK)
    assert (verdict.permit, verdict.rule, verdict.ends_run) == (False, "budget", True)


async def test_a_call_that_cannot_be_read_is_charged_too(make: Make, journal: Journal) -> None:
    gate = make(Budget(calls=2, writes=0, reports=0, wall_s=60.0, acts=False))
    for tool in ("qa_fetch", "no_such_tool"):
        verdict = await gate.malformed(tool, "args.url: missing")
        assert (verdict.permit, verdict.rule, verdict.ends_run) == (False, "arguments", False)
    assert await journal.spent("r1") == {"calls": 2}
    assert ((await gate.malformed("qa_fetch", "again")).rule, (await gate.decide(LOOK)).rule) == (
        "budget",
        "budget",
    )


async def test_a_refused_call_is_not_charged(make: Make, journal: Journal) -> None:
    gate = make(grant=["qa_call"])
    assert (await gate.decide(LOOK)).rule == "grant"
    assert await journal.spent("r1") == {}


async def test_three_writes_and_one_closing_report(
    make: Make, journal: Journal, state: Path, clock: HandClock
) -> None:
    ledger = Ledger(journal, "r1", Budget(calls=100, writes=3, reports=0, wall_s=60.0, acts=True))
    gate = make(ledger=ledger)
    _turn(state, Rung.EXERCISE, clock)
    signed = 0
    for _ in range(100):
        verdict = await gate.decide(CALL)
        if not verdict.permit:
            break
        assert await ledger.spend("writes") == 2 - signed
        signed += 1
    assert (signed, verdict.rule, verdict.ends_run) == (3, "budget", True)
    with pytest.raises(BudgetExceeded, match="the budget of 3 writes"):
        await ledger.spend("writes")
    with pytest.raises(BudgetExceeded, match="the budget of 0 reports"):
        await ledger.spend("reports")
    assert await ledger.spend("closing") == 0
    with pytest.raises(BudgetExceeded, match="the budget of 1 closing"):
        await ledger.spend("closing")


@pytest.mark.parametrize("together", [False, True])
async def test_writes_that_a_page_refused_cost_a_quarter_of_one(
    make: Make, journal: Journal, state: Path, clock: HandClock, together: bool
) -> None:
    ledger = Ledger(journal, "r1", Budget(calls=100, writes=3, reports=0, wall_s=60.0, acts=True))
    page = {"url": "http://127.0.0.1:80/a", "method": "POST"}
    act = Action(run="r1", persona="qa-x", tool="qa_fetch", effect=Effect.ACT, args=page)
    site = ("http", "127.0.0.1", 80)
    scope = Scope(origins=frozenset({site}), act_paths=frozenset({(site, "/")}))
    gate = make(ledger=ledger, scope=scope)
    _turn(state, Rung.EXERCISE, clock)
    made = 0
    while made < 100:
        async with gate.together() if together else nullcontext():
            permitted = (await gate.decide(act)).permit
        if not permitted:
            break
        made += 1
        if made <= 8:
            ledger.write_refused()
    assert made == 3 + 8 * 3 // 4
    assert await ledger.spend("writes", 0) == 0


async def test_a_restart_does_not_hand_anything_back(
    make: Make, journal: Journal, state: Path, clock: HandClock
) -> None:
    _turn(state, Rung.EXERCISE, clock)
    first = Ledger(journal, "r1", BUDGET)
    await first.spend("writes")
    await first.spend("writes")
    async with await Journal.open(state / "fleet.db") as reopened:
        second = Ledger(reopened, "r1", BUDGET)
        assert await second.spend("writes") == 0
        with pytest.raises(BudgetExceeded):
            await second.spend("writes")
        assert (await make(ledger=second).decide(CALL)).rule == "budget"


async def test_time_runs_out(make: Make, clock: HandClock) -> None:
    gate = make()
    clock.seconds += 59.9
    assert (await gate.decide(LOOK)).permit
    clock.seconds += 0.1
    verdict = await gate.decide(LOOK)
    assert (verdict.permit, verdict.rule, verdict.ends_run) == (False, "deadline", True)


async def test_a_hot_loop_is_slowed_down_also_when_it_is_refused(make: Make, clock: HandClock) -> None:
    gate = make(rate=Rate(calls=3, seconds=10.0), grant=[])
    assert [(await gate.decide(LOOK)).rule for _ in range(3)] == ["grant"] * 3
    gate = make(rate=Rate(calls=3, seconds=10.0))
    assert [(await gate.decide(LOOK)).rule for _ in range(5)] == ["permit"] * 3 + ["rate"] * 2
    clock.seconds += 10.0
    assert (await gate.decide(LOOK)).permit


async def test_effect_and_cost_come_from_the_table_not_from_the_caller(make: Make) -> None:
    gate = make()
    lying = Action(run="r1", persona="p", tool="qa_create", effect=Effect.LOOK, args={"name": "qa-r1-1"})
    assert (await gate.decide(lying)).rule == "dial"
    unknown = Action(run="r1", persona="p", tool="qa_release", effect=Effect.LOOK, args={})
    assert (await gate.decide(unknown)).rule == "dial"


async def test_an_operator_s_addition_counts(make: Make) -> None:
    assert (await make(never=["feedbackCount"]).decide(LOOK)).rule == "never"


async def test_an_addition_made_meanwhile_counts_at_the_next_decision(make: Make) -> None:
    never: list[str] = []
    gate = make(never=never)
    assert (await gate.decide(LOOK)).permit
    never.append("feedbackCount")
    assert (await gate.decide(LOOK)).rule == "never"


async def test_no_record_no_call(make: Make, journal: Journal) -> None:
    class Full(Ledger):
        async def spend(self, unit: Unit, amount: int = 1) -> int:
            raise TryAgain("the disk is full")

    gate = make(ledger=Full(journal, "r1", BUDGET))
    with pytest.raises(TryAgain):
        await gate.decide(LOOK)


async def test_without_a_budget_a_persona_looks_a_little_and_never_acts(
    make: Make, state: Path, clock: HandClock
) -> None:
    _turn(state, Rung.PROPOSE, clock)
    gate = make(Budget.of(None))
    verdict = await gate.decide(CREATE)
    assert (verdict.permit, verdict.rule, verdict.ends_run) == (False, "budget", False)
    permits = [(await gate.decide(LOOK)).permit for _ in range(LOOK_ONLY.calls + 1)]
    assert permits == [True] * LOOK_ONLY.calls + [False]


def test_a_budget_is_what_the_persona_says() -> None:
    section = BudgetSection(calls=200, writes=3, wall="10m")
    assert Budget.of(section) == Budget(calls=200, writes=3, reports=8, wall_s=600.0, acts=True)
    assert not Budget.of(BudgetSection(calls=1)).acts


@pytest.mark.parametrize(("text", "seconds"), [("1s", 1), ("90s", 90), ("10m", 600), ("24h", 86400)])
def test_walls(text: str, seconds: float) -> None:
    assert parse_wall(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "10", "0s", "-1s", "inf", "nan", "1d", "1.5h", "25h", "10 m", "10m\n", "１0m", "99999999s"]
)
def test_a_wall_that_cannot_be_read_is_not_unlimited(text: str) -> None:
    with pytest.raises(ConfigError, match=r"qa-x\.md: budget\.wall") as refused:
        Budget.of(BudgetSection(calls=1, wall=text), file="qa-x.md")
    assert "90s, 10m or 2h" in refused.value.remedy


CART = Scope(
    origins=frozenset({("http", "127.0.0.1", 9000)}),
    act_paths=frozenset({(("http", "127.0.0.1", 9000), "/api/cart")}),
)


def _fetch(method: str, effect: Effect) -> Action:
    args = {"url": "http://127.0.0.1:9000/api/cart", "method": method}
    return Action(run="r1", persona="qa-x", tool="qa_fetch", effect=effect, args=args)


async def test_the_effect_of_a_call_is_that_of_its_arguments_and_an_act_on_a_page_costs_a_write(
    make: Make, state: Path, clock: HandClock, journal: Journal
) -> None:
    gate = make(scope=CART)
    look, act = _fetch("GET", Effect.LOOK), _fetch("DELETE", Effect.ACT)
    assert ((await gate.decide(look)).permit, (await gate.decide(act)).rule) == (True, "dial")
    assert (await gate.decide(_fetch("DELETE", Effect.LOOK))).rule == "dial"
    _turn(state, Rung.EXERCISE, clock)
    assert [(await gate.decide(act)).permit for _ in range(3)] == [True] * 3
    assert await journal.spent("r1") == {"calls": 4, "writes": 3}
    over = await gate.decide(act)
    assert (over.permit, over.rule, over.ends_run) == (False, "budget", True)
    assert (await make(scope=SCOPE).decide(act)).rule == "prefix"
    assert (await gate.decide(look)).permit
    assert await journal.spent("r1") == {"calls": 5, "writes": 3}


async def test_who_waits_for_the_rate_is_never_refused_by_it(make: Make, clock: HandClock) -> None:
    gate, waits = make(rate=Rate(calls=2, seconds=10.0)), list[float]()
    for _ in range(6):
        waits.append(gate.pause())
        clock.seconds += waits[-1]
        assert (await gate.decide(LOOK)).permit
        clock.seconds += 1.0
    assert waits == [0.0, 0.0, 8.0, 0.0, 8.0, 0.0]
    assert (await gate.decide(LOOK)).rule == "rate"


async def test_calls_that_go_together_are_charged_at_once_before_any_of_them_is_sent(
    make: Make, state: Path, clock: HandClock, journal: Journal
) -> None:
    gate = make(Budget(calls=3, writes=1, reports=2, wall_s=60.0, acts=True), scope=CART)
    _turn(state, Rung.EXERCISE, clock)
    act, look = _fetch("PUT", Effect.ACT), _fetch("GET", Effect.LOOK)
    async with gate.together():
        assert [(await gate.decide(one)).permit for one in (act, look)] == [True, True]
        over = await gate.decide(act)
        assert (over.permit, over.rule, over.ends_run) == (False, "budget", True)
        assert (await gate.decide(look)).permit
        assert (await gate.decide(look)).rule == "budget"
        assert await journal.spent("r1") == {}
    assert await journal.spent("r1") == {"calls": 3, "writes": 1}
    assert (await gate.decide(look)).rule == "budget"


async def test_together_the_dial_is_still_read_for_each(make: Make, state: Path, clock: HandClock) -> None:
    gate = make(scope=CART)
    act = _fetch("PUT", Effect.ACT)
    _turn(state, Rung.EXERCISE, clock)
    async with gate.together():
        assert (await gate.decide(act)).permit
        _turn(state, Rung.OBSERVE, clock)
        assert (await gate.decide(act)).rule == "dial"
        stop(state, "ada", "enough", clock)
        assert (await gate.decide(act)).rule == "stop"


async def test_what_another_run_spent_meanwhile_ends_the_group_uncharged(
    make: Make, journal: Journal
) -> None:
    ledger = Ledger(journal, "r1", BUDGET, lambda: {"calls": 2})
    gate = make(ledger=ledger)

    async def group() -> None:
        async with gate.together():
            assert (await gate.decide(LOOK)).permit
            assert (await gate.decide(LOOK)).permit
            await ledger.spend("calls")

    with pytest.raises(BudgetExceeded):
        await group()
    assert await journal.spent("r1") == {"calls": 1}
