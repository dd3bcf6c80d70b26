"""An oracle that no part of the fleet knows of: what a test adds to the table, a file and a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleet.findings.sighting import Sighting
from fleet.oracles.echoes import route
from fleet.oracles.model import Exchange, Facts, Observation, Oracle


def _teapot(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if last.result.get("status") == 418:
        title = f"{last.asked} answers that it is a teapot"
        yield Observation(Sighting(title, f"teapot {route(last.args)}", whole=True), frozenset({"status"}))


ORACLES = (
    Oracle(
        id="teapot",
        says="a platform is not a teapot",
        severity="low",
        surface="ux",
        reference="RFC 2324",
        judges=("page",),
        judge=_teapot,
        example=(Exchange("qa_fetch", {"url": "{site}/x"}, {"status": 418}),),
        control=(Exchange("qa_fetch", {"url": "{site}/x"}, {"status": 200}),),
    ),
)
