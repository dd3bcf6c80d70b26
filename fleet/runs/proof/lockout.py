"""Whether a platform has locked the fleet out: then its answers say nothing of what was seen."""

from __future__ import annotations

from fleet.drivers.explore.lockout import LOCKED
from fleet.drivers.explore.pages import TOOL, first_page
from fleet.drivers.session import OUR_FAILURES, Session, cause_of
from fleet.runs.proof.attempt import Attempt


async def locked_out(session: Session, seen: Attempt, probe: str) -> str:
    """Why an attempt whose every page was refused says nothing; "" for any other, and when the first page of
    the site is open. RunOver passes through."""
    told = [
        call["tool"] == TOOL and result.get("status") in LOCKED
        for call, result in zip(seen.calls, seen.results, strict=False)
    ]
    if not told or not all(told):
        return ""
    front = first_page(str(seen.calls[-1]["args"]["url"]))
    answer = await session.call(TOOL, {"url": front}, probe=probe, proof=True)
    status, failed = answer.result.get("status"), cause_of(answer.result) in OUR_FAILURES
    if not (answer.denied or failed) and status not in LOCKED:
        return ""
    said = answer.denied or (answer.result.get("error") if failed else f"HTTP {status}")
    return f"the platform refuses every page now: {said} at {front}"
