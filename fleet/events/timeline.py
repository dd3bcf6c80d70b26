"""A run for people: one line per record."""

from __future__ import annotations

import json

from fleet.events.live import Lagged
from fleet.events.model import (
    CallMeasured,
    CheckFailed,
    CredentialSealed,
    DecisionMade,
    DialDistrusted,
    DriverChanged,
    Event,
    ExtensionDisabled,
    FindingPosted,
    FindingRaised,
    FindingRepeated,
    FindingVerified,
    FixStepTaken,
    Footer,
    GateDenied,
    Header,
    InstructionSeen,
    KeysRevoked,
    MessageSaid,
    OutageEnded,
    OutageNoticed,
    PaceChanged,
    PauseWarned,
    PhaseChanged,
    ProbeSkipped,
    ProposalMoved,
    QuestionAnswered,
    QuestionAsked,
    ResourceReleased,
    RiskAssessed,
    RunContinued,
    RunPaused,
    TargetChecked,
    ToolRequested,
    ToolResponded,
    TurnEnded,
    TurnStarted,
    TurnUsage,
)
from fleet.events.recorded import UnknownRecord
from fleet.text import counted, line, spoken

Record = Event | UnknownRecord | Lagged
WIDE = 160
"""Most characters of text in a line."""


def words(record: Record) -> str:
    """One record as a cleaned line; "" for records that are only shown live, in pieces."""
    return line(_words(record), 4 * WIDE)


def used(usage: TurnUsage | None) -> str:
    """Reported usage, as far as it is known."""
    if usage is None:
        return ""
    parts = [
        f"{value} {name.removesuffix('_tokens')}"
        for name in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
        if (value := getattr(usage, name)) is not None
    ]
    tokens = f"tokens {', '.join(parts)}" if parts else "tokens unknown"
    return tokens + (f", ${usage.cost_usd}" if usage.cost_usd is not None else "")


def _words(record: Record) -> str:
    match record:
        case Lagged():
            return f"… {counted(record.count, 'event')} came too fast to show"
        case UnknownRecord():
            return f"unknown record {record.raw_type}: {_short(record.raw)}"
        case Header():
            model = f", {record.model}" if record.model else ""
            return f"{record.persona} by {record.driver}{model} on {record.platform} at {record.rung}"
        case Footer():
            usage = f"; {used(record.usage)}" if record.usage else ""
            took = f"{counted(record.turns, 'turn')}, {counted(record.calls, 'call')}, {record.seconds:.1f} s"
            return f"end: {spoken(record.outcome)} {record.detail}".rstrip() + f" ({took}{usage})"
        case TurnStarted() | TurnEnded() | MessageSaid() | ToolRequested() | ToolResponded() | GateDenied():
            return _work(record)
    return _facts(record)


def _work(
    record: TurnStarted | TurnEnded | MessageSaid | ToolRequested | ToolResponded | GateDenied,
) -> str:
    match record:
        case TurnStarted():
            return f"turn {record.index}"
        case TurnEnded():
            failed = f", failed: {record.failure}" if record.failure else ""
            usage = f", {used(record.usage)}" if record.usage else ""
            return f"turn {record.index} over: {counted(len(record.executed), 'call')}{usage}{failed}"
        case MessageSaid():
            return f"{record.kind}: {line(record.text, WIDE)}" + ("" if record.is_complete else " (cut off)")
        case ToolRequested():
            probe = f" for {record.probe}" if record.probe else ""
            probe += f" ({record.why})" if record.why else ""
            return f"call {record.call}{probe}: {record.tool} {_short(record.args)}"
        case ToolResponded():
            verdict = "error" if record.is_error else "ok"
            return f"call {record.call}: {verdict} in {record.seconds:.2f} s {_short(record.result)}"
        case GateDenied():
            return f"call {record.call}: {record.tool} refused by {record.rule}: {record.reason}"


def _facts(record: Event) -> str:  # noqa: C901  one case for each event
    match record:
        case ProbeSkipped():
            return f"skipped {record.probe}: {record.reason}"
        case FindingRaised():
            return f"saw {record.fingerprint} ({record.probe}): {record.title}"
        case FindingVerified():
            return f"{record.state} {record.confirmed}/{record.tries}: {record.fingerprint}"
        case FindingPosted():
            return f"posted {record.fingerprint} as log entry {record.index}"
        case FindingRepeated():
            return f"{record.fingerprint} is already on the log, entry {record.index}"
        case InstructionSeen():
            return (
                f"{record.place} reads like an order to a machine ({', '.join(record.signs)}): {record.quote}"
            )
        case CredentialSealed():
            return f"{record.place} shows a credential ({record.kind}): sealed as {record.vault}"
        case PhaseChanged():
            return f"phase {record.before} -> {record.after}: {record.why}"
        case QuestionAsked():
            what = f"{record.question}, {record.trigger}"
            return f"waits for a person until {record.until} ({what}): {record.what}"
        case QuestionAnswered():
            return f"question {record.question} {record.answer} by {record.who}: {record.why}"
        case ResourceReleased():
            return f"released {record.kind} {record.ref}"
        case FixStepTaken():
            return f"{record.step} {'passed' if record.passed else 'failed'}: {record.words}"
        case ProposalMoved():
            return f"proposal of {record.item} {record.state} {record.ref} {record.why}".rstrip()
        case ExtensionDisabled():
            return f"{record.namespace} withdrawn in turn {record.turn}: {record.reason}"
        case DriverChanged():
            return f"driver {record.before} -> {record.after}: {record.reason}"
        case OutageNoticed():
            return f"outage {record.fingerprint}: {record.title}"
        case OutageEnded():
            took = f"{record.since} until {record.until}, {record.seconds:.0f} s"
            return (
                f"outage {record.fingerprint} is over: {' and '.join(record.targets)}, {took}; {record.why}"
            )
        case CheckFailed():
            return f"health check failed: {record.reason}"
        case RunPaused():
            kept = f"{record.connections} connections, {record.keys} keys, {record.candidates} candidates"
            return f"paused, for {record.limit_s / 60:.0f} minutes at most ({record.why}): {kept} kept"
        case PauseWarned():
            times = f"{record.paused_s / 60:.0f} of {record.limit_s / 60:.0f} minutes"
            return f"paused for {times}, {record.left_s / 60:.0f} left: {record.todo}"
        case RunContinued():
            return f"{'ends' if record.ends else 'goes on'} after a pause of {record.paused_s:.0f} s"
        case KeysRevoked():
            kept = f", kept to give back what they hold: {', '.join(record.kept)}" if record.kept else ""
            return f"keys destroyed after STOP: {', '.join(record.revoked) or 'none'}{kept}"
        case TargetChecked():
            took = "no answer" if record.ms is None else f"{record.ms:.0f} ms"
            return (
                f"health of {record.target}: {took}, usually {record.usual_ms:.0f}; {record.wrong or 'well'}"
            )
        case RiskAssessed():
            return f"call {record.call}: {record.technique} risks {record.overall} of {record.most} at most"
        case DecisionMade():
            does = "decides" if record.is_taken else "decides against"
            sure = f"confidence {record.confidence_score:.2f} of more than {record.threshold:.2f}"
            instead = "; ".join(one.action for one in record.alternatives_evaluated)
            return f"{does} ({sure}): {record.selected_action}, because {record.rationale}; not {instead}"
        case CallMeasured():
            jail = "" if record.cpu_s is None else f", {record.cpu_s:.1f} s of processor"
            jail += f", {record.memory >> 20} MB" if record.memory else ""
            asked = counted(record.requests, "request")
            return (
                f"call {record.call} took {record.seconds:.1f} s{jail}; {asked},"
                f" {record.failed} failed, {record.received} bytes, {record.mean_ms:.0f} ms"
            )
        case PaceChanged():
            return f"{record.host} is asked at {record.after:.0%} of its rate (before: {record.before:.0%})"
        case DialDistrusted():
            return f"dial file rejected: {record.reason}"
    return ""


def _short(value: object) -> str:
    return line(json.dumps(value, ensure_ascii=False, default=str), WIDE)
