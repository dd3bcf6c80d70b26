"""One proposal, from an item to an open draft: every act is recorded before and after."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from anyio import to_thread

from fleet.drivers.model.prices import cost
from fleet.drivers.session import RunOver
from fleet.errors import FleetError, LostRun
from fleet.events.model import FixStepTaken, ProposalMoved
from fleet.files import disk_errors, write_atomic
from fleet.fix.model import FixTask, GateReport, GateStep, StepResult, TrackerHit
from fleet.fix.parts import WORK, FixParts, FixRun, FixWorld, ProposalTexts
from fleet.fix.paying import PaidJails, RunFixBudget
from fleet.fix.permission.guard import FenceClosed
from fleet.fix.permission.permit import ProposePermit, unlike
from fleet.fix.permission.preconditions import ProposeRefusal, refusal
from fleet.fix.proposal_row import OWED, current, owes, post_owed, record_text, row_of, task_of
from fleet.fix.publish.publishing import Publishing
from fleet.fix.recovery import EVIDENCE
from fleet.runs.driver_choice import Price, unpriced
from fleet.runs.proof.item_questions import ItemQuestion
from fleet.store.rows import HELD_AT, TRACKED, ProposalRow, ProposalState
from fleet.text import line
from fleet.triage.items.worklist import WorklistItem

PATCH = "proposal.patch"
_SHOWN = 300


@dataclass(slots=True)
class Proposer:
    """Makes the one proposal of an open run; RunOver for every end that is not a result."""

    world: FixWorld
    run: FixRun
    parts: FixParts
    permit: ProposePermit
    _steps: list[StepResult] = field(default_factory=list)

    async def propose(
        self, asked: str, item: WorklistItem | None, *, named: bool, question: ItemQuestion | None = None
    ) -> str:
        """What came of it, in a line: opened, held by the gate, or linked to what the tracker has.

        `question`: how the platform's own re-runs ask for the item, where that is known.
        """
        facts = await self.permit.facts(asked, item, named=named, ledger=self.run.ledger)
        found = refusal(facts)
        if item is None or found is not None:
            raise FenceClosed(found or ProposeRefusal("item", f"no item {asked} on the worklist"))
        task = await task_of(self.world, item, self.run.run)
        folder = self.world.folder(self.run.run) / WORK
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            if hit := await self._tracked(task, folder):
                return hit
            limits = task.limits
            why = await self.world.journal.begin_proposal(
                row_of(self.world, task), per_item=limits.per_item, most=limits.open
            )
            if why:
                raise FenceClosed(ProposeRefusal("slots", why))
            self._tell(task, "begun")
            said = await self._proposed(task, folder, question)
            row = await current(self.world, row_of(self.world, task))
            if owes(row) and self.permit.fences() is None and await self.world.source.mine(task.run):
                await post_owed(self.world, row)
            return said
        finally:
            await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))

    async def _tracked(self, task: FixTask, folder: Path) -> str:
        """The best hit of tracker and recent commits, kept as the item's; "" when there is none."""
        words = (task.item.fingerprint, *task.item.names)
        hits = [
            *await self.parts.tracker(task).search(task),
            *await self.parts.trees(task, folder).commits(task, tuple(dict.fromkeys(words))),
        ]
        rows = await self.world.journal.proposals(self.world.platform.name, item=task.item.fingerprint)
        others = await unlike(self.world, task.item.fingerprint)
        hit = next((one for one in hits if one.ref not in others and not _ours(one, rows)), None)
        key = f"{TRACKED}{self.world.platform.name}.{task.item.fingerprint}"
        known = await self.world.journal.get(key) or ""
        said = line(f"{hit.state} {hit.kind} {hit.ref}: {hit.why}", _SHOWN) if hit else ""
        if said != known:
            await self.world.journal.put(key, said, run=self.run.run)
        if hit is not None:
            self._tell(task, "linked", hit.ref, said)
            again = f"fleet propose {task.item.fingerprint} --not-a-duplicate-of {hit.ref}"
            return f"nothing proposed: {said}; if that is another defect: {again}"
        return ""

    async def _proposed(self, task: FixTask, folder: Path, question: ItemQuestion | None) -> str:
        try:
            report = await self._gated(task, folder, question)
        except LostRun:
            raise
        except (RunOver, FleetError) as error:  # a kill leaves it begun: the next start settles it
            await self._move(task, "held", why=line(str(error), _SHOWN))
            raise
        await self._keep(task, report)
        patch = report.patch
        if patch is None:
            return await self._held(task, report)
        if self.world.redactor.text(text := patch.text.decode("utf-8", "replace")) != text:
            await self._move(task, "held", {HELD_AT: "secret"}, why="the patch holds a secret of this fleet")
            raise RunOver("refused", "secret: the patch holds a secret of this fleet")
        raw, mask = self.parts.texts(task, report, patch), self.world.redactor.text
        texts = ProposalTexts(mask(raw.title), mask(raw.body), mask(raw.message))
        data = {
            **asdict(texts),
            "files": list(patch.files),
            "added": patch.added,
            "removed": patch.removed,
            "test": patch.test.path,
            "fixes": patch.fixes,
            "rounds": report.rounds,
            "steps": [{"step": str(one.step), "passed": one.passed} for one in report.steps],
        }
        await self._move(task, "checked", data, base=patch.base)
        publishing = Publishing(
            self.world,
            self.permit,
            self.parts,
            task,
            self.run.persona,
            lambda state, ref, why: self._tell(task, state, ref, why),
        )
        await publishing.push(patch, texts.message)
        opened = await publishing.open(texts.title, texts.body, run=self.run.run)
        return f"{opened.state}: {opened.ref}"

    async def _gated(self, task: FixTask, folder: Path, question: ItemQuestion | None) -> GateReport:
        def note(step: StepResult) -> None:
            self._steps.append(step)
            self.run.stream.emit(
                FixStepTaken(
                    step=step.step,
                    passed=step.passed,
                    words=self._line(step.words),
                    item=task.item.fingerprint,
                )
            )

        async with self.parts.jails(task, folder) as inner:
            clock, ledger = self.world.clock, self.run.ledger
            section = self.world.config.model
            price: Price = partial(cost, section.prices) if section else unpriced
            ends = clock.monotonic() + ledger.budget.wall_s
            budget = RunFixBudget(ledger, clock, ends, self.permit.fences, price)
            return await self.parts.gate(
                task,
                trees=self.parts.trees(task, folder),
                jails=PaidJails(inner, ledger, self.permit.fences),
                fixer=self.parts.fixer(task, budget),
                note=note,
                question=question,
            )

    async def _held(self, task: FixTask, report: GateReport) -> str:
        """The gate held it. An item of which a build of the base is clean needs a better repro; of one that
        could not be looked at there, or that showed now and then, nothing is said."""
        step = report.held_at
        why = self._line(f"{step.step}: {step.words}" if step else "the gate gave no reason")
        owed = {HELD_AT: str(step.step)} if step else {}
        seen = step.evidence if step is not None and step.step == GateStep.REPRODUCE else {}
        if step is not None and seen.get("looked") and not seen.get("shown"):
            reason = f"it does not show on a build of {task.name} ({task.repository.branch}): {step.words}"
            owed |= {OWED: record_text(self.world, task, "needs-repro", reason, self.run.persona)}
        await self._move(task, "held", owed, why=why)
        return f"held at {why}"

    async def _keep(self, task: FixTask, report: GateReport) -> None:
        """The steps with what each has seen, and the patch, in the run's evidence."""
        folder = self.world.folder(task.run) / "evidence"
        steps = [asdict(one) for one in report.steps]
        record = self.world.redactor.value({"item": task.item.fingerprint, "steps": steps})
        text = json.dumps(record, ensure_ascii=True, default=str, indent=1).encode()

        def write() -> None:
            with disk_errors(folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_atomic(folder / EVIDENCE, text)
                if report.patch is not None:
                    write_atomic(folder / PATCH, report.patch.text)

        await to_thread.run_sync(write)

    async def _move(
        self, task: FixTask, state: ProposalState, data: dict[str, Any] | None = None, **changes: str
    ) -> None:
        await self.world.journal.move_proposal(task.run, state, data, **changes)
        self._tell(task, state, "", changes.get("why", ""))

    def _tell(self, task: FixTask, state: str, ref: str = "", why: str = "") -> None:
        self.run.stream.emit(
            ProposalMoved(proposal=task.run, item=task.item.fingerprint, state=state, ref=ref, why=why)
        )

    def _line(self, text: str) -> str:
        return line(self.world.redactor.text(text), _SHOWN)


def _ours(hit: TrackerHit, rows: Sequence[ProposalRow]) -> bool:
    """Whether a hit is an earlier proposal of the item, or the commits of one that a person merged."""
    merged = hit.kind == "commit" and any(row.state == "merged" for row in rows)
    return merged or any(hit.ref in (row.ref, row.head) for row in rows)


def best(items: Sequence[WorklistItem]) -> list[WorklistItem]:
    """Items in the order of the worklist."""
    return sorted((one for one in items if one.rank), key=lambda one: one.rank)
