"""What the reported defects are worth: which generated defect each is, what is false, what is twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.fuzzing.campaign import CampaignOutcome, ReportedDefect
from bench.fuzzing.faults import PlantedFault
from bench.fuzzing.reference import SOUND, ReferenceStand

SAME = {"metamorphic": "wrong-code", "differential": "wrong-code", "round-trip": "wrong-code"}
"""Words of a report in those of the bench."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallScore:
    """One compiler's search. `by` has, for each reported and confirmed defect, the id of the generated one
    that it is, "clean" when the clean compiler itself fails, "" when nothing explains it."""

    seed: int
    faults: tuple[PlantedFault, ...]
    outcome: CampaignOutcome
    by: tuple[tuple[ReportedDefect, str], ...] = ()
    flaky: tuple[ReportedDefect, ...] = field(default=())

    @property
    def found(self) -> frozenset[str]:
        return frozenset(name for _, name in self.by) - {"", "clean"}

    @property
    def missed(self) -> list[PlantedFault]:
        return [one for one in self.faults if one.id not in self.found]

    @property
    def false(self) -> list[ReportedDefect]:
        return [one for one, name in self.by if not name]

    @property
    def own(self) -> list[ReportedDefect]:
        """Defects of the bundled compiler itself."""
        return [one for one, name in self.by if name == "clean"]

    @property
    def twice(self) -> int:
        """Reports beyond the first for one generated defect."""
        return sum(
            times - 1 for name, times in Counter(name for _, name in self.by).items() if name in self.found
        )


def scored(
    seed: int, faults: Sequence[PlantedFault], outcome: CampaignOutcome, stand: ReferenceStand
) -> RecallScore:
    """Each confirmed report explained by the stand's own look at its inputs."""
    sure = [one for one in outcome.defects if one.confirmed]
    return RecallScore(
        seed=seed,
        faults=tuple(faults),
        outcome=outcome,
        by=tuple((one, explained(one, faults, stand.shows) or _clean(one, stand)) for one in sure),
        flaky=tuple(one for one in outcome.defects if not one.confirmed),
    )


def explained(
    report: ReportedDefect,
    faults: Sequence[PlantedFault],
    shows: Callable[[bytes, str, Sequence[str]], str],
) -> str:
    """The generated defect that makes the report's inputs fail when it is on alone, and not when it is off;
    one that fails as reported before the others. "" when there is none."""
    ways = {
        fault.id: {shows(source, report.part, [fault.id]) for source in report.inputs} - {""}
        for fault in faults
        if fault.part == report.part
    }
    kind = SAME.get(report.klass, report.klass)
    alike = [name for name, seen in ways.items() if kind in seen]
    return next(iter(alike or [name for name, seen in ways.items() if seen]), "")


def _clean(report: ReportedDefect, stand: ReferenceStand) -> str:
    ends = [stand.once(source, report.part).kind for source in report.inputs]
    return "clean" if any(kind not in SOUND for kind in ends) else ""
