"""The data of the health pages: this process's counters, and a snapshot of its state."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from fleet.events.daemon_events import (
    DaemonEvent,
    PersonaRefused,
    SubscriptionLost,
    SubscriptionOpened,
    TriggerSkipped,
)
from fleet.events.model import Event, GateDenied, ToolRequested, ToolResponded
from fleet.service.crew import CrewMember
from fleet.service.health_platform import UNKNOWN, PlatformReach
from sandbox.tools import TOOLS

OPEN = "open"


@dataclass(slots=True)
class Tally:
    """Counters of this process since its start; a reader of the runs' streams and of the daemon's feed."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    skipped: int = 0
    refused: int = 0
    subscription: str = ""
    """To new blocks: `open`, or `lost: ` and why; "" where the profile has no `ws`."""

    def run(self, event: Event) -> None:
        if isinstance(event, ToolRequested):
            self.calls[_tool(event.tool), "permit"] += 1
        elif isinstance(event, GateDenied):
            self.calls[_tool(event.tool), event.rule or "unknown"] += 1
        elif isinstance(event, ToolResponded):
            self.seconds[_tool(event.tool)] += event.seconds

    def daemon(self, event: DaemonEvent) -> None:
        self.skipped += isinstance(event, TriggerSkipped)
        self.refused += isinstance(event, PersonaRefused)
        if isinstance(event, SubscriptionOpened):
            self.subscription = OPEN
        elif isinstance(event, SubscriptionLost):
            self.subscription = f"lost: {event.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A snapshot of the daemon's state."""

    rung: str
    paused: bool
    degraded: str = ""
    """Why no run starts although STOP is not set: the disk is full."""
    personas: int
    live: int
    beat_age_s: float
    now: datetime
    outcomes: Mapping[str, int]
    waiting: Mapping[str, int]
    ages: Mapping[str, str]
    budgets: Mapping[tuple[str, str], int]
    """What runs in flight may still spend, by persona and unit."""
    days: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """What may still be spent today, by persona (the fleet is "") and unit; only where a day has a limit."""
    outbox: int
    log_entries: int | None
    log_mirrored: int
    subscription: str = ""
    """As in `Tally`."""
    platform: PlatformReach = UNKNOWN
    crew: tuple[CrewMember, ...] = ()
    """The personas in use."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why the current version of a persona's file is rejected, by name."""
    upcoming: Mapping[str, str] = field(default_factory=dict)
    """The next start (ISO) of each persona that a clock or its own pace starts."""
    last_success: Mapping[str, str] = field(default_factory=dict)
    """When (ISO) the last run of each persona ended that did all it could."""
    coverage: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Number of probes of a persona's last run, by persona and group."""
    items: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Number of items as triage left them, by state and severity."""
    worklist_age_s: float | None = None
    """Since triage wrote the list; None before the first."""


def _tool(name: str) -> str:
    return name if name in TOOLS else "other"
