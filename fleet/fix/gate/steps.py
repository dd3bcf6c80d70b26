"""The steps of the fix gate: each looks at a build in jails and says what it saw.

A jail that is lost is asked once more, then the step holds: what could not be looked at never passes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet.drivers.session import OUR_FAILURES, cause_of
from fleet.errors import FixError, JailError, PatchRefused
from fleet.findings.proof import TRIES
from fleet.findings.repro import ReproCall, spell
from fleet.fix.gate.judging import BuildVerdict, ItemJudge
from fleet.fix.gate.regression import shown_by
from fleet.fix.gate.variants import Variants
from fleet.fix.model import CommandEnd, FixTask, GateStep, RegressionTest, StepResult
from fleet.fix.ports import TreeCommand, TreeJailPort, TreePort
from fleet.oracles.table import ORACLES
from fleet.text import clean, line

FEWEST = 3
"""Neighbours of a repro that must be clean with a patch."""
_TAIL = 4_000
LEAKS = frozenset({"trace"})
"""Oracles of what an answer tells of the inside of a program: a path is shown in any words."""
_PATH = re.compile(r"(?<![\w.:~-])(?:/box|/opt/qa_tree)/[\w./-]{1,200}")
_MISSING = (404, 410)
_COMPARED = ("ok", "outcome", "status", "content_type", "has_entry", "valid")

Results = Sequence[Mapping[str, Any]]


class StepHeld(Exception):
    """A step that did not pass: `words` say why, `evidence` what was seen."""

    def __init__(self, words: str, evidence: Mapping[str, Any] | None = None) -> None:
        super().__init__(words)
        self.words, self.evidence = words, evidence or {}


@dataclass(frozen=True, slots=True)
class GateBench:
    """What all steps of one task share."""

    task: FixTask
    jails: TreeJailPort
    judge: ItemJudge

    async def run(self, tree: TreePort, command: Sequence[str], *, keep: bool = False) -> CommandEnd:
        """A command of the repository; StepHeld when two jails in a row were lost, or when what one keeps
        goes beyond the bounds of a tree."""
        repository = self.task.repository
        mounts = {name: Path(path) for name, path in repository.mounts.items()}
        asked = TreeCommand(command, repository.timeout_s, keep, mounts=mounts)
        for _ in range(2):
            try:
                end = await self.jails.run(tree.path, asked)
            except PatchRefused as refused:
                raise StepHeld(str(refused), {"command": list(command), "rule": refused.rule}) from None
            if end.how != "lost":
                return end
        raise StepHeld("two jails in a row were lost", _told(command, end))

    async def ask(self, tree: TreePort, calls: Sequence[ReproCall], *, elsewhere: bool = False) -> Results:
        """Tool calls against the build; StepHeld when two jails in a row were lost."""
        for tried in range(2):
            try:
                return await self.jails.ask(tree.path, self.task, calls, elsewhere=elsewhere)
            except JailError as error:
                if tried:
                    raise StepHeld(f"two jails in a row were lost: {line(str(error), 300)}") from None
        raise AssertionError

    async def build(self, tree: TreePort) -> None:
        """Every build command of the repository, in the tree; StepHeld by the first that fails."""
        for command in self.task.repository.build:
            end = await self.run(tree, command, keep=True)
            if not end.passed:
                raise StepHeld("it does not build", _told(command, end))

    async def run_test(self, tree: TreePort, test: RegressionTest) -> tuple[CommandEnd, Mapping[str, Any]]:
        """The regression test alone, and what is to be kept of it."""
        command = [word.replace("{path}", test.path) for word in self.task.repository.regression.command]
        end = await self.run(tree, command)
        return end, _told(command, end)


async def reproduce(bench: GateBench, base: TreePort) -> tuple[StepResult, Results, BuildVerdict]:
    """Ask for the item in fresh jails: each look must show it."""
    seen: list[BuildVerdict] = []
    results: Results = ()
    calls = bench.task.calls
    for _ in range(TRIES):
        try:
            results = await bench.ask(base, calls)
        except FixError as error:
            raise StepHeld(str(error)) from None
        seen.append(bench.judge.item(calls, results))
    times = sum(one.verdict == "shown" for one in seen)
    looks = [line(one.words, 300) for one in seen]
    looked = all(one.verdict != "unsure" for one in seen)
    told: dict[str, Any] = {"shown": times, "of": TRIES, "looked": looked, "looks": looks}
    if times == TRIES:
        # what the base has answered, for people
        result = results[-1]
        text = str(result.get("text") or result.get("error") or "")
        head = result.get("status") or result.get("outcome") or ""
        # what should have been, in the words of the oracle or of the probe
        says = [one.says for one in ORACLES if any(one.id == name for name, _ in seen[-1].seen)]
        told |= {
            "answered": line(f"{head} {text}".strip(), 300),
            "expected": says[0] if says else bench.judge.question.probe.expect,
        }
        step = StepResult(
            GateStep.REPRODUCE, True, f"shown {times} of {TRIES}: {line(seen[-1].words, 200)}", told
        )
        return step, results, seen[-1]
    why = next((one.words for one in seen if one.verdict == "unsure"), "")
    words = f"it could not be looked at: {line(why, 300)}" if why else f"shown {times} of {TRIES} on the base"
    raise StepHeld(words, told)


async def test_fails(bench: GateBench, base: TreePort, test: RegressionTest) -> StepResult:
    """The repository's own tests pass on the base; the regression test fails there, for the item's reason."""
    await own_tests(bench, base, "its own tests fail before any change")
    await base.put(test.path, test.text.encode())
    end, told = await bench.run_test(base, test)
    seen = _shown(test, end, told)
    return StepResult(GateStep.TEST_FAILS, True, f"fails for the item's reason: {seen}", told)


async def test_passes(bench: GateBench, patched: TreePort, test: RegressionTest) -> StepResult:
    """The regression test, with the patch."""
    end, told = await bench.run_test(patched, test)
    if not end.passed:
        raise StepHeld(f"the regression test fails with the patch ({_how(end)})", told)
    return StepResult(GateStep.TEST_PASSES, True, "passes with the patch", told)


async def test_fails_again(bench: GateBench, reverted: TreePort, test: RegressionTest) -> StepResult:
    """The regression test, with the patch taken back."""
    end, told = await bench.run_test(reverted, test)
    seen = _shown(test, end, told)
    return StepResult(GateStep.TEST_FAILS_AGAIN, True, f"fails again without the patch: {seen}", told)


async def own_tests(bench: GateBench, tree: TreePort, otherwise: str = "its own tests fail") -> StepResult:
    """The repository's own test command."""
    command = bench.task.repository.test
    end = await bench.run(tree, command)
    if not end.passed:
        raise StepHeld(f"{otherwise} ({_how(end)})", _told(command, end))
    return StepResult(GateStep.OWN_TESTS, True, "its own tests pass", _told(command, end))


async def vary(bench: GateBench, base: TreePort, patched: TreePort, variants: Variants) -> StepResult:
    """The repro and its neighbours show nothing with the patch, and benign calls are answered as before."""
    calls = bench.task.calls
    for _ in range(TRIES):
        after_repro = await bench.ask(patched, calls)
        verdict = _pathless(bench, after_repro, bench.judge.item(calls, after_repro))
        if verdict.verdict != "clean":
            how = "shows" if verdict.verdict == "shown" else "cannot be looked at"
            raise StepHeld(f"the repro still {how} with the patch: {line(verdict.words, 300)}")
    if len(variants.neighbours) < FEWEST:
        raise StepHeld(f"only {len(variants.neighbours)} neighbours of the repro could be made")
    sets = [*((one,) for one in variants.controls), *(one.calls for one in variants.neighbours)]
    before = await _answers(bench, base, sets, again=False)
    after = await _answers(bench, patched, sets, again=True)
    outside = await _outside(bench, base, patched)
    at = len(variants.controls)
    rows, bad = _neighbours(bench, variants, before[at:], after[at:])
    controls, lost = _controls(bench, variants, before[:at], after[:at], after_repro)
    told = {"neighbours": rows, "controls": controls, "outside": outside}
    if bad:
        kinds = ", ".join(sorted(bad))
        raise StepHeld(f"neighbours of the repro are not clean with the patch: {kinds}", told)
    if lost:
        raise StepHeld(f"a benign control does not work any more: {lost}", told)
    shown = sum(bool(row["counts"]) for row in rows)
    words = f"the repro and {len(rows)} neighbours are clean; {outside}"
    if shown < FEWEST:
        words = f"{words}; not shown that it is more than a fix of one value: {shown} others fail on the base"
    else:
        words = f"{words}; {shown} other values of its input fail on the base"
    return StepResult(GateStep.VARIANTS, True, f"{words}; {len(controls)} benign controls answer", told)


async def _outside(bench: GateBench, base: TreePort, patched: TreePort) -> str:
    """Ask once more where nothing is as a fixer has seen it: a fix that knows the jail is no fix there."""
    calls = bench.task.calls
    was = bench.judge.item(calls, await bench.ask(base, calls, elsewhere=True))
    if was.verdict != "shown":
        return "outside of the jail's layout it does not show on the base either: nothing is known there"
    results = await bench.ask(patched, calls, elsewhere=True)
    now = bench.judge.item(calls, results)
    if now.verdict != "clean":
        how = "shows" if now.verdict == "shown" else "cannot be looked at"
        words = f"the repro {how} with the patch outside of the jail's layout: {line(now.words, 300)}"
        raise StepHeld(words, {"outside": now.verdict})
    return "outside of the jail's layout it is clean as well"


def _pathless(bench: GateBench, results: Results, verdict: BuildVerdict) -> BuildVerdict:
    """A leak that shows a path of the build in other words is the same leak."""
    if verdict.verdict != "clean" or not any(name in LEAKS for name, _ in bench.judge.own):
        return verdict
    for result in results:
        text = " ".join([str(result.get("text", "")), *map(str, dict(result.get("headers") or {}).values())])
        if found := _PATH.search(text):
            return BuildVerdict("shown", f"a path of the build: {found[0]}", frozenset(bench.judge.own))
    return verdict


def _neighbours(
    bench: GateBench, variants: Variants, before: Sequence[Results], after: Sequence[Results]
) -> tuple[list[dict[str, Any]], set[str]]:
    """What each showed on both builds, and the kinds of what shows with the patch and counts against it."""
    judge, rows, bad = bench.judge, [], set[str]()
    for one, old, new in zip(variants.neighbours, before, after, strict=True):
        was = judge.neighbour(one.calls, old, keeps=one.keeps)
        now = _pathless(bench, new, judge.neighbour(one.calls, new, keeps=one.keeps))
        own = {pair[0] for pair in judge.own}
        rows.append(
            {
                "calls": line(spell(one.calls), 600),
                "base": was.verdict,
                "patched": now.verdict,
                "words": line(now.words, 200),
                "counts": not one.same and any(name in own for name, _ in was.seen),
            }
        )
        if now.verdict == "unsure":
            bad.add("one cannot be looked at")
        elif now.verdict == "shown":
            bad |= {
                name or "what is expected"
                for name, what in now.seen
                if name in own or (name, what) not in was.seen
            }
    return rows, bad


def _controls(
    bench: GateBench,
    variants: Variants,
    before: Sequence[Results],
    after: Sequence[Results],
    after_repro: Results,
) -> tuple[list[dict[str, Any]], str]:
    """Each benign call on both builds, and which of them is not answered as before.

    What shows the defect itself on the base is no control; nor is another unknown thing in the place that the
    repro is about, which a right fix says is not there, as it says of the repro's.
    """
    own, missing = {pair[0] for pair in bench.judge.own}, _essence(after_repro).get("status") in _MISSING
    rows, lost, good = list[dict[str, Any]](), "", 0
    for one, old, new in zip(variants.controls, before, after, strict=True):
        was, now = _essence(old), _essence(new)
        rows.append(row := {"calls": line(spell([one]), 300), "base": was, "patched": now})
        shows = any(name in own for name, _ in bench.judge.neighbour([one], old).seen)
        if shows or (one in variants.varied and missing and now.get("status") in _MISSING):
            row["left_out"] = "shows the defect" if shows else "not there, as the repro's"
            continue
        good += bool(was.get("ok"))
        if was.get("ok") and was != now:
            lost = lost or f"{one.tool}: {was} before, {now} now"
    return rows, lost if good else "none was answered on the base"


async def _answers(
    bench: GateBench, tree: TreePort, sets: Sequence[Sequence[ReproCall]], *, again: bool
) -> list[Results]:
    """The results of each question, all in one jail; with `again`, in one of its own where that broke off."""
    flat = [call for calls in sets for call in calls]
    results = await bench.ask(tree, flat) if flat else ()
    found: list[Results] = []
    at = 0
    for calls in sets:
        own = results[at : at + len(calls)]
        at += len(calls)
        broke = len(own) < len(calls) or any(cause_of(one) in OUR_FAILURES for one in own)
        found.append(await bench.ask(tree, calls) if broke and again else own)
    return found


def _essence(results: Results) -> dict[str, Any]:
    return {key: results[-1][key] for key in _COMPARED if key in results[-1]} if results else {}


def _shown(test: RegressionTest, end: CommandEnd, told: Mapping[str, Any]) -> str:
    if end.passed:
        raise StepHeld("the regression test does not fail without a patch", told)
    if not (seen := shown_by(test, end)):
        raise StepHeld(f"the regression test fails for another reason ({_how(end)})", told)
    return seen


def _how(end: CommandEnd) -> str:
    return end.how if end.how in ("timeout", "flood", "lost") else f"{end.how} {end.code}"


def _told(command: Sequence[str], end: CommandEnd) -> dict[str, Any]:
    output = (end.stdout + b"\n" + end.stderr).strip()[-_TAIL:].decode("utf-8", "replace")
    return {
        "command": list(command),
        "how": end.how,
        "code": end.code,
        "seconds": end.seconds,
        "output": "\n".join(clean(text) for text in output.splitlines()),
    }
