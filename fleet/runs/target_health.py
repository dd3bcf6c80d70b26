"""How well the targets are while they are tested: each looked at in turn, and left alone when it is not.

A look is one small request, between two calls of a run. The usual time of a target is the median of its first
ten looks without what lies beyond their 5th and 95th percentile; a changed build begins anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from types import MappingProxyType

from fleet.clock import Clock
from fleet.config.scope import HostSection

FIRST, FEWEST = 10, 5
"""Looks that make the usual time, and how many of them make one that counts already."""
SLOWER, MORE_MS = 2.0, 20.0
"""Slow: more than so many times the usual time, and so much longer: a page of 3 ms says nothing at 8 ms."""
FAILURES = 3
"""Looks in a row without an answer in time, after which the target is asked nothing else."""
HALTED_S = 5.0
"""Seconds between looks at a target that nothing else is asked of."""
SHARE, STRETCH = 0.01, 5
"""The most that looks are of all requests, before they become so many times rarer."""


@dataclass(slots=True)
class HealthOfTarget:
    """What is known of one target; milliseconds."""

    times: list[float] = field(default_factory=list)
    failures: int = 0
    looks: int = 0

    @property
    def usual(self) -> float:
        """The usual time; 0 while too little is known."""
        if len(self.times) < FEWEST:
            return 0.0
        cuts = quantiles(self.times, n=20, method="inclusive")
        return median(one for one in self.times if cuts[0] <= one <= cuts[-1])

    def take(self, ms: float | None) -> str:
        """Take in one look, None for one that failed; what is wrong, "" for nothing."""
        self.looks += 1
        if ms is None:
            self.failures += 1
            return f"did not answer a look {self.failures} times in a row" if self.failures > 1 else NO_ANSWER
        self.failures = 0
        usual = self.usual
        if len(self.times) < FIRST:
            self.times.append(ms)
        if usual and ms > max(SLOWER * usual, usual + MORE_MS):
            return f"took {ms:.0f} ms for a look, more than twice the usual {usual:.0f}"
        return ""


NO_ANSWER = "did not answer a look"


class TargetHealth:
    """Of all targets of a platform, for every run of a process."""

    def __init__(self, feeds: Mapping[str, Collection[str]] = MappingProxyType({})) -> None:
        """`feeds`: which targets others depend on."""
        self._feeds = feeds
        self._unwell: dict[str, str] = {}
        self._known: dict[str, HealthOfTarget] = {}
        self._due: dict[str, float] = {}
        self._build = ""
        self._halted: dict[str, str] = {}

    def of(self, target: str) -> HealthOfTarget:
        return self._known.setdefault(target, HealthOfTarget())

    def built(self, build: str) -> None:
        """Begin anew where the platform has another build than before."""
        if self._build and build != self._build:
            self._known.clear()
        self._build = build

    def due(self, targets: Sequence[tuple[str, HostSection]], clock: Clock, requests: int) -> list[str]:
        """Those that are to be looked at now, which begins their next wait; the first look at each is one
        wait after it was first named. `requests` is what was asked of all of them."""
        now, found = clock.monotonic(), []
        looks = sum(one.looks for one in self._known.values())
        slower = 1 if looks <= SHARE * requests else STRETCH
        for name, host in targets:
            if name in self._due and now >= self._due[name]:
                found.append(name)
            if name not in self._due or now >= self._due[name]:
                wait_s = host.look_s * (slower if name in found else 1)
                self._due[name] = now + (min(HALTED_S, wait_s) if name in self._halted else wait_s)
        return found

    def looked(self, target: str, ms: float | None) -> str:
        """Take in one look; what is wrong, "" for nothing. One that is well is asked again."""
        one = self.of(target)
        wrong = one.take(ms)
        if one.failures >= FAILURES:
            self._halted[target] = f"{target} {wrong}: nothing else is asked until it answers one"
        elif not one.failures:
            self._halted.pop(target, None)
        self._unwell.pop(target, None)
        if wrong:
            self._unwell[target] = wrong
        return wrong

    def halt(self, target: str, why: str) -> None:
        """Ask a target nothing but looks, the first one at once, until it answers one."""
        self._halted[target] = f"{why}: nothing else is asked until it answers a look"
        self._due[target] = 0.0

    def halted(self, target: str) -> str:
        """Why a target is asked nothing but looks; "" where it may be asked."""
        if alone := self._halted.get(target, ""):
            return alone
        for first, others in self._feeds.items():
            if target == first and (fed := next((one for one in others if one in self._unwell), "")):
                why = f"{first} feeds {fed}, which {self._unwell[fed]}"
                return f"{why}: nothing else is asked until that is well"
            if target in others and first in self._halted:
                return f"{target} depends on {first}: {self._halted[first]}"
        return ""
