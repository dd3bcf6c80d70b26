"""Each step of the fix gate catches what no other step does: without that step, it goes through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fleet.config.platform import Platform
from fleet.fix.gate import gate, steps
from fleet.fix.gate.gate import fix_gate
from fleet.fix.gate.variants import Variants, make_variants
from fleet.fix.jails.tree_changes import full
from fleet.fix.model import CheckedPatch, CommandEnd, FixTask, GateReport, GateStep, StepResult
from fleet.fix.ports import TreeCommand, TreeJailPort, TreePort
from tests.fix import sample
from tests.fix.gate_world import ScriptedFixer, accept, named, replacing, task_of
from tests.fix.scripted_build import PANIC, SEEN, MemoryTree, MemoryTrees, ScriptedJails

pytestmark = pytest.mark.anyio


def to(state: str) -> ScriptedFixer:
    """A fixer whose build then behaves like this."""
    return ScriptedFixer([replacing(PANIC.file, PANIC.broken, f"{PANIC.sound}# state: {state}\n")])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> sample.Sample:
    return sample.build(tmp_path_factory.mktemp("steps") / "repository", (PANIC,))


@dataclass
class House:
    built: sample.Sample
    folder: Path

    async def gate(
        self,
        jails: ScriptedJails,
        fixer: ScriptedFixer,
        rounds: int = 1,
        check: gate.CheckPatch = accept,
        variants: gate.MakeVariants = make_variants,
    ) -> GateReport:
        """The gate; no tree is left over, and the steps noted are those reported."""
        noted: list[StepResult] = []
        trees = MemoryTrees(self.folder, self.built.path)
        report = await fix_gate(
            task_of(self.built, PANIC, rounds=rounds, name=named(PANIC, [SEEN])),
            trees=trees,
            jails=jails,
            fixer=fixer,
            platform=sample.PROFILE,
            check_patch=check,
            make_variants=variants,
            note=noted.append,
        )
        assert trees.open_now == 0
        assert tuple(noted) == report.steps
        return report


@pytest.fixture
def house(built: sample.Sample, tmp_path: Path) -> House:
    return House(built, tmp_path)


async def test_a_sound_fix_passes(house: House) -> None:
    report = await house.gate(ScriptedJails(), to("sound"))
    assert report.patch is not None
    assert all(one.passed for one in report.steps)


async def test_without_a_fixer_the_product_is_the_failing_test(house: House) -> None:
    report = await house.gate(ScriptedJails(), ScriptedFixer([], name="none"))
    assert [one.step for one in report.steps] == [GateStep.REPRODUCE, GateStep.TEST_FAILS]
    assert report.patch is not None
    assert (report.patch.text, report.patch.fixes, report.rounds) == (b"", False, 0)
    assert report.patch.test.path == f"tests/test_qa_{named(PANIC, [SEEN])}.py"


async def passed_test(*_: object, **__: object) -> StepResult:
    return StepResult(GateStep.TEST_PASSES, True, "not looked at")


async def passed_again(*_: object, **__: object) -> StepResult:
    return StepResult(GateStep.TEST_FAILS_AGAIN, True, "not looked at")


async def passed_own(*_: object, **__: object) -> StepResult:
    return StepResult(GateStep.OWN_TESTS, True, "not looked at")


async def passed_variants(*_: object, **__: object) -> StepResult:
    return StepResult(GateStep.VARIANTS, True, "not looked at")


@pytest.mark.parametrize(
    ("jails", "state", "step", "name", "removed", "words"),
    [
        ({}, "wrong", GateStep.TEST_PASSES, "test_passes", passed_test, "the regression test fails"),
        (
            {"passes_untouched": True},
            "sound",
            GateStep.TEST_FAILS_AGAIN,
            "test_fails_again",
            passed_again,
            "does not fail without a patch",
        ),
        ({}, "breaks", GateStep.OWN_TESTS, "own_tests", passed_own, "its own tests fail"),
        ({}, "hides", GateStep.VARIANTS, "vary", passed_variants, "the repro still shows"),
        ({}, "narrow", GateStep.VARIANTS, "vary", passed_variants, "neighbours of the repro are not clean"),
        ({}, "refuses", GateStep.VARIANTS, "vary", passed_variants, "a benign control does not work"),
    ],
    ids=["wrong", "not-the-patch", "breaks-tests", "knows-the-test", "knows-the-repro", "refuses-everything"],
)
async def test_only_its_step_catches_what_is_no_fix(
    house: House,
    monkeypatch: pytest.MonkeyPatch,
    jails: dict[str, Any],
    state: str,
    step: GateStep,
    name: str,
    removed: object,
    words: str,
) -> None:
    report = await house.gate(ScriptedJails(**jails), to(state))
    held = report.held_at
    assert held is not None
    assert (held.step, held.passed, report.patch) == (step, False, None)
    assert words in held.words
    monkeypatch.setattr(steps, name, removed)
    assert (await house.gate(ScriptedJails(**jails), to(state))).patch is not None


@pytest.mark.parametrize(
    ("jails", "step", "words"),
    [
        ({"shows": 2}, GateStep.REPRODUCE, "shown 2 of 3"),
        ({"shows": 0}, GateStep.REPRODUCE, "shown 0 of 3"),
        ({"own_fail_before": True}, GateStep.TEST_FAILS, "its own tests fail before any change"),
        ({"other_reason": True}, GateStep.TEST_FAILS, "fails for another reason"),
    ],
    ids=["flaky", "not-there", "own-tests", "reason"],
)
async def test_what_the_base_does_not_show_never_reaches_a_fixer(
    house: House, jails: dict[str, Any], step: GateStep, words: str
) -> None:
    fixer = to("sound")
    report = await house.gate(ScriptedJails(**jails), fixer)
    assert report.held_at is not None
    assert (report.held_at.step, report.patch, fixer.told) == (step, None, [])
    assert words in report.held_at.words


async def test_limits_hold_before_anything_is_run(house: House) -> None:
    fixer = ScriptedFixer([replacing(".github/workflows/ci.yml", "on: push", "on: [push]")])
    report = await house.gate(ScriptedJails(), fixer)
    assert report.held_at is not None
    assert (report.held_at.step, report.held_at.evidence["rule"]) == (GateStep.LIMITS, "workflows")
    assert [one.step for one in report.steps] == [GateStep.REPRODUCE, GateStep.TEST_FAILS, GateStep.LIMITS]


async def test_the_bytes_that_would_be_published_are_checked_last(house: House) -> None:
    asked: list[bytes] = []

    def check(text: bytes, **words: Any) -> CheckedPatch:
        asked.append(text)
        return accept(text if len(asked) == 1 else text.replace(b"rustlite", b".github"), **words)

    report = await house.gate(ScriptedJails(), to("sound"), check=check)
    assert report.held_at is not None
    assert (report.held_at.step, report.patch) == (GateStep.LIMITS, None)
    assert asked[0] == asked[1]
    assert report.steps[-2].step is GateStep.VARIANTS


async def test_a_patch_that_becomes_another_on_the_base_is_held(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, made = MemoryTree.diff, list[bytes]()

    async def diff(tree: MemoryTree, *, without: Sequence[str] = ()) -> bytes:
        made.append(await real(tree, without=without))
        return made[-1] + b"\n" * (len(made) - 1)

    monkeypatch.setattr(MemoryTree, "diff", diff)
    report = await house.gate(ScriptedJails(), to("sound"))
    assert report.held_at is not None
    assert (report.held_at.step, report.patch) == (GateStep.LIMITS, None)
    assert report.held_at.words == "the patch is not what it makes of the base"


async def test_a_patch_that_does_not_build_is_held(house: House) -> None:
    report = await house.gate(ScriptedJails(), to("unbuilt"))
    assert report.held_at is not None
    assert (report.held_at.step, report.held_at.words) == (GateStep.TEST_PASSES, "it does not build")


async def test_a_fixer_that_changes_nothing_is_held(house: House) -> None:
    async def nothing(tree: TreePort, jails: TreeJailPort) -> None:
        return None

    report = await house.gate(ScriptedJails(), ScriptedFixer([nothing]))
    assert report.held_at is not None
    assert report.held_at.words == "the fixer changed nothing"


async def test_a_fixer_learns_what_failed_but_no_neighbour(house: House) -> None:
    change = [to(state).changes[0] for state in ("wrong", "narrow", "sound")]
    fixer = ScriptedFixer(change)
    report = await house.gate(ScriptedJails(), fixer, rounds=3)
    assert report.patch is not None
    assert report.rounds == 3
    assert [[one.step for one in told] for told in fixer.told] == [
        [],
        [GateStep.TEST_PASSES],
        [GateStep.TEST_PASSES, GateStep.VARIANTS],
    ]
    secret = fixer.told[2][1]
    assert (secret.evidence, "compiler-broken" in secret.words) == ({}, True)
    assert "fn frame" not in secret.words
    kept = next(one for one in report.steps if one.step is GateStep.VARIANTS and not one.passed)
    assert len(kept.evidence["neighbours"]) >= 3


@dataclass
class Filling(ScriptedJails):
    """A build that fills the disk of its jail."""

    async def run(self, tree: Path, command: TreeCommand) -> CommandEnd:
        if "compileall" in command.argv:
            raise full(1 << 30)
        return await super().run(tree, command)


async def test_a_build_that_fills_the_disk_is_ended(house: House) -> None:
    report = await house.gate(Filling(), to("sound"))
    assert report.held_at is not None
    assert (report.held_at.step, report.held_at.evidence["rule"]) == (GateStep.REPRODUCE, "disk")


async def test_rounds_end(house: House) -> None:
    fixer = to("wrong")
    report = await house.gate(ScriptedJails(), fixer, rounds=2)
    assert (len(fixer.told), report.rounds, report.patch) == (2, 2, None)


@pytest.mark.parametrize("where", ["ask", "compileall", "test_qa"])
async def test_a_lost_jail_is_tried_once_more_and_then_holds(house: House, where: str) -> None:
    once = await house.gate(ScriptedJails(lost=[where]), to("sound"))
    assert once.patch is not None
    twice = await house.gate(ScriptedJails(lost=[where, where]), to("sound"))
    assert twice.held_at is not None
    assert twice.patch is None
    assert "two jails in a row were lost" in twice.held_at.words


async def test_fewer_than_three_neighbours_hold(house: House) -> None:
    def few(task: FixTask, platform: Platform) -> Variants:
        found = make_variants(task, platform)
        return replace(found, neighbours=found.neighbours[:2])

    report = await house.gate(ScriptedJails(), to("sound"), variants=few)
    assert report.held_at is not None
    assert report.held_at.words == "only 2 neighbours of the repro could be made"
