"""How fast a jail may ask one host: turns, evenly spaced, that all jails of a state directory share.

A host that is strained is asked less: the pace halves, and recovers slowly once it is well (additive
increase, multiplicative decrease). Strain is an answer of 429, answers of 503 from more than one page (one
may just be broken), or pages that take more than twice as long (of
another machine: a fifth longer, `limits.slower`) as when the same pages were asked first.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import math
import os
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from fleet.jail.process import boot_id

FLOOR = 1 / 16
"""The smallest share of a host's rate that strain leaves."""
APART_S = 1.0
"""Answers within this time of a halving were asked before it, and halve nothing."""
QUIET_S = 5.0
"""Seconds without strain before the pace begins to recover."""
RECOVERY_S = 60.0
"""Seconds from nothing to the whole rate."""
SICK_S = 30.0
"""Strain that does not come again in this time did not last."""
FIRST, LAST = 3, 8
"""How many of a page's first times make its usual one; how many of the latest of all are looked at."""
SLOWER, MORE_MS = 2.0, 100.0
AWAY_MS = 20.0
"""So much longer, of another machine's pages."""
_PAGES = 64
NEAR, ACTIVE_S = 0.8, 10.0
"""The share of a wider group's rate that its hosts take together at most; a host is active for so long."""
CONNECTIONS = 32
"""Most connections to a host at once."""
BURST_S = 1.0
"""What may be carried at once, in seconds of the whole bandwidth."""
_LOG = logging.getLogger("fleet.broker")


class Slow(NamedTuple):
    """When a page is slow: the factor of its usual time, and the milliseconds beyond that."""

    times: float = SLOWER
    more_ms: float = MORE_MS


@dataclass(frozen=True, slots=True)
class HostStrain:
    """What a host's answers leave of its rate. Seconds of one clock that never steps."""

    share: float = 1.0
    cut_at: float = -1e9
    sick_since: float = -1e9
    sick_at: float = -1e9

    def share_at(self, now: float) -> float:
        """The share of the rate that it is asked with now."""
        return min(1.0, self.share + max(0.0, now - self.cut_at - QUIET_S) / RECOVERY_S)

    def strained(self, now: float, *, sick: bool) -> HostStrain:
        """After an answer that shows strain; `sick`: the host is not just limiting our rate."""
        told = self
        if sick:
            since = self.sick_since if now - self.sick_at <= SICK_S else now
            told = replace(self, sick_since=since, sick_at=now)
        if now - self.cut_at < APART_S:
            return told
        return replace(told, share=max(FLOOR, self.share_at(now) / 2), cut_at=now)

    def sick_s(self, now: float) -> float:
        """Seconds for which it has shown strain that slower asking did not end; 0 once it is well."""
        return self.sick_at - self.sick_since if now - self.sick_at <= SICK_S else 0.0


@dataclass(slots=True)
class HostLatency:
    """The times of a host's pages, each compared with those of the same page at first."""

    first: dict[str, list[float]] = field(default_factory=dict)
    last: deque[bool] = field(default_factory=lambda: deque(maxlen=LAST))

    def is_slow(self, page: str, ms: float, slow: Slow = Slow()) -> bool:  # noqa: B008  immutable
        """Take in the time of one answer; whether the latest ones are slow."""
        usual = self.first.setdefault(page, []) if len(self.first) < _PAGES else self.first.get(page)
        if usual is None:
            return False
        if len(usual) < FIRST:
            usual.append(ms)
            return False
        self.last.append(ms > max(slow.times * median(usual), slow.more_ms + median(usual)))
        if len(self.last) < LAST or 2 * sum(self.last) <= LAST:
            return False
        self.last.clear()
        return True


class SharedTurns:
    """When each host's next turn is, for every process over one folder: a daemon, and a trial beside it.

    A file for each host has the boot and the time of the monotonic clock, which processes share until the
    machine starts again. A folder that cannot be used leaves each process its own pace.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._boot = folder, boot_id()
        self._warned = False

    def take(self, key: Hashable, now: float, step: float) -> float:
        """Seconds until the next turn; 0.0: it is the caller's, and the next one is a `step` later."""
        with self._opened(key) as file:
            if file is None:
                return 0.0
            if (pause := self._read(file) - now) > 0:
                return pause
            self._write(file, now + step)
            return 0.0

    def until(self, key: Hashable) -> float:
        """When the next turn is; 0.0 where nobody took or held one yet."""
        with suppress(OSError):
            file = os.open(self._path(key), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                return self._read(file)
            finally:
                os.close(file)
        return 0.0

    def hold(self, key: Hashable, until: float) -> None:
        """Give no turn before this time."""
        with self._opened(key) as file:
            if file is not None and self._read(file) < until:
                self._write(file, until)

    @contextmanager
    def _opened(self, key: Hashable) -> Iterator[int | None]:
        """The host's file, locked; held for microseconds."""
        path = self._path(key)
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            if not self._warned:
                _LOG.warning("%s: the pace is not shared with other processes: %s", path, error.strerror)
            self._warned = True
            yield None
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)

    def _path(self, key: Hashable) -> Path:
        return self._folder / hashlib.sha256(repr(key).encode()).hexdigest()[:16]

    def _read(self, file: int) -> float:
        boot, _, at = os.pread(file, 100, 0).decode("ascii", "replace").partition(" ")
        with suppress(ValueError):
            if boot == self._boot and math.isfinite(until := float(at)):
                return until
        return 0.0

    def _write(self, file: int, at: float) -> None:
        with suppress(OSError):  # a full disk: then the time is an old one
            os.pwrite(file, f"{self._boot} {at!r}\n".encode().ljust(80), 0)


class HostPace:
    """At most `rate` turns a second for each key, or what `rate_of` says of it; callers wait in order, and
    nothing is saved up. Less while a host is strained.

    A caller that leaves while it waits takes no turn. With `shared`, other processes take turns too. At most
    `bytes_s` bytes a second are carried for all hosts together.
    """

    def __init__(
        self,
        rate: float,
        *,
        rate_of: Callable[[Hashable], float] | None = None,
        shared: SharedTurns | None = None,
        bytes_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rate_of, self._clock, self._sleep = rate_of or (lambda _: rate), clock, sleep
        self._shared = shared
        self._next: dict[Hashable, float] = {}
        self._held: dict[Hashable, float] = {}
        self._queues: dict[Hashable, asyncio.Lock] = {}
        self._strain: dict[Hashable, HostStrain] = {}
        self._unavailable: dict[Hashable, tuple[str, float]] = {}
        self._latency: defaultdict[Hashable, HostLatency] = defaultdict(HostLatency)
        self._wider: dict[Hashable, Mapping[Hashable, float]] = {}
        self._active: defaultdict[Hashable, dict[Hashable, float]] = defaultdict(dict)
        self._places: dict[Hashable, asyncio.Semaphore] = {}
        self._bytes_s, self._paid_at = bytes_s, 0.0

    def hold(self, key: Hashable, seconds: float) -> None:
        """Give no turn for these seconds: the host asked for a pause."""
        self._next[key] = max(self._next.get(key, 0.0), self._clock() + seconds)
        self._held[key] = self._next[key]
        if self._shared is not None:
            self._shared.hold(key, self._next[key])

    def held(self, key: Hashable) -> float:
        """Seconds until the pause is over that a host asked for; 0 without one."""
        return max(0.0, self._held.get(key, 0.0) - self._clock())

    def held_by_any(self, key: Hashable) -> float:
        """The same of what is only held and takes no turns, whichever process was asked for it."""
        shared = self._shared.until(key) - self._clock() if self._shared else 0.0
        return max(self.held(key), shared)

    def answered(
        self,
        key: Hashable,
        page: str,
        status: int,
        ms: float | None = None,
        slow: Slow = Slow(),  # noqa: B008
    ) -> float:
        """Take in one answer; `ms` where the page takes the same time when it is asked again. The seconds for
        which the host has been strained although it was asked less."""
        now, strain = self._clock(), self._strain.get(key, HostStrain())
        sick = ms is not None and status < 400 and self._latency[key].is_slow(page, ms, slow)
        if status == 503:
            before, at = self._unavailable.get(key, (page, now))
            sick = before != page and now - at <= SICK_S
            if sick or now - at > SICK_S or key not in self._unavailable:
                self._unavailable[key] = (page, now)
        if sick or status == 429:
            strain = self._strain[key] = strain.strained(now, sick=sick)
        return strain.sick_s(now)

    def carried(self, size: int) -> None:
        """Take in bytes that were sent or received; nothing more leaves while more than a second's worth is
        owed."""
        self._paid_at = max(self._paid_at, self._clock()) + size / self._bytes_s

    def rate(self, key: Hashable) -> float:
        """Turns a second at this moment: less while the host is strained, and while the hosts that are asked
        now would together come near to what a wider group of theirs may have."""
        now, share = self._clock(), 1.0
        for group, most in self._wider.get(key, {}).items():
            wanted = sum(self._alone(one) for one, at in self._active[group].items() if now - at <= ACTIVE_S)
            share = min(share, NEAR * most / wanted) if wanted else share
        return self._alone(key) * share

    def share(self, key: Hashable) -> float:
        """The share of a host's rate that its strain leaves at this moment."""
        strain = self._strain.get(key)
        return strain.share_at(self._clock()) if strain else 1.0

    def _alone(self, key: Hashable) -> float:
        return self._rate_of(key) * self.share(key)

    async def turn(self, key: Hashable, share: float = 1.0) -> float:
        """Wait for the next turn of a host, whose rate is used to this share; the seconds that it took."""
        began = self._clock()
        if (owed := self._paid_at - began - BURST_S) > 0:
            await self._sleep(owed)
        await self._next_turn(key, lambda: self.rate(key) * share)
        return self._clock() - began

    def connections(self, key: Hashable) -> asyncio.Semaphore:
        """The places for connections to a host."""
        return self._places.setdefault(key, asyncio.Semaphore(CONNECTIONS))

    async def turn_among(self, key: Hashable, groups: Mapping[Hashable, float]) -> float:
        """Wait for a turn in each of the wider groups that a host is in, with the turns a second of each; the
        seconds that it took."""
        began = self._clock()
        self._wider[key] = groups
        for group, most in groups.items():
            self._active[group][key] = self._clock()
            await self._next_turn(group, partial(float, most))
        return self._clock() - began

    async def _next_turn(self, key: Hashable, rate: Callable[[], float]) -> None:
        async with self._queues.setdefault(key, asyncio.Lock()):
            pause = self._next.get(key, 0.0) - self._clock()
            if pause > 0:
                await self._sleep(pause)
            now, step = self._clock(), 1 / rate()
            while self._shared is not None and (pause := self._shared.take(key, now, step)) > 0:
                await self._sleep(pause)
                now = self._clock()
            self._next[key] = max(now, self._next.get(key, 0.0)) + step
