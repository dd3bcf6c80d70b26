"""The journal's side of a proposal: its task, its moves, and what the log is owed about it."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import TypeAdapter

from fleet.clock import iso
from fleet.config.propose import RepositorySection
from fleet.errors import FixError
from fleet.findings.records import ItemRecord, RecordKind, write_record
from fleet.fix.model import FixTask
from fleet.fix.parts import FixWorld, repository_for
from fleet.fix.permission.preconditions import calls_of
from fleet.store.rows import ProposalRow
from fleet.triage.items.worklist import WorklistItem

BRANCH = "qa-fleet/"
OWED = "record"
"""In a proposal's data: the text of the record that the log is to have, word for word."""
ENTRY = "entry"
"""There too: the index of that record on the log; missing until it is known to be there."""
_ITEM = TypeAdapter(WorklistItem)


async def task_of(world: FixWorld, item: WorklistItem, run: str) -> FixTask:
    """The task of an item; FixError when no repository is configured for it any more."""
    place = repository_for(world.config, item.surface)
    if place is None:
        raise FixError(f"no repository in fleet.toml is configured for {item.surface}")
    rows = await world.journal.mirror_since(item.epoch, item.entry, 1) if item.entry >= 0 else []
    found = [row for row in rows if row.index == item.entry]
    name, section = place
    if not found:
        return _task(world, item, run, name, section)
    posted = iso(datetime.fromtimestamp(found[0].timestamp, UTC))
    return _task(world, item, run, name, section, sender=found[0].sender, posted=posted)


def task_again(world: FixWorld, row: ProposalRow) -> FixTask:
    """The task of a recorded proposal; FixError when its repository is no longer configured."""
    section = world.config.repositories.get(row.repository)
    if section is None:
        raise FixError(
            f"proposal {row.proposal_id}: repository {row.repository} is not in fleet.toml any more",
            remedy=f"put [repositories.{row.repository}] back",
        )
    item = _ITEM.validate_python(row.data["item"])
    sender, posted = (str(row.data.get(key, "")) for key in ("sender", "posted"))
    return _task(world, item, row.proposal_id, row.repository, section, sender=sender, posted=posted)


def row_of(world: FixWorld, task: FixTask) -> ProposalRow:
    """The row of a proposal that begins."""
    data = {
        "item": _ITEM.dump_python(task.item, mode="json"),
        "sender": task.sender,
        "posted": task.posted,
    }
    return ProposalRow(
        proposal_id=task.run,
        platform=world.platform.name,
        item=task.item.fingerprint,
        repository=task.name,
        branch=task.branch,
        data=data,
    )


def record_text(world: FixWorld, task: FixTask, kind: RecordKind, reason: str, who: str) -> str:
    """The text of a record about the item, as the log is to have it."""
    record = ItemRecord(
        kind=kind, item=task.item.fingerprint, at=iso(world.clock.now()), who=who, reason=reason
    )
    return write_record(record, surface=task.item.surface, title=task.item.title, redactor=world.redactor)


def owes(row: ProposalRow) -> bool:
    """Whether the log may lack the record of this proposal."""
    return bool(row.data.get(OWED)) and ENTRY not in row.data


async def post_owed(world: FixWorld, row: ProposalRow) -> None:
    """Post the record of a proposal unless the log has it; the caller sees to it that one process does."""
    text = str(row.data[OWED])
    index = await world.chain.log.find(text, world.chain.identity)
    if index is None:
        index = (await world.chain.log.post(text, charge="none")).index
    await world.journal.move_proposal(row.proposal_id, row.state, {ENTRY: index})


async def current(world: FixWorld, row: ProposalRow) -> ProposalRow:
    """The row as it is in the journal now."""
    rows = await world.journal.proposals(world.platform.name, item=row.item)
    return next(one for one in rows if one.proposal_id == row.proposal_id)


def _task(  # noqa: PLR0913  what a task is made of
    world: FixWorld,
    item: WorklistItem,
    run: str,
    name: str,
    section: RepositorySection,
    *,
    sender: str = "",
    posted: str = "",
) -> FixTask:
    return FixTask(
        item=item,
        calls=calls_of(item.repro)[0],
        name=name,
        repository=section,
        limits=world.config.propose,
        run=run,
        branch=BRANCH + item.fingerprint,
        sender=sender,
        posted=posted,
    )
