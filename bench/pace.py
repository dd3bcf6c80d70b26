"""Requests a second to a server that is well, strained and well again: `python -m bench.pace`, which prints
docs/bench/pace.md. The server and the time are simulated; the pace is the broker's own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from fleet.broker.pace import HostPace

RATE = 10.0
SPAN_S = 240


@dataclass
class SimulatedServer:
    """`capacity(t)` answers a second; what is beyond is answered `over`, or waits when that is 200."""

    capacity: Callable[[float], float]
    over: int
    recent: deque[float] = field(default_factory=deque)
    free_at: float = 0.0

    def answer(self, now: float) -> tuple[int, float]:
        """Status and milliseconds of one request."""
        if self.over == 200:
            self.free_at = max(self.free_at, now) + 1 / self.capacity(now)
            return 200, (self.free_at - now) * 1000
        while self.recent and self.recent[0] <= now - 1:
            self.recent.popleft()
        if len(self.recent) >= self.capacity(now):
            return self.over, 1.0
        self.recent.append(now)
        return 200, 5.0


async def served(server: SimulatedServer, span_s: int = SPAN_S, rate: float = RATE) -> list[int]:
    """Requests in each second, from callers that always have one more."""
    now, asked, seconds = 0.0, 0, [0] * (span_s + 1)

    async def sleep(pause: float) -> None:
        nonlocal now
        now += pause

    pace = HostPace(rate, clock=lambda: now, sleep=sleep)
    while now < span_s:
        await pace.turn("host")
        status, ms = server.answer(now)
        pace.answered("host", f"/{asked % 7}", status, ms)
        asked += 1
        seconds[min(span_s, int(now))] += 1
    return seconds[:span_s]


def strained(low: float) -> Callable[[float], float]:
    """A capacity of 1,000, and of `low` from second 60 to 120."""
    return lambda now: low if 60 <= now < 120 else 1_000.0


CASES: dict[str, SimulatedServer] = {
    "well": SimulatedServer(lambda _: 1_000.0, 503),
    "503 above 3 a second, from 60 to 120 s": SimulatedServer(strained(3.0), 503),
    "429 above 3 a second, from 60 to 120 s": SimulatedServer(strained(3.0), 429),
    "slow above 3 a second, from 60 to 120 s": SimulatedServer(strained(3.0), 200),
}


def plot(seconds: list[int], every_s: int = 10) -> str:
    """One line for each few seconds: the time, and a bar of the requests a second."""
    rows = []
    for at in range(0, len(seconds), every_s):
        mean = sum(seconds[at : at + every_s]) / every_s
        rows.append(f"{at:4} s {mean:5.1f} {'#' * round(mean * 4)}")
    return "\n".join(rows)


INTRODUCTION = f"""# Requests a second to a server under strain

`python -m bench.pace` prints this page. Server and time are simulated, the pace is the broker's own; the
profile permits {RATE:g} requests a second, and the callers always have one more. A server that bans (403 to
every page) is noticed by the explorers' lock-out instead, which ends the asking
(`tests/drivers/test_explorer.py`).
"""

if __name__ == "__main__":
    print(INTRODUCTION)
    for name, server in CASES.items():
        seconds = asyncio.run(served(server))
        mean, during = sum(seconds) / SPAN_S, sum(seconds[70:120]) / 50
        print(f"## {name[0].upper()}{name[1:]}\n")
        print(f"{mean:.2f} a second over {SPAN_S} s, {during:.2f} from second 70 to 120.\n")
        print(f"```\n{plot(seconds)}\n```\n")
