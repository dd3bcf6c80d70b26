"""The outbox: a confirmed finding goes to the log once, and is read back; whatever was interrupted."""

from __future__ import annotations

from fleet.chain.ports import Posted
from fleet.errors import BudgetExceeded
from fleet.events.model import FindingPosted, FindingRepeated
from fleet.events.stream import Stream
from fleet.findings.envelope import compose, write
from fleet.findings.fingerprint import fingerprint
from fleet.runs.world import World
from fleet.store.rows import FindingRow

CLOSING = "budget-exceeded"
"""Stands in a closing report where a finding names its probe."""


async def report_all(world: World, run: str, stream: Stream) -> None:
    """Post what this run confirmed, and finish what a crash left in the outbox.

    Every transaction of this run has been settled before this is called: what is not on the log now
    will not appear there by itself.
    """
    for row in await world.journal.findings(run, ["posting", "confirmed"]):
        if row.state == "posting":
            index = await world.log.find(row.envelope, world.identity)
            if index is not None:
                await _done(world, row, Posted(tx=row.tx, index=index), stream)
                continue
        elif not await world.journal.claim_posting(run, row.fingerprint):
            await _repeated(world, row, -1, stream)
            continue
        elif (earlier := await world.journal.posted(row.fingerprint)) is not None:
            await _repeated(world, row, earlier.index, stream)
            continue
        if row.probe == CLOSING:
            world.closing.add(run)
        try:
            posted = await world.log.post(row.envelope, run=run)
        except BudgetExceeded:
            await world.journal.set_finding(run, row.fingerprint, state="confirmed")
            break
        await _done(world, row, posted, stream)


async def _done(world: World, row: FindingRow, posted: Posted, stream: Stream) -> None:
    await world.journal.set_finding(
        row.run_id, row.fingerprint, state="posted", tx=posted.tx, index=posted.index
    )
    stream.emit(FindingPosted(fingerprint=row.fingerprint, tx=posted.tx, index=posted.index))


async def _repeated(world: World, row: FindingRow, index: int, stream: Stream) -> None:
    """The fleet has this one on the log already: counted, not posted again."""
    await world.journal.set_finding(row.run_id, row.fingerprint, state="repeated", index=index)
    stream.emit(FindingRepeated(fingerprint=row.fingerprint, index=index))


async def close_over_budget(world: World, run: str, persona: str, surface: str, detail: str) -> None:
    """Put the closing report of a run that spent its budget into the outbox: the reserve pays for it."""
    title = f"run ended: {detail}"
    fp = fingerprint(surface, (), f"budget-exceeded {run}")
    text = write(
        compose(
            world.redactor, source=persona, sev="info", surface=surface, run=run, fp=fp,
            rate=None, ev="", title=title, body="budget-exceeded: the rest of the probes was not run",
        )
    )  # fmt: skip
    row = FindingRow(
        run_id=run, fingerprint=fp, state="confirmed", probe=CLOSING, persona=persona,
        surface=surface, severity="info", title=title, envelope=text,
    )  # fmt: skip
    await world.journal.add_finding(row)
