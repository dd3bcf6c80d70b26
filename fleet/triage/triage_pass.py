"""One triage pass: rank the log, and post the summary when the list changed."""

from __future__ import annotations

from fleet.findings.recurrence import key_of, read_recurrence
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext
from fleet.runs.outage.book import book_of
from fleet.triage.run import TriageResult, triage
from fleet.triage.unproven import unproven


async def pass_over(world: FleetContext, persona: LoadedPersona) -> TriageResult:
    """Mirror, cluster, rank, write; then post at most one `sev=meta` entry, which the next pass ignores.

    It also posts, once each, the end of an outage and the resolve record of an item that is on the log.
    """
    trusted = frozenset(address.lower() for address in (*world.config.trusted, world.chain.identity))
    weights = persona.persona.weights
    book = await book_of(world.journal, world.platform.name)
    left = unproven(await world.journal.findings())
    prefix = key_of(world.platform.name)
    facts = await world.journal.facts(prefix)
    seen = {key.removeprefix(prefix): read_recurrence(text) for key, text in facts.items()}
    result = await triage(
        world.chain.log, world.journal, trusted, weights, world.state, world.clock, book.ended, left, seen
    )
    for text in result.over:
        await world.chain.log.post(text, charge="none")
    if result.meta_text is not None:
        await world.chain.log.post(result.meta_text, charge="none")
    return result


async def pass_in_words(world: FleetContext, persona: LoadedPersona) -> str:
    """One pass; what came of it in a line for people."""
    result = await pass_over(world, persona)
    return f"{len(result.items)} items" + ("" if result.changed else ", as before")
