"""What a pass of triage knows besides the log, and what it makes of that for all items alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta

from fleet.findings.outage import OutageEnd
from fleet.findings.recurrence import Recurrence
from fleet.store.rows import DecisionRow
from fleet.triage.items.decisions import StandingDecisions


@dataclass(frozen=True, slots=True, kw_only=True)
class PassInputs:
    """What a pass knows besides the log. `now` is its time: within a UTC day only decisions end.

    `figures` are those of the journal by fingerprint, `ended` the outages that it saw end. `since` (ISO) is
    when the epoch began: a `fixed` from before it answers nothing.
    """

    now: datetime
    weights: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, Recurrence] = field(default_factory=dict)
    decisions: Sequence[DecisionRow] = ()
    ended: Sequence[OutageEnd] = ()
    since: str = ""
    seen_every: timedelta = timedelta(days=7)

    def same_for_items(self, other: PassInputs | None) -> bool:
        """Whether an item that did not change, nor its figures, is judged as before."""
        return other is not None and (
            replace(self, now=other.now, figures=other.figures) == other
            and self.now.date() == other.now.date()
        )


@dataclass(slots=True)
class SharedInputs:
    """What is the same for all items of one pass: `gone` are ends of outages (ISO) by fingerprint, `decided`
    the fingerprints that decisions name."""

    inputs: PassInputs
    weights: Mapping[str, float]
    standing: StandingDecisions
    gone: Mapping[str, str]
    end_of_day: datetime
    decided: frozenset[str]

    @classmethod
    def of(
        cls,
        inputs: PassInputs,
        weights: Mapping[str, float],
        standing: StandingDecisions,
        gone: Mapping[str, str],
    ) -> SharedInputs:
        decided = frozenset(name for one in standing.all for name in (one.item, one.other))
        end_of_day = datetime.combine(inputs.now.date(), time(23, 59, 59), UTC)
        return cls(inputs, weights, standing, gone, end_of_day, decided)
