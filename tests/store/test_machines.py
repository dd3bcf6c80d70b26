"""State machines: whatever is called in whatever order, and reopened in between, the model holds.

The rules are synchronous, so each machine owns an event loop and runs one step at a time on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fleet.errors import BudgetExceeded
from fleet.store.journal import Journal
from fleet.store.rows import FINDING_MOVES, FindingRow, FindingState
from tests.store.conftest import Places

T = TypeVar("T")
RUNS = st.sampled_from(["r1", "r2"])
STATES = st.sampled_from(sorted(FINDING_MOVES))


class _Kept(RuleBasedStateMachine):
    places: Places

    def __init__(self) -> None:
        super().__init__()
        self.place = type(self).places()
        self.loop = asyncio.Runner()
        self.journal = self.do(Journal.open(self.place))

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(work)

    def queue(self, run_id: str, key: str) -> bool:
        return self.do(
            self.journal.trigger(
                run_id, persona="p", key=key, platform="d", trigger="t", rung="observe", budget={}
            )
        )

    @rule()
    def reopen(self) -> None:
        self.do(self.journal.aclose())
        self.journal = self.do(Journal.open(self.place))

    def teardown(self) -> None:
        self.do(self.journal.aclose())
        self.loop.close()


class BudgetMachine(_Kept):
    """Never beyond the limit, never handed back, survives reopening."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = {"calls": 9, "writes": 3}
        self.model: dict[tuple[str, str], int] = {}
        for run_id in ("r1", "r2"):
            self.queue(run_id, run_id)

    @rule(run=RUNS, unit=st.sampled_from(["calls", "writes"]), amount=st.integers(0, 5))
    def spend(self, run: str, unit: str, amount: int) -> None:
        before = self.model.get((run, unit), 0)
        work = self.journal.spend(run, unit, amount, self.limits[unit])
        if before + amount > self.limits[unit]:
            with pytest.raises(BudgetExceeded):
                self.do(work)
            return
        assert self.do(work) == self.limits[unit] - before - amount
        self.model[run, unit] = before + amount

    @rule(run=RUNS, amounts=st.lists(st.integers(1, 3), min_size=2, max_size=4))
    def race(self, run: str, amounts: list[int]) -> None:
        async def all_at_once() -> list[int | BaseException]:
            spending = (self.journal.spend(run, "writes", n, self.limits["writes"]) for n in amounts)
            return await asyncio.gather(*spending, return_exceptions=True)

        ends = self.do(all_at_once())
        won = sum(n for n, end in zip(amounts, ends, strict=True) if isinstance(end, int))
        assert all(isinstance(end, int | BudgetExceeded) for end in ends)
        self.model[run, "writes"] = self.model.get((run, "writes"), 0) + won

    @invariant()
    def holds(self) -> None:
        for run in ("r1", "r2"):
            spent = self.do(self.journal.spent(run))
            assert all(amount <= self.limits[unit] for unit, amount in spent.items())
            assert {unit: n for unit, n in spent.items() if n} == {
                unit: n for (owner, unit), n in self.model.items() if owner == run and n
            }


class RunMachine(_Kept):
    """One row per key, one claim, one outcome; states only move forward."""

    def __init__(self) -> None:
        super().__init__()
        self.state: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        self.outcome: dict[str, str] = {}

    @rule(run=RUNS, key=st.sampled_from(["k1", "k2"]))
    def trigger(self, run: str, key: str) -> None:
        new = run not in self.state and key not in self.keys.values()
        assert self.queue(run, key) == new
        if new:
            self.state[run], self.keys[run] = "queued", key

    @rule(run=RUNS)
    def claim(self, run: str) -> None:
        won = self.do(self.journal.claim(run, pid=1, pid_start=1))
        assert won == (self.state.get(run) == "queued")
        if won:
            self.state[run] = "running"

    @rule(run=RUNS)
    def settle(self, run: str) -> None:
        settling = self.do(self.journal.start_settling(run))
        assert settling == (self.state.get(run) in ("running", "settling"))
        if settling:
            self.state[run] = "settling"

    @rule(run=RUNS, outcome=st.sampled_from(["completed", "failed"]))
    def finish(self, run: str, outcome: str) -> None:
        first = self.do(self.journal.finish(run, outcome))
        assert first == (self.state.get(run) in ("queued", "running", "settling"))
        if first:
            self.state[run], self.outcome[run] = "ended", outcome

    @invariant()
    def holds(self) -> None:
        rows = self.do(self.journal.runs())
        assert {row.run_id: row.state for row in rows} == self.state
        assert {row.run_id: row.outcome for row in rows if row.outcome} == self.outcome
        still_open = {row.run_id for row in self.do(self.journal.open_runs())}
        assert still_open == {run for run, state in self.state.items() if state in ("running", "settling")}


class FindingMachine(_Kept):
    """Counted, never lost, posted only from the outbox, final once it is over."""

    def __init__(self) -> None:
        super().__init__()
        for run_id in ("r1", "r2"):
            self.queue(run_id, run_id)
        self.state: dict[str, FindingState] = {}
        self.times: dict[str, int] = {}

    @rule(run=RUNS)
    def add(self, run: str) -> None:
        new = self.do(self.journal.add_finding(FindingRow(run_id=run, fingerprint="fp")))
        assert new == (run not in self.state)
        self.state.setdefault(run, "raised")
        self.times[run] = self.times.get(run, 0) + 1

    @precondition(lambda self: self.state)
    @rule(data=st.data(), after=STATES)
    def move(self, data: st.DataObject, after: FindingState) -> None:
        run = data.draw(st.sampled_from(sorted(self.state)))
        before = self.state[run]
        work = self.journal.set_finding(run, "fp", state=after)
        if after == before or after in FINDING_MOVES[before]:
            self.do(work)
            self.state[run] = after
        else:
            with pytest.raises(ValueError, match="cannot become"):
                self.do(work)

    @rule(run=RUNS)
    def claim(self, run: str) -> None:
        others = [state for other, state in self.state.items() if other != run]
        ready = self.state.get(run) in ("confirmed", "flaky", "unverified")
        claimed = self.do(self.journal.claim_posting(run, "fp"))
        assert claimed == (ready and "posting" not in others)
        if claimed:
            self.state[run] = "posting"

    @invariant()
    def holds(self) -> None:
        rows = {row.run_id: row for row in self.do(self.journal.findings())}
        assert {run: row.state for run, row in rows.items()} == self.state
        assert {run: row.times for run, row in rows.items()} == self.times
        posted = self.do(self.journal.posted("fp"))
        assert (posted is not None) == ("posted" in self.state.values())


@pytest.mark.parametrize("machine", [BudgetMachine, RunMachine, FindingMachine])
def test_the_model_holds(machine: type[_Kept], places: Places) -> None:
    quick = settings(
        max_examples=6, stateful_step_count=12, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    here = type(machine.__name__, (machine,), {"places": staticmethod(places)})
    run_state_machine_as_test(here, settings=quick)
