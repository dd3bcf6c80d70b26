"""The outbox: a confirmed finding is posted once and read back, also after an interruption."""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from fleet.chain.node.reputation import entry_text
from fleet.chain.ports import PostedEntry
from fleet.chain.signing.tx import parse
from fleet.errors import BudgetExceeded, FleetError, LostRun, TryAgain
from fleet.events.model import FindingPosted, FindingRepeated
from fleet.events.stream import Stream
from fleet.findings import closing
from fleet.findings.envelope import compose, read, write
from fleet.findings.fingerprint import fingerprint
from fleet.findings.outage import WORD as OUTAGE
from fleet.findings.records import SOURCE, fixed_record, write_record
from fleet.findings.recurrence import key_of, read_recurrence
from fleet.runs.context import FleetContext, RunContext
from fleet.runs.settlement.finality import PostingSide, claimed, look_at_posts
from fleet.runs.settlement.turn import posting
from fleet.severity import GRAVE, Severity, weight
from fleet.store.rows import CLOSING, HOLD, FindingRow, FindingState, ItemRow
from fleet.store.standing import standing

_LOG = logging.getLogger("fleet.runs")
KEPT_REPORTS = 0.25
"""The share of a run's reports that is kept, while it goes on, for what is critical or high."""
COMMITTED = "committed"
"""Of a finding's data: one more than the index of the entry that keeps its date."""
HIDDEN = frozenset({"dismissed", "snoozed"})
"""States that a person set: what happens meanwhile is not shown, and gets no record."""


async def report_proven(context: RunContext) -> None:
    """Post this run's confirmed findings while it goes on; what fails is left to its end.

    What is not grave leaves a share of the reports for what is, and may still come.
    """
    try:
        kept = max(1, int(context.ledger.budget.reports * KEPT_REPORTS))
        await report_all(context, ["confirmed"], kept=kept)
    except LostRun:
        raise
    except FleetError as error:
        _LOG.warning("run %s: its findings are posted at its end: %s", context.run, error)


async def report_all(
    context: RunContext, states: Collection[FindingState] = ("posting", "confirmed"), *, kept: int = 0
) -> None:
    """Post this run's confirmed findings, the gravest first, and finish what a crash left in the outbox.

    `kept` reports are left for grave ones.

    Every transaction of this run is settled before this call: what is not on the log now will not appear
    there later. If a daemon presumed dead still holds one of them, it has the same nonce as the one signed
    here. LostRun when this process is that daemon.
    """
    world, run = context.fleet, context.run
    await _seen(world, run)
    rows = await world.journal.findings(run, states)
    on_hold = await _on_hold(world, rows)
    for row in sorted(rows, key=lambda one: -weight(one.severity)):
        if row.fingerprint in on_hold and world.platform.post.commit and not row.data.get(COMMITTED):
            await _commit(context, row)
        if row.data.get("held") or row.fingerprint in on_hold:
            continue  # an outage of the node: the run that sees it answer posts it (outage/watch.py)
        await _nothing_on_its_way(world, row)
        if row.state == "posting" and await _is_there(context, row):
            continue
        unit: Literal["reports", "closing"] = "closing" if row.probe == CLOSING else "reports"
        # Only paid findings enter the outbox: if no budget is left, the crash came after the charge.
        paid = row.state == "posting" and await context.has_paid(unit)
        if paid or await context.can_post(unit, 0 if row.severity in GRAVE else kept):
            await _post(context, row, "none" if paid else unit)
        elif row.state == "posting":
            await _put_back(world, row)
        # else it stays confirmed: a later run that sees it again has its own budget


async def report_released(context: RunContext) -> None:
    """Post what a person released of runs that have ended, as this run and from no budget of it.

    What a killed run left in the outbox its own recovery finishes, which settles its transactions first.
    """
    world = context.fleet
    rows = [
        row
        for row in await world.journal.findings(None, ["confirmed", "posting"])
        if row.data.get(HOLD) and row.run_id != context.run
    ]
    rows = [] if world.trial else rows
    on_hold = await _on_hold(world, rows)
    for row in rows:
        poster = str(row.data.get("poster", ""))
        busy = row.state == "posting" and poster != context.run and not await _has_ended(world, poster)
        if busy or row.fingerprint in on_hold or not await _has_ended(world, row.run_id):
            continue
        with suppress(LostRun):  # a run of a peer, which posts it
            await world.journal.set_finding(
                row.run_id, row.fingerprint, data={**row.data, "poster": context.run}
            )
            await _nothing_on_its_way(world, row)
            if row.state != "posting" or not await _is_there(context, row):
                await _post(context, row, "none")


async def _commit(context: RunContext, row: FindingRow) -> None:
    """Post the hash of a finding that waits, once; what has no room in the budget is tried again later."""
    world, digest = context.fleet, closing.digest_of(row.envelope)
    text = write(
        compose(
            world.redactor,
            source=SOURCE,
            sev=Severity.INFO,
            surface="log",
            run="",
            fp=digest[:12],
            rate=None,
            ev="",
            title=f"{closing.COMMITTED}{digest}",
        )
    )
    index = await world.chain.log.find(text, world.chain.identity)
    if index is None:
        if not await context.can_post("reports"):
            return
        index = (await world.chain.log.post(text, run=context.run, charge="reports")).index
    (now,) = [one for one in await world.journal.findings(row.run_id) if one.fingerprint == row.fingerprint]
    await world.journal.set_finding(row.run_id, row.fingerprint, data={**now.data, COMMITTED: index + 1})


async def _has_ended(world: FleetContext, run: str) -> bool:
    row = await world.journal.run(run)
    return row.state == "ended" and row.platform == world.platform.name


async def _on_hold(world: FleetContext, rows: Collection[FindingRow]) -> set[str]:
    """Fingerprints of confirmed findings that wait for a person; each is marked as held, once."""
    grave = [
        row
        for row in rows
        if row.state == "confirmed"
        and row.probe not in (CLOSING, OUTAGE)
        and (row.severity in world.platform.post.hold or row.data.get(HOLD))
    ]
    released = (
        {
            one.item
            for one in standing(await world.journal.decisions(world.platform.name))
            if one.kind == "release"
        }
        if grave
        else set[str]()
    )
    waiting = [row for row in grave if released.isdisjoint(row.names)]
    for row in waiting:
        if not row.data.get(HOLD):
            await world.journal.set_finding(row.run_id, row.fingerprint, data={**row.data, HOLD: True})
    return {row.fingerprint for row in waiting}


async def _is_there(context: RunContext, row: FindingRow) -> bool:
    """Whether a finding in the outbox reached the log before its run was cut off; then it is posted."""
    world = context.fleet
    index = await world.chain.log.find(row.envelope, world.chain.identity)
    if index is None:
        return False
    tx = row.tx or await _sent_by(world, context.run, row.envelope)
    await _done(world, row, PostedEntry(tx=tx, index=index), context.stream)
    return True


async def _post(context: RunContext, row: FindingRow, charge: Literal["reports", "closing", "none"]) -> None:
    """Post one finding that is not on the log, or count it as repeated."""
    world, stream = context.fleet, context.stream
    if row.state != "posting" and not await world.journal.claim_posting(row.run_id, row.fingerprint):
        await _repeated(world, row, -1, stream)
        return
    if await claimed(PostingSide.of(world), row.fingerprint):
        raise TryAgain(f"the dropped entry of finding {row.fingerprint} is being posted again")
    # also after a crash: it, or a silent node, may have come between claim and check
    if (earlier := await _known(world, row)) is not None and not await _graver(world, row, earlier):
        await _repeated(world, row, earlier, stream)
        return
    try:
        posted = await world.chain.log.post(row.envelope, run=context.run, charge=charge)
    except BudgetExceeded:  # another run took the day's last report meanwhile
        await _put_back(world, row)
        return
    await _done(world, row, posted, stream)


async def _nothing_on_its_way(world: FleetContext, row: FindingRow) -> None:
    """Bring back what a reorganisation dropped; TryAgain while an entry of this finding may still come."""
    names = {*row.names, str(row.data.get("before", "")) or row.fingerprint}
    if names & (await look_at_posts(PostingSide.of(world))).findings:
        raise TryAgain(
            f"an entry of finding {row.fingerprint} was dropped by the chain and is not back yet",
            remedy="try again in a minute",
        )


async def _known(world: FleetContext, row: FindingRow) -> int | None:
    """Where the same finding is on the log, by its current or its former name; the log itself is asked
    also, since a journal may be lost."""
    names = [name for name in (*row.names, str(row.data.get("before", ""))) if name]
    newest = await world.chain.own.newest(world.chain.log, names)
    if newest is not None and newest.resolves:
        return None  # a regression
    for name in names:
        if (earlier := await _standing(world, name)) is not None:
            return earlier.index
    return newest.index if newest else await _formerly(world, row)


async def _graver(world: FleetContext, row: FindingRow, index: int) -> bool:
    """Whether the entry says less than this finding: then it is posted again, and leads its item."""
    entries = await world.chain.log.range(index, 1)
    return bool(entries) and weight(row.severity) > weight(read(entries[0].text).severity)


async def _formerly(world: FleetContext, row: FindingRow) -> int | None:
    """Where the same calls reported it under a name of an earlier version, which other defects may share."""
    for name in row.data.get("former", ()):
        entry = await world.chain.own.newest(world.chain.log, [str(name)])
        if entry is None or entry.resolves:
            continue
        (found,) = await world.chain.log.range(entry.index, 1)
        if read(found.text).was == row.data.get("before"):
            return entry.index
    return None


async def _standing(world: FleetContext, fingerprint: str) -> FindingRow | None:
    """The same finding of an earlier run, while its entry is on this log: a cleared log forgets it."""
    earlier = await world.journal.posted(fingerprint)
    if earlier is None:
        return None
    await _seen(world, earlier.run_id)
    entries = await world.chain.log.range(earlier.index, 1)
    if any((entry.sender, entry.text) == (world.chain.identity, earlier.envelope) for entry in entries):
        return earlier
    index = await world.chain.log.find(earlier.envelope, world.chain.identity)
    if index is None:
        return None
    # a reorg moved it
    await world.journal.move_entry(earlier.run_id, fingerprint, index)
    return replace(earlier, index=index)


async def _seen(world: FleetContext, run: str) -> None:
    """Give the log the blocks of this run's entries: a lagging replica would cause duplicates."""
    for effect in await world.journal.effects(run, ["tx"], ["done"]):
        if effect.data.get("purpose") == "post":
            world.chain.log.seen(int(effect.data.get("block", 0)))


async def _sent_by(world: FleetContext, run: str, text: str) -> str:
    """The transaction by which a crashed or stopped daemon posted this text, "" if none is known."""
    for effect in await world.journal.effects(run, ["tx"], ["done"]):
        if effect.data.get("purpose") != "post":
            continue
        unsigned, _ = parse(bytes.fromhex(effect.data["raw"]))
        if entry_text(unsigned.data) == text:
            return effect.ref
    return ""


async def _done(world: FleetContext, row: FindingRow, posted: PostedEntry, stream: Stream) -> None:
    await world.journal.set_finding(
        row.run_id, row.fingerprint, state="posted", tx=posted.tx, index=posted.index
    )
    stream.emit(FindingPosted(fingerprint=row.fingerprint, tx=posted.tx, index=posted.index))


async def _put_back(world: FleetContext, row: FindingRow) -> None:
    """Remove it from the outbox: the day's reports are spent; a later run may post it."""
    await world.journal.set_finding(row.run_id, row.fingerprint, state="confirmed")


async def _repeated(world: FleetContext, row: FindingRow, index: int, stream: Stream) -> None:
    """Count it as repeated: the fleet has posted it already."""
    await world.journal.set_finding(row.run_id, row.fingerprint, state="repeated", index=index)
    stream.emit(FindingRepeated(fingerprint=row.fingerprint, index=index))


async def close_over_budget(world: FleetContext, run: str, persona: str, surface: str, detail: str) -> None:
    """Queue the closing report of a run that spent its budget; the reserve pays for it."""
    title = f"{closing.TITLE}{detail}"
    fp = fingerprint(surface, (), f"{CLOSING} {run}")
    text = write(
        compose(
            world.redactor,
            source=persona,
            sev=Severity.INFO,
            surface=surface,
            run=run,
            fp=fp,
            rate=None,
            ev="",
            title=title,
            body=f"{closing.BODY}the remaining probes were not run",
        )
    )
    row = FindingRow(
        run_id=run,
        fingerprint=fp,
        state="confirmed",
        probe=CLOSING,
        persona=persona,
        surface=surface,
        severity=Severity.INFO,
        title=title,
        envelope=text,
    )
    await world.journal.add_finding(row)


async def record_fixed(world: FleetContext, run: str, clean: Collection[ItemRow]) -> None:
    """Post one record for each item that is clean by this run and on the log without one.

    What cannot be posted now stays due for triage. LostRun when a peer has taken the run.
    """
    due = [item for item in clean if item.state not in HIDDEN]
    if not due:
        return
    try:
        async with posting(world.journal, world.clock, turn_s=world.config.store.stalled_s) as mine:
            for item in due if mine else ():
                await _record(world, run, item)
    except LostRun:
        raise
    except FleetError:  # a silent node, STOP, a run that posts nothing: triage comes to it
        return


async def _record(world: FleetContext, run: str, item: ItemRow) -> None:
    known = read_recurrence(await world.journal.get(key_of(world.platform.name, item.fingerprint)))
    newest = await world.chain.own.newest(world.chain.log, (item.fingerprint, *item.names))
    if known.clean_run != run or newest is None or newest.resolves:
        return  # seen again meanwhile, or never on this log, or recorded
    record = fixed_record(item.fingerprint, known)
    text = write_record(record, surface=item.surface, title=item.title, redactor=world.redactor)
    await world.chain.log.post(text, charge="none")
