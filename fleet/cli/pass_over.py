"""One pass of triage over a world: rank the log, and post the summary when the list changed."""

from __future__ import annotations

from fleet.personas.load import LoadedPersona
from fleet.runs.world import World
from fleet.triage.run import TriageResult, triage


async def pass_over(world: World, persona: LoadedPersona) -> TriageResult:
    """Mirror, cluster, rank, write; then at most one `sev=meta` entry, which the next pass ignores."""
    trusted = frozenset(address.lower() for address in (*world.config.trusted, world.identity))
    weights = persona.persona.weights
    result = await triage(world.log, world.journal, trusted, weights, world.state, world.clock)
    if result.meta_text is not None:
        await world.log.post(result.meta_text)
    return result
