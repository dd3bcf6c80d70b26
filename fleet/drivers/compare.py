"""Pure: compares the answers of two runs of the same calls, ignoring times, keys and names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from fleet.drivers.replay import PREFIX, RecordedCalls, excluded, unbound
from sandbox.tools import TOOLS

OF_TEXT = frozenset({"sha256", "bytes"})
"""Fields that only restate another compared text with names filled in."""
COUNTERS = frozenset({"nextId", "feedbackCount", "treasuryBalance"})
"""Views of qa_chain whose value changes with every event, including the replay."""
_HEX = re.compile(r"0x[0-9a-fA-F]{40,64}")
MOST = 20
"""Most differences shown per call."""

State = Literal["same", "different", "not asked", "no answer", "refused"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference in a result. None means that the field is absent."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class CallComparison:
    """One call of the earlier run beside its repetition."""

    call: int
    tool: str
    state: State
    reason: str = ""
    differences: tuple[Difference, ...] = ()
    probe: str = ""
    """The earlier run's purpose of the call."""


def compare(before: RecordedCalls, after: RecordedCalls) -> tuple[CallComparison, ...]:
    """Every call of the earlier run, in order; the later run's calls are matched by the replay's ids."""
    again, without = {call.call_id: call for call in after.calls}, excluded(before.calls)
    rows = []
    for call in before.calls:
        row = CallComparison(call.number, call.tool, "same", probe=call.probe)
        repeated = again.get(f"{PREFIX}{call.number}")
        if reason := without.get(call.number):
            row = replace(row, state="not asked", reason=reason)
        elif repeated is None:
            row = replace(row, state="refused", reason="refused, repeated or not reached in the new run")
        elif call.result is None or repeated.result is None:
            which = "the earlier" if call.result is None else "the new"
            row = replace(row, state="no answer", reason=f"{which} run has no answer on record")
        else:
            then, now = unbound(call.result, before.header), unbound(repeated.result, after.header)
            if call.args.get("function") in COUNTERS:
                then, now = then | {"value": ""}, now | {"value": ""}
            found = tuple(differences(then, now, TOOLS[call.tool].volatile))
            row = replace(row, state="different" if found else "same", differences=found[:MOST])
        rows.append(row)
    return tuple(rows)


def differences(
    before: object, after: object, volatile: frozenset[str] = frozenset(), path: str = ""
) -> Iterator[Difference]:
    """Differences of two results by JSON pointer, except in volatile fields and hashes."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        passed = volatile | (OF_TEXT if before.get("text") and after.get("text") else frozenset())
        for key in sorted((before.keys() | after.keys()) - passed):
            yield from differences(before.get(key), after.get(key), volatile, f"{path}/{key}")
    elif isinstance(before, list | tuple) and isinstance(after, list | tuple) and len(before) == len(after):
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, volatile, f"{path}/{place}")
    elif _without_keys(before) != _without_keys(after):
        yield Difference(path or "/", before, after)


def _without_keys(value: object) -> object:
    return _HEX.sub("0x…", value) if isinstance(value, str) else value
