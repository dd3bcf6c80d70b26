"""State machines: whatever is called in whatever order, and reopened in between, the model holds.

The rules are synchronous, so each machine owns an event loop and runs one step at a time on it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any, ClassVar, TypeVar

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
from fleet.store.tables.units import Limits, Scope
from tests.doubles.journal import new_run
from tests.store.conftest import Places

T = TypeVar("T")
RUNS = st.sampled_from(["r1", "r2"])
ANY = st.sampled_from(["r1", "r2", "r3"])
Account = tuple[Scope, str, str]
"""Scope, whose, unit."""
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

    def queue(self, run_id: str, key: str, persona: str = "p") -> bool:
        return self.do(self.journal.trigger(new_run(run_id, persona, key=key)))

    @rule()
    def reopen(self) -> None:
        self.do(self.journal.aclose())
        self.journal = self.do(Journal.open(self.place))

    def teardown(self) -> None:
        self.do(self.journal.aclose())
        self.loop.close()


class BudgetMachine(_Kept):
    """Three scopes agree; never beyond a limit but by what a settle found; never below 0, never handed back.

    Reopening stands for a crash: what was reserved and not settled stays spent.
    """

    PERSONAS: ClassVar[dict[str, str]] = {"r1": "p", "r2": "p", "r3": "q"}
    RUN: ClassVar[dict[str, int]] = {"tokens": 12, "writes": 4}
    DAY: ClassVar[Limits] = {"persona": {"tokens": 16, "writes": 5}, "fleet": {"tokens": 20, "writes": 6}}

    def __init__(self) -> None:
        super().__init__()
        self.model: Counter[Account] = Counter()
        self.over: Counter[Account] = Counter()
        self.held: list[tuple[str, str, int, bool]] = []  # run, reservation, tokens, still to settle
        for run_id in self.PERSONAS:
            self.queue(run_id, run_id, persona=self.PERSONAS[run_id])

    def accounts(self, run: str, unit: str) -> dict[Account, int]:
        return {
            ("run", run, unit): self.RUN[unit],
            ("persona", self.PERSONAS[run], unit): self.DAY["persona"][unit],
            ("fleet", "", unit): self.DAY["fleet"][unit],
        }

    def fits(self, run: str, unit: str, amount: int) -> bool:
        return all(
            self.model[account] + amount <= limit for account, limit in self.accounts(run, unit).items()
        )

    def count(self, run: str, unit: str, amount: int) -> None:
        for account in self.accounts(run, unit):
            self.model[account] += amount

    @rule(run=ANY, unit=st.sampled_from(["tokens", "writes"]), amount=st.integers(0, 5))
    def spend(self, run: str, unit: str, amount: int) -> None:
        work = self.journal.spend(run, unit, amount, self.RUN[unit], day=self.DAY)
        if not self.fits(run, unit, amount):
            with pytest.raises(BudgetExceeded):
                self.do(work)
            return
        left = self.do(work)
        self.count(run, unit, amount)
        assert left == min(limit - self.model[key] for key, limit in self.accounts(run, unit).items())

    @rule(runs=st.lists(ANY, min_size=2, max_size=4), amount=st.integers(1, 3))
    def race(self, runs: list[str], amount: int) -> None:
        async def all_at_once() -> list[int | BaseException]:
            spending = (
                self.journal.spend(r, "writes", amount, self.RUN["writes"], day=self.DAY) for r in runs
            )
            return await asyncio.gather(*spending, return_exceptions=True)

        ends = self.do(all_at_once())
        assert all(isinstance(end, int | BudgetExceeded) for end in ends)
        for run, end in zip(runs, ends, strict=True):
            if isinstance(end, int):
                assert self.fits(run, "writes", amount)
                self.count(run, "writes", amount)
        lost = [run for run, end in zip(runs, ends, strict=True) if not isinstance(end, int)]
        assert not any(self.fits(run, "writes", amount) for run in lost)

    @rule(run=ANY, tokens=st.integers(0, 9))
    def reserve(self, run: str, tokens: int) -> None:
        work = self.journal.reserve(run, {"tokens": tokens}, {"run": self.RUN, **self.DAY})
        if not self.fits(run, "tokens", tokens):
            with pytest.raises(BudgetExceeded):
                self.do(work)
            return
        self.held.append((run, self.do(work), tokens, True))
        self.count(run, "tokens", tokens)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), actual=st.none() | st.integers(0, 12))
    def settle(self, data: st.DataObject, actual: int | None) -> None:
        number = data.draw(st.integers(0, len(self.held) - 1))
        run, held, tokens, waits = self.held[number]
        self.do(self.journal.settle(held, {} if actual is None else {"tokens": actual}))
        self.held[number] = (run, held, tokens, False)
        if waits and actual is not None:
            self.count(run, "tokens", actual - tokens)
            for account in self.accounts(run, "tokens"):
                self.over[account] += max(0, actual - tokens)

    @invariant()
    def holds(self) -> None:
        for run in self.PERSONAS:
            spent = self.do(self.journal.spent_in(run))
            for unit in self.RUN:
                for account, limit in self.accounts(run, unit).items():
                    scope = account[0]
                    assert spent[scope].get(unit, 0) == self.model[account]
                    assert 0 <= self.model[account] <= limit + self.over[account]
                by_run = sum(self.model["run", one, unit] for one in self.PERSONAS)
                assert self.model["fleet", "", unit] == by_run


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
        ready = self.state.get(run) == "confirmed"
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
