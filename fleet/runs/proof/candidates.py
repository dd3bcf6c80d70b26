"""Turns each observation of a look into a candidate, named after it. Pure.

The oracles judge every answer to every driver; a probe's expectation adds its own checks. If both fail on the
same field of the same look, there is one candidate, in the oracle's words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fleet.findings.fingerprint import fingerprint, former, identity, second
from fleet.findings.kinds import kind_of, kinds
from fleet.findings.redact import Redactor, chain_words
from fleet.findings.repro import ReproCall, write_repro
from fleet.findings.sighting import Sighting, mentioned, of_probe, titled
from fleet.oracles.echoes import host
from fleet.oracles.model import Exchange, Facts, Violation
from fleet.oracles.place import placed, within
from fleet.oracles.table import judge, judges_words
from fleet.oracles.web.quotations import ShownWords
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Probe, Step, Surface
from fleet.runs.proof.attempt import Attempt
from fleet.severity import Severity, weight
from fleet.store.rows import FindingRow
from fleet.text import line
from sandbox.spec import Effect
from sandbox.tools import TOOLS

NEW = "x-"
"""Begins the id of a probe that no persona has: a question of a driver, named after what it showed."""


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
    words: ShownWords | None = None
    """Of an oracle that judges words of an error."""

    fields: frozenset[str] = frozenset()
    """Of the results, those that show it."""
    named: str = ""
    """What is wrong: the name of its kind, or the sentence of a persona's probe. It begins the title."""
    on_chain: frozenset[str] = frozenset()
    """What the chain returned in the answers: `findings.redact.chain_words`."""

    @property
    def fingerprint(self) -> str:
        return identity(self.surface, self.sighting, self.calls)

    @property
    def names(self) -> tuple[str, ...]:
        """Its fingerprint, then what version 2 called it."""
        return (self.fingerprint, *second(self.surface, self.sighting, self.calls))

    def row(
        self,
        run: str,
        persona: LoadedPersona,
        claim: Mapping[str, Any] | None = None,
        *,
        platform: str = "",
        redactor: Redactor | None = None,
    ) -> FindingRow:
        """The record made on observation, before any proof. `claim`: the driver's words.

        A name and what was seen are masked before a title cuts them: half a secret looks like none.
        """
        mask = redactor.showing(self.on_chain).text if redactor else str
        named, seen = mask(self.named), mask(self.sighting.title)
        data: dict[str, Any] = {
            "persona_sha256": persona.sha256,
            "probe": self.probe.model_dump(mode="json"),
            "oracle": self.oracle,
            "fields": sorted(self.fields),
            "named": named,
            "seen": seen,
            "signature": self.sighting.signature,
            "whole": self.sighting.whole,
            "kind": self.sighting.kind,
            "where": dict(self.sighting.where),
            "body": self.sighting.body,
            "platform": platform,
            "known_as": self.names[1:],
            "before": fingerprint(self.surface, self.calls, ""),
            "former": former(self.surface, self.sighting, self.calls),
        } | ({"words": self.words.model_dump(mode="json")} if self.words else {})
        data |= {"on_chain": sorted(self.on_chain)} if self.on_chain else {}
        return FindingRow(
            run_id=run,
            fingerprint=self.fingerprint,
            probe=self.probe.id,
            persona=persona.persona.name,
            surface=self.surface,
            severity=self.severity,
            title=titled(named, seen),
            repro=write_repro(self.calls),
            data=data | ({"claim": dict(claim)} if claim else {}),
        )


def covering(row: FindingRow, others: Iterable[FindingRow]) -> FindingRow | None:
    """A finding of the same place and platform whose kind covers this one's; or one of the same answer, which
    is one defect whatever was asked."""
    for one in others:
        if _covers(one, row) or (_answered_alike(row, one) and _rank(one) < _rank(row)):
            return one
    return None


def _covers(one: FindingRow, other: FindingRow) -> bool:
    """Whether a kind covers the other at what they share of their places, or its own place says more."""
    kind, named = kinds().get(str(one.data.get("kind"))), other.data.get("kind")
    mine, theirs = one.data.get("where", {}), other.data.get("where", {})
    both = mine.keys() & theirs.keys()
    if kind is None or not both or one.data.get("platform") != other.data.get("platform"):
        return False
    if named in kind.covers:
        return all(mine[part] == theirs[part] for part in both)
    apart = [part for part in both if mine[part] != theirs[part]]
    more = all(within(part, mine[part], theirs[part]) for part in apart)
    return named == kind.id and bool(apart) and more


def _answered_alike(row: FindingRow, other: FindingRow) -> bool:
    """Whether two findings of one oracle rest on one answer of one host."""
    mine, theirs = row.data.get("words"), other.data.get("words")
    if not (mine and theirs) or row.data.get("oracle") != other.data.get("oracle"):
        return False
    same = row.data.get("platform") == other.data.get("platform")
    return same and mine["answer"] == theirs["answer"] and host(mine) == host(theirs)


def _rank(row: FindingRow) -> tuple[float, str]:
    return -weight(row.severity), row.fingerprint


def candidates(
    probe: Probe, seen: Attempt, surface: Surface, facts: Facts, *, trusted: bool = True
) -> tuple[Candidate, ...]:
    """All candidates from one look at a probe; `surface` is the persona's.

    A probe that is not `trusted` is a driver's claim: its words and severity do not count as an oracle's.
    """
    seen_all = _exchanges(seen.asked, seen.results)
    found = [(index, one) for index in range(len(seen_all)) for one in judge(seen_all[: index + 1], facts)]
    explained = {field for one in found for field in one[1].fields}
    fields = set(mentioned(probe.expect))
    own = seen.state == "finding"
    made = [
        _of_oracle(probe, seen, index, one, own and trusted and bool(one.fields & fields))
        for index, one in found
    ]
    if own and not explained & fields:
        sighting = of_probe(probe.expect, seen.asked, seen.results, probe.finding)
        if trusted and probe.kind in kinds():
            sighting = placed(sighting, probe.kind, seen_all[-1], facts)
        made.append(
            Candidate(
                probe=probe,
                sighting=sighting,
                severity=probe.severity,
                surface=probe.surface or surface,
                calls=_calls(seen, range(len(seen.asked))),
                fields=frozenset(fields),
                on_chain=_on_chain(seen_all),
                named=_named(probe) if trusted else "",
            )
        )
    return tuple({one.fingerprint: one for one in reversed(made)}.values())[::-1]


def showing(row: FindingRow, probe: Probe, seen: Attempt, facts: Facts) -> Candidate | None:
    """The candidate of a look with this finding's signature, by the same judge; None if there is none."""
    oracle, wanted = row.data.get("oracle", ""), row.data.get("signature", "")
    surface: Any = row.surface
    found = [one for one in candidates(probe, seen, surface, facts) if one.oracle == oracle]
    same = [one for one in found if one.sighting.signature == wanted]
    older = [one for one in found if any(text == wanted for text, _ in one.sighting.former)]
    return next(iter((*same, *older)), None)


def answered(
    steps: Sequence[Step], results: Sequence[Mapping[str, Any]], facts: Facts
) -> tuple[Candidate, ...]:
    """Candidates from the answers to the last steps of a driver's own question.

    Earlier steps without a result led to it: they are part of the repro.
    """
    early = len(steps) - len(results)
    asked = [{"tool": step.tool, "args": step.args} for step in steps]
    seen = _exchanges(asked[early:], results)
    found = []
    for index in range(len(seen)):
        for one in judge(seen[: index + 1], facts):
            kept = (*range(early), *(early + at for at in _led(steps[early:], index, one.led)))
            led = tuple(steps[at] for at in kept)
            calls = tuple(ReproCall(step.tool, dict(step.args)) for step in led)
            name = identity(one.surface, one.sighting, calls)
            probe = Probe(
                id=f"{NEW}{name}",
                severity=one.severity,
                surface=one.surface,
                steps=led,
                expect="true",
                finding=line(titled(_kind(one.oracle), one.sighting.title), 300).ljust(8, "."),
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
                    words=_words(one, seen[: index + 1]),
                    on_chain=_on_chain(seen[: index + 1]),
                    fields=one.fields,
                    named=_kind(one.oracle),
                )
            )
    return tuple({one.fingerprint: one for one in reversed(found)}.values())[::-1]


def _of_oracle(probe: Probe, seen: Attempt, index: int, one: Violation, same: bool) -> Candidate:
    """A candidate with only the acts that led to it; an equivalent probe may raise its severity."""
    kept = _led(probe.steps, index, one.led)
    severity = max(one.severity, probe.severity, key=weight) if same else one.severity
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
        sighting=replace(one.sighting, body=body),
        severity=severity,
        surface=one.surface,
        oracle=one.oracle,
        forgeable=one.forgeable,
        calls=_calls(seen, kept),
        words=_words(one, _exchanges(seen.asked, seen.results)[: index + 1]),
        on_chain=_on_chain(_exchanges(seen.asked, seen.results)),
        fields=one.fields,
        named=_kind(one.oracle),
    )


def _kind(oracle: str) -> str:
    return kind.name if (kind := kind_of(oracle)) else ""


def _named(probe: Probe) -> str:
    """What a persona's probe says is wrong; a question of a driver has no expectation of its own."""
    return kinds()[probe.kind].name if probe.kind in kinds() else probe.finding


def _words(one: Violation, seen: Sequence[Exchange]) -> ShownWords | None:
    return ShownWords.of(seen) if judges_words(one.oracle) else None


def _on_chain(seen: Iterable[Exchange]) -> frozenset[str]:
    return chain_words((one.tool, one.result) for one in seen)


def _led(steps: Sequence[Step], index: int, led: Sequence[int]) -> tuple[int, ...]:
    """The steps that an observation depends on: earlier acts, what its oracle names, and its own call."""
    computes = TOOLS[steps[index].tool].effect is Effect.COMPUTE
    acts = (
        at
        for at, step in enumerate(steps[:index])
        if TOOLS[step.tool].effect_of(step.args) is Effect.ACT and not computes
    )
    return (*sorted({*acts, *led}), index)


def _exchanges(
    asked: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]
) -> tuple[Exchange, ...]:
    return tuple(
        Exchange(call["tool"], call["args"], result) for call, result in zip(asked, results, strict=True)
    )


def _calls(seen: Attempt, kept: Iterable[int]) -> tuple[ReproCall, ...]:
    return tuple(ReproCall(seen.asked[at]["tool"], dict(seen.asked[at]["args"])) for at in kept)
