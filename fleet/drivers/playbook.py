"""The driver without a model: a persona's probes, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fleet.drivers.expect import ExpectationError, holds
from fleet.drivers.session import OUR_FAILURES, Session
from fleet.drivers.template import wants_name
from fleet.personas.model import Probe

State = Literal["healthy", "finding", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One execution of a probe. `inconclusive` means it could not be looked at, and says why."""

    state: State
    reason: str = ""
    calls: tuple[Mapping[str, Any], ...] = field(default=())
    """What was called: tool and resolved args."""
    results: tuple[Mapping[str, Any], ...] = field(default=())


async def attempt(session: Session, probe: Probe) -> Attempt:
    """Run the steps of one probe and judge them; RunOver passes through."""
    args = [dict(step.args) for step in probe.steps]
    bindings = session.bindings(fresh_name=wants_name(args))
    calls: list[Mapping[str, Any]] = []
    results: list[Mapping[str, Any]] = []
    for step, raw in zip(probe.steps, args, strict=True):
        resolved = bindings.resolve(raw)
        answer = await session.call(step.tool, resolved, probe=probe.id)
        calls.append({"tool": step.tool, "args": resolved})
        results.append(answer.result)
        could_not = answer.denied or answer.result.get("error_class", "") in OUR_FAILURES
        if could_not:
            reason = answer.reason or str(answer.result.get("error", ""))
            what = answer.denied or str(answer.result.get("error_class"))
            return _attempt("inconclusive", calls, results, f"{step.tool}: {what}: {reason}")
    try:
        healthy = holds(probe.expect, results, session.history())
    except ExpectationError as error:
        return _attempt("inconclusive", calls, results, f"expectation {error}")
    return _attempt("healthy" if healthy else "finding", calls, results)


def _attempt(
    state: State, calls: list[Mapping[str, Any]], results: list[Mapping[str, Any]], reason: str = ""
) -> Attempt:
    return Attempt(state=state, reason=reason, calls=tuple(calls), results=tuple(results))
