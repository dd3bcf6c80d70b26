"""The driver without a model: a persona's probes, one after the other, a turn each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from anyio import to_thread

from fleet.drivers.desk import RUN_PROBE, Desk
from fleet.drivers.expect import ExpectationError, check, holds
from fleet.drivers.session import OUR_FAILURES, Session
from fleet.drivers.template import wants_name
from fleet.personas.model import Probe

State = Literal["healthy", "finding", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One execution of a probe. `inconclusive` means it could not be looked at, and says why.

    `denied` is the gate's rule when a call was not permitted.
    """

    state: State
    reason: str = ""
    denied: str = ""
    calls: tuple[Mapping[str, Any], ...] = field(default=())
    """What was called: tool and resolved args."""
    results: tuple[Mapping[str, Any], ...] = field(default=())


async def attempt(session: Session, probe: Probe) -> Attempt:
    """Run the steps of one probe and judge them; RunOver passes through."""
    args = [dict(step.args) for step in probe.steps]
    bindings = session.bindings(fresh_name=wants_name(args))
    calls: list[Mapping[str, Any]] = []
    results: list[Mapping[str, Any]] = []
    await to_thread.run_sync(check, probe.expect)  # the first one of a process loads the library
    for step, raw in zip(probe.steps, args, strict=True):
        resolved = bindings.resolve(raw)
        answer = await session.call(step.tool, resolved, probe=probe.id)
        calls.append({"tool": step.tool, "args": resolved})
        results.append(answer.result)
        could_not = answer.denied or answer.result.get("error_class", "") in OUR_FAILURES
        if could_not:
            reason = answer.reason or str(answer.result.get("error", ""))
            what = answer.denied or str(answer.result.get("error_class"))
            why = f"{step.tool}: {what}: {reason}"
            return _attempt("inconclusive", calls, results, why, answer.denied)
    try:
        healthy = holds(probe.expect, results, session.history())
    except ExpectationError as error:
        return _attempt("inconclusive", calls, results, f"expectation {error}")
    return _attempt("healthy" if healthy else "finding", calls, results)


async def playbook(desk: Desk) -> str:
    """Drive a run: each open probe once, as the plan has them; RunOver passes through."""
    while probe := desk.next_probe():
        try:
            async with desk.turn() as turn:
                await turn.ask(probe, RUN_PROBE, {"probe": probe})
        except TimeoutError:
            continue  # its record says so, and the plan does not offer it again for nothing
    return ""


def _attempt(
    state: State,
    calls: list[Mapping[str, Any]],
    results: list[Mapping[str, Any]],
    reason: str = "",
    denied: str = "",
) -> Attempt:
    return Attempt(state=state, reason=reason, denied=denied, calls=tuple(calls), results=tuple(results))
