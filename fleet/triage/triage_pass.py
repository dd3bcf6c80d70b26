"""One triage pass of a platform: rank the log, and post what it lacks, once each."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from anyio import to_thread

from fleet.chain.log.reputation_log import withdraw_dismissed
from fleet.chain.ports import FeedbackPort, PostedEntry, SignerPort
from fleet.clock import Clock, iso
from fleet.config import FleetConfig, Platform
from fleet.drivers.model.factory import model_key
from fleet.errors import ConfigError
from fleet.findings.audit import audit_of
from fleet.findings.audit import key_of as audit_key
from fleet.findings.instances import recorded
from fleet.findings.records import SOURCE, write_record
from fleet.findings.recurrence import key_of, read_recurrence
from fleet.findings.redact import Redactor
from fleet.findings.withheld import withheld
from fleet.personas.load import LoadedPersona
from fleet.runs.outage.book import book_of
from fleet.runs.settlement.finality import PostingSide, look_at_posts
from fleet.runs.settlement.turn import posting
from fleet.store.journal import Journal
from fleet.store.rows import QUEUED, READ_BLOCKS, TRACKED, DecisionRow, log_changed
from fleet.text import counted
from fleet.triage.items.decisions import record_of
from fleet.triage.items.pass_inputs import PassInputs
from fleet.triage.items.unproven import proving, unproven
from fleet.triage.items.worklist import ProposalLink, WorklistItem
from fleet.triage.outputs.document import AuditRate
from fleet.triage.run import DIGEST, FILES, TriageMemory, TriageResult, TriageTask, triage
from fleet.triage.run import earlier as earlier_items
from fleet.triage.suggest import Suggester

TRIAGE = SOURCE
"""The persona whose posts are triage's own."""


class TriageChain(Protocol):
    """The log, the address under which this fleet posts to it, and the signer (None for a reader)."""

    @property
    def log(self) -> FeedbackPort: ...
    @property
    def identity(self) -> str: ...
    @property
    def signer(self) -> SignerPort | None: ...


class TriageWorld(Protocol):
    """What a pass of triage needs; the context of a run has it, and so has a reader without keys to sign."""

    @property
    def state(self) -> Path: ...
    @property
    def config(self) -> FleetConfig: ...
    @property
    def platform(self) -> Platform: ...
    @property
    def journal(self) -> Journal: ...
    @property
    def chain(self) -> TriageChain: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def personas(self) -> Mapping[str, LoadedPersona]: ...


async def pass_over(
    world: TriageWorld,
    persona: LoadedPersona,
    memory: TriageMemory | None = None,
    *,
    post: bool = True,
    ask: bool = True,
) -> TriageResult:
    """Mirror, fold, rank, write; then post what the log lacks: decisions to be published, ends of outages,
    resolve records, figures, and at most one `sev=meta` summary.

    Of several processes on one journal one posts at a time, and looks at the log again once it is its turn.
    Without `post` it writes only here, and without `ask` from the mirror as it is.
    """
    memory, suggester = memory or TriageMemory(), await _suggester(world, persona)
    result = await _look(world, persona, memory, suggester, ask=ask)
    if not post or not (result.over or result.meta_text or await _queued(world)):
        return result
    async with posting(world.journal, world.clock, turn_s=world.config.store.stalled_s) as mine:
        if not mine:
            return result
        side = PostingSide(
            config=world.config,
            platform=world.platform,
            journal=world.journal,
            clock=world.clock,
            log=world.chain.log,
            identity=world.chain.identity,
            signer=world.chain.signer,
        )
        if (await look_at_posts(side)).others:
            return result  # what a reorganisation dropped may still come: the next pass posts what it lacks
        due = await _look(world, persona, memory, suggester)
        posted = await _publish(world, memory)
        for text in (*due.over, *filter(None, (due.meta_text,))):
            posted.append(await world.chain.log.post(text, charge="none"))
        cancelled = False
        if posted:
            after = await _look(world, persona, memory, suggester)
            cancelled = not (after.over or after.meta_text) and await _note_read(world, persona, posted)
    if cancelled:  # the run stood for what others have posted meanwhile, too
        after = await _look(world, persona, memory, suggester)
        if after.over or after.meta_text:
            return await pass_over(world, persona, memory)
    return replace(due if result.changed == due.changed else result, posted=len(posted))


async def _note_read(world: TriageWorld, persona: LoadedPersona, posted: Collection[PostedEntry]) -> bool:
    """Note the blocks of what this pass has posted: it has read them too, so their event starts no other.

    Whether one waited for it already, which is cancelled: the event comes before a post is confirmed.
    """
    sent = {one.tx for one in posted}
    lately = iso(world.clock.now() - timedelta(hours=1))
    mined = await world.journal.effects("", ["tx"], ["done"], since=lately)
    blocks = {str(one.data["block"]) for one in mined if one.ref in sent and "block" in one.data}
    if not world.platform.logs_on_diamond:  # another log is watched by its number of entries
        blocks = {str(one.index + 1) for one in posted}
    await world.journal.put(f"{READ_BLOCKS}{world.platform.name}", " ".join(sorted(blocks)))
    keys = tuple(log_changed(persona.persona.name, block) for block in blocks)
    waiting = [row for row in await world.journal.queued_runs() if row.platform == world.platform.name]
    why = "the pass that posted these entries has read them"
    ours = [one.run_id for one in waiting if one.key.startswith(keys)]
    return any([await world.journal.finish(run, "cancelled", why) for run in ours])


async def _queued(world: TriageWorld) -> list[DecisionRow]:
    return [one for one in await world.journal.decisions(world.platform.name) if one.entry == QUEUED]


async def _publish(world: TriageWorld, memory: TriageMemory) -> list[PostedEntry]:
    """Posts the decisions that wait for it, once each: of one that is on the log, only the place is kept."""
    posted, queued = list[PostedEntry](), await _queued(world)
    if not queued or memory.fold is None:
        return []
    there = {one.name: one.index for kept in memory.fold.index.records.values() for one in kept}
    words = {one.fingerprint: (one.surface, one.title) for one in await world.journal.findings()}
    for item in await world.journal.items(world.platform.name):
        words |= dict.fromkeys((*item.names, item.fingerprint), (item.surface, item.title))
    redactor = Redactor(hides=withheld(world.platform))
    for one in queued:
        index = there.get(one.name)
        if index is None:
            surface, title = words.get(one.item, ("unknown", "unknown"))
            text = write_record(record_of(one), surface=surface, title=title, redactor=redactor)
            posted.append(await world.chain.log.post(text, charge="none"))
            index = posted[-1].index
        else:
            await withdraw_dismissed(world.chain.log)
        await world.journal.add_decision(replace(one, entry=index))
    return posted


def in_words(result: TriageResult) -> str:
    """What came of a pass, in a line for people."""
    unread = f", {counted(result.unread, 'entry', 'entries')} of strangers not read" if result.unread else ""
    posted = f", {counted(result.posted, 'entry', 'entries')} posted" if result.posted else ""
    return counted(len(result.items), "item") + ("" if result.changed else ", as before") + posted + unread


async def rebuild(world: TriageWorld, persona: LoadedPersona) -> TriageResult:
    """The worklist from the log alone and from decisions: what is derived is dropped and made again.

    Nothing is posted. Byte for byte the same as before, if what persons decided is published or still in
    the journal, and the figures of items are on the log.
    """
    await world.journal.put_items(world.platform.name, ())
    await world.journal.put(DIGEST, "")
    for name in FILES:
        (world.state / name).unlink(missing_ok=True)
    return await _look(world, persona, TriageMemory(), await _suggester(world, persona))


async def _suggester(world: TriageWorld, persona: LoadedPersona) -> Suggester | None:
    """Who is asked about doubtful pairs: the configured model, if triage has tokens for it."""
    section, budget = world.config.model, persona.persona.budget
    if section is None or budget is None or not budget.tokens:
        return None
    try:
        judge = await to_thread.run_sync(importlib.import_module, "fleet.drivers.model.pair_judge")
        made: Suggester = judge.ModelSuggester(
            section, model_key(world.config, world.state), tokens=budget.tokens
        )
    except (ConfigError, ImportError):  # without it there are no suggestions
        return None
    return made


async def earlier(world: TriageWorld) -> tuple[WorklistItem, ...]:
    """Items of earlier epochs of this log, from the mirror; none of them is ranked."""
    return await earlier_items(world.journal, await _task(world, world.personas[TRIAGE]))


async def _look(
    world: TriageWorld,
    persona: LoadedPersona,
    memory: TriageMemory,
    suggester: Suggester | None = None,
    *,
    ask: bool = True,
) -> TriageResult:
    log = world.chain.log if ask else None
    return await triage(log, world.journal, await _task(world, persona, suggester), memory)


async def _task(world: TriageWorld, persona: LoadedPersona, suggester: Suggester | None = None) -> TriageTask:
    prefix = key_of(world.platform.name)
    facts = await world.journal.facts(prefix)
    book = await book_of(world.journal, world.platform.name)
    known = PassInputs(
        now=world.clock.now(),
        weights=persona.persona.weights,
        figures={key.removeprefix(prefix): read_recurrence(text) for key, text in facts.items()},
        ended=book.ended,
        seen_every=world.config.triage.period(),
    )
    audited = audit_of(await world.journal.facts(audit_key(world.platform.name)))
    decisions = await world.journal.decisions(world.platform.name)
    rows = await world.journal.findings()
    # the latest proposal of each item, or what a tracker says of one that has none
    prefix = f"{TRACKED}{world.platform.name}."
    tracked = await world.journal.facts(prefix)
    found = {
        key.removeprefix(prefix): ProposalLink("tracked", why=said) for key, said in tracked.items() if said
    }
    for row in await world.journal.proposals(world.platform.name):
        found[row.item] = ProposalLink(row.state, row.ref, row.why, row.proposal_id)
    return TriageTask(
        name=world.platform.log_name,
        platform=world.platform.name,
        trusted=frozenset(address.lower() for address in (*world.config.trusted, world.chain.identity)),
        folder=world.state,
        known=known,
        left=unproven(rows, decisions, known.now),
        proving=proving(rows, decisions, known.now),
        audit=AuditRate(audited.sampled, audited.overturned, tuple(audited.overturned_items)),
        suggester=suggester,
        proposals=found,
        places={row.fingerprint: recorded(row.data) for row in rows if row.data.get("places")},
    )
