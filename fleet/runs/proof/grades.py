"""What is said of a finding: that it was raised, the grade of its verification, why it is not filed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fleet.events.model import FindingRaised
from fleet.findings.kinds import kind_titled
from fleet.findings.proof import ALL
from fleet.store.rows import HOLD, FindingRow

Grade = Literal["confirmed", "flaky", "refuted", "not reached", "unproven"]


@dataclass(frozen=True, slots=True)
class Graded:
    """`why` is why it is not filed; "" for a finding that is on the log."""

    grade: Grade
    rate: str
    why: str


def needs_review(row: FindingRow) -> bool:
    """Whether a person must review this finding before posting: only its driver calls it a defect."""
    claim = row.data.get("claim")
    return isinstance(claim, Mapping) and claim.get("review") is not False


def raised(row: FindingRow, times: int = 1) -> FindingRaised:
    """The event of a finding that is to be proven."""
    kind = kind_titled(row.title)
    return FindingRaised(
        fingerprint=row.fingerprint,
        probe=row.probe,
        title=row.title,
        times=times,
        kind=kind.id if kind else "",
        severity=row.severity,
        references=kind.references if kind else (),
    )


def graded(row: FindingRow) -> Graded:
    """The grade of one finding."""
    rate = f"{row.confirmed}/{row.tries}" if row.tries else ""
    if row.state == "posted":
        return Graded("confirmed", rate, "")
    if row.state == "repeated":
        where = f"entry {row.index}" if row.index >= 0 else "by another run now"
        return Graded("confirmed", rate, f"it is on the log already: {where}")
    if row.state in ("confirmed", "posting"):
        held = (
            "the node was silent: the next run that sees it answer posts it" if row.data.get("held") else ""
        )
        if row.data.get(HOLD) and row.state == "confirmed":
            waits = f'post.hold: fleet items release {row.fingerprint} --reason "…" lets it be posted'
            return Graded("confirmed", rate, waits)
        return Graded("confirmed", rate, held or "the budget of reports is spent: a later run posts it")
    if row.state == "flaky":
        return Graded("flaky", rate, f"it showed in {row.confirmed} of {row.tries} tries; {ALL} is filed")
    if row.state == "dropped" and (more := row.data.get("covered_by")):
        return Graded("unproven", rate, f"another finding says more of the same place: {more}")
    if row.state == "dropped" and (why := row.data.get("quoted")):
        return Graded("refuted", rate, str(why))
    if row.state == "dropped":
        return Graded("refuted", rate, f"it showed in none of {row.tries} tries")
    if row.state == "unverified" and row.confirmed == row.tries > 0 and needs_review(row):
        return Graded("confirmed", rate, "only its driver calls it a defect: adopt or dismiss it")
    if row.state == "unverified":
        return Graded("not reached", rate, str(row.data.get("why", "")) or "its proof could not be completed")
    return Graded("unproven", rate, "its proof has not begun")
