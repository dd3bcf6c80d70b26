"""Oracles of a compiler: it ends, in a module that is valid or in a clean error. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from fleet.findings.sighting import Sighting, template
from fleet.oracles.model import Exchange, Facts, Observation, Oracle
from fleet.oracles.program.shapes import shape
from fleet.severity import Severity
from fleet.text import line

SHORTEST_S = 1.0
"""A compile with a shorter deadline proves nothing when it does not end."""
SMALL = 65_536
"""Bytes of an input that may not use up a compiler's memory."""

_STATUS = re.compile(r"SIG[A-Z0-9]+|signal \d+|status -?\d+|output without end")
_RECURSION = re.compile(r"overflowed its stack|stack[ -]overflow|maximum recursion depth|Maximum call stack")
_SHOWN = frozenset({"outcome"})


def _sighting(title: str, last: Exchange, facts: Facts, prefix: str) -> Sighting:
    """Named by the place in the program, else by its message, the same whatever input shows it; where the
    message is only the status of its end, or that of any recursion, by the shape of the input as well."""
    result = last.result
    known = str(result.get("place") or result.get("said") or template(_error(last)))
    begin = " ".join(filter(None, (prefix, facts.language)))
    key = f"{begin} {line(known, 300)}".strip()
    if _STATUS.fullmatch(known) or (_RECURSION.search(known) and not result.get("place")):
        return _shaped(title, last, key, whole=True)
    if known.endswith(" recursion"):  # earlier versions named the first three functions of a cycle
        first = " < ".join(known.removesuffix(" recursion").split(" < ")[:3])
        return Sighting(title, key, whole=True, former=((f"{begin} {line(first, 300)}", True),))
    where = {} if known else {"crash": f"{key} of {shape(last.args)}"}
    return Sighting(title, key, whole=bool(known), where=where)


def _shaped(title: str, last: Exchange, key: str, *, whole: bool) -> Sighting:
    """Named by the shape of the input too; `whole`: what it was in earlier versions, under the key alone."""
    if not (form := shape(last.args)):
        return Sighting(title, key, whole=whole)
    return Sighting(title, f"{key} of {form}", whole=True, former=((key, whole),))


def _size(last: Exchange) -> int:
    """Bytes of the input."""
    return len(str(last.args.get("source", "")).encode()) or len(str(last.args.get("module_hex", ""))) // 2


def _error(last: Exchange) -> str:
    return line(str(last.result.get("error", "")), 140)


oracle = partial(Oracle, judges=("program",), surface="compiler")


def _compiled(**result: object) -> tuple[Exchange, ...]:
    return (Exchange("qa_compile", {"source": "fn f() {}"}, result),)


@oracle(
    id="compiler-broken",
    says="a compiler ends in a module or in a clean error, never in a panic or a crash",
    severity=Severity.HIGH,
    example=_compiled(outcome="panic", exit_code=101, error="index out of bounds"),
    control=_compiled(outcome="clean_error", exit_code=1, error="expected an item"),
)
def compiler_broken(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    outcome = last.result.get("outcome")
    if outcome not in ("panic", "crash"):
        return
    how = f"{last.asked} ends in a {outcome} (status {last.result.get('exit_code')}): {_error(last)}"
    prefix = f"compiler-broken {last.asked} {outcome}"
    yield Observation(_sighting(how.rstrip(": "), last, facts, prefix), _SHOWN)


@oracle(
    id="compiler-interferes",
    says="a compiler leaves the process that started it alone: it does not kill, stop or limit it",
    severity=Severity.HIGH,
    example=_compiled(outcome="interference", error="killed the process that started it (SIGKILL)"),
    control=_compiled(outcome="unknown", error="could not tell: its control killed it as well"),
)
def compiler_interferes(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if last.result.get("outcome") != "interference":
        return
    said = _error(last) or line(str(last.result.get("said", "")), 140)
    title = f"{last.asked} {said}"
    yield Observation(_sighting(title, last, facts, f"compiler-interferes {last.asked}"), _SHOWN)


@oracle(
    id="compiler-internal-error",
    says="a compiler refuses a program in words of its own, never by an exception or an assertion",
    severity=Severity.MEDIUM,
    example=_compiled(
        outcome="clean_error", exit_code=1, kind="internal-error", error="KeyError: 'a'", place="a.py:f"
    ),
    control=_compiled(outcome="clean_error", exit_code=1, kind="clean_error", error="no such name"),
)
def compiler_internal_error(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if last.result.get("kind") != "internal-error" or last.result.get("outcome") in ("panic", "crash"):
        return
    said = _error(last) or line(str(last.result.get("said", "")), 140)
    how = f"{last.asked}, status {last.result.get('exit_code')}: {said}"
    prefix = f"compiler-internal-error {last.asked}"
    yield Observation(_sighting(how.rstrip(": "), last, facts, prefix), frozenset({"kind"}))


@oracle(
    id="compiler-endless",
    says="a compiler ends on every input within its deadline",
    severity=Severity.HIGH,
    example=_compiled(outcome="hang"),
    control=_compiled(outcome="accepted", valid=True),
)
def compiler_endless(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    limit = float(last.args.get("timeout_s", 5.0))
    if last.result.get("outcome") == "hang" and limit >= SHORTEST_S:
        title = f"{last.asked} runs for more than {limit:.3g} s on {_size(last)} bytes"
        yield Observation(_shaped(title, last, f"compiler-endless {last.asked}", whole=False), _SHOWN)


@oracle(
    id="compiler-memory",
    says="a small input does not use up a compiler's memory",
    severity=Severity.HIGH,
    example=_compiled(outcome="memory", exit_code=-9, kind="memory"),
    control=_compiled(outcome="unknown", exit_code=-9, error="its control uses it up as well"),
)
def compiler_memory(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    size = _size(last)
    if last.result.get("outcome") == "memory" and size < SMALL:
        how = f"{last.asked} runs out of memory on {size} bytes"
        key = _sighting(how, last, facts, f"compiler-memory {last.asked}").signature
        yield Observation(_shaped(how, last, key, whole=False), _SHOWN)


@oracle(
    id="module-invalid",
    says="what a compiler accepts becomes a module that validates",
    severity=Severity.HIGH,
    example=_compiled(outcome="accepted", valid=False, size=30),
    control=_compiled(outcome="accepted", valid=True, size=30),
)
def module_invalid(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    result = seen[-1].result
    if result.get("outcome") == "accepted" and seen[-1].args.get("source") and result.get("valid") is False:
        if result.get("kind") == "internal-error":
            return
        said = line(str(result.get("said", "")), 140)
        what = f"the compiler's output of {result.get('size', 0)} bytes does not validate"
        title = f"{what}: {said}".rstrip(": ")
        key = _sighting(title, seen[-1], facts, "module-invalid").signature
        found = _shaped(title, seen[-1], key, whole=False)
        yield Observation(found, frozenset({"valid"}))


@oracle(
    id="missing-entry",
    says="a program that defines an entry function becomes a module that exports one",
    severity=Severity.MEDIUM,
    example=_compiled(
        outcome="accepted",
        valid=True,
        has_entry=False,
        kind="missing-entry",
        said="exports none of frame",
    ),
    control=_compiled(outcome="accepted", valid=True, has_entry=True, kind="accepted"),
)
def missing_entry(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    result = seen[-1].result
    if result.get("outcome") == "accepted" and result.get("kind") == "missing-entry":
        said = line(str(result.get("said", "")), 140)
        title = f"the compiler's module {said}"
        key = _sighting(title, seen[-1], facts, "missing-entry").signature
        found = replace(_shaped(title, seen[-1], key, whole=True), where={"input": key})  # one of a compiler
        yield Observation(found, frozenset({"kind", "has_entry"}))
