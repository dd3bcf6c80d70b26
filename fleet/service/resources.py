"""What the service takes of this machine, looked at each second: growth is reported, too much is STOP."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from fleet.config.limits import LimitsSection
from fleet.runs.call.measures import service_memory

GROWS_S = 60.0
"""Seconds in which growth is looked for."""
TIMES, MORE = 2.0, 256 << 20
"""Rapid growth: the factor of the memory held before, and the bytes beyond that."""
NEAR = 0.75
CHECK = "what takes this machine's memory or processors, and that it is over"
"""What a person looks at before the tests go on."""


def load() -> float:
    """Processes that wait for each processor of this machine, over a minute."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


@dataclass(slots=True)
class ResourceWatch:
    """The memory of this process and the load of the machine against `limits`."""

    limits: LimitsSection
    memory: Callable[[], int] = service_memory
    load: Callable[[], float] = load
    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def look(self, now: float) -> tuple[str, str]:
        """What is to be told, and what is more than the limits permit; "" for nothing. `now`: seconds of a
        clock that never steps."""
        held, waits = self.memory(), self.load()
        self._seen.append((now, held))
        while now - self._seen[0][0] > GROWS_S:
            self._seen.popleft()
        least, most = min(size for _, size in self._seen), self.limits.memory_megabytes << 20
        megabytes = f"the service holds {held >> 20} MB of memory"
        told = ""
        if held >= NEAR * most:
            told = f"{megabytes}, of {self.limits.memory_megabytes} at most"
        elif held > max(TIMES * least, least + MORE):
            told = f"{megabytes}, {least >> 20} a minute ago"
        elif waits >= NEAR * self.limits.load:
            told = f"{waits:.0f} processes wait for each processor, of {self.limits.load:g} at most"
        over = held >= most or waits >= self.limits.load
        return told, told if over else ""
