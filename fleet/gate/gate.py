"""The gate of one run: fresh facts, pure rules, and the charge for a permit."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fleet.clock import Clock
from fleet.errors import BudgetExceeded
from fleet.gate.budget import Ledger
from fleet.gate.dial import DIAL, DialReading, read_dial
from fleet.gate.model import Action, Verdict
from fleet.gate.rules import GateFacts, judge
from fleet.gate.scope import Scope
from fleet.gate.stop import stopped
from sandbox.spec import Cost, ToolSpec

STOPPED = "stop"
"""Returned by `rung_now` instead of a rung while everything is paused."""


def rung_now(state: Path) -> str:
    """The current rung, or `stop`; the signer asks right before it signs."""
    return STOPPED if stopped(state) else read_dial(state / DIAL).rung.value


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `calls` decisions in `seconds`: slows down a loop that ignores refusals."""

    calls: int = 300
    seconds: float = 10.0


class Gate:
    """One per run. `deadline` is on `clock.monotonic()`; `grant` are the tool names of the persona.

    `tools` is the table of specs: effect, cost and scope come from there, never from the caller. `never` is
    read at every decision. `distrusted` is called once per reason when the dial file is rejected.
    """

    def __init__(
        self,
        *,
        state: Path,
        run: str,
        grant: Iterable[str],
        tools: Mapping[str, ToolSpec],
        scope: Scope,
        ledger: Ledger,
        clock: Clock,
        deadline: float,
        never: Iterable[str] = (),
        rate: Rate | None = None,
        distrusted: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._state, self._run = state, run
        self._grant, self._never = frozenset(grant), never
        self._tools, self._scope, self._ledger = tools, scope, ledger
        self._clock, self._deadline = clock, deadline
        self._rate = rate or Rate()
        self._distrusted = distrusted
        self._told: set[str] = set()
        self._times: deque[float] = deque()

    async def decide(self, action: Action) -> Verdict:
        """Judge one call on facts read now; a permit has been charged, durably, when this returns.

        Raises what the journal raises (TryAgain, ConfigError): no record, no call.
        """
        facts = await self._facts(action)
        verdict = judge(action, facts)
        return await self._charge(facts.cost, verdict) if verdict.permit else verdict

    async def malformed(self, tool: str, reason: str) -> Verdict:
        """Charge a call whose arguments could not be read, and refuse it: a parse error is not free."""
        cost = self._cost(tool)
        return await self._charge(cost, Verdict(permit=False, rule="arguments", reason=reason))

    def dial(self) -> DialReading:
        """The current dial."""
        return read_dial(self._state / DIAL)

    def rung(self) -> str:
        """The current rung, or `stop`."""
        return rung_now(self._state)

    async def _charge(self, cost: Cost, verdict: Verdict) -> Verdict:
        try:
            await self._ledger.spend("calls", max(1, cost.calls))
        except BudgetExceeded as spent:  # another call took the last one since the facts were read
            return Verdict(permit=False, rule="budget", reason=str(spent), ends_run=True)
        return verdict

    def _cost(self, tool: str) -> Cost:
        spec = self._tools.get(tool)
        return spec.cost if spec else Cost()

    async def _facts(self, action: Action) -> GateFacts:
        rooms = await self._ledger.room()
        spec = self._tools.get(action.tool)
        now = self._clock.monotonic()
        recent = self._count(now)
        dial = self.dial()
        if not dial.trusted:
            await self._tell(dial.why)
            dial = self.dial()
        pause = stopped(self._state)
        return GateFacts(
            run=self._run,
            stop=pause.why if pause else "",
            rung=dial.rung,
            grant=self._grant,
            effect=spec.effect if spec else None,
            cost=self._cost(action.tool),
            acts_on=spec.acts_on if spec else None,
            points_at=spec.points_at if spec else None,
            scope=self._scope,
            recent=recent,
            rate=self._rate.calls,
            left={unit: room.left for unit, room in rooms.items()},
            limits={unit: room.limit for unit, room in rooms.items()},
            acts=self._ledger.budget.acts,
            now=now,
            deadline=self._deadline,
            never=frozenset(self._never),
        )

    def _count(self, now: float) -> int:
        self._times.append(now)
        while self._times[0] <= now - self._rate.seconds:
            self._times.popleft()
        return len(self._times)

    async def _tell(self, why: str) -> None:
        if self._distrusted is not None and why not in self._told:
            self._told.add(why)
            await self._distrusted(why)
