"""Asks for one item again: shown, clean after three answers while its control answers, or not reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fleet.drivers.explore.pages import TOOL
from fleet.drivers.session import OUR_FAILURES, RunOver, cause_of
from fleet.findings.proof import TRIES
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.model import Rung
from fleet.personas.model import Probe
from fleet.runs.proof.attempt import BROKEN, UNJUDGED, Attempt, attempt, locked_out, refused, unheard
from fleet.runs.proof.candidates import Candidate
from fleet.runs.proof.item_questions import ItemQuestion
from fleet.runs.proof.probe_runner import ProbeRunner
from fleet.runs.proof.quoted import quoted_on_request
from fleet.text import line
from sandbox.spec import Effect
from sandbox.tools import TOOLS

RetestVerdict = Literal["shown", "clean", "unreached"]
CONTROL_S = 10.0
"""Deadline of one control."""
SPARE = 8
"""Calls left to the run beyond the re-runs: a control, or a comparison of words that may be quoted."""
WRITES = 4
"""Most transactions that one acting call takes: a name, its approval, two writes."""
_ANSWERED = OUR_FAILURES - {"too_large"}


@dataclass(frozen=True, slots=True)
class Rerun:
    """What came of asking again. `why` it could not tell, or why what it shows is not a defect. `times` of
    `TRIES` it was shown.

    `asked` is false when no call was made.
    """

    verdict: RetestVerdict
    why: str = ""
    times: int = 0
    seen: Candidate | None = None
    asked: bool = True


def withheld(runner: ProbeRunner, probe: Probe) -> str:
    """Why this persona may not ask this now; "" when it may."""
    persona, steps = runner.persona.persona, probe.steps
    if lacking := sorted({step.tool for step in steps} - set(persona.tools)):
        return f"it needs {', '.join(lacking)}, which {persona.name} is not granted"
    rung = read_dial(runner.world.state / DIAL).rung
    if _acting(probe) and rung.height < Rung.EXERCISE.height:
        return f"it needs the rung {Rung.EXERCISE}: the dial is at {rung}"
    return ""


def cost(probe: Probe) -> tuple[int, int]:
    """Calls and writes that `TRIES` attempts and the controls may take."""
    return (len(probe.steps) + 1) * TRIES, _acting(probe) * TRIES * WRITES


def _acting(probe: Probe) -> int:
    return sum(TOOLS[step.tool].effect_of(step.args) is Effect.ACT for step in probe.steps)


async def rerun(runner: ProbeRunner, question: ItemQuestion, *, every: bool = False) -> Rerun:
    """Ask up to `TRIES` times, until it shows, or with `every` regardless; RunOver passes through.

    What shows words of an error that are only quoted by now is clean.
    """
    if why := withheld(runner, question.probe):
        return Rerun("unreached", why, asked=False)
    session, times, found, seen = runner.session, 0, None, Attempt(state="inconclusive")
    for _ in range(TRIES):
        try:
            seen = await attempt(session, question.probe, proof=True)
            one = question.shown(seen, runner.facts)
            if one and one.words and not times and (why := await quoted_on_request(session, one.words)):
                return Rerun("clean", why)
        except RunOver as over:  # an item that kills its jails must not block the others
            if over.outcome != "jail_lost":
                raise
            return Rerun("unreached", over.detail, times, found)
        if one:
            times, found = times + 1, one
            if not every:
                break
        elif why := unanswered(seen) or unheard(
            seen, question.row.data.get("fields", ()) if question.row else ()
        ):
            return Rerun("shown" if times else "unreached", why, times, found)
    if found is not None:
        return Rerun("shown", "", times, found)
    shut = question.unsure or await locked_out(session, seen, question.probe.id)
    if why := shut or await silent_control(runner, seen.calls):
        return Rerun("unreached", why)
    return Rerun("clean")


def unanswered(seen: Attempt) -> str:
    """Why an attempt that does not show the item does not speak against it; "" when it does."""
    if seen.state in UNJUDGED or seen.reason:
        return seen.reason or "it could not be judged"
    if seen.state == "finding":
        return "its expectation fails in another way now"
    return refused(seen)


async def silent_control(runner: ProbeRunner, calls: Sequence[Mapping[str, Any]]) -> str:
    """Which benign question to the targets of these calls is not answered now, and how; "" for none."""
    session, checks = runner.session, runner.world.checks
    names = {session.contacts.of(call["tool"], call["args"]) for call in calls}
    for target in session.contacts.targets:
        if target.name not in names:
            continue
        if not target.bases:
            why = await checks.node(CONTROL_S)
        elif TOOL in runner.persona.persona.tools:
            args = {"url": target.url(0)}
            answer = await session.look(TOOL, args, probe="control", deadline_s=CONTROL_S)
            cause, status = cause_of(answer.result), answer.result.get("status", 0)
            why = answer.denied
            if not why and cause in _ANSWERED:
                why = line(f"{cause}: {answer.result.get('error', '')}".rstrip(": "), 120)
            elif not why and isinstance(status, int) and status >= BROKEN:
                why = f"HTTP {status}"
        else:
            continue
        if why:
            return f"its control, the {target.name}, does not answer: {why}"
    if any(TOOLS[call["tool"]].starts_programs for call in calls) and (why := await checks.cannot_start()):
        return f"its control, the compiler's sample, fails: {why}"
    return ""
