"""Oracles of a publish: what is reported reads back. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleet.findings.sighting import Sighting
from fleet.oracles.model import Exchange, Facts, Observation, Oracle


def _lost(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    result = seen[-1].result
    if result.get("published") and not result.get("app_read_back"):
        sighting = Sighting(
            "a publish is reported, and the app does not read back", "lost-publish", whole=True
        )
        yield Observation(sighting, frozenset({"app_read_back"}))


ORACLES = (
    Oracle(
        id="lost-publish",
        says="what is reported as published reads back",
        severity="high",
        surface="on-chain",
        reference="CWE-345",
        judges=("publication",),
        judge=_lost,
        example=(Exchange("qa_publish", {}, {"published": True, "app_read_back": False}),),
        control=(Exchange("qa_publish", {}, {"published": True, "app_read_back": True}),),
    ),
)
