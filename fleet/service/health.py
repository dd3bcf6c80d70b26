"""The daemon's state for the health pages: read on request from the journal and the live runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import anyio

from fleet.clock import iso
from fleet.errors import FleetError
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.stop import stopped
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext
from fleet.runs.desk.coverage import NOT_PROBES, coverage
from fleet.runs.executor import Executor
from fleet.service.metrics import Tally
from fleet.service.readiness import Readiness
from fleet.service.snapshot import DaemonSnapshot, JournalSnapshot, PersonaSummary
from fleet.severity import UNKNOWN, WEIGHTS
from fleet.store.rows import RunRow

CHAIN_S = 2.0
"""Most seconds that a page waits for the chain."""
FRESH_S = 15.0
WORKLIST = "worklist.json"


@dataclass(frozen=True, slots=True)
class PersonaStanding:
    """What the pages show of the personas: loaded and refused files by name, and when each starts next."""

    loaded: Mapping[str, LoadedPersona]
    refused: Mapping[str, str]
    upcoming: Callable[[], Mapping[str, datetime]]


class DaemonHealth:
    """The health pages' view of a daemon."""

    def __init__(
        self,
        world: FleetContext,
        executor: Executor,
        personas: PersonaStanding,
        tally: Tally,
        readiness: Readiness,
    ) -> None:
        self._world, self._executor, self._personas = world, executor, personas
        self._tally, self._readiness = tally, readiness
        self._log: tuple[float, int | None] = (float("-inf"), None)

    @property
    def is_ready(self) -> bool:
        return self._readiness.ready and not self._world.signals.held

    @property
    def beat_age_s(self) -> float:
        return self._readiness.beat_age_s

    async def metrics(self) -> bytes:
        from fleet.service.exposition import exposition  # 60 ms and 2 MB, only on request

        return exposition(await self.snapshot(), self._tally)

    async def snapshot(self) -> DaemonSnapshot:
        """Everything; raises what the journal raises."""
        world, journal, platform = self._world, self._world.journal, self._world.platform.name
        personas = tuple(PersonaSummary.of(one.persona) for one in self._personas.loaded.values())
        known = await JournalSnapshot.read(journal, platform, personas, world.day())
        items, written = await journal.items(platform), None
        with suppress(OSError):
            written = (world.state / WORKLIST).stat().st_mtime
        return DaemonSnapshot(
            journal=known,
            rung=str(read_dial(world.state / DIAL).rung),
            paused=stopped(world.state) is not None,
            degraded=world.signals.held,
            draining=self._readiness.draining,
            live=len(self._executor.live),
            beat_age_s=self.beat_age_s,
            now=world.clock.now(),
            outcomes=await journal.outcomes(),
            ages=await journal.ages(platform),
            budgets={
                (persona, str(unit)): count
                for run, persona in self._executor.live.items()
                if (context := world.in_flight.get(run)) is not None
                for unit, count in (await context.ledger.left()).items()
            },
            outbox=await self._owed(),
            log_entries=await self._entries(),
            log_mirrored=(await journal.mirror_cursor())[1],
            subscription=self._tally.subscription,
            personas=personas,
            refused=dict(self._personas.refused),
            upcoming={name: iso(at) for name, at in sorted(self._personas.upcoming().items())},
            last_success={row.persona: row.ended for row in await journal.last_ended(platform, "done")},
            coverage=self._coverage(known.last),
            # a label is one of our own words, whatever an entry of the log claims
            items=Counter((one.state, one.severity if one.severity in WEIGHTS else UNKNOWN) for one in items),
            worklist_age_s=None if written is None else max(0.0, world.clock.now().timestamp() - written),
        )

    async def _owed(self) -> int:
        """Findings that some run is to post: not those of an ended run that had no report left for them."""
        journal = self._world.journal
        rows = await journal.findings(states=["confirmed", "posting"])
        at_work = {row.run_id for row in await journal.open_runs()} if rows else set()
        return sum(
            row.state == "posting" or bool(row.data.get("held")) or row.run_id in at_work for row in rows
        )

    def _coverage(self, last: Collection[RunRow]) -> dict[tuple[str, str], int]:
        """Read from the runs' folders: a run on another host, or one that was pruned, is left out."""
        found: dict[tuple[str, str], int] = {}
        for row in last:
            if row.persona in self._personas.loaded:
                groups = coverage(self._world.folder(row.run_id), row.run_id, row.outcome)
                groups = {group: rows for group, rows in groups.items() if group not in NOT_PROBES}
                if any(groups.values()):
                    found |= {(row.persona, group): len(probes) for group, probes in groups.items()}
        return found

    async def _entries(self) -> int | None:
        """Entries of the log on chain, read rarely; None while the chain does not answer."""
        now = self._world.clock.monotonic()
        if now - self._log[0] > FRESH_S:
            count = None
            try:
                with anyio.move_on_after(CHAIN_S):
                    count = await self._world.chain.log.count()
            except FleetError:
                pass
            self._log = (now, count)
        return self._log[1]
