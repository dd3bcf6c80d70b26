"""Findings beyond the probes: a driver's claim becomes a probe, or is rejected.

A claim consists of steps and an expectation, both written by the driver. Repeating the steps proves that the
platform gives the same answer every time, not that the answer is wrong: a lying driver can write an
expectation that no healthy platform meets. So only violations of what the fleet requires of every healthy
platform (fleet/oracles) may be posted, in the fleet's words. Any other claim is proven as well, kept with its
evidence, and left to a person. See docs/decisions/0006-explored-findings.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleet.drivers.expect_check import check
from fleet.findings.fingerprint import normalise_repro
from fleet.findings.repro import ReproCall, ReproError, spell, write_repro
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Probe, Step, Surface
from fleet.runs.call.guest_protocol import bad_args
from fleet.runs.proof.verify import repro_of
from fleet.severity import Severity
from fleet.store.rows import FindingRow
from fleet.text import line
from sandbox.spec import Effect
from sandbox.tools import TOOLS

MAX_CLAIMS = 16
"""Maximum claims with steps per run: each is executed once, then as often as its proof needs."""
MAX_EXPECT = 300
MAX_DEPTH = 12
_LOOP = re.compile(r"\b(?:all|exists|exists_one|map|filter|reduce|min)\s*\(")
_COSTLY = re.compile(r"\bmatches\b")
_LITERAL = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"")
_RESULT = re.compile(r"\bresults?\b")
_RUN_NAME = re.compile(r"qa-[a-z2-7]{8}-[0-9]")


class ReportFinding(BaseModel):
    """Claim a defect beyond the plan, with the calls that show it. It is run again before it counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: Annotated[str, Field(min_length=8, max_length=300, description="what is wrong, what was expected")]
    severity: Severity
    surface: Surface | None = None
    steps: Annotated[
        tuple[Step, ...],
        Field(
            max_length=16, description="calls that show it, {tool, args}; {site} {proxy} {name} {face:NAME}"
        ),
    ] = ()
    expect: Annotated[
        str,
        Field(max_length=300, description="CEL over result and results: true when all is well, false now"),
    ] = ""


def claimed(report: ReportFinding, persona: LoadedPersona) -> Probe | str:
    """The probe of a claim, or why it is invalid: `/pointer: message`."""
    bad = _bad_steps(report, persona) or _bad_expect(report)
    if bad:
        return bad
    surface = report.surface or persona.persona.surface
    calls = tuple(ReproCall(step.tool, dict(step.args)) for step in report.steps)
    expectation = "".join(report.expect.split())
    for probe in persona.persona.probe:
        same = normalise_repro(repro_of(probe)) == normalise_repro(calls)
        if same and "".join(probe.expect.split()) == expectation:
            return f"/steps: same steps as the probe {probe.id!r}: run that probe"
    name = sha256(f"{surface}\0{normalise_repro(calls)}\0{expectation}".encode()).hexdigest()[:12]
    try:
        return Probe(
            id=f"x-{name}",
            severity=report.severity,
            surface=surface,
            steps=report.steps,
            expect=report.expect,
            finding=line(report.title, 300).ljust(8, "."),
        )
    except ValidationError as error:
        return f"/: {error.errors(include_url=False)[0]['msg']}"


def kept(row: FindingRow) -> Probe | None:
    """The recorded probe that shows a finding; None if there is none."""
    claim, probe = row.data.get("claim"), row.data.get("probe")
    if probe is None and isinstance(claim, Mapping):
        probe = claim.get("probe")  # of an earlier version
    return Probe.model_validate(probe) if isinstance(probe, Mapping) else None


def _bad_steps(report: ReportFinding, persona: LoadedPersona) -> str:
    for index, step in enumerate(report.steps):
        here = f"/steps/{index}"
        if step.tool not in persona.persona.tools or step.tool not in TOOLS:
            return f"{here}/tool: {line(step.tool, 64)!r} is not granted"
        if TOOLS[step.tool].effect is Effect.REPORT:
            return f"{here}/tool: a report is not a step of a repro"
        if why := bad_args(TOOLS[step.tool], step.args):
            pointer, _, message = why.partition(": ")
            return f"{here}/args{pointer}: {message}"
    try:
        calls = tuple(ReproCall(step.tool, dict(step.args)) for step in report.steps)
        write_repro(calls)
    except ReproError as error:
        return f"/steps: {error}"
    if _RUN_NAME.search(spell(calls)):
        return "/steps: this run's names are temporary: write {name}, and mint it in the first step"
    return ""


def _bad_expect(report: ReportFinding) -> str:
    """Why a driver's expectation is refused, or "". It is untrusted: anything possibly slow is refused."""
    text = report.expect
    if not text.strip():
        return "/expect: state in CEL what holds on a healthy platform"
    if len(text) > MAX_EXPECT or len(_LOOP.findall(text)) > 1 or _COSTLY.search(text) or _deep(text):
        return f"/expect: at most {MAX_EXPECT} characters, flat, with one loop and no regular expression"
    if not _RESULT.search(_LITERAL.sub("''", text)):
        return "/expect: it does not use result or results, so it says nothing about the platform"
    found = check(text, [step.tool for step in report.steps], "bool")
    return f"/expect: {found[0].message}" if found else ""


def _deep(text: str) -> bool:
    """Whether brackets are nested deeper than any real expectation; brackets in literals count too."""
    depth = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if depth > MAX_DEPTH:
            return True
    return False
