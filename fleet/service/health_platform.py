"""Whether the platform answers, from the journal: its open outage, and what the last runs met. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.findings.outage import OutageBook
from fleet.runs.desk.exit_codes import exit_code
from fleet.store.rows import RunRow

UNREACHED = 4
"""Exit code of a run that did not reach its platform, or could not tell why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformReach:
    """`up` is None when the last look could not tell, or before the first one.

    `since` (ISO) is the begin of the outage, else the end of the run of `by` (a persona) that looked last.
    """

    up: bool | None = None
    since: str = ""
    by: str = ""
    why: str = "no run has looked at it yet"


UNKNOWN = PlatformReach()
"""Before the first look."""


def platform_reach(book: OutageBook, last: Sequence[RunRow]) -> PlatformReach:
    """The newest look. `last` are the last ended runs of the personas that look at the platform."""
    if (outage := book.open) is not None:
        return PlatformReach(up=False, since=outage.since, by=outage.persona, why=outage.title)
    looks = [row for row in last if row.outcome == "done" or _unreached(row)]
    if not looks:
        return UNKNOWN
    newest = max(looks, key=lambda row: row.ended)
    if newest.outcome == "done":
        return PlatformReach(up=True, since=newest.ended, by=newest.persona, why="")
    return PlatformReach(since=newest.ended, by=newest.persona, why=newest.detail or newest.outcome)


def _unreached(row: RunRow) -> bool:
    return exit_code({"outcome": row.outcome, "detail": row.detail}) == UNREACHED
