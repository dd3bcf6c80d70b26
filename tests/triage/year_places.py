"""Where a defect of the simulated year can be, what is true of it, and the log that it is posted to."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from fleet.chain.node.codec import Entry
from fleet.clock import iso
from fleet.findings.envelope import Envelope, write
from fleet.findings.fingerprint import fingerprint
from fleet.findings.repro import ReproCall, write_repro
from fleet.store.rows import DecisionRow, FindingRow, MirroredEntry
from tests.triage.triage_log import EV

PERSONAS = ("qa-smoke", "qa-security", "qa-ux", "qa-fuzz")
SURFACES = ("on-chain", "security", "ux", "compiler")
SEVERITIES = ("critical", "high", "medium", "low", "info")

Told = Literal["seen", "clean", "fixed", "reopen"]


@dataclass(slots=True)
class Place:
    """Where one defect can be. `rate`: the share of the looks in which it shows while it is `broken`."""

    n: int
    rate: float
    broken: bool = False
    until: datetime | None = None
    whole_since: datetime | None = None
    told: list[tuple[str, Told, bool]] = field(default_factory=list)
    """What was found out of it or said: when (ISO), what, and whether the log has it."""
    reports: int = 0
    resolved: int = 0
    """Entries that a report may follow: resolve records, and fixes that persons published."""
    hold: tuple[DecisionRow, bool] | None = None
    logged_hold: DecisionRow | None = None
    name: str = field(init=False)
    was: str = field(init=False)
    disturbed: str = ""
    """When it last could not be run again, or what was known of it was lost (ISO)."""

    def __post_init__(self) -> None:
        self.was = fingerprint(self.surface, self.calls, self.title)
        self.name = fingerprint(self.surface, (), f"signature of place {self.n}")

    @property
    def persona(self) -> str:
        return PERSONAS[self.n % len(PERSONAS)]

    @property
    def severity(self) -> Any:
        return SEVERITIES[self.n // len(PERSONAS) % len(SEVERITIES)]

    @property
    def surface(self) -> str:
        return SURFACES[self.n % len(SURFACES)]

    @property
    def title(self) -> str:
        return f"GET {{site}}/place-{self.n}: status 500"

    @property
    def calls(self) -> tuple[ReproCall, ...]:
        return (ReproCall("qa_fetch", {"url": f"{{site}}/place-{self.n}"}),)

    def tell(self, at: str, what: Told, *, logged: bool = False) -> None:
        """Adds what was found out; of many sightings on end the first and the last one are kept.

        After a clean re-run that only the journal has it is a regression too, until the journal is lost.
        """
        if [one[1:] for one in self.told[-2:]] == [(what, logged)] * 2 == [("seen", False)] * 2:
            self.told.pop()
        self.told.append((at, what, logged))

    def state(self) -> str:
        """What the list has to say of it, holds apart; "" while the log has no report."""
        state = ""
        for _, what, _ in sorted(self.told, key=lambda one: one[0]):
            if what == "seen":
                state = "regression" if state in ("fixed", "verified-fixed") else state or "open"
            elif what == "clean":
                state = "verified-fixed"
            elif what == "reopen":
                state = "open"
            elif state != "verified-fixed":
                state = "fixed"
        return state

    @property
    def quiet(self) -> str:
        """Since when nothing kept it from being run again (ISO)."""
        return max(self.disturbed, self.hold[0].until if self.hold else "")

    def held(self, now: datetime) -> bool:
        return self.hold is not None and (not self.hold[0].until or self.hold[0].until > iso(now))

    def entry(self, run: str) -> str:
        """What the outbox posts of it."""
        made = Envelope(
            source=self.persona,
            sev=self.severity,
            surface=self.surface,
            run=run,
            fp=self.name,
            was=self.was,
            rate=(3, 3),
            ev=EV,
            title=self.title,
            repro=self.calls,
        )
        return write(made)

    def row(self, run: str) -> FindingRow:
        return FindingRow(
            run_id=run,
            fingerprint=self.name,
            state="posted",
            probe=f"place-{self.n}",
            persona=self.persona,
            surface=self.surface,
            severity=self.severity,
            title=self.title,
            repro=write_repro(self.calls),
        )


class ListedLog:
    """The log as the outbox reads it."""

    def __init__(self) -> None:
        self.entries: list[MirroredEntry] = []

    async def count(self) -> int:
        return len(self.entries)

    async def range(self, start: int, count: int) -> list[Entry]:
        found = self.entries[start : start + count]
        return [Entry(one.sender, one.timestamp, one.text) for one in found]
