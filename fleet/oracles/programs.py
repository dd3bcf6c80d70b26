"""Oracles of a compiler: it ends, in a module that is valid or in a clean error. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleet.findings.sighting import Sighting, template
from fleet.oracles.model import Exchange, Facts, Observation, Oracle
from fleet.text import line

SHORTEST_S = 1.0
"""A compile with a shorter deadline proves nothing when it does not end."""
SMALL = 65_536
"""Bytes of an input that may not use up a compiler's memory."""

_SHOWN = frozenset({"outcome"})


def _defect(last: Exchange, facts: Facts, prefix: str) -> tuple[str, bool]:
    """The signature of a defect, the same whatever input shows it, and whether it names one by itself: by the
    place in the program, else by its message."""
    result = last.result
    known = str(result.get("place") or result.get("said") or template(_error(last)))
    return " ".join(filter(None, (prefix, facts.language, line(known, 300)))), bool(known)


def _error(last: Exchange) -> str:
    return line(str(last.result.get("error", "")), 140)


def _broken(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    outcome = last.result.get("outcome")
    if outcome not in ("panic", "crash"):
        return
    how = f"{last.asked} ends in a {outcome} (status {last.result.get('exit_code')}): {_error(last)}"
    signature, whole = _defect(last, facts, f"compiler-broken {last.asked} {outcome}")
    yield Observation(Sighting(how.rstrip(": "), signature, whole=whole), _SHOWN)


def _internal(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if last.result.get("kind") != "internal-error" or last.result.get("outcome") in ("panic", "crash"):
        return
    said = _error(last) or line(str(last.result.get("said", "")), 140)
    how = f"{last.asked} fails with an internal error (status {last.result.get('exit_code')}): {said}"
    signature, whole = _defect(last, facts, f"compiler-internal-error {last.asked}")
    yield Observation(Sighting(how.rstrip(": "), signature, whole=whole), frozenset({"kind"}))


def _endless(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if last.result.get("outcome") == "hang" and float(last.args.get("timeout_s", 5.0)) >= SHORTEST_S:
        sighting = Sighting(f"{last.asked} does not end on this input", f"compiler-endless {last.asked}")
        yield Observation(sighting, _SHOWN)


def _greedy(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    size = len(str(last.args.get("source", "")).encode()) or len(str(last.args.get("module_hex", ""))) // 2
    if last.result.get("outcome") == "memory" and size < SMALL:
        how = f"{last.asked} uses up its memory on an input of {size} bytes; its control did not"
        signature, _ = _defect(last, facts, f"compiler-memory {last.asked}")
        yield Observation(Sighting(how, signature), _SHOWN)


def _invalid(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    result = seen[-1].result
    if result.get("outcome") == "accepted" and seen[-1].args.get("source") and result.get("valid") is False:
        if result.get("kind") == "internal-error":
            return
        said = line(str(result.get("said", "")), 140)
        what = f"an output of {result.get('size', 0)} bytes that does not validate"
        title = f"the compiler accepts a program and writes {what}: {said}".rstrip(": ")
        signature, _ = _defect(seen[-1], facts, "module-invalid")
        yield Observation(Sighting(title, signature), frozenset({"valid"}))


def _unexported(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    result = seen[-1].result
    if result.get("outcome") == "accepted" and result.get("kind") == "missing-entry":
        said = line(str(result.get("said", "")), 140)
        title = f"the compiler accepts a program that defines an entry function, and {said}"
        signature, _ = _defect(seen[-1], facts, "missing-entry")
        yield Observation(Sighting(title, signature, whole=True), frozenset({"kind", "has_entry"}))


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
        id="compiler-internal-error",
        says="a compiler refuses a program in words of its own, never by an exception or an assertion",
        severity="medium",
        surface="compiler",
        reference="CWE-617",
        judges=("program",),
        judge=_internal,
        example=_compiled(
            outcome="clean_error", exit_code=1, kind="internal-error", error="KeyError: 'a'", place="a.py:f"
        ),
        control=_compiled(outcome="clean_error", exit_code=1, kind="clean_error", error="no such name"),
    ),
    Oracle(
        id="compiler-memory",
        says="a small input does not use up a compiler's memory",
        severity="high",
        surface="compiler",
        reference="CWE-770",
        judges=("program",),
        judge=_greedy,
        example=_compiled(outcome="memory", exit_code=-9, kind="memory"),
        control=_compiled(outcome="unknown", exit_code=-9, error="its control uses it up as well"),
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
    Oracle(
        id="missing-entry",
        says="a program that defines an entry function becomes a module that exports one",
        severity="medium",
        surface="compiler",
        reference="CWE-684",
        judges=("program",),
        judge=_unexported,
        example=_compiled(
            outcome="accepted",
            valid=True,
            has_entry=False,
            kind="missing-entry",
            said="exports none of frame",
        ),
        control=_compiled(outcome="accepted", valid=True, has_entry=True, kind="accepted"),
    ),
)
