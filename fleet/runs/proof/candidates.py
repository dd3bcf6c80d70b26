"""Turns each observation of a look into a candidate, named after it. Pure.

The oracles judge every answer to every driver; a probe's expectation adds its own checks. If both fail on the
same field of the same look, there is one candidate, in the oracle's words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.findings.fingerprint import fingerprint, identity
from fleet.findings.repro import ReproCall, write_repro
from fleet.findings.sighting import Sighting, mentioned, of_probe
from fleet.oracles.answers import Violation, judge
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Probe, Severity, Step, Surface
from fleet.runs.proof.attempt import Attempt
from fleet.store.rows import FindingRow
from fleet.text import line
from sandbox.spec import Effect
from sandbox.tools import TOOLS

ORDER: tuple[Severity, ...] = ("critical", "high", "medium", "low", "info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One observation. `probe` holds the steps that show it; `oracle` is empty if only the probe's
    expectation failed.
    """

    probe: Probe
    sighting: Sighting
    severity: Severity
    surface: Surface
    oracle: str = ""
    forgeable: bool = False
    """Whether a person must review it before posting, if a driver chose the calls."""
    calls: tuple[ReproCall, ...] = ()

    @property
    def fingerprint(self) -> str:
        return identity(self.surface, self.sighting, self.calls)

    def row(self, run: str, persona: LoadedPersona, claim: Mapping[str, Any] | None = None) -> FindingRow:
        """The record made on observation, before any proof. `claim`: the driver's words."""
        data: dict[str, Any] = {
            "persona_sha256": persona.sha256,
            "probe": self.probe.model_dump(mode="json"),
            "oracle": self.oracle,
            "signature": self.sighting.signature,
            "body": self.sighting.body,
            "before": fingerprint(self.surface, self.calls, ""),
        }
        return FindingRow(
            run_id=run,
            fingerprint=self.fingerprint,
            probe=self.probe.id,
            persona=persona.persona.name,
            surface=self.surface,
            severity=self.severity,
            title=self.sighting.title,
            repro=write_repro(self.calls),
            data=data | ({"claim": dict(claim)} if claim else {}),
        )


def candidates(
    probe: Probe, seen: Attempt, surface: Surface, *, trusted: bool = True
) -> tuple[Candidate, ...]:
    """All candidates from one look at a probe; `surface` is the persona's.

    A probe that is not `trusted` is a driver's claim: its words and severity do not count as an oracle's.
    """
    found = [
        (index, one)
        for index, (asked, result) in enumerate(zip(seen.asked, seen.results, strict=True))
        for one in judge(asked["tool"], asked["args"], result)
    ]
    explained = {field for one in found for field in one[1].fields}
    fields = set(mentioned(probe.expect))
    own = seen.state == "finding"
    made = [
        _of_oracle(probe, seen, index, one, own and trusted and bool(one.fields & fields))
        for index, one in found
    ]
    if own and not explained & fields:
        sighting = of_probe(probe.expect, seen.asked, seen.results, probe.finding)
        calls = _calls(seen, range(len(seen.asked)))
        made.append(
            Candidate(
                probe=probe,
                sighting=sighting,
                severity=probe.severity,
                surface=probe.surface or surface,
                calls=calls,
            )
        )
    return tuple({one.fingerprint: one for one in reversed(made)}.values())[::-1]


def shows(row: FindingRow, probe: Probe, seen: Attempt) -> bool:
    """Whether a look reproduces the signature, by the same judge."""
    wanted = (row.data.get("oracle", ""), row.data.get("signature", ""))
    surface: Any = row.surface
    return wanted in {(one.oracle, one.sighting.signature) for one in candidates(probe, seen, surface)}


def answered(
    tool_calls: tuple[Step, ...], asked: Mapping[str, Any], result: Mapping[str, Any]
) -> tuple[Candidate, ...]:
    """Candidates from one answer to a driver's own call, with the calls that led to it."""
    found = []
    for one in judge(asked["tool"], asked["args"], result):
        calls = tuple(ReproCall(step.tool, dict(step.args)) for step in tool_calls)
        name = identity(one.surface, one.sighting, calls)
        probe = Probe(
            id=f"x-{name}",
            severity=one.severity,
            surface=one.surface,
            steps=tool_calls,
            expect="true",
            finding=line(one.sighting.title, 300).ljust(8, "."),
        )
        found.append(
            Candidate(
                probe=probe,
                sighting=one.sighting,
                severity=one.severity,
                surface=one.surface,
                oracle=one.oracle,
                forgeable=one.forgeable,
                calls=calls,
            )
        )
    return tuple(found)


def _of_oracle(probe: Probe, seen: Attempt, index: int, one: Violation, same: bool) -> Candidate:
    """A candidate with only the acts that led to it; an equivalent probe may raise its severity."""
    kept = _led(probe.steps, index)
    severity = min(one.severity, probe.severity, key=ORDER.index) if same else one.severity
    body = f"intent: {line(probe.finding, 300)}" if same else ""
    return Candidate(
        probe=probe.model_copy(
            update={
                "steps": tuple(probe.steps[at] for at in kept),
                "expect": "true",
                "control": "",
                "note": {},
            }
        ),
        sighting=Sighting(one.sighting.title, one.sighting.signature, one.sighting.whole, body),
        severity=severity,
        surface=one.surface,
        oracle=one.oracle,
        forgeable=one.forgeable,
        calls=_calls(seen, kept),
    )


def _led(steps: Sequence[Step], index: int) -> tuple[int, ...]:
    """The steps that an answer depends on: earlier acts and its own call; for a computation only its call."""
    if TOOLS[steps[index].tool].effect is Effect.COMPUTE:
        return (index,)
    return (*(at for at in range(index) if TOOLS[steps[at].tool].effect is Effect.ACT), index)


def _calls(seen: Attempt, kept: Iterable[int]) -> tuple[ReproCall, ...]:
    return tuple(ReproCall(seen.asked[at]["tool"], dict(seen.asked[at]["args"])) for at in kept)
