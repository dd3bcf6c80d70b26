"""What the answers of a build say of an item, judged as when items are run again on the platform. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fleet.config.platform import Platform
from fleet.drivers.session import OUR_FAILURES, cause_of
from fleet.errors import FixError
from fleet.findings.repro import ReproCall
from fleet.fix.build_calls import facts_of
from fleet.fix.model import FixTask
from fleet.oracles.model import Facts
from fleet.personas.model import Step
from fleet.runs.proof.attempt import Attempt, judged
from fleet.runs.proof.candidates import Candidate, candidates
from fleet.runs.proof.item_questions import ItemQuestion, by_repro
from fleet.runs.proof.rerun import unanswered
from fleet.triage.run import item_row

Looked = Literal["shown", "clean", "unsure"]


@dataclass(frozen=True, slots=True)
class BuildVerdict:
    """`words`: what was seen, or why it could not be told. `seen` are pairs of oracle and signature; the
    oracle is empty for an expectation."""

    verdict: Looked
    words: str = ""
    seen: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class ItemJudge:
    """One item's question, and what is known of the build. `own`: what the base has shown of the item."""

    question: ItemQuestion
    facts: Facts
    own: set[tuple[str, str]] = field(default_factory=set)

    def item(self, calls: Sequence[ReproCall], results: Sequence[Mapping[str, Any]]) -> BuildVerdict:
        """Whether answers to the item's own calls show the item."""
        seen = self._attempt(calls, results, keeps=True)
        if one := self.question.shown(seen, self.facts):
            return BuildVerdict("shown", one.sighting.title, _named((one,)))
        why = unanswered(seen) or self.question.unsure
        return BuildVerdict("unsure", why) if why else BuildVerdict("clean")

    def neighbour(
        self, calls: Sequence[ReproCall], results: Sequence[Mapping[str, Any]], *, keeps: bool = False
    ) -> BuildVerdict:
        """Whether answers to other calls show any defect; `keeps`: the probe's expectation holds of them."""
        seen = self._attempt(calls, results, keeps=keeps)
        surface: Any = self.question.item.surface
        probe = self.question.probe.model_copy(
            update={"steps": tuple(Step(tool=one.tool, args=dict(one.args)) for one in calls)}
        )
        if found := candidates(probe, seen, surface, self.facts):
            return BuildVerdict("shown", found[0].sighting.title, _named(found))
        if seen.reason:
            return BuildVerdict("unsure", seen.reason)
        return BuildVerdict("clean")

    def _attempt(
        self, calls: Sequence[ReproCall], results: Sequence[Mapping[str, Any]], *, keeps: bool
    ) -> Attempt:
        made = tuple({"tool": one.tool, "args": dict(one.args)} for one in calls[: len(results)])
        seen = Attempt(state="inconclusive", calls=made, asked=made, results=tuple(results))
        for call, result in zip(made, results, strict=True):
            if (cause := cause_of(result)) in OUR_FAILURES:
                reason = f"{call['tool']}: {cause}: {result.get('error', '')}"
                return replace(seen, reason=reason)
        if len(results) < len(calls):
            return replace(seen, reason="not every call was answered")
        probe = self.question.probe
        probe = probe if keeps else probe.model_copy(update={"expect": "true", "control": ""})
        return judged(probe, seen, self.facts.history, self.facts.promised)


def item_judge(task: FixTask, platform: Platform, question: ItemQuestion | None = None) -> ItemJudge:
    """The judge of a task's item. `question`, where it is known (journal, learned probes, personas), decides
    as it does on the platform; else the oracles judge the repro. FixError when its question is not known."""
    found = question or by_repro(item_row(task.item), task.calls)
    if isinstance(found, str):
        raise FixError(found)
    if found.unsure:
        raise FixError(f"a build does not show whether the item is gone: {found.unsure}")
    if len(found.probe.steps) != len(task.calls):
        raise FixError("its question has other calls than its repro")
    return ItemJudge(found, facts_of(platform))


def _named(found: Sequence[Candidate]) -> frozenset[tuple[str, str]]:
    return frozenset((one.oracle, one.sighting.signature) for one in found)
