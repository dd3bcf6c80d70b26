"""The gate of one run: fresh facts, pure rules, and the charge for a permit."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fleet.clock import Clock
from fleet.config.escalation import NEVER_BY_LEVEL
from fleet.errors import BudgetExceeded
from fleet.gate.budget import Ledger, Room, Unit
from fleet.gate.dial import DIAL, DialReading, read_dial
from fleet.gate.model import Action, Verdict
from fleet.gate.rules import GateFacts, judge, technique
from fleet.gate.scope import Scope
from fleet.gate.steering import left_out
from fleet.gate.stop import stopped
from sandbox.spec import Cost, Effect, ToolSpec

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
    read at every decision, and `closed` asked: why the platform may not be tested now. `distrusted` is called
    once per reason when the dial file is rejected.
    """

    def __init__(  # noqa: PLR0913  a constructor
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
        closed: Callable[[], str] = str,
    ) -> None:
        self._state, self._run = state, run
        self._grant, self._never = frozenset(grant), never
        self._tools, self._scope, self._ledger = tools, scope, ledger
        self._clock, self._deadline = clock, deadline
        self._rate = rate or Rate()
        self._distrusted, self._closed = distrusted, closed
        self._reported: set[str] = set()
        self._times: deque[float] = deque()
        self._owed: Counter[Unit] | None = None
        self._rooms: Mapping[Unit, Room] | None = None
        self.answers: dict[str, str] = {}
        """What persons said, by what was asked (`Verdict.asks`): `approved`, or why not."""

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        """Charge what is permitted inside at once, at the end and before it is sent: one wait for the disk.

        Each decision reads dial and STOP anew, and counts what the ones before it owe. BudgetExceeded at the
        end when another run has spent the rest meanwhile: then nothing is charged.
        """
        rooms = await self._ledger.room()
        owed: Counter[Unit] = Counter()
        self._owed = owed
        self._rooms = rooms
        try:
            yield
        finally:
            self._owed = self._rooms = None
            for unit, amount in owed.items():
                await self._spend(unit, amount)

    async def decide(self, action: Action, *, looks: bool = False) -> Verdict:
        """Judge one call on facts read now; a permit has been charged, durably, when this returns.

        `looks`: the fleet itself asks how a target is, which no persona is granted.

        Raises what the journal raises (TryAgain, ConfigError): no record, no call.
        """
        facts = await self._facts(action)
        if looks and facts.effect is Effect.LOOK:
            facts = replace(facts, grant=facts.grant | {action.tool})
        verdict, found = judge(action, facts), technique(action, facts)
        if found is not None:
            verdict = replace(verdict, level=str(found))
        if verdict.permit and facts.effect is Effect.ACT and facts.acts_at:
            # no signer will: what such an act changes is not on the chain
            verdict = await self._charge("writes", max(1, facts.cost.writes), verdict)
        return await self._charge("calls", max(1, facts.cost.calls), verdict) if verdict.permit else verdict

    async def asks(self, action: Action) -> Verdict | None:
        """The question that this call waits for, if everything else permits it; nothing is charged."""
        if self._scope.escalation.impact == NEVER_BY_LEVEL:
            return None
        verdict = judge(action, await self._facts(action, counts=False))
        return verdict if verdict.asks else None

    def pause(self) -> float:
        """Seconds until the rate permits one more call; 0 when it does now."""
        times, rate, now = self._times, self._rate, self._clock.monotonic()
        if len(times) < rate.calls:
            return 0.0
        return max(0.0, times[len(times) - rate.calls] + rate.seconds - now)

    def time_left(self) -> float:
        """Seconds until the run's time is over."""
        return max(0.0, self._deadline - self._clock.monotonic())

    async def malformed(self, tool: str, reason: str) -> Verdict:
        """Charge a call whose arguments could not be read, and refuse it: a parse error is not free."""
        spec = self._tools.get(tool)
        calls = max(1, spec.cost.calls) if spec else 1
        return await self._charge("calls", calls, Verdict(permit=False, rule="arguments", reason=reason))

    def dial(self) -> DialReading:
        """The current dial."""
        return read_dial(self._state / DIAL)

    def rung(self) -> str:
        """The current rung, or `stop`."""
        return rung_now(self._state)

    async def _charge(self, unit: Unit, amount: int, verdict: Verdict) -> Verdict:
        if self._owed is not None:
            self._owed[unit] += amount
            return verdict
        try:
            await self._spend(unit, amount)
        except BudgetExceeded as spent:  # another call took the last one since the facts were read
            return Verdict(permit=False, rule="budget", reason=str(spent), ends_run=True)
        return verdict

    async def _spend(self, unit: Unit, amount: int) -> None:
        await self._ledger.spend(unit, self._ledger.unpaid(amount) if unit == "writes" else amount)

    async def _facts(self, action: Action, *, counts: bool = True) -> GateFacts:
        rooms = self._rooms or await self._ledger.room()
        owed = self._owed or Counter[Unit]()
        spec = self._tools.get(action.tool)
        now = self._clock.monotonic()
        if counts:
            self._times.append(now)
        while self._times and self._times[0] <= now - self._rate.seconds:
            self._times.popleft()
        recent = len(self._times)
        dial = read_dial(self._state / DIAL)
        if not dial.trusted:
            if self._distrusted is not None and dial.why not in self._reported:
                self._reported.add(dial.why)
                await self._distrusted(dial.why)
            dial = read_dial(self._state / DIAL)
        pause = stopped(self._state)
        return GateFacts(
            run=self._run,
            stop=pause.why if pause else "",
            rung=dial.rung,
            grant=self._grant,
            effect=spec.effect_of(action.args) if spec else None,
            cost=spec.cost if spec else Cost(),
            acts_on=spec.acts_on if spec else None,
            acts_at=spec.acts_at if spec else "",
            points_at=spec.points_at if spec else None,
            scope=self._scope,
            recent=recent,
            rate=self._rate.calls,
            left={unit: room.left - owed.get(unit, 0) for unit, room in rooms.items()},
            limits=rooms,
            acts=self._ledger.budget.acts,
            now=now,
            deadline=self._deadline,
            closed=self._closed(),
            never=frozenset(self._never),
            left_out=left_out(self._state),
            answers=self.answers,
        )
