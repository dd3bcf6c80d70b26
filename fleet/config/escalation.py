"""What a person decides while a run waits: `[escalation]` of a profile."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, StringConstraints, model_validator

from fleet.config.section import Section
from fleet.severity import Severity, weight

Level = Literal["low", "medium", "high", "critical"]
SHARES: Mapping[Level, float] = {"low": 1.0, "medium": 0.9, "high": 0.8, "critical": 0.5}
"""What calls of an impact get of another machine's host, of the rate that a profile gives it."""
KILOBYTES: Mapping[Level, int] = {"low": 100, "medium": 1024, "high": 1024, "critical": 1024}
"""Longest body that they send there, where a profile states none."""
LEVELS: tuple[Level, ...] = get_args(Level)
GRAVEST = LEVELS[-1]
Trigger = Literal[
    "impact",
    "scope",
    "strain",
    "lock-out",
    "drift",
    "challenge",
    "trap",
    "instruction",
    "credential",
    "sensitive-data",
    "break-in",
    "finding",
    "privilege",
    "person",
    "unusual",
    "risk",
]
"""What a run stops for: before an act of some impact; after it asked out of scope, strained a host, was
locked out, was led elsewhere by a name, met a challenge to machines or answers without an end, read an order
to a machine, a credential, other people's data, or traces of a break-in or of a crime, saw a grave finding,
or had rights beyond those it was given;
by hand; after too much of all that together. And what a run that is over did unlike the earlier ones, for
which nothing waits."""
TRIGGERS: tuple[Trigger, ...] = get_args(Trigger)
LONGEST_MIN: Mapping[Trigger, int] = {
    **dict.fromkeys(TRIGGERS, 5),
    "impact": 15,
    "scope": 30,
    "person": 240,
    "unusual": 7 * 24 * 60,
}
"""The most minutes that a question of each kind waits; then an act is refused, and anything else is STOP."""
NEVER_BY_LEVEL: Literal["never"] = "never"


_RUNGS = ("observe", "exercise", "propose")


class ApproverSection(Section):
    """One role, and what who holds it may decide."""

    people: tuple[Annotated[str, StringConstraints(min_length=1, max_length=100)], ...] = Field(min_length=1)
    """Who holds it, by the names of their logins; `page` is who has the token of the pages."""
    impact: Level = GRAVEST
    """The highest level of impact that it may approve."""
    until: date | None = None
    """The last day of its authority."""
    dial: Literal["observe", "exercise", "propose"] = "observe"
    """The highest rung to which it may raise the dial. Anybody stops tests, every role lets them go on."""


class EscalationSection(Section):
    """When a run waits for a person, and who may answer: `fleet runs answer`, or the first page."""

    impact: Literal["medium", "high", "critical", "never"] = NEVER_BY_LEVEL
    """The lowest level of impact before which a person is asked, once for each technique and host
    (`docs/reference/tools.md`); `never`: the dial alone permits."""
    never: tuple[Annotated[str, StringConstraints(min_length=3, max_length=100)], ...] = ()
    """Techniques that no rung and no person permits, by their names in `docs/reference/tools.md`."""
    pauses: tuple[Trigger, ...] = ()
    """What else a run waits after; once a place."""
    stops: tuple[Trigger, ...] = ()
    """What sets STOP at once instead: nobody is waited for, and a person says why the tests go on."""
    risk: float = Field(default=0.0, ge=0)
    """Points of cumulative risk (fleet/gate/risk.py) from which on a run waits for a person; 0: it is not
    asked. Calls of medium impact count 1, high 5, critical 25, twice as much in production, three times on a
    critical host, more when repeated; points halve each half hour, and a person's yes begins anew."""
    risk_stops: float = Field(default=0.0, ge=0)
    """Points from which on STOP is set at once; 0: never."""
    finding: Severity = Severity.CRITICAL
    """The lowest severity of a finding that counts as grave."""
    together: int = Field(default=3, ge=1, le=1_000)
    """So many proven findings of one run at most one severity lower are grave as well, together."""
    minutes: dict[Trigger, Annotated[int, Field(ge=1)]] = {}
    """How long a question of each kind waits, where it is less than usual: 15 before an act, 30 after asking
    out of scope, else 5. Not answered, an act is refused, and anything else sets STOP."""
    impact_minutes: dict[Literal["medium", "high", "critical"], Annotated[int, Field(ge=1, le=15)]] = {}
    """How long the question before an act of such an impact waits, where less than `minutes.impact`."""
    holds_hours: int = Field(default=24, ge=1, le=24 * 90)
    """For how many hours an answer counts for the same technique, or the same place, of this platform."""
    approvers: dict[
        Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,31}$")], ApproverSection
    ] = {}
    """Who may answer, by role. Without any, who may use the state directory; with them,
    what is critical needs two."""
    second: Annotated[str, StringConstraints(max_length=200)] = ""
    """Who is notified when half of a question's time is over."""

    @model_validator(mode="after")
    def _short_enough(self) -> Self:
        for name, minutes in self.minutes.items():
            if minutes > LONGEST_MIN[name]:
                raise ValueError(
                    f"minutes.{name} is more than {LONGEST_MIN[name]}, the longest that it may wait"
                )
        return self

    def wait_s(self, trigger: Trigger, level: Level = GRAVEST) -> float:
        """Seconds that a question waits; `level` is the impact of the act that it is about."""
        longest = self.minutes.get(trigger, LONGEST_MIN[trigger])
        if trigger == "impact" and level != "low":
            longest = min(longest, self.impact_minutes.get(level, longest))
        return 60.0 * longest

    def asks(self, level: Level) -> bool:
        """Whether a person is asked before an act of this level."""
        return self.impact != NEVER_BY_LEVEL and LEVELS.index(level) >= LEVELS.index(self.impact)

    def stops_for(self, severity: str) -> bool:
        """Whether a finding of this severity is grave."""
        return weight(severity) >= self.finding.weight

    def combined(self, severities: Collection[str]) -> bool:
        """Whether findings of the next lower severity are grave together."""
        grave = self.finding.weight
        lower = max((one.weight for one in Severity if one.weight < grave), default=grave)
        return sum(lower <= weight(one) < grave for one in severities) >= self.together

    def may(self, who: str, today: date, rung: str = "") -> bool:
        """Whether somebody has a role in force, and with a `rung` one that may raise the dial to it."""
        name = who.partition("@")[0]
        return any(
            name in one.people
            and (one.until is None or today <= one.until)
            and (not rung or _RUNGS.index(one.dial) >= _RUNGS.index(rung))
            for one in self.approvers.values()
        )

    def role_of(self, who: str, level: Level, today: date) -> str:
        """The role by which somebody may answer a question of this level; "" for none.

        `who` is a name, with or without its machine."""
        name = who.partition("@")[0]
        for role, one in self.approvers.items():
            in_force = one.until is None or today <= one.until
            if name in one.people and in_force and LEVELS.index(level) <= LEVELS.index(one.impact):
                return role
        return ""


NO_ESCALATION = EscalationSection()
