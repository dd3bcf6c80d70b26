"""Runs items again: a persona's own at the end of its runs, and all of them in runs that do nothing else.

What a run saw anyway is counted, not run again. Each verdict is kept at once, so that a killed run loses at
most the item that it was at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from anyio import to_thread

from fleet.clock import iso
from fleet.findings import audit
from fleet.findings.proof import TRIES
from fleet.findings.recurrence import Recurrence
from fleet.runs.proof.candidates import Candidate
from fleet.runs.proof.grades import raised
from fleet.runs.proof.item_figures import PROVEN, count, figures_of, keep_audit
from fleet.runs.proof.item_questions import ItemQuestion, bundled_repros, known_items, questions
from fleet.runs.proof.probe_runner import ProbeRunner
from fleet.runs.proof.rerun import SPARE, Rerun, RetestVerdict, cost, rerun
from fleet.runs.proof.retest_order import DISMISSED, FIXED, VERIFIED, changed_first, own_order, whole_order
from fleet.store.rows import ItemRow
from fleet.text import counted
from fleet.triggers.chain.telling import TOLD, tellings


@dataclass(slots=True)
class RetestTally:
    """What a run has run again so far: verdicts by item, and how many items its budget did not cover."""

    verdicts: dict[str, RetestVerdict] = field(default_factory=dict)
    why: str = ""
    left: int = 0
    sampled: int = 0
    asked: int = 0
    reached: int = 0
    clean: list[ItemRow] = field(default_factory=list)

    def add(self, item: ItemRow, result: Rerun) -> None:
        self.verdicts[item.fingerprint] = result.verdict
        self.clean += [item] if result.verdict == "clean" else []
        self.asked += result.asked
        self.reached += result.verdict != "unreached"
        if result.asked:
            self.why = self.why or result.why

    @property
    def blind(self) -> bool:
        """Whether it has asked for items, and reached none."""
        return self.asked > 0 and not self.reached

    def __str__(self) -> str:
        number = Counter(self.verdicts.values())
        words = [f"{number[word]} {word}" for word in ("shown", "clean", "unreached") if number[word]]
        words += [f"{self.left} left for another run"] * bool(self.left)
        words += [f"{self.sampled} of them as a sample"] * bool(self.sampled)
        words += [f"none reached: {self.why}"] * self.blind
        return f"{counted(len(self.verdicts), 'item')} run again" + "".join(f", {word}" for word in words)


async def retest(runner: ProbeRunner, tally: RetestTally | None = None) -> Mapping[str, RetestVerdict]:
    """Run the open items of this persona again that this run did not see; the verdict by fingerprint."""
    world, tally = runner.world, tally or RetestTally()
    rows = await world.journal.findings(runner.run)
    tally.verdicts.update((row.fingerprint, "shown") for row in rows if row.state in PROVEN)
    met, figures = {name for row in rows for name in row.names}, await figures_of(world)
    for known in own_order(await known_items(world), figures, runner.persona.persona.name, met):
        asked = questions(known, world)
        if not isinstance(asked, str) and await _affords(runner, asked):
            await _settle(runner, known.item, asked, tally)
    return tally.verdicts


async def retest_all(runner: ProbeRunner, tally: RetestTally) -> None:
    """Run the items of all personas again that need no other tools than are granted.

    First the audit's sample, then what asks for a function that changed, then the longest unlooked-at.
    """
    world, figures = runner.world, await figures_of(runner.world)
    granted = set(runner.persona.persona.tools)
    sampled, order = whole_order(await known_items(world), figures, runner.run, world.clock.now())
    told = tellings(await world.journal.facts(f"{TOLD}{world.platform.name}:"))
    changed = {one.part[-10:]: at for at, each in told for one in each.changes if one.name == "selector"}
    order = [*order[: len(sampled)], *changed_first(order[len(sampled) :], figures, changed)]
    bundled: Mapping[str, str] = {}
    if any(not one.rows and not one.item.repro for one in order):
        bundled = await to_thread.run_sync(bundled_repros, world.state / "runs")
    for one in order:
        name = one.item.fingerprint
        if name in tally.verdicts:
            continue
        asked = questions(one, world, bundled)
        tools = (
            {step.tool for each in asked for step in each.probe.steps}
            if not isinstance(asked, str)
            else set()
        )
        if not isinstance(asked, str) and not (tools <= granted and await _affords(runner, asked)):
            tally.left += 1
            continue
        await _settle(runner, one.item, asked, tally, audits=name in sampled)


async def retest_one(runner: ProbeRunner, tally: RetestTally) -> None:
    """Run the item again that the operator asked for, whatever its state; nothing is proven or posted."""
    world = runner.world
    for known in await known_items(world):
        if world.item not in (known.item.fingerprint, *known.item.names):
            continue
        asked = questions(known, world, await to_thread.run_sync(bundled_repros, world.state / "runs"))
        if not isinstance(asked, str) and not await _affords(runner, asked):
            asked = "it takes more calls than the budget of a run has"
        await _settle(runner, known.item, asked, tally, raises=False)


async def _affords(runner: ProbeRunner, asked: Collection[ItemQuestion]) -> bool:
    costs = [cost(one.probe) for one in asked]
    calls, writes = await runner.session.calls_left(), await runner.session.writes_left()
    return sum(one for one, _ in costs) + SPARE <= calls and sum(one for _, one in costs) <= writes


async def _settle(
    runner: ProbeRunner,
    item: ItemRow,
    asked: Collection[ItemQuestion] | str,
    tally: RetestTally,
    *,
    audits: bool = False,
    raises: bool = True,
) -> None:
    """Run one item again and keep what came of it; with `raises`, what was fixed and shows is a finding."""
    world, run = runner.world, runner.run
    result = Rerun("unreached", asked, asked=False) if isinstance(asked, str) else Rerun("clean")
    for one in () if isinstance(asked, str) else asked:
        result = await rerun(runner, one, every=audits)
        if result.verdict != "clean":
            break
    result = replace(result, why=world.redactor.text(result.why))
    tally.add(item, result)
    at = iso(world.clock.now())
    if raises and result.verdict == "shown" and result.seen is not None and item.state in (FIXED, VERIFIED):
        await _raised(runner, item, result.seen)

    def after(before: Recurrence) -> Recurrence:
        if result.verdict == "shown":
            return before.shown(at, run)
        return (
            before.clean(at, run, result.why)
            if result.verdict == "clean"
            else before.unreached(at, result.why)
        )

    await count(world, item.fingerprint, after)
    if audits:
        tally.sampled += 1
        await keep_audit(world, _judged(item, result, at, run))


async def _raised(runner: ProbeRunner, item: ItemRow, seen: Candidate) -> None:
    """What was fixed shows again: to be proven and posted like any finding, under its own persona."""
    world, own = runner.world, runner.persona
    row = seen.row(runner.run, own, platform=world.platform.name, redactor=world.redactor)
    await world.journal.add_finding(replace(row, persona=item.persona or row.persona))
    runner.stream.emit(raised(row))


def _judged(item: ItemRow, result: Rerun, at: str, run: str) -> audit.AuditResult:
    """What the sample says of the list: a dismissed item must not show each time, an open one must show."""
    dismissed = item.state == DISMISSED
    wrong = result.times == TRIES if dismissed else result.verdict == "clean"
    verdict: audit.AuditVerdict = "overturned" if wrong else "upheld"
    if result.verdict == "unreached" or (dismissed and 0 < result.times < TRIES):
        verdict = "unreached"
    return audit.AuditResult(
        item=item.fingerprint,
        state=item.state,
        severity=item.severity,
        run=run,
        at=at,
        verdict=verdict,
        why=result.why,
    )
