"""Whether a person may raise the dial, or let tests go on: the roles of the profile, where it names any."""

from __future__ import annotations

from pathlib import Path

from fleet.app.incidents import barred
from fleet.clock import SystemClock
from fleet.config import load_fleet, load_platform
from fleet.errors import Refused, UsageError
from fleet.gate.model import Rung
from fleet.runs.call.decision_file import Decision, DecisionFile


def require_authority(state: Path, who: str, rung: Rung | None = None) -> None:
    """Refused, on record, unless a role in force permits this rung to `who`; without one any role is enough.

    ConfigError for a profile that cannot be read: nobody's authority is known then.
    """
    try:
        section = load_platform(load_fleet().platform, state)[0].escalation
    except UsageError:  # no profile yet: nothing can run either
        return
    clock = SystemClock()
    if rung is not None and (why := barred(state, rung, who, clock.now())):
        raise Refused(why, rule="incident", remedy="docs/operate.md, Incidents")
    if not section.approvers or section.may(who, clock.now().date(), str(rung or "")):
        return
    what = f"raise the dial to {rung}" if rung else "let the tests go on"
    why = f"{who} may not {what} ([escalation] approvers)"
    one = Decision(
        why, what, "refused", "no role in force permits it", "ask who may", charter="the operator's"
    )
    DecisionFile(state, clock).record(one, run="none", turn=0)
    raise Refused(why, rule="approver", remedy="ask who may: fleet check scope")
