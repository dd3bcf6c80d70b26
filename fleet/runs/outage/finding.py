"""The finding for an outage: its looks are its proof, sealed and worded like any other's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fleet.events.model import FindingRaised, FindingVerified
from fleet.events.stream import Stream
from fleet.findings.envelope import compose, write
from fleet.findings.evidence import EvidenceStep
from fleet.findings.outage import SURFACE, WORD, Outage
from fleet.findings.proof import TRIES
from fleet.findings.repro import ReproCall, write_repro
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext
from fleet.runs.proof.verify import keep_evidence
from fleet.store.rows import FindingRow

EXPECTED = "every target of the platform answers"


async def confirm(
    world: FleetContext,
    run: str,
    persona: LoadedPersona,
    stream: Stream,
    outage: Outage,
    repro: Sequence[ReproCall],
) -> None:
    """Add the outage to the run's findings as confirmed; the outbox posts it once, by fingerprint."""
    row = FindingRow(
        run_id=run,
        fingerprint=outage.fp,
        state="confirmed",
        probe=WORD,
        persona=persona.persona.name,
        surface=SURFACE,
        severity=outage.severity,
        title=outage.title,
        repro=write_repro(repro) if repro else "",
        confirmed=TRIES,
        tries=TRIES,
        data={
            "persona_sha256": persona.sha256,
            "outage": {"since": outage.since, "targets": list(outage.targets)},
            "held": outage.held,
        },
    )
    steps = tuple(
        EvidenceStep(
            tool="qa_fetch" if look.what.startswith("http") else "node",
            args={"url": look.what} if look.what.startswith("http") else {"method": look.what},
            result={"target": look.target, "at_s": look.at, "how": look.said, "error": look.how},
        )
        for look in outage.looks
    )
    sha256 = keep_evidence(world, row, persona, expectation=EXPECTED, steps=steps, rate=(TRIES, TRIES))
    envelope = compose(
        world.redactor,
        source=row.persona,
        sev=row.severity,
        surface=SURFACE,
        run=run,
        fp=row.fingerprint,
        rate=(TRIES, TRIES),
        ev=sha256,
        title=row.title,
        repro=repro,
    )
    if await world.journal.add_finding(replace(row, evidence=sha256, envelope=write(envelope))):
        stream.emit(FindingRaised(fingerprint=row.fingerprint, probe=WORD, title=row.title))
        stream.emit(
            FindingVerified(fingerprint=row.fingerprint, confirmed=TRIES, tries=TRIES, state="confirmed")
        )


async def is_kept(world: FleetContext, fingerprint: str) -> bool:
    """Whether a run has it among its findings, so that its outbox posts it."""
    return any(row.fingerprint == fingerprint for row in await world.journal.findings())


async def repeat_held(world: FleetContext, run: str, fingerprint: str) -> None:
    """Other runs saw it while it could not be posted: it becomes one entry, of this run."""
    for row in await world.journal.findings(None, ["confirmed"]):
        if row.fingerprint == fingerprint and row.run_id != run and row.data.get("held"):
            await world.journal.set_finding(row.run_id, fingerprint, state="repeated")
