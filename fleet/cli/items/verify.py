"""`fleet items verify ID`: one item is run again now, in an ordinary run that posts nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fleet.app.persona_sets import one, roster
from fleet.app.wiring import open_world
from fleet.cli.console import note, run, state
from fleet.cli.items import item_view
from fleet.cli.personas.try_probe import undisturbed
from fleet.cli.progress import Progress
from fleet.errors import FleetError, Refused, UsageError
from fleet.findings.recurrence import Recurrence
from fleet.runs.proof.item_figures import figures_of
from fleet.runs.proof.rerun import RetestVerdict
from fleet.runs.run import RunReport, fire
from fleet.text import clean
from fleet.triage.items.worklist import WorklistItem

PERSONA = "qa-retest"


@dataclass(frozen=True, slots=True)
class ItemLook:
    """What came of another look at an item; `why` it could not tell, or why what it shows is not a defect."""

    run: str
    verdict: RetestVerdict
    why: str

    @classmethod
    def of(cls, report: RunReport, before: Recurrence, after: Recurrence) -> ItemLook:
        """From the item's figures; a run that did not come to the item says itself why."""
        if after.clean_run == report.run:
            return cls(report.run, "clean", after.clean_why)
        if after.run == report.run:
            return cls(report.run, "shown", "")
        why = after.why if after != before else ""
        return cls(report.run, "unreached", why or f"{report.outcome} {report.detail}".strip())


def looked_at(fingerprint: str) -> tuple[WorklistItem, ItemLook]:
    """The item, and what came of running it again; Refused for a stranger's."""
    item = item_view.listed(state(), fingerprint)
    if item is None:
        raise UsageError(
            f"no item {clean(fingerprint, 40)!r} on the worklist", remedy="fleet items --state all"
        )
    if not item.trusted:
        raise Refused(
            f"item {item.fingerprint} is a stranger's: what a stranger wrote is never run",
            rule="untrusted",
            remedy=f"read it: fleet items show {item.fingerprint} --untrusted",
        )
    undisturbed(state())
    persona = one(PERSONA)

    async def look() -> ItemLook:
        async with open_world(
            state(), personas=roster()[0], watch=(Progress(),), patient=True, posts=False
        ) as world:
            note(f"platform {world.platform.name}: this run posts nothing")
            before = (await figures_of(world)).get(item.fingerprint, Recurrence())
            report = await fire(replace(world, item=item.fingerprint), persona)
            if not report.settled:
                raise FleetError(f"run {report.run} is not settled: {report.detail}", remedy="run it again")
            after = (await figures_of(world)).get(item.fingerprint, Recurrence())
            return ItemLook.of(report, before, after)

    return item, run(look)
