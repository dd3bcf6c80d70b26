"""What a run does with one probe, and at its end: a look at it, and the proof of what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fleet.drivers.expect import ExpectationError, number
from fleet.drivers.playbook import Attempt, attempt
from fleet.events.model import FindingRaised, ProbeSkipped
from fleet.events.stream import Stream
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Probe
from fleet.runs.claims import judged, kept
from fleet.runs.prove import candidate, prove
from fleet.runs.session import RunSession
from fleet.runs.world import World
from fleet.store.rows import FindingRow


@dataclass(frozen=True, slots=True)
class Exercise:
    """One persona against one platform, in one run; RunOver and what the journal raises pass through."""

    world: World
    run: str
    persona: LoadedPersona
    stream: Stream
    session: RunSession

    async def look(self, probe: Probe) -> Attempt:
        """Run one probe of the persona once, and keep what was seen."""
        seen = await attempt(self.session, probe)
        if seen.state == "inconclusive":
            self.skip(probe.id, seen.reason)
        elif seen.state == "healthy":
            await self._note(probe, seen)
        else:
            await self._raise(probe, candidate(self.run, self.persona, probe, seen))
        return seen

    async def look_at_claim(self, probe: Probe) -> tuple[Attempt, Mapping[str, Any]]:
        """Run a claim once; what holds is raised, to be proven like anything else."""
        seen = await attempt(self.session, probe)
        if seen.state != "finding":
            return seen, {}
        probe, claim = judged(probe, seen)
        await self._raise(probe, candidate(self.run, self.persona, probe, seen, claim))
        return seen, claim

    async def prove_raised(self) -> None:
        """Prove every candidate that is not proven yet; one whose persona changed since stays unverified."""
        probes = {probe.id: probe for probe in self.persona.persona.probe}
        for row in await self.world.journal.findings(self.run, ["raised"]):
            probe = kept(row) or probes.get(row.probe)
            if probe is not None and row.data.get("persona_sha256") == self.persona.sha256:
                await prove(self.world, self.session, self.stream, row, self.persona, probe)
            else:
                await self.world.journal.set_finding(self.run, row.fingerprint, state="unverified")

    def skip(self, probe: str, reason: str) -> None:
        """Record that a probe was left without an answer."""
        self.stream.emit(ProbeSkipped(probe=probe, reason=self.world.redactor.text(reason)))

    async def _raise(self, probe: Probe, row: FindingRow) -> None:
        journal, title = self.world.journal, self.world.redactor.text(row.title)
        await journal.add_finding(replace(row, title=title))
        times = [one.times for one in await journal.findings(self.run) if one.fingerprint == row.fingerprint]
        self.stream.emit(
            FindingRaised(fingerprint=row.fingerprint, probe=probe.id, title=title, times=max(times))
        )

    async def _note(self, probe: Probe, seen: Attempt) -> None:
        for metric, text in probe.note.items():
            try:
                await self.world.journal.note(metric, number(text, seen.results))
            except ExpectationError as error:
                self.stream.emit(ProbeSkipped(probe=probe.id, reason=f"note {metric}: {error}"))
