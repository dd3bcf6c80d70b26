"""Promotes only proven findings: reproduces each candidate in fresh jails under fresh names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import anyio

from fleet import __version__
from fleet.clock import iso
from fleet.drivers.session import RunOver, Session
from fleet.events.model import FindingVerified
from fleet.events.stream import Stream
from fleet.findings.envelope import compose, write
from fleet.findings.evidence import Bundle, EvidenceStep, save, seal
from fleet.findings.instances import recorded, written
from fleet.findings.kinds import kind_titled
from fleet.findings.proof import MOST_LOOKS, TRIES, is_confirmed
from fleet.findings.redact import Redactor, chain_words
from fleet.findings.repro import ReproCall
from fleet.findings.sighting import titled
from fleet.oracles.model import Facts
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Probe
from fleet.runs.call.sealed import heads_now
from fleet.runs.call.sightings import without_text
from fleet.runs.context import FleetContext
from fleet.runs.proof.attempt import UNJUDGED, Attempt, attempt, locked_out, pressure, refused, unheard
from fleet.runs.proof.candidates import showing
from fleet.runs.proof.grades import needs_review
from fleet.severity import weight
from fleet.store.rows import FindingRow
from sandbox.spec import Effect
from sandbox.tools import TOOLS

BUDGET = "budget_exceeded"
JAIL_LOST = "jail_lost"
OF_ONE_PROOF = frozenset({JAIL_LOST, BUDGET})
"""Outcomes of a proof that say nothing of the others: those without an act need no writes."""

State = Literal["confirmed", "flaky", "dropped", "unverified"]
Shown = Literal["shown", "healthy", "could_not"]


@dataclass(frozen=True, slots=True)
class ProofVerdict:
    """How often the finding was reproduced."""

    state: State
    confirmed: int
    tries: int


@dataclass(slots=True)
class Proof:
    """The proof of one candidate: each try in fresh jails under fresh names, spread in time."""

    row: FindingRow
    probe: Probe
    again: bool = False
    """Whether a later, perhaps quieter moment of the run tries it once more, if no try can tell now."""
    seen: list[Shown] = field(default_factory=list)
    last: Attempt | None = None
    """The last attempt that showed it."""
    seen_as: str = ""
    """What that attempt showed, in words."""
    clean: Attempt | None = None
    """The last attempt that did not."""
    why: str = ""
    """Why the last try could not look."""
    tried_at: float = -math.inf
    """The end of the last try, on the monotonic clock."""

    def due_s(self, world: FleetContext) -> float:
        """Seconds until its next try."""
        return max(0.0, self.tried_at + world.spread_s - world.clock.monotonic())

    @property
    def is_open(self) -> bool:
        decided = [one for one in self.seen if one != "could_not"]
        return len(decided) < TRIES and len(self.seen) < MOST_LOOKS

    def give_up(self, why: str) -> None:
        """Stop trying: it cannot be judged."""
        self.why = why
        self.seen += ["could_not"] * MOST_LOOKS

    def add(self, attempt: Attempt, facts: Facts) -> None:
        """Add a try; it counts only if it shows the same signature."""
        if (found := showing(self.row, self.probe, attempt, facts)) is not None:
            self.last, self.seen_as = attempt, found.sighting.title
            self.seen.append("shown")
            return
        why = refused(attempt) or unheard(attempt, self.row.data.get("fields", ()))
        if attempt.state in UNJUDGED or why:
            self.why = attempt.reason or why
            self.seen.append("could_not")
        else:
            self.seen.append("healthy")
            self.clean = attempt


def repro_of(probe: Probe) -> tuple[ReproCall, ...]:
    """The probe's steps with their placeholders: the same in every run."""
    return tuple(ReproCall(step.tool, dict(step.args)) for step in probe.steps)


def judge(seen: Sequence[Shown]) -> ProofVerdict:
    """Confirmed: every try showed it; dropped: none did; else flaky. Inconclusive tries do not count."""
    decided = [one for one in seen if one != "could_not"]
    shown = decided.count("shown")
    if len(decided) < TRIES:
        return ProofVerdict("unverified", shown, len(decided))
    state: State = "confirmed" if is_confirmed(shown, len(decided)) else "flaky" if shown else "dropped"
    return ProofVerdict(state, shown, len(decided))


async def prove_all(
    world: FleetContext,
    session: Session,
    stream: Stream,
    proofs: Sequence[Proof],
    persona: LoadedPersona,
    facts: Facts,
) -> list[RunOver]:
    """Reproduce each in rounds that are spread in time; what ended one proof alone is returned."""
    ends: list[RunOver] = []
    while waiting := [one for one in proofs if one.is_open]:
        await anyio.sleep(max(one.due_s(world) for one in waiting))
        ends += await prove_round(world, session, stream, waiting, persona, facts)
    return ends


async def prove_round(
    world: FleetContext,
    session: Session,
    stream: Stream,
    proofs: Sequence[Proof],
    persona: LoadedPersona,
    facts: Facts,
) -> list[RunOver]:
    """One try of each, the gravest first; `spread_s` later the next, so that none rests on one burst of load.

    Each is recorded once decided, evidence before verdict. What ends one proof
    alone is returned; a spent budget leaves its candidate as it was, for a later run. RunOver of any other
    end passes through.
    """
    ends: list[RunOver] = []
    for same in _by_question(gravest_first(proofs)):
        try:
            seen = await attempt(session, same[0].probe, proof=True)
            for one in same:
                one.add(seen, facts)
                one.tried_at = world.clock.monotonic()
                if not one.is_open:
                    await _unless_locked_out(session, one)
        except RunOver as over:  # a candidate that kills its jails, or costs too much, ends no other proof
            if over.outcome not in OF_ONE_PROOF:
                raise
            ends.append(over)
            for one in same:
                one.again = False
                one.give_up(over.detail)
            if over.outcome == BUDGET:
                for row, why in ((one.row, one.why) for one in same):  # it stays raised, with the reason
                    data = {**row.data, "why": world.redactor.text(why)}
                    await world.journal.set_finding(row.run_id, row.fingerprint, data=data)
                continue
        for one in same:
            if not one.is_open:
                await _decided(world, stream, one, persona)
    return ends


def _by_question(proofs: Iterable[Proof]) -> list[list[Proof]]:
    """Proofs that ask the same share its answers: a row of two accounts may show a dozen defects."""
    found: dict[str, list[Proof]] = {}
    for one in proofs:
        found.setdefault(f"{one.probe.steps} {one.probe.expect} {one.probe.control}", []).append(one)
    return list(found.values())


def gravest_first(proofs: Iterable[Proof]) -> list[Proof]:
    """In order of severity; of one severity those without an act first: they go on when writes are spent."""

    def order(one: Proof) -> tuple[float, bool]:
        acts = any(TOOLS[step.tool].effect_of(step.args) is Effect.ACT for step in one.probe.steps)
        return -weight(one.row.severity), acts

    return sorted(proofs, key=order)


async def _unless_locked_out(session: Session, proof: Proof) -> None:
    """Take back what speaks against a finding, if the platform refuses every page by now."""
    if judge(proof.seen).state == "dropped" and proof.clean is not None:
        why = await locked_out(session, proof.clean, proof.probe.id)
        if why:
            proof.seen.clear()
            proof.give_up(why)


async def _decided(world: FleetContext, stream: Stream, proof: Proof, persona: LoadedPersona) -> None:
    row, verdict = proof.row, judge(proof.seen)
    if row.data.get("left_by") and proof.seen_as:  # an earlier version may have said it in other words
        seen = _redactor(world, proof.last).text(proof.seen_as)
        reworded: dict[str, Any] = {
            "title": titled(str(row.data.get("named", "")), seen),
            "data": {**row.data, "seen": seen},
        }
        await world.journal.set_finding(row.run_id, row.fingerprint, **reworded)
        row = proof.row = replace(row, **reworded)
    changes: dict[str, Any] = {"state": verdict.state, "confirmed": verdict.confirmed, "tries": verdict.tries}
    if verdict.state == "confirmed":
        changes |= _sealed(world, proof, persona, verdict)
        if needs_review(row):  # the answers reproduce, but only the driver claims that they are wrong
            changes["state"] = "unverified"
    elif verdict.state == "unverified":
        changes["data"] = {**row.data, "why": world.redactor.text(proof.why)}
        if proof.again:
            await world.journal.set_finding(row.run_id, row.fingerprint, data=changes["data"])
            return
    await world.journal.set_finding(row.run_id, row.fingerprint, **changes)
    stream.emit(
        FindingVerified(
            fingerprint=row.fingerprint,
            confirmed=verdict.confirmed,
            tries=verdict.tries,
            state=changes["state"],
            evidence_hashes=(changes["evidence"],) if changes.get("evidence") else (),
            kind=kind.id if (kind := kind_titled(row.title)) else "",
            severity=row.severity,
        )
    )


def _sealed(
    world: FleetContext, proof: Proof, persona: LoadedPersona, verdict: ProofVerdict
) -> Mapping[str, str]:
    """Store the evidence and write the envelope; both are masked before hashing."""
    row, probe, shown = proof.row, proof.probe, proof.last
    assert shown is not None
    calls = tuple(ReproCall(one["tool"], dict(one["args"])) for one in shown.asked)
    oracle = row.data.get("oracle", "")
    often = f"seen {row.times} times in this run" if row.times > 1 else ""
    steps = tuple(
        EvidenceStep(tool=call["tool"], args=call["args"], result=result)
        for call, result in zip(shown.calls, shown.results, strict=True)
    )
    rate = (verdict.confirmed, verdict.tries)
    evidence = keep_evidence(
        world,
        row,
        persona,
        expectation=f"oracle {oracle}" if oracle else probe.expect,
        steps=steps,
        rate=rate,
    )
    envelope = compose(
        _redactor(world, shown),
        source=row.persona,
        sev=row.severity,
        surface=row.surface,
        run=row.run_id,
        fp=row.fingerprint,
        rate=rate,
        ev=evidence,
        title=row.title,
        body="\n".join(filter(None, (str(row.data.get("body", "")), often, written(recorded(row.data))))),
        repro=calls,
        was=str(row.data.get("before", "")),
        former=row.names[1:],
    )
    return {"evidence": evidence, "envelope": write(envelope)}


def _redactor(world: FleetContext, shown: Attempt | None) -> Redactor:
    """What masks words about this attempt: what the chain returned in it stays."""
    answers = zip(shown.asked, shown.results, strict=False) if shown else ()
    return world.redactor.showing(chain_words((call["tool"], result) for call, result in answers))


def keep_evidence(
    world: FleetContext,
    row: FindingRow,
    persona: LoadedPersona,
    *,
    expectation: str,
    steps: tuple[EvidenceStep, ...],
    rate: tuple[int, int],
) -> str:
    """Mask and seal a finding's evidence, store it in its run's folder; return the bundle's SHA-256.

    `rate`: confirmations, tries.
    """
    if world.config.keep.sealed_for:
        steps = tuple(replace(one, result=without_text(one.args, one.result)) for one in steps)
    bundle = Bundle(
        fingerprint=row.fingerprint,
        run=row.run_id,
        persona=row.persona,
        persona_sha256=persona.sha256,
        probe=row.probe,
        expectation=expectation,
        surface=row.surface,
        severity=row.severity,
        title=row.title,
        repro=row.repro,
        steps=steps,
        confirmed=rate[0],
        tries=rate[1],
        platform=world.platform.name,
        chain_id=world.platform.chain.id,
        tools={"fleet": __version__, "jail": f"{world.tier.backend}/{world.tier.tier}"},
        seen_at=iso(world.clock.now()),
        load=pressure(),
        record=heads_now(world.folder(row.run_id)),
    )
    sealed = seal(bundle, world.redactor)
    folder = world.folder(row.run_id) / "evidence"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    save(folder, sealed)
    return sealed.sha256
