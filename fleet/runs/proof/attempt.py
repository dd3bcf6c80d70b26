"""One execution of a probe: call its steps, judge the answers by its expectation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from anyio import to_thread

from fleet.drivers.expect import ExpectationError, Values, holds, ready
from fleet.drivers.explore.lockout import LOCKED
from fleet.drivers.explore.pages import TOOL, first_page
from fleet.drivers.session import OUR_FAILURES, PASSING, Session, cause_of
from fleet.drivers.template import wants_name
from fleet.findings.sighting import mentioned
from fleet.oracles.model import Exchange
from fleet.oracles.web.timing import unsettled
from fleet.personas.model import Probe
from fleet.personas.needs import needs_of
from sandbox.programs import machine
from sandbox.spec import Effect
from sandbox.tools import TOOLS

State = Literal["healthy", "finding", "inconclusive", "undecided", "not_applicable"]
UNJUDGED: frozenset[State] = frozenset({"inconclusive", "undecided", "not_applicable"})
"""States without a verdict on the platform."""

_last: dict[str, machine.Ticks] = {}
"""The clock ticks of the machine at the last call of `pressure`."""
_HISTORY = re.compile(r"\bhistory\.([a-z][a-z0-9_]*)")
_NOT_OFFERED = re.compile(r"function not found|function does not exist|unknown (?:function|selector)", re.I)
"""A diamond's error for a selector that none of its facets has (platform-facts 1.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One execution of a probe. `inconclusive`: it could not be looked at, for `reason`; `undecided`: there
    are answers, but the probe's own expectation cannot be decided on them, which only its author can change.

    `denied` is the gate's rule when a call was not permitted, `cause` the error_class of a call that could
    not look, `lost`: a jail was killed after it had acted. `not_applicable`: the platform lacks what the
    probe looks at.
    """

    state: State
    reason: str = ""
    denied: str = ""
    cause: str = ""
    lost: bool = False
    calls: tuple[Mapping[str, Any], ...] = field(default=())
    """The calls made: tool and resolved args."""
    asked: tuple[Mapping[str, Any], ...] = field(default=())
    """The same calls with the placeholders of a repro."""
    results: tuple[Mapping[str, Any], ...] = field(default=())


LIMITED, BROKEN = 429, 500
"""Statuses that say nothing of what was asked: this one, and those from there on. Of a gateway that does not
reach its platform (502 to 504) `cause_of` says so."""
RESTARTS = 2
"""Maximum restarts, under a fresh name, of an attempt that has acted: after a killed jail or an absent
target."""


async def attempt(session: Session, probe: Probe, *, proof: bool = False) -> Attempt:
    """Run the steps of one probe and judge them; RunOver passes through.

    A failure that may pass is retried with back-off until the session's patience with that target ends.
    """
    await to_thread.run_sync(ready, probe.expect)  # the first check in a process loads the library
    if why := await session.missing(needs_of(probe)):
        return Attempt(state="not_applicable", reason=why)
    tries = restarts = 0
    while True:
        seen = await once(session, probe, proof=proof)
        if seen.lost and restarts < RESTARTS:
            restarts += 1
            continue
        if seen.lost or seen.cause not in PASSING or not seen.calls:
            return seen
        last = seen.calls[-1]
        acted = any(TOOLS[call["tool"]].effect_of(call["args"]) is Effect.ACT for call in seen.calls)
        if (acted and tries >= RESTARTS) or not await session.wait_for(last["tool"], last["args"], tries):
            return seen
        tries += 1


async def once(session: Session, probe: Probe, *, proof: bool = False) -> Attempt:
    """The same without another try: what could not be answered is the answer."""
    args = [dict(step.args) for step in probe.steps]
    if proof and any(TOOLS[step.tool].needs_key for step in probe.steps):
        await session.fresh_callers()  # what an answer costs, or says, may hang on what its caller did before
    bindings = session.bindings(fresh_name=wants_name(args))
    seen = Attempt(state="inconclusive")
    for step, raw in zip(probe.steps, args, strict=True):
        resolved = bindings.resolve(raw)
        answer = await session.call(step.tool, resolved, probe=probe.id, proof=proof)
        seen = replace(
            seen,
            calls=(*seen.calls, {"tool": step.tool, "args": resolved}),
            asked=(*seen.asked, {"tool": step.tool, "args": bindings.pointed(raw)}),
            results=(*seen.results, answer.result),
        )
        cause = cause_of(answer.result)
        if answer.denied or cause in OUR_FAILURES:
            reason = answer.reason or str(answer.result.get("error", ""))
            why = f"{step.tool}: {answer.denied or cause}: {reason}"
            cause = "" if answer.denied else cause
            return replace(seen, reason=why, denied=answer.denied, cause=cause, lost=answer.lost)
        if cause == "reverted" and _NOT_OFFERED.search(str(answer.result.get("error", ""))):
            why = f"{step.tool}: the diamond does not offer this function"
            return replace(seen, state="not_applicable", reason=why)
    seen = judged(probe, seen, session.history(), session.facts())
    limited = LIMITED in _statuses(seen) and str(LIMITED) not in probe.expect
    if limited and seen.state == "healthy":  # it holds, or leaves other statuses alone: it saw nothing
        return replace(seen, state="inconclusive", reason=refused(seen), cause="busy")
    return seen


def refused(seen: Attempt) -> str:
    """How an answer of an attempt refuses to speak: the platform limits its callers or is broken; "" for
    none."""
    met = (one for one in _statuses(seen) if one == LIMITED or one >= BROKEN)
    return next((f"the platform answered HTTP {one}" for one in met), "")


def unheard(seen: Attempt, deciding: Iterable[object]) -> str:
    """Which deciding field of a finding an attempt without it could not get; "" for none."""
    blank = {name for result in seen.results for name in result.get("unjudged", ())}
    missed = sorted(blank & set(map(str, deciding)))
    return f"could not tell {', '.join(missed)}" if missed else ""


def _statuses(seen: Attempt) -> list[int]:
    found = (result.get("status") for result in seen.results)
    return [one for one in found if isinstance(one, int)]


def judged(probe: Probe, seen: Attempt, figures: Mapping[str, float], facts: Mapping[str, Any]) -> Attempt:
    """Judge answers by the expectation, if the control confirms that there is something to judge. Pure.

    `figures` are those of earlier runs by metric, `facts` the platform's promises.
    """
    blank = {name for result in seen.results for name in result.get("unjudged", ())}
    if missed := sorted(blank & set(mentioned(probe.expect))):
        return replace(seen, reason=f"could not tell {', '.join(missed)}: the page was too costly to judge")
    last = (seen.asked[-1], seen.results[-1]) if seen.results else None
    if last and (why := unsettled(Exchange(last[0]["tool"], last[0]["args"], last[1]))):
        return replace(seen, reason=f"could not tell: {why}; {_busy()}", cause="busy")
    values = Values(seen.results, figures, facts)
    # metrics that it compares with; those that it also notes, and has no figure for yet
    wanted = {name for text in (probe.expect, probe.control) for name in _HISTORY.findall(text)}
    first = ", ".join(sorted(name for name in wanted & probe.note.keys() if name not in figures))
    try:
        if probe.control and not first and not holds(probe.control, values):
            reason = f"could not tell: what it is compared with is off as well; {_busy()}"
            return replace(seen, reason=reason, cause="busy")
        if first:
            return replace(seen, state="healthy", reason=f"a first look: it begins the history of {first}")
        return replace(seen, state="healthy" if holds(probe.expect, values) else "finding")
    except ExpectationError as error:
        if missing := ", ".join(sorted(name for name in wanted if name not in figures)):
            return replace(seen, reason=f"no figure of earlier runs yet: {missing}")
        errors = [
            f"{one['error_class']}: {one.get('error', '')}" for one in seen.results if one.get("error_class")
        ]
        shown = f" ({'; '.join(errors)[:300]})" if errors else ""  # by the tools, of their answers
        return replace(seen, state="undecided", reason=f"the expectation {error}{shown}")


def _busy() -> str:
    return pressure() or "this machine may be busy"


def pressure(proc: str = machine.PROC) -> str:
    """How busy this machine is: `load 7.9 on 2 cores, cpu pressure 43 %, steal 2 %`; "" when not known.

    Load covers the last minute, pressure the last ten seconds, steal the time since the previous call (for
    the first call: since boot).
    """
    earlier, _last[proc] = _last.get(proc, (0, 0)), machine.ticks(proc)
    return machine.pressure(earlier, proc)


async def locked_out(session: Session, seen: Attempt, probe: str) -> str:
    """Why an attempt whose every page was refused says nothing; "" for any other, and when the first page of
    the site is open. RunOver passes through."""
    locked = [
        call["tool"] == TOOL and result.get("status") in LOCKED
        for call, result in zip(seen.calls, seen.results, strict=False)
    ]
    if not locked or not all(locked):
        return ""
    front = first_page(str(seen.calls[-1]["args"]["url"]))
    answer = await session.call(TOOL, {"url": front}, probe=probe, proof=True)
    status, failed = answer.result.get("status"), cause_of(answer.result) in OUR_FAILURES
    if not (answer.denied or failed) and status not in LOCKED:
        return ""
    last = answer.denied or (answer.result.get("error") if failed else f"HTTP {status}")
    return f"the platform refuses every page now: {last} at {front}"
