"""The report of a period: posture, trend, coverage by kind and CWE, runs, interruptions, cost. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fleet.clock import minute
from fleet.findings.kinds import Kind, kind_titled, kinds
from fleet.findings.repro import ReproError, parse_repro
from fleet.oracles.table import ORACLES
from fleet.severity import WEIGHTS, Severity, weight
from fleet.store.rows import DecisionRow, FindingRow, RunRow
from fleet.text import clean, counted, spoken
from fleet.triage.items.life import OPEN
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.digest import FIXED, regressed
from fleet.triage.outputs.document import by_kind
from sandbox.tools import TOOLS

METHOD = (
    "dismissed by a person in the period / posted in the period; nobody confirms what is not dismissed, so it"
    " is a lower bound. Each posted finding was shown in three fresh jails of three"
)
TARGET = 0.05
"""Share of posted grave findings that may turn out wrong, as the fleet publishes it."""
METHODOLOGY = (
    "Playbook, explorers and, where one is set, a model ask; a gate outside of them judges each call,"
    " which is made in a jail of its own; oracles judge every answer by its effect; what they suspect is"
    " shown in three fresh jails, beside a control, before it is posted"
)
MISSED = (
    "What is there and was not found is not known here. It is measured on programs whose defects are known,"
    " by class, before each release: docs/bench/unseen-platforms.md has the method, its limits and what was"
    " missed. On a platform the share may differ. What was not asked, or only in part, is listed by kind"
)
"""False negatives: how they are measured, and what that does not say."""
NO_REMEDY = (
    "No specific remedy is known for it: its repro shows what happens, and"
    " https://cheatsheetseries.owasp.org/ has remedies by subject."
)
CONFIDENCE = (
    "60 x the share of proofs that showed it, + 25 for raw evidence that is kept here (10 where only the log"
    " has its hash), + 15 for a path of one call (10 up to three, else 5); 90 and more is confirmed, 70 high,"
    " 50 medium, less is low"
)
"""How sure a finding is, from 0 to 100."""
GRADES = ((90, "confirmed"), (70, "high"), (50, "medium"), (0, "low"))
FEWEST_CYCLES = 5
GRAVE = (Severity.CRITICAL, Severity.HIGH)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodFacts:
    """What the journal and the worklist hold of a platform since a moment (ISO) until another."""

    platform: str
    version: str
    since: str
    until: str
    items: Sequence[WorklistItem] = ()
    runs: Sequence[RunRow] = ()
    tools: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By persona."""
    findings: Sequence[FindingRow] = ()
    proofs: Mapping[str, FindingRow] = field(default_factory=dict)
    """The latest finding that was proven or tried, by each fingerprint, of any time."""
    cycles: int = FEWEST_CYCLES
    """Runs of which the trend is shown."""
    decisions: Sequence[DecisionRow] = ()
    outages: Sequence[Mapping[str, Any]] = ()
    interventions: Sequence[Mapping[str, str]] = ()
    """Stops, resumes and moves of the dial, each with `at`, `act`, `who` and `why`."""
    untested: Sequence[Mapping[str, str]] = ()
    """`part` and `reason`."""
    spent: Mapping[str, int] = field(default_factory=dict)
    audit: Mapping[str, int] = field(default_factory=dict)
    scope: Sequence[str] = ()
    """Hosts of the profile."""
    agreed: tuple[str, str] = ("", "")
    """Begin and end of the tests as the profile has them (ISO), "" for none."""
    scope_audit: Mapping[str, Any] = field(default_factory=dict)
    """What left in the period against the profile (fleet/app/scope_audit.py)."""
    decided: Mapping[str, Any] = field(default_factory=dict)
    """What came of the decisions of the period (fleet/runs/call/calibration.py)."""
    rung: str = ""
    left_behind: int = 0


def period(facts: PeriodFacts) -> dict[str, Any]:
    """The report as data; every count can be made again from the journal, the log and the worklist."""
    open_now = [one for one in facts.items if one.state in OPEN and one.trusted]
    before = [one for one in facts.items if one.trusted and _was_open(one, facts.since)]
    grave, wrong = sum(one.severity in GRAVE for one in open_now), _false_positives(facts)
    beyond = (
        "; false positives of grave findings exceed the published target" if wrong["exceeds_target"] else ""
    )
    return {
        "platform": facts.platform,
        "version": facts.version,
        "since": facts.since,
        "until": facts.until,
        "scope": list(facts.scope),
        "scope_audit": dict(facts.scope_audit) | {"says": _kept_to(facts.scope_audit)},
        "decided": dict(facts.decided),
        "autonomy": f"L3 at {facts.rung or 'observe'}",
        "methodology": METHODOLOGY,
        "posture": posture(len(open_now), grave) + beyond,
        "trend": {"open_before": len(before), "open_now": len(open_now), "is": _trend(before, open_now)},
        "open": {name: sum(one.severity == name for one in open_now) for name in WEIGHTS},
        "new": [_item(one) for one in open_now if one.first_seen >= facts.since],
        "regressed": [_item(one) for one in open_now if regressed(one, facts.since)],
        "fixed": [_item(one) for one in facts.items if one.state in FIXED and one.since >= facts.since],
        "findings": [
            _item(one)
            | _impact(one)
            | confidence(one, facts.proofs.get(one.fingerprint))
            | _provenance(one, facts.proofs.get(one.fingerprint))
            | {"priority": one.rank, "evidence": one.evidence, "repro": one.repro, "proof": one.proof}
            for one in sorted(open_now, key=lambda one: -weight(one.severity))
        ],
        "confidence_method": CONFIDENCE,
        "cycles": _cycles(facts),
        "coverage": (covered := list(coverage(facts, by_kind(open_now)))),
        "timeline": _timeline(facts, covered),
        "missed": MISSED,
        "untested": [dict(one) for one in facts.untested],
        "runs": {
            "count": len(facts.runs),
            "outcomes": dict(Counter(row.outcome or row.state for row in facts.runs)),
        },
        "outages": [dict(one) for one in facts.outages],
        "interventions": [dict(one) for one in facts.interventions],
        "false_positives": wrong,
        "left_on_the_platform": facts.left_behind,
        "spent": dict(facts.spent),
    }


def _kept_to(audit: Mapping[str, Any]) -> str:
    """Whether the tests kept to the profile, in one sentence."""
    if not audit:
        return "no record of requests was read"
    many = counted(audit["requests"], "request")
    if audit["unproven"]:
        return f"{many} on record, but the records of {counted(len(audit['unproven']), 'run')} do not hold"
    not_sent = f"{counted(sum(audit['refused'].values()), 'other was', 'others were')} refused"
    if audit["outside"]:
        return f"{audit['outside']} of {many} were OUT OF SCOPE ({audit['score']} % in scope); {not_sent}"
    return (
        f"{many} left, {'all in scope (100 %)' if audit['requests'] else 'so none out of scope'}; {not_sent}"
    )


def _was_open(item: WorklistItem, at: str) -> bool:
    return item.first_seen < at and (item.state in OPEN or (item.state in FIXED and item.since >= at))


def posture(count: int, grave: int) -> str:
    """How it stands, in words: what is open, and how much of it is grave."""
    if grave:
        return f"at risk: {counted(grave, 'grave finding')} open of {count}"
    return f"{counted(count, 'finding')} open, none of them grave" if count else "nothing proven is open"


def _trend(before: Sequence[WorklistItem], now: Sequence[WorklistItem]) -> str:
    """By the sum of weights of severity."""
    then, today = (
        sum(WEIGHTS[one.severity] for one in items if one.severity in WEIGHTS) for items in (before, now)
    )
    return "stable" if then == today else "degrading" if today > then else "improving"


def _item(item: WorklistItem) -> dict[str, Any]:
    return {
        "fingerprint": item.fingerprint,
        "severity": item.severity,
        "title": clean(item.title, 300),
        "first_seen": item.first_seen,
        "since": item.since,
    }


def _impact(item: WorklistItem) -> dict[str, str]:
    if (kind := kind_titled(item.title)) is None:
        return {"impact": "", "remedy": NO_REMEDY, "effort": "unknown"}
    return {"impact": kind.why, "remedy": kind.fix, "effort": kind.effort}


def confidence(item: WorklistItem, row: FindingRow | None) -> dict[str, Any]:
    """How sure a finding is (CONFIDENCE): the sum, its grade, and what it is made of."""
    shown = row.confirmed / row.tries if row and row.tries else float(item.confirmed)
    try:
        calls = len(parse_repro(item.repro))
    except ReproError:
        calls = 0
    parts = {
        "reproductions": round(60 * shown),
        "evidence": 25 if row and row.evidence else 10 if item.evidence else 0,
        "path": 15 if calls == 1 else 10 if 1 < calls <= 3 else 5,
    }
    sure = sum(parts.values())
    grade = next(word for least, word in GRADES if sure >= least)
    return {"confidence": sure, "confidence_grade": grade, "confidence_parts": parts}


def _provenance(item: WorklistItem, row: FindingRow | None) -> dict[str, Any]:
    """How a finding came to be: each link is checked by the SHA-256 of the next one."""
    if row is None:
        return {"provenance": {"entry": item.entry, "evidence": item.evidence}}
    chain = {
        "run": row.run_id,
        "at": row.at,
        "persona": row.persona,
        "probe": row.probe,
        "oracle": row.data.get("oracle", ""),
        "input": row.repro,
        "shown": f"{row.confirmed}/{row.tries}",
        "evidence": row.evidence,  # each call with its answer, and the head of the run's record until then
        "entry": item.entry,
        "check": f"fleet runs verify {row.run_id}",
    }
    return {"provenance": chain}


def _cycles(facts: PeriodFacts) -> list[dict[str, Any]]:
    """The last runs that ended well, oldest first: items that were new, still open, fixed or back by then."""
    ended = sorted((row for row in facts.runs if row.outcome == "done"), key=lambda row: row.ended)
    last = ended[-max(FEWEST_CYCLES, facts.cycles) :]
    before = ended[-len(last) - 1].ended if len(ended) > len(last) else facts.since
    found = []
    for row in last:
        counts = Counter(
            word for one in facts.items if one.trusted and (word := _in_cycle(one, before, row.ended))
        )
        names = ("new", "persistent", "remediated", "regressed")
        found.append({"run": row.run_id, "ended": row.ended, **{name: counts[name] for name in names}})
        before = row.ended
    return found


def _in_cycle(item: WorklistItem, begin: str, end: str) -> str:
    """What became of an item after one cycle until the end of the next; "" where it was not open."""
    within = [one.state for one in item.stages if begin < one.at <= end]
    earlier = [one.state for one in item.stages if one.at <= begin]
    if within and within[-1] in FIXED:
        return "remediated"
    if "regression" in within:
        return "regressed"
    if begin < item.first_seen <= end:
        return "new"
    is_open = (within or earlier or [item.state])[-1] in OPEN
    return "persistent" if is_open and item.first_seen <= begin else ""


def _timeline(facts: PeriodFacts, covered: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What was agreed and what was done: times (ISO), interruptions with minutes and cause, and the share of
    the kinds that a run without a remainder asked, or that were shown."""
    ends = sorted(row.ended or row.created for row in facts.runs)
    begins = sorted(row.started or row.created for row in facts.runs)
    stops, pauses = dict[str, Mapping[str, str]](), list[dict[str, Any]]()
    for one in sorted(facts.interventions, key=lambda one: one["at"]):
        if one["act"] == "stop":
            stops.setdefault("", one)
        elif one["act"] == "resume" and (begun := stops.pop("", None)):
            pauses.append(_pause(begun["at"], one["at"], f"stopped by {begun['who']}: {begun['why']}"))
    pauses += [
        _pause(one["at"], facts.until, f"stopped by {one['who']}: {one['why']}") for one in stops.values()
    ]
    pauses += [
        _pause(max(one["since"], facts.since), one["until"] or facts.until, f"outage of {one['targets']}")
        for one in facts.outages
    ]
    whole = sum(one["status"] in ("shown", "healthy") for one in covered)
    return {
        "agreed": {"begin": facts.agreed[0], "end": facts.agreed[1]},
        "actual": {"begin": begins[0] if begins else "", "end": ends[-1] if ends else ""},
        "interruptions": sorted(pauses, key=lambda one: str(one["from"])),
        "completed_percent": round(100 * whole / len(covered)) if covered else 0,
    }


def _pause(begin: str, end: str, cause: str) -> dict[str, Any]:
    lasted = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    return {"from": begin, "until": end, "minutes": round(lasted.total_seconds() / 60), "cause": cause}


def coverage(facts: PeriodFacts, shown: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Each kind: `shown` by open items, healthy if a run that left nothing out asked it, else why not.

    `shown`: how many, by the kind's id.
    """
    asked = {tool for row in facts.runs if row.outcome == "done" for tool in facts.tools.get(row.persona, ())}
    left_out = {one["persona"] for one in facts.untested}
    whole = {row.persona for row in facts.runs if row.outcome == "done"} - left_out
    fully = {tool for persona in whole for tool in facts.tools.get(persona, ())}
    for kind in kinds().values():
        judged = {word for one in ORACLES if one.id in kind.oracles for word in one.judges}
        tools = {name for name, spec in TOOLS.items() if judged & set(spec.judged_as)} or set(TOOLS)
        status = "healthy" if fully & tools else "partial" if asked & tools else "not asked"
        open_ = shown.get(kind.id, 0)
        status = "shown" if open_ else status
        why = _WHY.get(status, "").format(tools=" or ".join(sorted(tools)))
        yield {
            "kind": kind.id,
            "name": kind.name,
            "subject": kind.subject,
            "cwe": _cwe(kind),
            "status": status,
            "open": open_,
            "method": "by its effect, three of three in fresh jails",
            "why": why,
        }


_WHY = {
    "not asked": "no run with {tools} ended well in the period",
    "partial": "each run with {tools} left something out: see what was not tested",
}


def _cwe(kind: Kind) -> list[str]:
    return [one for one in kind.references if one.startswith("CWE-")]


def _false_positives(facts: PeriodFacts) -> dict[str, Any]:
    undone = {one.undoes for one in facts.decisions if one.kind == "undo"}
    wrong = [
        one
        for one in facts.decisions
        if one.kind == "dismiss" and one.at >= facts.since and one.name not in undone
    ]
    posted = {
        one.fingerprint: one for one in facts.findings if one.state == "posted" and one.at >= facts.since
    }
    rows = [row for one in wrong if (row := posted.get(one.item))]
    kinds_posted, kinds_wrong = (Counter(_kind(one) for one in some) for some in (posted.values(), rows))
    grave, grave_wrong = (sum(one.severity in GRAVE for one in some) for some in (posted.values(), rows))
    return {
        "dismissed": len(wrong),
        "posted": len(posted),
        "rate": _rate(len(wrong), len(posted)),
        "by_kind": {name: _rate(kinds_wrong[name], many) for name, many in sorted(kinds_posted.items())},
        "grave_rate": _rate(grave_wrong, grave),
        "target": TARGET,
        "exceeds_target": _rate(grave_wrong, grave) > TARGET,
        "method": METHOD,
        "audit": dict(facts.audit),
    }


def _rate(some: int, of: int) -> float:
    return round(some / of, 4) if of else 0.0


def _kind(row: FindingRow) -> str:
    kind = kind_titled(row.title)
    return kind.id if kind else "other"


def period_text(data: Mapping[str, Any]) -> Iterator[str]:
    """The report for a terminal."""
    begin, end = (minute(data[name]) for name in ("since", "until"))
    yield f"{data['platform']} from {begin} to {end} UTC, fleet {data['version']}"
    yield f"posture   {data['posture']}; {data['trend']['is']}: {data['trend']['open_before']} open before"
    yield "open      " + (
        ", ".join(f"{many} {name}" for name, many in data["open"].items() if many) or "nothing"
    )
    for name in ("new", "regressed", "fixed"):
        yield f"{name:9} {len(data[name])}"
        yield from (
            f"          {one['severity']:8} {one['title']} ({one['fingerprint']})" for one in data[name][:20]
        )
    yield from (
        f"cycle     {one['run']} until {minute(one['ended'])}: {one['new']} new,"
        f" {one['persistent']} persistent, {one['remediated']} remediated, {one['regressed']} regressed"
        for one in data["cycles"]
    )
    outcomes = ", ".join(f"{many} {spoken(name)}" for name, many in sorted(data["runs"]["outcomes"].items()))
    yield f"runs      {data['runs']['count']}: {outcomes or 'none'}"
    yield f"scope     {data['scope_audit']['says']}"
    if decided := data["decided"]:
        sure = f"mean confidence {decided['mean_confidence']:.2f}, Brier score {decided['brier']:.2f}"
        came = f"{decided['answered']} of their {decided['calls']} calls were answered"
        yield f"decided   {counted(decided['decisions'], 'decision')}: {came}; {sure}"
    when = data["timeline"]
    for word in ("agreed", "actual"):
        begin, end = (minute(when[word][name]) or f"no {name}" for name in ("begin", "end"))
        yield f"{word:9} {begin} to {end}"
    yield f"completed {when['completed_percent']} % of the kinds; what was not is listed below"
    yield from (
        f"paused    {minute(one['from'])} for {counted(one['minutes'], 'minute')}: {one['cause']}"
        for one in when["interruptions"]
    )
    statuses = Counter(one["status"] for one in data["coverage"])
    yield f"coverage  {', '.join(f'{many} kinds {name}' for name, many in sorted(statuses.items()))}"
    unasked = (one for one in data["coverage"] if one["status"] == "not asked")
    yield from (f"not asked {one['name']}: {one['why']}" for one in unasked)
    yield from (f"untested  {one['part']}: {one['reason']}" for one in data["untested"])
    yield from (
        f"outage    {minute(one['since'])} to {minute(one['until']) or 'now'}: {one['targets']}"
        for one in data["outages"]
    )
    yield from (
        f"{one['act']:9} {minute(one['at'])} UTC by {one['who']}: {one['why']}"
        for one in data["interventions"]
    )
    wrong = data["false_positives"]
    yield f"false     {wrong['dismissed']} of {wrong['posted']} ({wrong['method']})"
    yield f"missed    {data['missed']}"
    yield f"left      {counted(data['left_on_the_platform'], 'act')} on the platform: fleet runs left"
    yield "cost      " + (
        ", ".join(f"{many} {unit}" for unit, many in sorted(data["spent"].items())) or "nothing"
    )


def period_html(data: Mapping[str, Any]) -> bytes:
    """One static page, escaped; it asks for nothing."""
    folder = Path(__file__).parent
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"minute": minute, "spoken": spoken}
    style = (folder / "page.css").read_text("utf-8")
    return environment.get_template("period.html.jinja").render(data=data, style=style).encode()
