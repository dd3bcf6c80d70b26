"""What tests of the fix gate share: tasks of the sample's defects, jails, and fixers that follow a script."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleet.errors import PatchRefused
from fleet.findings.fingerprint import identity
from fleet.findings.repro import ReproCall, parse_repro
from fleet.fix.build_calls import facts_of
from fleet.fix.gate.judging import ItemJudge, item_judge
from fleet.fix.jails.tree_jail import TreeJails
from fleet.fix.model import CheckedPatch, FixAttempt, FixTask, RegressionTest, StepResult
from fleet.fix.ports import TreeJailPort, TreePort
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import Image
from fleet.oracles.model import Exchange
from fleet.oracles.table import judge
from tests.fix import sample
from tests.fix.tasks import item, task

RUN = "fixtest1"
Change = Callable[[TreePort, TreeJailPort], Awaitable[None]]


def tree_jails(spool: Path) -> TreeJails:
    """Real jails."""

    def make(image: Image) -> BwrapJail:
        return BwrapJail(image, pool=0, spool=spool)

    return TreeJails(make, sample.PROFILE)


def task_of(
    one: sample.Sample, defect: sample.SampleDefect, *, rounds: int = 2, title: str = "", name: str = ""
) -> FixTask:
    """The task of a sample's defect; `name` is its item's fingerprint."""
    section = sample.repository(one)
    calls = parse_repro(defect.repro)
    return task(
        section if calls[-1].tool == "qa_compile" else sample.for_service(section),
        item(
            name or "0" * 12,
            surface=defect.surface,
            title=title or f"{defect.name}: an item of the sample",
            repro=defect.repro,
        ),
        calls=calls,
        limits=sample.limits(rounds=rounds),
        run=RUN,
    )


def named(defect: sample.SampleDefect, results: Sequence[Mapping[str, Any]]) -> str:
    """The fingerprint that a run of the fleet gives to what these results show."""
    calls = parse_repro(defect.repro)
    seen = tuple(Exchange(call.tool, call.args, result) for call, result in zip(calls, results, strict=True))
    found = [one for one in judge(seen, facts_of(sample.PROFILE)) if one.oracle == defect.oracle]
    assert found, [dict(one) for one in results]
    return identity(found[0].surface, found[0].sighting, _led(calls, found[0].led))


def _led(calls: Sequence[ReproCall], led: Sequence[int]) -> Sequence[ReproCall]:
    return tuple(calls[at] for at in sorted({*led, len(calls) - 1}))


def judge_of(task: FixTask) -> ItemJudge:
    """The judge of a task."""
    return item_judge(task, sample.PROFILE)


def accept(
    text: bytes, *, base: str, test: RegressionTest, repository: object, limits: object
) -> CheckedPatch:
    """Limits that refuse what touches a workflow, and nothing else."""
    files = tuple(
        line.split(" b/")[-1] for line in text.decode().splitlines() if line.startswith("diff --git ")
    )
    if any(path.startswith(".github/") for path in files):
        raise PatchRefused("it changes a workflow", rule="workflows")
    return CheckedPatch(base, text, test, files, text.count(b"\n+"), text.count(b"\n-"))


@dataclass(slots=True)
class ScriptedFixer:
    """Makes one change in each round. `told` is what it was given."""

    changes: Sequence[Change]
    name: str = "scripted"
    told: list[tuple[StepResult, ...]] = field(default_factory=list)

    async def fix(
        self, task: FixTask, tree: TreePort, jails: TreeJailPort, failed: Sequence[StepResult]
    ) -> FixAttempt:
        self.told.append(tuple(failed))
        await self.changes[min(len(self.told), len(self.changes)) - 1](tree, jails)
        return FixAttempt("done")


def patching(patch: bytes) -> Change:
    """A change by a patch."""

    async def change(tree: TreePort, jails: TreeJailPort) -> None:
        await tree.apply(patch)

    return change


def replacing(path: str, before: str, after: str) -> Change:
    """A change of one text in one file."""

    async def change(tree: TreePort, jails: TreeJailPort) -> None:
        text = (tree.path / path).read_text()
        assert before in text
        await tree.put(path, text.replace(before, after).encode())

    return change
