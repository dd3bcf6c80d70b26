"""What calls take, of this machine and of the platform: figures of one jail, and failures that last."""

from __future__ import annotations

import os
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, quantiles

from fleet.broker.egress_read import refused
from fleet.broker.egress_record import CUT, EgressRecord
from fleet.events.model import CallMeasured
from fleet.jail.model import Outcome
from sandbox.errors import GATEWAY

EXTENDED_S = 1.0
"""Seconds from which on the figures of a jail are recorded."""
FEWEST = 20
"""Requests to a host below which a share of failures says nothing."""
_UNANSWERED = frozenset({"unreachable", "timeout", CUT})
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STATM = Path("/proc/self/statm")


def service_memory() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def failed(record: EgressRecord) -> bool:
    """Whether a request that left had no answer of the host, or one that says it is not there."""
    return record.rule in _UNANSWERED or (not record.rule and record.status in GATEWAY)


@dataclass(slots=True)
class JailMeasures:
    """The requests of one jail."""

    records: list[EgressRecord] = field(default_factory=list)

    def event(self, first: int, last: int, outcome: Outcome) -> CallMeasured | None:
        """What is recorded of them; None where it was quick."""
        if outcome.seconds <= EXTENDED_S:
            return None
        left = [one for one in self.records if not refused(one.rule)]
        times = [one.ms for one in left]
        return CallMeasured(
            call=first,
            last=last,
            seconds=round(outcome.seconds, 3),
            cpu_s=outcome.cpu_s,
            memory=outcome.memory,
            service_memory=service_memory(),
            requests=len(left),
            refused=len(self.records) - len(left),
            failed=sum(map(failed, left)),
            timeouts=sum(one.rule == "timeout" for one in left),
            sent=sum(one.sent for one in left),
            received=sum(one.received for one in left),
            mean_ms=round(fmean(times), 1) if times else 0.0,
            p95_ms=round(quantiles(times, n=20, method="inclusive")[-1], 1) if len(times) > 1 else sum(times),
            statuses={str(one): many for one, many in sorted(Counter(one.status for one in left).items())},
        )


@dataclass(slots=True)
class ErrorShare:
    """The share of a host's requests that failed, over a time; seconds of one clock that never steps."""

    over_s: float
    _seen: dict[str, deque[tuple[float, bool]]] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)

    def take(self, host: str, now: float, *, fails: bool, share: float) -> tuple[float, float]:
        """Take in one request: the share by now, and the seconds for which it has been `share` or more."""
        seen = self._seen.setdefault(host, deque())
        seen.append((now, fails))
        while now - seen[0][0] > self.over_s:
            seen.popleft()
        is_share = sum(bad for _, bad in seen) / len(seen)
        if len(seen) < FEWEST or is_share < share:
            self._since.pop(host, None)
            return is_share, 0.0
        return is_share, now - self._since.setdefault(host, now)
