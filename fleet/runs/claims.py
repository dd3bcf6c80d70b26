"""Findings beyond the probes: what a driver claims becomes a probe of its own, or nothing.

A claim is steps and an expectation, and both are the driver's. Running the steps again proves that the
platform answers so, every time; it does not prove that the answer is wrong, because a driver that lies
writes an expectation that no healthy platform meets. So only what the fleet itself says of every healthy
platform (ORACLES) may be posted, in the fleet's words; any other claim is proven as well, kept with its
evidence, and waits for a person. See docs/decisions/0006-explored-findings.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from fleet.drivers.expect import ExpectationError, check, holds
from fleet.drivers.playbook import Attempt
from fleet.findings.fingerprint import fingerprint
from fleet.findings.repro import ReproCall, ReproError, write_repro
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Probe, Severity, Surface
from fleet.runs.guest import bad_args
from fleet.runs.offers import ReportFinding
from fleet.runs.prove import repro_of
from fleet.store.rows import FindingRow
from fleet.text import line
from sandbox.tools import TOOLS

MAX_CLAIMS = 16
"""Claims with steps that one run may make: each is executed at once, and three times more as its proof."""
MAX_EXPECT = 300
MAX_DEPTH = 12
_LOOP = re.compile(r"\b(?:all|exists|exists_one|map|filter|reduce|min)\s*\(")
_COSTLY = re.compile(r"\bmatches\b")
_LITERAL = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"")
_RESULT = re.compile(r"\bresults?\b")
_RUN_NAME = re.compile(r"qa-[a-z2-7]{8}-[0-9]")


@dataclass(frozen=True, slots=True)
class Oracle:
    """What holds for the last result of a tool on every healthy platform, whatever it was asked."""

    tool: str
    healthy: str
    title: str
    severity: Severity
    surface: Surface


ORACLES: tuple[Oracle, ...] = (
    Oracle(
        "qa_compile",
        '!(result.outcome in ["panic", "crash"])',
        "the compiler or loader breaks on this input; a clean error was expected",
        "high",
        "compiler",
    ),
    Oracle(
        "qa_fetch",
        "result.status < 500 || result.status in [501, 503, 507]",
        "a public page answers with a server error; an answer below 500 was expected",
        "medium",
        "ux",
    ),
    Oracle(
        "qa_call",
        "!(result.status >= 400 && result.charged > 0)",
        "a refused call is charged; a refusal was expected to be free",
        "high",
        "on-chain",
    ),
    Oracle(
        "qa_publish",
        "!result.published || result.app_read_back",
        "a publish is reported, and the app is not there; it was expected to be readable",
        "high",
        "on-chain",
    ),
)
"""Each holds for any arguments, so that no choice of steps makes a healthy platform break it. What a driver
could put there itself (a secret in its own page, a deadline of its own) is not among them."""


def claimed(report: ReportFinding, persona: LoadedPersona) -> Probe | str:
    """The probe that a claim is, or why it is none: `/pointer: message`."""
    bad = _bad_steps(report, persona) or _bad_expect(report.expect)
    if bad:
        return bad
    surface = report.surface or persona.persona.surface
    calls = tuple(ReproCall(step.tool, dict(step.args)) for step in report.steps)
    name = fingerprint(surface, calls, "")
    for probe in persona.persona.probe:
        if fingerprint(surface, repro_of(probe), "") == name:
            return f"/steps: these are the steps of the probe {probe.id!r}: run that one"
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


def judged(probe: Probe, seen: Attempt) -> tuple[Probe, dict[str, Any]]:
    """The probe to be proven, and what is kept with its finding.

    Where the fleet's own words say that the last answer is wrong, they take the place of the driver's.
    """
    oracle = broken(probe.steps[-1].tool, seen.results[-1]) if seen.results else None
    claim: dict[str, Any] = {"title": probe.finding, "severity": probe.severity, "expect": probe.expect}
    if oracle is not None:
        surface = oracle.surface
        name = fingerprint(surface, repro_of(probe), "")
        probe = probe.model_copy(
            update={
                "id": f"x-{name}",
                "severity": oracle.severity,
                "surface": surface,
                "expect": oracle.healthy,
                "finding": oracle.title,
            }
        )
    return probe, claim | {"review": oracle is None, "probe": probe.model_dump(mode="json")}


def broken(tool: str, result: Mapping[str, Any]) -> Oracle | None:
    """The fleet's own expectation that this result breaks, or None."""
    for oracle in ORACLES:
        try:
            if oracle.tool == tool and not holds(oracle.healthy, [result], {}):
                return oracle
        except ExpectationError:
            continue
    return None


def kept(row: FindingRow) -> Probe | None:
    """The probe of an explored finding as it was written down; None for one of the persona's own."""
    claim = row.data.get("claim")
    return Probe.model_validate(claim["probe"]) if isinstance(claim, Mapping) else None


def _bad_steps(report: ReportFinding, persona: LoadedPersona) -> str:
    for index, step in enumerate(report.steps):
        here = f"/steps/{index}"
        if step.tool not in persona.persona.tools or step.tool not in TOOLS:
            return f"{here}/tool: {line(step.tool, 64)!r} is not granted"
        if step.tool == "qa_report":
            return f"{here}/tool: a report is no step of a repro"
        if why := bad_args(TOOLS[step.tool], step.args):
            pointer, _, message = why.partition(": ")
            return f"{here}/args{pointer}: {message}"
    try:
        text = write_repro(ReproCall(step.tool, dict(step.args)) for step in report.steps)
    except ReproError as error:
        return f"/steps: {error}"
    if _RUN_NAME.search(text):
        return "/steps: a name of this run is gone tomorrow: write {name}, and mint it in the first step"
    return ""


def _bad_expect(text: str) -> str:
    """Why an expectation of a driver is not evaluated. It is hostile: what could take long is refused."""
    if not text.strip():
        return "/expect: say in CEL what holds when all is well"
    if len(text) > MAX_EXPECT or len(_LOOP.findall(text)) > 1 or _COSTLY.search(text) or _deep(text):
        return f"/expect: at most {MAX_EXPECT} characters, flat, with one loop and no regular expression"
    if not _RESULT.search(_LITERAL.sub("''", text)):
        return "/expect: it does not speak of result or results, so it says nothing about the platform"
    try:
        why = check(text)
    except RecursionError:
        why = "nested too deeply"
    return f"/expect: {why}" if why else ""


def _deep(text: str) -> bool:
    """Whether brackets stand in brackets beyond what anybody needs; those in literals count too."""
    depth = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if depth > MAX_DEPTH:
            return True
    return False
