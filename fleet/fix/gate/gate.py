"""The fix gate: its steps strictly in order, over a bounded number of rounds.

Nothing of a fixer's tree goes on but the patch that git reads from it: every later step works in a fresh tree
to which that patch is applied. A fixer learns which step failed and why, never the neighbours of the repro.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from fleet.clock import Clock, SystemClock
from fleet.config.platform import Platform
from fleet.config.propose import ProposeSection, RepositorySection
from fleet.errors import FixError, PatchRefused
from fleet.fix.gate import steps
from fleet.fix.gate.judging import item_judge
from fleet.fix.gate.regression import regression_test
from fleet.fix.gate.steps import GateBench, StepHeld
from fleet.fix.gate.variants import Variants
from fleet.fix.model import CheckedPatch, FixTask, GateReport, GateStep, RegressionTest, StepResult
from fleet.fix.ports import Fixer, TreeJailPort, TreePort, Trees
from fleet.runs.proof.item_questions import ItemQuestion
from fleet.text import line

NONE = "none"
"""The fixer that changes nothing: its product is the failing test."""


class CheckPatch(Protocol):
    """`fleet.fix.repository.patch_rules.check_patch`: the checked patch, or PatchRefused."""

    def __call__(
        self,
        text: bytes,
        *,
        base: str,
        test: RegressionTest,
        repository: RepositorySection,
        limits: ProposeSection,
    ) -> CheckedPatch: ...


MakeVariants = Callable[[FixTask, Platform], Variants]
Note = Callable[[StepResult], None]


@dataclass(slots=True)
class _GateCourse:
    """The steps so far; each is noted as it ends, with its seconds."""

    note: Note
    clock: Clock
    steps: list[StepResult] = field(default_factory=list)
    began: float = 0.0

    def done(self, step: StepResult) -> None:
        seconds = round(self.clock.monotonic() - self.began, 2)
        step = replace(step, evidence={**step.evidence, "step_seconds": seconds})
        self.steps.append(step)
        self.note(step)
        self.began = self.clock.monotonic()

    def held(self, step: GateStep, why: StepHeld) -> None:
        self.done(StepResult(step, False, line(why.words, 500), why.evidence))


async def fix_gate(  # noqa: PLR0913  the ports of one task
    task: FixTask,
    *,
    trees: Trees,
    jails: TreeJailPort,
    fixer: Fixer,
    platform: Platform,
    check_patch: CheckPatch,
    make_variants: MakeVariants,
    note: Note,
    question: ItemQuestion | None = None,
    clock: Clock | None = None,
) -> GateReport:
    """All steps of one proposal; RunOver passes through, FixError of a work tree as well.

    `question` is how the platform's own re-runs ask for the item, where that is known; see `item_judge`.
    """
    clock = clock or SystemClock()
    course = _GateCourse(note, clock, began=clock.monotonic())
    at = GateStep.REPRODUCE
    async with trees.open(task) as base:
        try:
            with _held_by(FixError):
                bench = GateBench(task, jails, item_judge(task, platform, question))
            await bench.build(base)
            step, results, shown = await steps.reproduce(bench, base)
            bench.judge.own.update(shown.seen)
            course.done(step)
            at = GateStep.TEST_FAILS
            oracle, probe = min(name for name, _ in shown.seen), bench.judge.question.probe
            with _held_by(FixError, "no regression test: "):
                expected = "" if probe.control else probe.expect
                test = regression_test(task, platform, oracle, results, expected=expected)
            course.done(await steps.test_fails(bench, base, test))
        except StepHeld as held:
            course.held(at, held)
            return GateReport(tuple(course.steps), None)
        if fixer.name == NONE:
            return GateReport(tuple(course.steps), CheckedPatch(base.base, b"", test, (), 0, 0))
        rounds = _Rounds(bench, trees, fixer, platform, check_patch, make_variants, course, base, test)
        return await rounds.go()


@contextmanager
def _held_by(kind: type[FixError], words: str = "") -> Iterator[None]:
    """Turn an error within into the reason for which the step holds, with the rule of a refused patch."""
    try:
        yield
    except kind as error:
        rule = {"rule": error.rule} if isinstance(error, PatchRefused) else {}
        raise StepHeld(f"{words}{error}", rule) from None


@dataclass(slots=True)
class _Rounds:
    """Attempts at one fix."""

    bench: GateBench
    trees: Trees
    fixer: Fixer
    platform: Platform
    check_patch: CheckPatch
    make_variants: MakeVariants
    course: _GateCourse
    base: TreePort
    test: RegressionTest
    at: GateStep = GateStep.LIMITS

    async def go(self) -> GateReport:
        """Rounds until one passes every step, or none is left."""
        failed: list[StepResult] = []
        most = self.bench.task.limits.rounds
        for number in range(1, most + 1):
            self.at = GateStep.LIMITS
            try:
                patch = await self._round(failed)
            except StepHeld as held:
                self.course.held(self.at, held)
                # what a fixer learns of a step: of the neighbours, only that they failed
                step = self.course.steps[-1]
                failed.append(replace(step, evidence={}) if step.step is GateStep.VARIANTS else step)
                continue
            return GateReport(tuple(self.course.steps), patch, number)
        return GateReport(tuple(self.course.steps), None, most)

    async def _round(self, failed: Sequence[StepResult]) -> CheckedPatch:
        patch = await self._attempt(failed)
        async with self.trees.open(self.bench.task) as patched:
            self.at = GateStep.TEST_PASSES
            with _held_by(FixError, "the patch does not apply to the base: "):
                await patched.apply(patch.text)
            await patched.put(self.test.path, self.test.text.encode())
            await self.bench.build(patched)
            self.course.done(await steps.test_passes(self.bench, patched, self.test))
            self.at = GateStep.TEST_FAILS_AGAIN
            async with self.trees.open(self.bench.task) as tree:
                await tree.apply(patch.text)
                await tree.restore()
                await tree.put(self.test.path, self.test.text.encode())
                await self.bench.build(tree)
                self.course.done(await steps.test_fails_again(self.bench, tree, self.test))
            self.at = GateStep.OWN_TESTS
            self.course.done(await steps.own_tests(self.bench, patched))
            self.at = GateStep.VARIANTS
            variants = self.make_variants(self.bench.task, self.platform)
            self.course.done(await steps.vary(self.bench, self.base, patched, variants))
        self.at = GateStep.LIMITS
        # once more on exactly the bytes that would be published: what git makes of them on the base
        async with self.trees.open(self.bench.task) as tree:
            await tree.apply(patch.text)
            text = await tree.diff()
        if text != patch.text:
            raise StepHeld("the patch is not what it makes of the base")
        last = self._checked(text)
        self.course.done(self._within(last, "within the limits, as it would be published"))
        return last

    async def _attempt(self, failed: Sequence[StepResult]) -> CheckedPatch:
        """A fixer's patch, within the limits."""
        task = self.bench.task
        async with self.trees.open(task) as tree:
            await tree.put(self.test.path, self.test.text.encode())
            with _held_by(FixError, "no patch: "):
                said = await self.fixer.fix(task, tree, self.bench.jails, tuple(failed))
                text = await tree.diff(without=[self.test.path])
        if not text.strip():
            raise StepHeld("the fixer changed nothing", {"said": line(said.words, 300)})
        patch = self._checked(text)
        self.course.done(self._within(patch, f"within the limits; the fixer says: {line(said.words, 200)}"))
        return patch

    def _checked(self, text: bytes) -> CheckedPatch:
        task = self.bench.task
        with _held_by(PatchRefused, "the patch is refused: "):
            return self.check_patch(
                text, base=self.base.base, test=self.test, repository=task.repository, limits=task.limits
            )

    def _within(self, patch: CheckedPatch, words: str) -> StepResult:
        told = {
            "files": list(patch.files),
            "added": patch.added,
            "removed": patch.removed,
            "patch": f"sha256:{hashlib.sha256(patch.text).hexdigest()}",
        }
        return StepResult(GateStep.LIMITS, True, words, told)
