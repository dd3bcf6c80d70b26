"""An oracle that no part of the fleet knows of: what a test adds to the table, a file and a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleet.oracles.echoes import route
from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.severity import Severity


@oracle(
    id="teapot",
    says="a platform is not a teapot",
    severity=Severity.LOW,
    surface="ux",
    judges=("page",),
    example=(Exchange("qa_fetch", {"url": "{site}/x"}, {"status": 418}),),
    control=(Exchange("qa_fetch", {"url": "{site}/x"}, {"status": 200}),),
)
def teapot(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if last.result.get("status") == 418:
        title = f"{last.asked} answers that it is a teapot"
        yield observed(title, f"teapot {route(last.args)}", "status")
