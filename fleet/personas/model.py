"""One persona: TOML front matter (what it may do and when) and a body (its prompt)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from fleet.config import Count, DayLimits, Section, Usd
from fleet.severity import Severity

Name = Annotated[str, StringConstraints(pattern=r"^qa-[a-z0-9](?:[a-z0-9-]{0,57}[a-z0-9])?$")]
Surface = Literal["security", "on-chain", "compiler", "ux", "perf"]


class Step(Section):
    """One tool call of a probe. Strings in `args` may hold the placeholders of `drivers/template.py`."""

    tool: str
    args: dict[str, Any] = {}


class Probe(Section):
    """One thing worth checking: steps, and an expectation that must hold on a healthy platform."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")]
    """Unique within the persona."""
    severity: Severity
    surface: Surface | None = None
    """Surface of the finding, when it is not the persona's own."""
    steps: tuple[Step, ...] = Field(min_length=1, max_length=16)
    """Calls, in order; the last one's result is `result` in the expectation."""
    needs: tuple[str, ...] = ()
    """Preconditions beyond those that the steps imply (needs.py): `language:rustlite`,
    `view:creditOf`, `fact:call_price_wei`. If one is missing, the probe is not applicable."""
    expect: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    """CEL over `result`, `results`, `history`, `facts`; false means a finding."""
    control: Annotated[str, StringConstraints(max_length=1000)] = ""
    """CEL over the same names that must hold for the answer to mean anything, e.g. about a paired
    measurement. False: could not tell, because this machine or the way to the platform is busy."""
    kind: Annotated[str, StringConstraints(pattern=r"^([a-z][a-z0-9-]{2,39})?$")] = ""
    """Of `fleet items kinds`: what a finding is an example of; its name begins the title."""
    finding: Annotated[str, StringConstraints(min_length=8, max_length=300)]
    """What is wrong when the expectation is false; begins the title where the probe names no kind."""
    note: dict[str, str] = {}
    """Figures that a healthy attempt adds to the history: metric to CEL number, e.g. `result.p95_ms`."""


EVENTS: dict[str, str] = {
    "facets-changed": "a facet or a selector of the diamond was added, replaced or removed",
    "code-changed": "code behind a watched contract changed, or of an account that owns or administers it",
    "posture-changed": "a watched contract changed in any way that `[watch]` sees, or changed back",
    "registered": "a name was registered; one run for each new id",
    "log-grew": "the feedback log has new entries",
    "log-cleared": "the owner emptied the feedback log",
    "log-changed": "it grew or was cleared",
    "sponsor-low": "the sponsor's balance fell below its mark; once until it recovers",
    "build-changed": "the document at the profile's `web.version`, or the site's own ETag, changed",
    "outage-over": "an outage that the fleet had noticed ended",
    "item-confirmed": "an item became confirmed or came back, and a fix of it may be proposed",
}
"""Events that `on` may name. Besides them: `file:<path>` and `hook:<name>`."""


class Trigger(Section):
    """Why a run starts: exactly one of `every`, `cron`, `continuous`, `on`. A person may always start one."""

    every: str | None = None
    """Interval. The first run is within minutes of the first start, each later one a period after it."""
    cron: str | None = None
    """Minute, hour, day, month, weekday, in UTC."""
    continuous: str | None = None
    """Pause between the end of a run and the next one."""
    backoff: str | None = None
    """The longest pause of a continuous trigger: it doubles while runs find nothing, or look at nothing."""
    on: str | None = None
    """An event of EVENTS, `file:<path>` when it changes, or `hook:<name>` when a signed delivery arrives."""


class BudgetSection(Section):
    """Hard limits of one run; a missing budget means no `exercise`."""

    calls: int = Field(strict=True, ge=1, le=10_000)
    """Tool calls."""
    writes: int = Field(default=0, strict=True, ge=0, le=1_000)
    """Transactions signed for tools, besides clean-up."""
    reports: int = Field(default=8, strict=True, ge=0, le=100)
    """Findings posted; one more is reserved for the closing report."""
    wall: str = "10m"
    """Deadline of the run: a number and s, m or h."""
    tokens: Count = 0
    """Model tokens; 0 means no model."""
    usd: Usd | None = None
    """Model money, in dollars. Omitted: tokens are the limit. Set: a model without a price is refused."""
    day: DayLimits | None = None
    """What all runs of this persona together may spend on one day (UTC)."""


class FailFast(Section):
    """Conditions that end a run immediately instead of only being recorded."""

    on_health_check_error: bool = True
    on_chat_error: bool = False
    on_validation_failure: bool = False


class PolicySection(Section):
    """How far one run goes on its own. Every number is for the whole run and survives a restart."""

    mode: Literal["strict_incremental", "bounded_batch", "unlimited_batch"] = "unlimited_batch"
    """How many probes a run may work on: one, `max_features_per_run`, or all."""
    max_turns_per_run: int = 200
    """Turns of the driver; for a playbook a turn is one attempt at a probe."""
    max_features_per_run: int | None = None
    """Probes of a bounded batch; strict_incremental means 1."""
    retry_budget: int = 0
    """Total retries of probes that could not be looked at."""
    turn_timeout: str = "120s"
    """Deadline of one turn of a model."""
    max_continuations: int = Field(default=10, ge=0, le=100)
    """How often a model that stops early is asked to continue."""
    fail_fast: FailFast = FailFast()


class Persona(Section):
    """The front matter of `personas/<name>.md`."""

    name: Name
    surface: Surface
    summary: Annotated[str, StringConstraints(max_length=200)] = ""
    tools: tuple[str, ...] = ()
    """The grant: a tool that is not listed is refused at every rung."""
    triggers: tuple[Trigger, ...] = ()
    driver: Literal["auto", "playbook", "model", "replay", "triage", "retest", "fix"] = "auto"
    budget: BudgetSection | None = None
    policy: PolicySection = PolicySection()
    explore: tuple[
        Literal[
            "web",
            "agent",
            "mcp",
            "payments",
            "registry",
            "chain",
            "pages",
            "timing",
            "programs",
            "api",
            "sessions",
        ],
        ...,
    ] = ()
    """Explorers that ask new questions after the probes, with what is left of the budget."""
    outages: bool = False
    """Begin every run with a look at each target of the platform; otherwise only after trouble with one."""
    weights: dict[str, float] = {}
    """Triage only: weight of each surface in the ranking."""
    probe: tuple[Probe, ...] = ()

    @property
    def starts(self) -> str:
        """Its triggers in words; "" for one that only a person starts."""
        return "; ".join(
            " ".join(f"{key} {value}" for key, value in one.model_dump(exclude_none=True).items())
            for one in self.triggers
        )
