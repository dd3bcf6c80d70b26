"""Counters of this process, for the metrics."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from fleet.events.daemon_events import (
    DaemonEvent,
    PersonaRefused,
    SubscriptionLost,
    SubscriptionOpened,
    TriggerSkipped,
)
from fleet.events.model import Event, Footer, GateDenied, ToolRequested, ToolResponded
from sandbox.tools import TOOLS

OPEN = "open"


@dataclass(slots=True)
class Tally:
    """Counters of this process since its start; a reader of the runs' streams and of the daemon's feed."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    egress: Counter[str] = field(default_factory=Counter)
    """Requests of jails that were passed on and refused, and bytes sent and received, of runs that ended."""
    skipped: int = 0
    refused: int = 0
    subscription: str = ""
    """To new blocks: `open`, or `lost: ` and why; "" where the profile has no `ws`."""

    def run(self, event: Event) -> None:
        for host in event.egress.values() if isinstance(event, Footer) else ():
            self.egress["passed"] += host.requests - host.refused
            self.egress["refused"] += host.refused
            self.egress["sent"] += host.sent
            self.egress["received"] += host.received
        if isinstance(event, ToolRequested | GateDenied | ToolResponded):
            tool = event.tool if event.tool in TOOLS else "other"
            if isinstance(event, ToolResponded):
                self.seconds[tool] += event.seconds
            else:
                verdict = "permit" if isinstance(event, ToolRequested) else event.rule or "unknown"
                self.calls[tool, verdict] += 1

    def daemon(self, event: DaemonEvent) -> None:
        self.skipped += isinstance(event, TriggerSkipped)
        self.refused += isinstance(event, PersonaRefused)
        if isinstance(event, SubscriptionOpened):
            self.subscription = OPEN
        elif isinstance(event, SubscriptionLost):
            self.subscription = f"lost: {event.reason}"
