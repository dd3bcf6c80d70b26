"""Reads a run's stream for decisions, and words each one for `DECISIONS.md`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from fleet.events.model import (
    Alternative,
    DecisionMade,
    DriverChanged,
    Event,
    ExtensionDisabled,
    FindingPosted,
    FindingVerified,
    Footer,
    GateDenied,
    OutageEnded,
    OutageNoticed,
    PaceChanged,
    PhaseChanged,
    ProbeSkipped,
    QuestionAsked,
    TurnEnded,
    TurnStarted,
)
from fleet.runs.call.confidence import METHOD, Factors, score
from fleet.runs.call.decision_file import Decision, DecisionFile

_CERTAIN: Factors = {"a rule decides, and nothing is asked for it": (1.0, 1.0)}
_NEXT = "the next run goes on with what is open"


@dataclass(slots=True)
class DecisionRecorder:
    """Reads one run's stream and records decisions; repeats of a refusal are only counted."""

    file: DecisionFile
    run: str
    turn: int = 0
    _refused: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __call__(self, event: Event) -> None:
        if isinstance(event, TurnStarted):
            self.turn = event.index
        elif isinstance(event, TurnEnded):
            self.turn = event.index
            if event.failure == "turn_timeout":
                self.record(
                    Decision(
                        f"turn {event.index} is abandoned",
                        "wait longer, or continue",
                        "continue with the next turn",
                        "its time ran out",
                        "the policy's turn_timeout",
                    )
                )
        elif isinstance(event, GateDenied):
            self._denied(event)
        elif isinstance(event, Footer):
            self._counted()
        elif (found := _of(event)) is not None:
            self.record(found)

    def record(self, one: Decision) -> int:
        """Record a decision that no event reports."""
        return self.file.record(one, run=self.run, turn=self.turn)

    def _denied(self, event: GateDenied) -> None:
        key = (event.rule[:40], event.tool[:64])
        if key not in self._refused and len(self._refused) >= 64:
            key = (event.rule[:40], "other tools")
        self._refused[key] += 1
        if self._refused[key] == 1:
            self.record(
                Decision(
                    f"{key[1]} is refused by {event.rule}",
                    f"{event.tool} was requested",
                    "not called",
                    event.reason,
                    "a person changes the dial, the grant or the budget",
                )
            )

    def _counted(self) -> None:
        for (rule, tool), count in sorted(self._refused.items()):
            if count > 1:
                self.record(
                    Decision(
                        f"{tool} was refused {count} times by {rule}",
                        "the same refusal again",
                        "not called, and counted",
                        f"{count} times in this run",
                        "as the first refusal",
                    )
                )
        self._refused.clear()


def by_rule(event: Event) -> DecisionMade | None:
    """The decision on record before an event that a rule of ours brings about."""
    match event:
        case PhaseChanged(after="reporting" | "abort" as end, why=why):
            one = Decision("the run ends", "go on with what is open", f"end in {end}", why, _NEXT)
        case PaceChanged(host=host, before=before, after=after, status=status, ms=ms):
            seen, pace = f"it answered {status} in {ms:.0f} ms", f"ask it at {after:.0%} of its rate"
            one = Decision(f"the pace of {host}", f"ask it at {before:.0%}", pace, seen, "its next answers")
        case QuestionAsked(what=what, trigger=why):
            one = Decision(what, "go on without a person", "wait for one", why, "nobody's answer is a no")
        case _ if (found := _of_rule(event)) is not None:
            one = found
        case _:
            return None
    return DecisionMade(
        decision_type="threshold crossing",
        selected_action=f"{one.title}: {one.decision}",
        rationale=one.why,
        confidence_score=score(_CERTAIN),
        confidence_factors=_CERTAIN,
        threshold=0.0,
        method=METHOD,
        risk="no call",
        alternatives_evaluated=(
            Alternative(
                action=one.fork,
                category="out_of_scope",
                rationale=f"a rule decides here: {one.why}",
                comparison=f"it would leave the rule aside; {one.decision} keeps it",
                outcome="what the rule is there to prevent",
                feasibility="the rule does not permit it",
            ),
            Alternative(
                action="stop everything",
                category="lower_priority",
                rationale="no fence has failed, so what else is open goes on or is ended in order",
                comparison=f"{one.decision} concerns this alone",
                outcome="nothing more is asked by any run",
                resources="the calls that are left to all runs",
            ),
        ),
        fallback=one.reversal,
    )


def _of(event: Event) -> Decision | None:
    """The decision that an event reports, if any."""
    return _of_rule(event) or _of_finding(event)


def _of_rule(event: Event) -> Decision | None:
    match event:
        case ProbeSkipped(probe=probe, reason=reason):
            return Decision(
                f"probe {probe} is left without an answer",
                f"look at {probe}",
                "continue without it",
                reason,
                "the next run looks again",
            )
        case ExtensionDisabled(namespace=group, reason=reason):
            return Decision(
                f"the tools of {group} are withdrawn",
                f"keep asking {group}",
                "not again in this run",
                reason,
                "the next run has them again",
            )
        case DriverChanged(before=before, after=after, reason=reason):
            return Decision(
                f"{after} drives instead of {before}",
                "end the run, or continue without a model",
                f"{after} takes over",
                reason,
                "the next run begins with the model again",
            )
        case OutageNoticed(fingerprint=fp, title=title):
            return Decision(
                f"outage {fp} is noticed",
                "the platform's, or ours",
                "the platform's",
                title,
                "it ends when its targets answer again",
            )
        case OutageEnded(fingerprint=fp, since=since, until=until, seconds=seconds, why=why):
            return Decision(
                f"outage {fp} is over",
                "leave it open, or end it",
                f"it lasted from {since} until {until}",
                f"{seconds:.0f} s; {why}",
                "the next outage is another item",
            )
        case _:
            return None


def _of_finding(event: Event) -> Decision | None:
    """A confirmation is not one, nor a further one of what is on the log: the journal has both."""
    match event:
        case FindingVerified(fingerprint=fp, state=state, confirmed=seen, tries=tries) if (
            state != "confirmed"
        ):
            return Decision(
                f"finding {fp} is {state}",
                "promote it, or not",
                state,
                f"seen {seen} times in {tries} looks",
                "a later run may prove it",
            )
        case FindingPosted(fingerprint=fp, index=index):
            return Decision(
                f"finding {fp} is on the log",
                "post it, or keep it here",
                f"posted as entry {index}",
                "it was confirmed in fresh jails",
                "none: the log cannot be edited",
                kind="irreversible",
            )
        case _:
            return None
