"""The loop of the triggers that look at something now and then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import ClassVar

import anyio

from fleet.clock import Clock, SystemClock, rest
from fleet.errors import FleetError
from fleet.triggers.deliver import deliver, described, tell
from fleet.triggers.model import EVERYONE, Firing, FiringSink, Skip


class Poller(ABC):
    """Looks every `every_s` seconds, or soon after a wake; a problem is reported when it appears or changes.

    `trouble` is why the last look failed, or "".
    """

    EVENT: ClassVar[str]
    EXPECTED: ClassVar[tuple[type[Exception], ...]] = (FleetError,)
    """What a failed look raises; any other exception passes through `run`."""

    def __init__(self, sink: FiringSink, every_s: float, clock: Clock | None) -> None:
        self._sink, self._every_s, self._clock = sink, every_s, clock or SystemClock()
        self._woken = anyio.Event()
        self.trouble = ""

    def wake(self) -> None:
        """Look soon: a run has ended."""
        self._woken.set()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self._woken = anyio.Event()  # a wake during the look requests another one
            await self.turn()
            with anyio.move_on_after(rest(self._every_s)):
                await self._woken.wait()

    async def turn(self) -> None:
        """Look once and handle any expected failure."""
        before, self.trouble = self.trouble, ""
        try:
            await self.look()
        except self.EXPECTED as error:
            self.trouble = described(error)
        if self.trouble and self.trouble != before:
            reason = f"could not look: {self.trouble}"
            await tell(self._sink, Skip(EVERYONE, f"{EVERYONE}@{self.EVENT}", reason))

    @abstractmethod
    async def look(self) -> None:
        """Look once and fire what is new."""

    async def fire(self, keys: Collection[tuple[str, str]], why: str) -> bool:
        """Fire these pairs of persona and key; False if the sink took none of them.

        The caller stores what fired afterwards: after a crash in between, the keys are the same.
        """
        refused = []
        for persona, key in keys:
            if problem := await deliver(self._sink, Firing(key, persona, why, self._clock.now())):
                refused.append(Skip(persona, key, problem))
        for skip in refused:
            await tell(self._sink, skip)
        return not refused or len(refused) < len(keys)
