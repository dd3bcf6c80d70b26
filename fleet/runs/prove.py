"""Nothing unproven is promoted: each candidate is run again, in fresh jails under fresh names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fleet import __version__
from fleet.clock import iso
from fleet.drivers.playbook import Attempt, attempt
from fleet.drivers.session import Session
from fleet.events.model import FindingVerified
from fleet.events.stream import Stream
from fleet.findings.envelope import compose, write
from fleet.findings.evidence import Bundle, EvidenceStep, save, seal
from fleet.findings.fingerprint import fingerprint
from fleet.findings.repro import ReproCall, write_repro
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Probe
from fleet.runs.world import World
from fleet.store.rows import FindingRow

TRIES = 3

State = Literal["confirmed", "flaky", "dropped", "unverified"]


@dataclass(frozen=True, slots=True)
class Proof:
    """How often the finding came again, and the last attempt that showed it."""

    state: State
    confirmed: int
    tries: int
    shown: Attempt | None


def repro_of(probe: Probe) -> tuple[ReproCall, ...]:
    """The probe's steps with their placeholders: the same in every run."""
    return tuple(ReproCall(step.tool, dict(step.args)) for step in probe.steps)


def candidate(
    run: str, persona: LoadedPersona, probe: Probe, seen: Attempt, claim: Mapping[str, Any] | None = None
) -> FindingRow:
    """The row of a finding at the moment it is seen, before anything is proven.

    `claim` is what a driver said beyond the persona's probes, with the probe that it became (claims.py).
    """
    surface = probe.surface or persona.persona.surface
    calls = repro_of(probe)
    return FindingRow(
        run_id=run,
        fingerprint=fingerprint(surface, calls, probe.finding),
        probe=probe.id,
        persona=persona.persona.name,
        surface=surface,
        severity=probe.severity,
        title=probe.finding,
        repro=write_repro(calls),
        data={"persona_sha256": persona.sha256} | ({"claim": dict(claim)} if claim else {}),
    )


def needs_review(row: FindingRow) -> bool:
    """Whether a person must look at this finding before it is posted: only its driver calls it a defect."""
    claim = row.data.get("claim")
    return isinstance(claim, Mapping) and claim.get("review") is not False


def judge(attempts: list[Attempt]) -> Proof:
    """3 of 3 is confirmed, 0 is dropped, between is flaky; what could not be looked at proves nothing."""
    shown = [one for one in attempts if one.state == "finding"]
    looked = [one for one in attempts if one.state != "inconclusive"]
    state: State = "flaky"
    if len(shown) == TRIES:
        state = "confirmed"
    elif len(looked) < len(attempts) or len(attempts) < TRIES:
        state = "unverified"
    elif not shown:
        state = "dropped"
    return Proof(state, len(shown), len(attempts), shown[-1] if shown else None)


async def prove(
    world: World, session: Session, stream: Stream, row: FindingRow, persona: LoadedPersona, probe: Probe
) -> None:
    """Run the probe again and write down what came of it, evidence first. RunOver passes through."""
    attempts: list[Attempt] = []
    for _ in range(TRIES):
        attempts.append(await attempt(session, probe))
        if attempts[-1].state == "inconclusive":
            break
    proof = judge(attempts)
    changes: dict[str, Any] = {"state": proof.state, "confirmed": proof.confirmed, "tries": proof.tries}
    if proof.state == "confirmed":
        changes |= _sealed(world, row, persona, probe, proof)
        if needs_review(row):  # the calls answer so, 3 of 3; whether that is wrong is the driver's word
            changes["state"] = "unverified"
    await world.journal.set_finding(row.run_id, row.fingerprint, **changes)
    stream.emit(
        FindingVerified(
            fingerprint=row.fingerprint, confirmed=proof.confirmed, tries=proof.tries, state=changes["state"]
        )
    )


def _sealed(
    world: World, row: FindingRow, persona: LoadedPersona, probe: Probe, proof: Proof
) -> Mapping[str, str]:
    """Keep the evidence and word the envelope; both are masked before they are hashed."""
    assert proof.shown is not None
    calls = repro_of(probe)
    bundle = Bundle(
        fingerprint=row.fingerprint,
        run=row.run_id,
        persona=row.persona,
        persona_sha256=persona.sha256,
        probe=probe.id,
        expectation=probe.expect,
        surface=row.surface,
        severity=row.severity,
        title=row.title,
        repro=row.repro,
        steps=tuple(
            EvidenceStep(tool=call["tool"], args=call["args"], result=result)
            for call, result in zip(proof.shown.calls, proof.shown.results, strict=True)
        ),
        confirmed=proof.confirmed,
        tries=proof.tries,
        platform=world.platform.name,
        chain_id=world.platform.chain.id,
        tools={"fleet": __version__, "jail": f"{world.tier.backend}/{world.tier.tier}"},
        seen_at=iso(world.clock.now()),
    )
    sealed = seal(bundle, world.redactor)
    folder = world.folder(row.run_id) / "evidence"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    save(folder, sealed)
    envelope = compose(
        world.redactor,
        source=row.persona,
        sev=probe.severity,
        surface=row.surface,
        run=row.run_id,
        fp=row.fingerprint,
        rate=(proof.confirmed, proof.tries),
        ev=sealed.sha256,
        title=row.title,
        body=f"seen {row.times} times in this run" if row.times > 1 else "",
        repro=calls,
    )
    return {"evidence": sealed.sha256, "envelope": write(envelope)}
