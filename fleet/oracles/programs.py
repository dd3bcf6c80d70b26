"""Oracles of a compiler: it ends, in a module that is valid or in a clean error. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleet.findings.sighting import Sighting, template
from fleet.oracles.model import Exchange, Facts, Observation, Oracle
from fleet.text import line

SHORTEST_S = 1.0
"""A compile with a shorter deadline proves nothing when it does not end."""


def _broken(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    outcome = last.result.get("outcome")
    if outcome not in ("panic", "crash"):
        return
    said = line(str(last.result.get("error", "")), 140)
    how = f"{last.asked} ends in a {outcome} (status {last.result.get('exit_code')}): {said}".rstrip(": ")
    known = template(said)
    sighting = Sighting(how, f"compiler-broken {last.asked} {outcome} {known}", whole=bool(known))
    yield Observation(sighting, frozenset({"outcome"}))


def _endless(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if last.result.get("outcome") == "hang" and float(last.args.get("timeout_s", 5.0)) >= SHORTEST_S:
        sighting = Sighting(f"{last.asked} does not end on this input", f"compiler-endless {last.asked}")
        yield Observation(sighting, frozenset({"outcome"}))


def _invalid(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    result = seen[-1].result
    if result.get("outcome") == "accepted" and seen[-1].args.get("source") and result.get("valid") is False:
        size = result.get("size", 0)
        title = f"the compiler accepts a program and writes a module of {size} bytes that does not validate"
        yield Observation(Sighting(title, "module-invalid"), frozenset({"valid"}))


def _compiled(**result: object) -> tuple[Exchange, ...]:
    return (Exchange("qa_compile", {"source": "fn f() {}"}, result),)


ORACLES = (
    Oracle(
        id="compiler-broken",
        says="a compiler ends in a module or in a clean error, never in a panic or a crash",
        severity="high",
        surface="compiler",
        reference="CWE-248",
        judges=("program",),
        judge=_broken,
        example=_compiled(outcome="panic", exit_code=101, error="index out of bounds"),
        control=_compiled(outcome="clean_error", exit_code=1, error="expected an item"),
    ),
    Oracle(
        id="compiler-endless",
        says="a compiler ends on every input within its deadline",
        severity="high",
        surface="compiler",
        reference="CWE-835",
        judges=("program",),
        judge=_endless,
        example=_compiled(outcome="hang"),
        control=_compiled(outcome="accepted", valid=True),
    ),
    Oracle(
        id="module-invalid",
        says="what a compiler accepts becomes a module that validates",
        severity="high",
        surface="compiler",
        reference="https://webassembly.github.io/spec/core/valid/",
        judges=("program",),
        judge=_invalid,
        example=_compiled(outcome="accepted", valid=False, size=30),
        control=_compiled(outcome="accepted", valid=True, size=30),
    ),
)
