"""The driver that repeats: the recorded calls of an earlier run, one turn each, under the new run's names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fleet.drivers.desk import Desk
from fleet.drivers.session import RunOver
from fleet.errors import UsageError
from fleet.events.model import Header, ToolRequested, ToolResponded
from fleet.events.trajectory import read
from sandbox.spec import Effect
from sandbox.tools import TOOLS

_NOT_WHOLE = re.compile(r"\[redacted:|…\[cut ")
PREFIX = "replay-"
"""Prefix of a repeated call's id; the number of the original call follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One recorded call. `result` is None when no answer is on record."""

    number: int
    call_id: str = ""
    tool: str
    args: Mapping[str, Any]
    result: Mapping[str, Any] | None = None
    is_error: bool = False
    probe: str = ""


@dataclass(frozen=True, slots=True)
class RecordedCalls:
    """A run's calls from its trajectory, in order."""

    header: Header
    calls: tuple[RecordedCall, ...]


def recorded(path: Path) -> RecordedCalls:
    """The calls of a trajectory; UsageError for one without a header."""
    header: Header | None = None
    calls: dict[int, RecordedCall] = {}
    for event in read(path):
        match event:
            case Header():
                header = header or event
            case ToolRequested():
                asked = RecordedCall(
                    number=event.call,
                    call_id=event.call_id,
                    probe=event.probe,
                    tool=event.tool,
                    args=event.args,
                )
                calls.setdefault(event.call, asked)
            case ToolResponded() if event.call in calls:
                calls[event.call] = replace(calls[event.call], result=event.result, is_error=event.is_error)
    if header is None:
        raise UsageError(f"{path}: not the trajectory of a run")
    return RecordedCalls(header, tuple(calls.values()))


def cannot(call: RecordedCall) -> str:
    """Why a call is not repeated; "" for one that is."""
    spec = TOOLS.get(call.tool)
    if spec is None:
        return "this tool no longer exists"
    if spec.effect is Effect.REPORT:
        return "a report is not repeated"
    if _NOT_WHOLE.search(json.dumps(call.args, ensure_ascii=False, default=str)):
        return "its recorded arguments are incomplete: masked or cut"
    return ""


def excluded(calls: Sequence[RecordedCall]) -> dict[int, str]:
    """Numbers of the calls that are not repeated, and why.

    An act that was requested more than once, e.g. by a probe and again by its proof, is repeated once: a desk
    makes the same act once, and ends a run that insists on it.
    """
    found: dict[int, str] = {}
    first: dict[str, int] = {}
    for call in calls:
        if why := cannot(call):
            found[call.number] = why
        elif TOOLS[call.tool].effect_of(call.args) is Effect.ACT:
            key = f"{call.tool} {json.dumps(call.args, sort_keys=True, default=str)}"
            if (earlier := first.setdefault(key, call.number)) != call.number:
                found[call.number] = f"the same act as call {earlier}"
    return found


def unbound(value: Any, header: Header) -> Any:  # noqa: ANN401  any JSON
    """The value with run and platform specifics as placeholders, which a desk fills in anew."""
    if isinstance(value, str):
        text = value.replace(f"qa-{header.run}-", "qa-{run}-") if header.run else value
        face = header.targets.get("face", "")
        if "{name}" in face:
            pattern = re.escape(face).replace(re.escape("{name}"), r"((?:[a-z0-9-]|\{run\}){1,63})")
            text = re.sub(pattern, r"{face:\1}", text)
        for key in ("proxy", "site"):
            if target := header.targets.get(key):
                text = text.replace(target, f"{{{key}}}")
        return text
    if isinstance(value, Mapping):
        return {key: unbound(one, header) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [unbound(one, header) for one in value]
    return value


@dataclass(slots=True)
class Replay:
    """Implements the drivers' Driver port. `asked` counts the repeated calls."""

    was: RecordedCalls
    asked: int = field(default=0)

    async def __call__(self, desk: Desk, /) -> str:
        """Repeat every repeatable call. This driver ignores the plan and ends the run as done."""
        todo = repeatable(self.was.calls)
        for call in todo:
            try:
                async with desk.turn() as turn:
                    args = unbound(call.args, self.was.header)
                    await turn.ask(f"{PREFIX}{call.number}", call.tool, args)
            except TimeoutError:
                continue
            self.asked += 1
        raise RunOver(
            "done", f"{self.asked} of {len(self.was.calls)} calls of run {self.was.header.run} asked again"
        )


def repeatable(calls: Sequence[RecordedCall]) -> tuple[RecordedCall, ...]:
    """The calls to repeat."""
    without = excluded(calls)
    return tuple(call for call in calls if call.number not in without)
