"""Pure: what two runs of the same calls answered, and where they differ beyond time, keys and names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from fleet.drivers.replay import PREFIX, RecordedCall, RecordedCalls, excluded, unbound

VOLATILE = frozenset(
    {
        "latency_ms",
        "p50_ms",
        "p95_ms",
        "max_ms",
        "tx",
        "block",
        "index",
        "agent_id",
        "owner",
        "caller",
        "address",
        "headers",
        "gas_used",
        "gas_estimate",
        "charged",
        "cpu_ms",
        "control_cpu_ms",
        "control_p50_ms",
        "control_p95_ms",
        "ratio",
        "samples",
    }
)
"""Fields that differ between two runs of a healthy platform: times, hashes, numbers that count up, keys."""
OF_TEXT = frozenset({"sha256", "bytes"})
"""Fields that only restate a text that is compared itself, names bound."""
COUNTERS = frozenset({"nextId", "feedbackCount", "treasuryBalance"})
"""Views of qa_chain whose value goes on with everything that happens, a replay included."""
_HEX = re.compile(r"0x[0-9a-fA-F]{40,64}")
MOST = 20
"""Differences that are told of one call."""

State = Literal["same", "different", "not asked", "no answer", "refused"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One place in a result. None stands for nothing there."""

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
    """What the earlier run asked it for."""


def compare(before: RecordedCalls, after: RecordedCalls) -> tuple[CallComparison, ...]:
    """Every call of the earlier run, in order; the later one's are found by the ids that the replay gave."""
    again, without = {call.call_id: call for call in after.calls}, excluded(before.calls)
    rows = []
    for call in before.calls:
        if reason := without.get(call.number):
            row = CallComparison(call.number, call.tool, "not asked", reason)
        else:
            row = _one(call, again.get(f"{PREFIX}{call.number}"), before, after)
        rows.append(replace(row, probe=call.probe))
    return tuple(rows)


def _one(
    call: RecordedCall, again: RecordedCall | None, before: RecordedCalls, after: RecordedCalls
) -> CallComparison:
    if again is None:
        return CallComparison(
            call.number, call.tool, "refused", "refused, repeated or not reached in the new run"
        )
    if call.result is None or again.result is None:
        which = "the earlier" if call.result is None else "the new"
        return CallComparison(call.number, call.tool, "no answer", f"{which} run has no answer on record")
    then, now = unbound(call.result, before.header), unbound(again.result, after.header)
    if call.args.get("function") in COUNTERS:
        then, now = then | {"value": ""}, now | {"value": ""}
    found = tuple(differences(then, now))
    return CallComparison(call.number, call.tool, "different" if found else "same", "", found[:MOST])


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Where two results differ, volatile fields and hashes aside, by JSON pointer."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        passed = VOLATILE | (OF_TEXT if before.get("text") and after.get("text") else frozenset())
        for key in sorted((before.keys() | after.keys()) - passed):
            yield from differences(before.get(key), after.get(key), f"{path}/{key}")
    elif isinstance(before, list | tuple) and isinstance(after, list | tuple) and len(before) == len(after):
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{path}/{place}")
    elif _plain(before) != _plain(after):
        yield Difference(path or "/", before, after)


def _plain(value: Any) -> Any:
    return _HEX.sub("0x…", value) if isinstance(value, str) else value
