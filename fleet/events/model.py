"""What happens in a run: frozen, keyword-only, past tense, told apart by `type`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str = ""
    at: str = ""  # ISO time, stamped by the stream


class RunStarted(_Event):
    type: Literal["run.started"] = "run.started"
    schema_version: int = 1
    persona: str
    persona_sha256: str
    driver: str
    platform: str
    chain_id: int
    rung: str
    jail: str  # backend and tier
    budget: dict[str, float]
    trigger: str


class ToolRequested(_Event):
    type: Literal["tool.requested"] = "tool.requested"
    call: int
    probe: str = ""
    tool: str
    args: dict[str, Any]


class ToolResponded(_Event):
    type: Literal["tool.responded"] = "tool.responded"
    call: int
    tool: str
    is_error: bool
    result: dict[str, Any]
    seconds: float


class GateDenied(_Event):
    type: Literal["gate.denied"] = "gate.denied"
    call: int
    tool: str
    rule: str
    reason: str


class ProbeSkipped(_Event):
    type: Literal["probe.skipped"] = "probe.skipped"
    probe: str
    reason: str


class FindingRaised(_Event):
    type: Literal["finding.raised"] = "finding.raised"
    fingerprint: str
    probe: str
    title: str
    times: int = 1


class FindingVerified(_Event):
    type: Literal["finding.verified"] = "finding.verified"
    fingerprint: str
    confirmed: int
    tries: int
    state: Literal["confirmed", "flaky", "dropped", "unverified"]


class FindingPosted(_Event):
    type: Literal["finding.posted"] = "finding.posted"
    fingerprint: str
    tx: str
    index: int


class FindingRepeated(_Event):
    """Already on the log from this fleet and still open: counted here, not posted again."""

    type: Literal["finding.repeated"] = "finding.repeated"
    fingerprint: str
    index: int


class BudgetSpent(_Event):
    type: Literal["budget.spent"] = "budget.spent"
    unit: str
    amount: int
    left: int


class ResourceReleased(_Event):
    type: Literal["resource.released"] = "resource.released"
    kind: str
    ref: str
    by: Literal["run", "janitor"] = "run"


class DialDistrusted(_Event):
    type: Literal["dial.distrusted"] = "dial.distrusted"
    reason: str


class RunEnded(_Event):
    type: Literal["run.ended"] = "run.ended"
    outcome: str
    detail: str = ""
    calls: int = 0
    seconds: float = 0.0


Event = Annotated[
    RunStarted
    | ToolRequested
    | ToolResponded
    | GateDenied
    | ProbeSkipped
    | FindingRaised
    | FindingVerified
    | FindingPosted
    | FindingRepeated
    | BudgetSpent
    | ResourceReleased
    | DialDistrusted
    | RunEnded,
    Field(discriminator="type"),
]

EVENTS: TypeAdapter[Event] = TypeAdapter(Event)
"""Reads one event from JSON; raises pydantic's ValidationError."""
