"""Continuous personas: start again after each run, with back-off while nothing new is found, or looked at."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import anyio

from fleet.clock import Clock, SystemClock
from fleet.errors import UsageError
from fleet.personas.duration import parse_duration
from fleet.personas.model import Trigger
from fleet.retry import Retry
from fleet.triggers.deliver import deliver, tell
from fleet.triggers.model import Firing, FiringSink, Skip, round_key

AGAIN_S = 300.0
"""Seconds until a firing without a result is repeated. Its key is the same, so no run starts twice."""
WAKE_S = 30.0
BLIND_S = 7200.0
"""The pause that runs which look at nothing come to, also where the persona has no back-off."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """A persona's runs in the journal: `count` ended, the last `quiet` of them without anything new.

    `count` is part of the key, so daemons that share a journal agree on it; `ended` is the last run's end.
    The last `blind` in a row looked at nothing, and `why` says the last one's reason.
    """

    count: int = 0
    quiet: int = 0
    ended: datetime | None = None
    blind: int = 0
    why: str = ""

    def after(self, *, found: bool, well: bool, ended: datetime, blind: str = "") -> Rounds:
        """Add one run; a run that did not end well looked at too little to count as quiet. `blind`: why it
        looked at nothing."""
        quiet = 0 if found else self.quiet + well
        return Rounds(self.count + 1, quiet, ended, self.blind + 1 if blind else 0, blind)


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between the end of a run and the next start: at least `shortest`, at most `longest`."""

    shortest: float
    longest: float

    @classmethod
    def of(cls, trigger: Trigger) -> Pace:
        """The pace of a `continuous` trigger; constant without `backoff`."""
        shortest = parse_duration(trigger.continuous or "")
        return cls(shortest, parse_duration(trigger.backoff) if trigger.backoff else shortest)

    def pause(self, quiet: int, blind: int = 0) -> float:
        """The pause, doubled for each consecutive run without anything new, or that looked at nothing."""
        dull = Retry(self.shortest, self.longest).pause(quiet)
        return max(dull, Retry(self.shortest, max(self.longest, BLIND_S)).pause(blind))

    def wait(self, rounds: Rounds, now: datetime) -> float:
        """Seconds from now to the next start; a first run waits the shortest pause.

        Never more than the pause, even if the clock was set since the last run.
        """
        pause = self.pause(rounds.quiet, rounds.blind)
        if rounds.ended is None:
            return pause
        return min(max(pause - (now - rounds.ended).total_seconds(), 0.0), pause)


@dataclass(slots=True)
class _Turn:
    pace: Pace
    rounds: Rounds
    at: float  # monotonic

    @property
    def pause(self) -> float:
        return self.pace.pause(self.rounds.quiet, self.rounds.blind)


class Continuous:
    """Fires continuous personas; call `ended` after each of their runs.

    `run` raises UsageError when already running.
    """

    def __init__(self, sink: FiringSink, *, clock: Clock | None = None) -> None:
        self._sink = sink
        self._clock = clock or SystemClock()
        self._turns: dict[str, _Turn] = {}
        self._told: set[str] = set()
        self._changed = asyncio.Event()
        self._running = False

    def plan(self, persona: str, trigger: Trigger, rounds: Rounds, *, first: datetime | None = None) -> None:
        """Set the pace of a persona; an unchanged pace keeps its timer. `first`: when a persona without a run
        starts at the latest, however long its pause is."""
        pace, turn = Pace.of(trigger), self._turns.get(persona)
        if turn is None or turn.pace != pace:
            self._wait(persona, pace, turn.rounds if turn else rounds)
            if first and not self._turns[persona].rounds.count:
                left = max((first - self._clock.now()).total_seconds(), 0.0)
                turn = self._turns[persona]
                turn.at = min(turn.at, self._clock.monotonic() + left)

    def drop(self, persona: str) -> None:
        self._turns.pop(persona, None)

    def ended(self, persona: str, *, found: bool, well: bool = True, blind: str = "") -> None:
        """Note that a run of this persona ended, whatever started it; `found`: it found something new,
        `blind`: why it looked at nothing."""
        if turn := self._turns.get(persona):
            rounds = turn.rounds.after(found=found, well=well, ended=self._clock.now(), blind=blind)
            self._wait(persona, turn.pace, rounds)

    def blind(self) -> list[str]:
        """The personas whose last run looked at nothing."""
        return [persona for persona, turn in self._turns.items() if turn.rounds.blind]

    def know(self, persona: str, rounds: Rounds) -> None:
        """Set the rounds from a journal that daemons share; replaces calls of `ended`."""
        turn = self._turns.get(persona)
        if turn and turn.rounds.count != rounds.count:
            self._wait(persona, turn.pace, rounds)

    def upcoming(self) -> dict[str, datetime]:
        """The next start of each persona, as far as known."""
        now, here = self._clock.now(), self._clock.monotonic()
        return {name: now + timedelta(seconds=max(turn.at - here, 0)) for name, turn in self._turns.items()}

    async def run(self) -> None:
        """Fire until cancelled."""
        if self._running:
            raise UsageError("continuous triggers are already running")
        self._running = True
        try:
            while True:
                self._changed.clear()
                wait = await self.fire_due()
                with anyio.move_on_after(min(wait, WAKE_S)):
                    await self._changed.wait()
        finally:
            self._running = False

    async def fire_due(self) -> float:
        """Fire what is due now; return the seconds until the next firing. Of a persona whose runs look at
        nothing it tells so, once."""
        await self._tell_blind()
        here = self._clock.monotonic()
        for persona, turn in [(name, turn) for name, turn in self._turns.items() if turn.at <= here]:
            turn.at = here + max(turn.pace.longest, AGAIN_S)
            why = f"continuous, pause {turn.pause:g} s"
            firing = Firing(round_key(persona, turn.rounds.count), persona, why, self._clock.now())
            if problem := await deliver(self._sink, firing):
                turn.at = self._clock.monotonic() + turn.pause
                await tell(self._sink, Skip(persona, firing.key, problem))
        return max(min((turn.at for turn in self._turns.values()), default=here + WAKE_S) - here, 0.0)

    async def _tell_blind(self) -> None:
        blind = self.blind()
        for persona in [one for one in blind if one not in self._told]:
            turn = self._turns[persona]
            hours = max(turn.pace.longest, BLIND_S) / 3600
            reason = f"its runs look at nothing ({turn.rounds.why}), so they start less often, down to every"
            reason += f" {hours:g} h, until a part of the platform changes: fleet check platform says why"
            await tell(self._sink, Skip(persona, f"{persona}@blind", reason))
        self._told = set(blind)

    def _wait(self, persona: str, pace: Pace, rounds: Rounds) -> None:
        at = self._clock.monotonic() + pace.wait(rounds, self._clock.now())
        self._turns[persona] = _Turn(pace, replace(rounds), at)
        self._changed.set()
