"""Oracles of one call of an agent. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleet.findings.sighting import Sighting
from fleet.oracles.model import Exchange, Facts, Observation, Oracle


def _paid_refusal(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    status, charged = last.result.get("status", 0), last.result.get("charged", 0)
    if status >= 400 and charged > 0:
        title = f"{last.asked} is refused with {status}, and {charged} wei of credit are charged"
        yield Observation(Sighting(title, f"paid-refusal {status}"), frozenset({"charged"}))


ORACLES = (
    Oracle(
        id="paid-refusal",
        says="a refused call is free",
        severity="high",
        surface="on-chain",
        reference="CWE-841",
        judges=("reply",),
        judge=_paid_refusal,
        example=(Exchange("qa_call", {"target": "a"}, {"status": 400, "charged": 1}),),
        control=(Exchange("qa_call", {"target": "a"}, {"status": 400, "charged": 0}),),
    ),
)
