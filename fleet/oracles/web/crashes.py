"""The oracle of requests that end a server. Pure; the tool saw it: `sandbox/pages/endings.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleet.oracles.echoes import host
from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.oracles.web.variations import below, varied
from fleet.severity import Severity

OF_PAGE = frozenset({"parameter", "path", "field"})
"""Inputs that one page reads. An odd path, a method, a header, a parameter that no page mentions: what breaks
there is before all pages, one defect of the host."""


_ASKED = {"url": "{site}/x%", "alive": "{site}/"}


@oracle(
    id="ends-server",
    says="no request ends the server, or makes it go silent for its other callers",
    severity=Severity.HIGH,
    surface="security",
    judges=("page",),
    example=(Exchange("qa_fetch", _ASKED, {"error_class": "http", "ended": True, "silent_ms": 640.0}),),
    control=(Exchange("qa_fetch", _ASKED, {"status": 400, "error_class": "http", "ended": False}),),
)
def ends_server(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if last.result.get("ended") is not True:
        return
    both = (seen[0], last)
    found = (varied(both) or below(both)) if len(seen) > 1 else None
    place = found.spot(last) if found and found.place[0] in OF_PAGE else host(last.args)
    title = f"{last.asked}: after it no caller is answered"
    yield observed(title, f"ends {place}", "ended", where={"crash": place})
