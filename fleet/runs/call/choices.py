"""The words of what a run decides beside an explorer's questions: what else there was, and why not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fleet.drivers.desk import Choice
from fleet.events.model import Alternative
from fleet.findings.proof import MOST_LOOKS, TRIES
from fleet.personas.model import Probe
from fleet.runs.call.confidence import reproduced, score
from fleet.store.rows import EffectRow, FindingRow
from fleet.text import counted

SHOWN = 5
"""Candidates and things that are named one by one."""
SILENT = "its target did not answer often enough in the last minute to be asked"


def probing(probe: Probe, waiting: Sequence[str], driver: str) -> Choice:
    """A probe of the plan is asked; the ids of the others that are open."""
    other = (
        f"another probe of the plan: {', '.join(waiting[:3])}" if waiting else "end with the plan not done"
    )
    later = Alternative(
        action=other,
        category="lower_priority",
        rationale=f"{counted(len(waiting), 'other probe')} waiting, each in the order of the plan",
        comparison=f"{probe.id} is before them in the plan",
        outcome="an answer about another part",
        resources="the calls of its steps",
    )
    new = Alternative(
        action="new questions by explorers",
        category="lower_priority",
        rationale="the budget is kept for the probes of the plan first",
        comparison=f"{probe.id} is known to be worth asking: a person wrote it, or an earlier finding did",
        outcome="answers that no probe asks for",
        resources="what the plan leaves of the budget",
    )
    asks = f"whether {probe.expect}" if probe.expect else "what the oracles see in its answers"
    return Choice(
        action=f"ask probe {probe.id}: {counted(len(probe.steps), 'call')}, {asks}",
        why=f"the plan has it open, and the {driver} chose it",
        instead=(later, new),
        fallback="it is marked inconclusive with the reason, and the next probe is asked",
    )


def calling(tool: str, args: Mapping[str, Any], waiting: Sequence[str], driver: str) -> Choice:
    """A driver of its own mind calls a tool; the ids of the probes that are open."""
    planned = Alternative(
        action=f"a probe of the plan: {', '.join(waiting[:3])}" if waiting else "end, as the plan is done",
        category="lower_priority",
        rationale=f"{counted(len(waiting), 'probe')} open; what they need of the budget is kept for them",
        comparison="they are asked whatever this call brings",
        outcome="an answer about what the plan names",
        resources="the calls of its steps",
    )
    refuse = Alternative(
        action="refuse the call",
        category="lower_priority",
        rationale="its target is likely to answer; gate, budget and broker judge it next",
        comparison="its answer is judged by the same oracles as any other",
        outcome="nothing is learned",
        risk="none",
    )
    return Choice(
        action=f"call {tool} {args.get('url') or args.get('target') or ''}".rstrip(),
        why=f"the {driver} chose it; its words are the messages of this turn",
        instead=(planned, refuse),
        fallback="the driver gets the reason, and chooses anew",
    )


def proving(rows: Sequence[FindingRow], steps: int) -> Choice:
    """Candidates are reproduced, the gravest first; the calls of one look at all of them."""
    names = ", ".join(row.fingerprint for row in rows[:SHOWN])
    seen = "; ".join(f"{row.title} ({row.data.get('oracle') or row.probe})" for row in rows[:SHOWN])
    post = Alternative(
        action="post it as it was seen",
        category="low_confidence",
        rationale=f"one sighting has a confidence of {score(reproduced(1, 1)):.2f}",
        comparison=f"{TRIES} of {TRIES} looks in fresh jails have {score(reproduced(TRIES, TRIES)):.2f}",
        outcome="an item that was not reproduced",
        risk="a person acts on what is not true",
    )
    ask_on = Alternative(
        action="ask new questions first",
        category="lower_priority",
        rationale=f"what is {rows[0].severity} is worth more than a question without a suspicion",
        comparison=f"{rows[0].fingerprint} was seen; most new questions show nothing",
        outcome="more candidates, and these unproven",
        resources=f"the same {counted(steps, 'call')} for each look, later",
        risk="the run ends before they are proven",
    )
    return Choice(
        action=f"reproduce {counted(len(rows), 'candidate')}: {names}",
        why=f"seen in answers, by oracle or probe: {seen}",
        instead=(post, ask_on),
        fallback="what cannot be looked at stays a candidate, and the next run proves it first",
    )


def judging(row: FindingRow, shown: int, looks: int, steps: int, why: str) -> Choice:
    """A candidate counts as a finding or not, by how many looks showed it."""
    seen = f"{shown} of {looks} looks showed it"
    drop = Alternative(
        action="leave it unproven",
        category="lower_priority",
        rationale=f"{seen}, and a finding needs {TRIES} of {TRIES}",
        comparison=f"{row.severity}, by {seen}",
        outcome="a candidate in the journal",
        risk="a defect stays unknown",
    )
    more = Alternative(
        action="look at it more often",
        category="resource_intensive",
        rationale=f"{TRIES} looks that can tell decide, of {MOST_LOOKS} at most",
        comparison=f"{seen}: more looks do not change that",
        outcome="the same verdict with more weight",
        resources=f"{counted(steps, 'call')} for each look",
    )
    return Choice(
        action=f"count {row.fingerprint} as a {row.severity} finding: {row.title}",
        why=f"{seen}, in fresh jails under fresh names" + (f"; {why}" if why else ""),
        instead=(drop, more),
        fallback="a person dismisses it, or a later run finds it healthy and it is resolved",
    )


def tidying(made: Sequence[EffectRow]) -> Choice:
    """What the run made is deleted where its address offers that."""
    things = counted(len(made), "thing")
    leave = Alternative(
        action="leave it there",
        category="high_risk",
        rationale=f"{things} of ours would stay on the platform",
        comparison="what is deleted needs no person",
        outcome="a list in the report",
        risk="others meet what we made",
    )
    force = Alternative(
        action="delete it without asking whether its address offers that",
        category="high_risk",
        rationale="an address that does not offer DELETE may lead to more than what was made",
        comparison=f"OPTIONS takes {counted(len(made), 'call')} more, and deletes nothing",
        outcome="the same, or damage",
        resources=f"{counted(len(made), 'call')} fewer",
        risk="something that is not ours is deleted",
    )
    return Choice(
        action=f"delete what this run made: {', '.join(str(row.data['made']) for row in made[:SHOWN])}",
        why=f"answers to {counted(len(made), 'act')} of this run said that something was created",
        instead=(leave, force),
        fallback="what stays is listed in the report",
    )
