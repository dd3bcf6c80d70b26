"""What happens in a run."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fleet.events.record import EventRecord

SCHEMA_VERSION = 2
"""Of the trajectory. Version 1 called its first and last record `run.started` and `run.ended`."""


class RunEvent(EventRecord):
    """`run` and `at` are set by the run's stream."""

    run: str = ""
    at: str = ""  # ISO time


class Header(RunEvent):
    """The first record: what ran, as what, with which rights. Digests are SHA-256 of the run's brief."""

    type: Literal["header"] = "header"
    schema_version: int = SCHEMA_VERSION
    persona: str
    persona_sha256: str
    driver: str
    platform: str
    chain_id: int
    rung: str
    jail: str  # backend and tier
    budget: dict[str, float]
    trigger: str
    goal: str = ""
    model: str = ""  # provider:name, "" without a model
    build: str = ""  # version of the fleet
    groups: dict[str, tuple[str, ...]] = {}  # tool groups and the tools granted in each
    policy: dict[str, Any] = {}
    brief: dict[str, str] = {}  # MISSION, CHARTER, GUARDRAILS -> sha256
    targets: dict[str, str] = {}  # site, proxy, face of the platform at that time
    limits: dict[str, float] = {}  # [limits] of the profile, with what each call may take
    levels: dict[str, str] = {}  # how sensitive each thing in the run's folder is


class TurnUsage(BaseModel):
    """What one turn of a driver cost. None means not reported; it is never counted as 0."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: str | None = None  # a decimal number, never a float
    duration_s: float | None = None
    model_calls: int | None = None
    tool_calls: int | None = None


def total_usage(usages: Iterable[TurnUsage | None]) -> TurnUsage | None:
    """The sum of those that reported; a figure that one of them lacks stays unknown.

    The model is the last one named. None when none reported. A cost that is not a decimal number is unknown.
    """
    reported = [usage for usage in usages if usage is not None]
    if not reported:
        return None
    sums: dict[str, Any] = {}
    for name in TurnUsage.model_fields.keys() - {"model", "cost_usd"}:
        values = [getattr(usage, name) for usage in reported]
        sums[name] = None if None in values else sum(values)
    costs = [_decimal(usage.cost_usd) for usage in reported]
    cost = None if None in costs else f"{sum((one for one in costs if one is not None), Decimal(0)):f}"
    models = [usage.model for usage in reported if usage.model]
    return TurnUsage(model=models[-1] if models else "", cost_usd=cost, **sums)


def _decimal(text: str | None) -> Decimal | None:
    try:
        value = Decimal(text) if text is not None else None
    except InvalidOperation:
        return None
    return value if value is not None and value.is_finite() else None


class TurnStarted(RunEvent):
    """A turn of a driver begins: events until its record belong to it."""

    type: Literal["turn.started"] = "turn.started"
    index: int


class TurnEnded(RunEvent):
    """One turn of a driver: what was asked, whether it was valid, which calls it became.

    The calls have their own records, by number. `failure` is a word of FAILURES.
    """

    type: Literal["turn"] = "turn"
    index: int
    observation: dict[str, Any] = {}
    proposed: tuple[str, ...] = ()  # call ids as the driver named them
    validation: dict[str, Any] = {}
    executed: tuple[int, ...] = ()  # numbers of the calls
    usage: TurnUsage | None = None
    failure: str = ""
    seconds: float = 0.0


class ExtensionDisabled(RunEvent):
    """A group of tools failed repeatedly and was withdrawn."""

    type: Literal["extension_disabled"] = "extension_disabled"
    namespace: str
    reason: str
    turn: int


class DriverChanged(RunEvent):
    """Another driver took over this run: `reason` is what ended the one before."""

    type: Literal["driver.changed"] = "driver.changed"
    before: str
    after: str
    reason: str


class OutageNoticed(RunEvent):
    """The platform or a part of it does not answer, but a control does. `fingerprint` names the outage."""

    type: Literal["outage.noticed"] = "outage.noticed"
    fingerprint: str
    targets: tuple[str, ...]
    since: str
    title: str


class OutageEnded(RunEvent):
    """The targets answer again after an outage from `since` until `until`, `seconds` long."""

    type: Literal["outage.ended"] = "outage.ended"
    fingerprint: str
    targets: tuple[str, ...]
    since: str
    until: str
    seconds: float
    why: str


class CheckFailed(RunEvent):
    """The health check before work failed, or it is unknown whether the platform is down or we are."""

    type: Literal["check.failed"] = "check.failed"
    reason: str


class TargetChecked(RunEvent):
    """A look at the health of a target while it is tested; milliseconds, `ms` is None without an answer.

    `usual_ms` is 0 while too little is known; `wrong` is "" for a target that is well. `looks` and `requests`
    are what was asked of it for its health, and in this run at all."""

    type: Literal["target.checked"] = "target.checked"
    target: str
    what: str
    ms: float | None
    usual_ms: float
    wrong: str = ""
    failures: int = 0
    looks: int
    requests: int


class PaceChanged(RunEvent):
    """A host is asked less, or as before: shares of its rate, and the answer that showed why."""

    type: Literal["pace.changed"] = "pace.changed"
    host: str
    before: float
    after: float
    status: int
    ms: float


class RiskAssessed(RunEvent):
    """What a call risks, before it is made: by dimension its likelihood, impact and mitigations (`METHOD` of
    fleet/gate/assessment.py); of `most` that it may."""

    type: Literal["risk.assessed"] = "risk.assessed"
    call: int
    technique: str
    method: str
    dimensions: dict[str, tuple[int, int, str]]
    overall: int
    most: int


Rejection = Literal[
    "low_confidence",
    "resource_intensive",
    "high_risk",
    "out_of_scope",
    "lower_priority",
    "dependency_missing",
    "not_applicable",
]
"""Why an alternative was not chosen, in the words of the APTS."""


class Alternative(BaseModel):
    """What was not chosen: whether it could be done, what it takes and risks, what it would bring, why it was
    rejected, and how it compares to what was chosen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    action: str
    category: Rejection
    rationale: str
    comparison: str
    outcome: str
    feasibility: str = "possible at once"
    resources: str = "no call"
    risk: str = "as the chosen one"


DecisionType = Literal["binary choice", "multi-option selection", "threshold crossing"]


class DecisionMade(RunEvent):
    """What is done next, written before it is: once for a batch of questions, not for each; also what a rule
    brings about, before the event that says so.

    `confidence_score` is the chance of 0 to 1 that it brings what it is for, from `confidence_factors`, each
    with its weight and its value (`METHOD` of fleet/runs/call/confidence.py); at `threshold` or below nothing
    is done."""

    type: Literal["decision.made"] = "decision.made"
    decision_type: DecisionType
    selected_action: str
    rationale: str
    confidence_score: float
    confidence_factors: dict[str, tuple[float, float]]
    threshold: float
    method: str
    risk: str
    alternatives_evaluated: tuple[Alternative, ...]
    fallback: str

    @property
    def is_taken(self) -> bool:
        """Whether its confidence is above the threshold."""
        return self.confidence_score > self.threshold


class CallMeasured(RunEvent):
    """What the calls of one jail took that ran for more than a second: `call` to `last`, by number.

    Processor time and the most memory are of its jail, None where it was ended; milliseconds are until an
    answer of a host is there. `failed` requests had no answer, or 502, 503 or 504; `refused` never left."""

    type: Literal["call.measured"] = "call.measured"
    call: int
    last: int
    seconds: float
    cpu_s: float | None = None
    memory: int | None = None  # bytes
    service_memory: int = 0  # bytes of the service's own process
    requests: int = 0
    refused: int = 0
    failed: int = 0
    timeouts: int = 0
    sent: int = 0
    received: int = 0
    mean_ms: float = 0.0
    p95_ms: float = 0.0
    statuses: dict[str, int] = {}


Kind = Literal["text", "reasoning", "tool_request", "tool_response"]


class MessageStarted(RunEvent):
    """A message begins to arrive. Live only: the whole of it is recorded when it is done."""

    type: Literal["message.started"] = "message.started"
    index: int | None
    kind: Kind
    text: str = ""
    call_id: str = ""
    tool: str = ""


class MessageDelta(RunEvent):
    """More of the message with this index. Live only."""

    type: Literal["message.delta"] = "message.delta"
    index: int | None
    text: str


class MessageDone(RunEvent):
    """The end of the message with this index. Live only."""

    type: Literal["message.done"] = "message.done"
    index: int | None


class MessageSaid(RunEvent):
    """A whole text or piece of reasoning; `is_complete` is false when it was cut off."""

    type: Literal["message.said"] = "message.said"
    index: int | None = None
    kind: Kind = "text"
    text: str
    is_complete: bool = True


class ToolRequested(RunEvent):
    type: Literal["tool.requested"] = "tool.requested"
    call: int
    call_id: str = ""  # as the driver named it
    probe: str = ""
    tool: str
    args: dict[str, Any]
    why: str = ""  # what led to the question that it begins; "" for its other calls, and for a probe's
    impact: str = ""  # level, and what is left of confidentiality, integrity and availability: "medium 8/6/7"


class ToolResponded(RunEvent):
    type: Literal["tool.responded"] = "tool.responded"
    call: int
    call_id: str = ""
    tool: str
    is_error: bool
    result: dict[str, Any]
    seconds: float


class GateDenied(RunEvent):
    type: Literal["gate.denied"] = "gate.denied"
    call: int
    call_id: str = ""
    tool: str
    rule: str
    reason: str
    args: dict[str, Any] = {}


class ProbeSkipped(RunEvent):
    type: Literal["probe.skipped"] = "probe.skipped"
    probe: str
    reason: str


class FindingRaised(RunEvent):
    """`kind` is what is wrong, "" for what has no kind; `references` are its CWE and the like. CVEs are of
    products: the fleet names none, as it looks at one platform."""

    type: Literal["finding.raised"] = "finding.raised"
    fingerprint: str
    probe: str
    title: str
    times: int = 1
    kind: str = ""
    severity: str = ""
    references: tuple[str, ...] = ()
    cve_references: tuple[str, ...] = ()


class FindingVerified(RunEvent):
    """`evidence_hashes` are SHA-256 of what shows it, for one that is confirmed."""

    type: Literal["finding.verified"] = "finding.verified"
    fingerprint: str
    confirmed: int
    tries: int
    state: Literal["confirmed", "flaky", "dropped", "unverified"]
    evidence_hashes: tuple[str, ...] = ()
    kind: str = ""
    severity: str = ""


class FindingPosted(RunEvent):
    type: Literal["finding.posted"] = "finding.posted"
    fingerprint: str
    tx: str
    index: int


class FindingRepeated(RunEvent):
    """Already on the log from this fleet and still open: counted here, not posted again."""

    type: Literal["finding.repeated"] = "finding.repeated"
    fingerprint: str
    index: int


class InstructionSeen(RunEvent):
    """An answer reads like an order to a machine: noticed, never obeyed. Once a place and run."""

    type: Literal["instruction.seen"] = "instruction.seen"
    call: int
    tool: str
    place: str
    signs: tuple[str, ...]
    quote: str


class CredentialSealed(RunEvent):
    """An answer shows what looks like a credential or data of people; it is in the vault alone, so named."""

    type: Literal["credential.sealed"] = "credential.sealed"
    call: int
    tool: str
    place: str
    kind: str
    vault: str


Phase = Literal[
    "initialization",
    "reconnaissance",
    "enumeration",
    "identification",
    "exploitation",
    "post-exploitation",
    "reporting",
    "abort",
]
"""Of a run, in the words of the APTS: the header; the health of the platform; what it offers; questions by a
driver and explorers; candidates reproduced; what was made removed; posts; an end other than `done`."""


class PhaseChanged(RunEvent):
    """Another phase begins, before anything of it is done: why, and by which rung of the dial."""

    type: Literal["phase.changed"] = "phase.changed"
    before: Phase
    after: Phase
    why: str
    rung: str


class QuestionAsked(RunEvent):
    """The run waits for a person's answer until `until` (ISO): no call is made, and its time stands still."""

    type: Literal["question.asked"] = "question.asked"
    question: str
    trigger: str
    place: str
    what: str
    level: str
    until: str


class RunPaused(RunEvent):
    """The run waits: no jail and no connection is left open. What it keeps: keys, by which it is known where
    it signed in or acted, and candidates that are to be proven; its plan and counts are in state.json.

    After `limit_s` it ends, and everything with it."""

    type: Literal["run.paused"] = "run.paused"
    why: str
    limit_s: float
    keys: int
    candidates: int
    connections: int = 0
    jails: int = 0


class PauseWarned(RunEvent):
    """Three quarters, or 95 of a hundred parts, of a pause's longest time are over; and what is to do."""

    type: Literal["pause.warned"] = "pause.warned"
    paused_s: float
    limit_s: float
    left_s: float
    todo: str


class RunContinued(RunEvent):
    """The pause is over after `paused_s`; `ends` where the run does not go on. Each call is judged anew."""

    type: Literal["run.continued"] = "run.continued"
    paused_s: float
    ends: bool = False


class QuestionAnswered(RunEvent):
    """What a person answered, or that nobody did."""

    type: Literal["question.answered"] = "question.answered"
    question: str
    answer: Literal["approved", "denied", "expired"]
    who: str
    role: str = ""
    why: str


class ResourceReleased(RunEvent):
    type: Literal["resource.released"] = "resource.released"
    kind: str
    ref: str
    by: Literal["run", "janitor"] = "run"


class KeysRevoked(RunEvent):
    """STOP ended the run: its keys that hold nothing are destroyed, others sign nothing until a resume."""

    type: Literal["keys.revoked"] = "keys.revoked"
    revoked: tuple[str, ...]
    kept: tuple[str, ...] = ()


class DialDistrusted(RunEvent):
    type: Literal["dial.distrusted"] = "dial.distrusted"
    reason: str


class FixStepTaken(RunEvent):
    """One step of the fix gate: whether it passed, and what was seen, in words."""

    type: Literal["fix.step"] = "fix.step"
    step: str
    passed: bool
    words: str
    item: str


class ProposalMoved(RunEvent):
    """A proposal of a fix is now in this state; `ref` is where it is, `why` the reason in words."""

    type: Literal["proposal.moved"] = "proposal.moved"
    proposal: str
    item: str
    state: str
    ref: str = ""
    why: str = ""


class HostEgress(BaseModel):
    """What jails asked of one host, as the broker recorded it; bytes of bodies."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests: int = 0
    refused: int = 0
    sent: int = 0
    received: int = 0


class Footer(RunEvent):
    """The last record: the one outcome of the run."""

    type: Literal["footer"] = "footer"
    outcome: str
    detail: str = ""
    calls: int = 0
    seconds: float = 0.0
    turns: int = 0
    usage: TurnUsage | None = None
    egress: dict[str, HostEgress] = {}  # by host; what was refused before a host was read is under ""


Event = Annotated[
    Header
    | FixStepTaken
    | ProposalMoved
    | TurnStarted
    | TurnEnded
    | ExtensionDisabled
    | DriverChanged
    | OutageNoticed
    | OutageEnded
    | CheckFailed
    | TargetChecked
    | PaceChanged
    | DecisionMade
    | CallMeasured
    | RiskAssessed
    | MessageStarted
    | MessageDelta
    | MessageDone
    | MessageSaid
    | ToolRequested
    | ToolResponded
    | GateDenied
    | ProbeSkipped
    | FindingRaised
    | FindingVerified
    | FindingPosted
    | FindingRepeated
    | InstructionSeen
    | CredentialSealed
    | PhaseChanged
    | QuestionAsked
    | QuestionAnswered
    | RunPaused
    | PauseWarned
    | RunContinued
    | ResourceReleased
    | KeysRevoked
    | DialDistrusted
    | Footer,
    Field(discriminator="type"),
]

LIVE = (MessageStarted, MessageDelta, MessageDone)
"""Passed to readers but never written: the finished message is one record."""

EVENTS: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))
"""Reads one event from JSON; raises pydantic's ValidationError."""
