"""Oracles of two compilations: the same source, or two sources that must behave alike. Pure.

An earlier exchange of the same question is the other one. That two sources are related is made out here
(sandbox/fuzz/relations.py), whatever is claimed of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from fleet.findings.sighting import Sighting
from fleet.oracles.model import Exchange, Facts, Observation, Oracle
from fleet.oracles.program.shapes import shape
from fleet.severity import Severity
from sandbox.fuzz.relations import related

_SOURCE = "fn frame(t: i32) -> i32 { let step = 2; t * step }"
_RENAMED = "fn frame(t: i32) -> i32 { let zq0 = 2; t * zq0 }"


def _accepted(one: Exchange) -> bool:
    return one.result.get("outcome") == "accepted" and one.result.get("kind") == "accepted"


def _sources(seen: Sequence[Exchange]) -> Iterator[tuple[int, Exchange]]:
    """Earlier compilations, where the last is an accepted one as well."""
    if seen[-1].args.get("source") and _accepted(seen[-1]):
        for at, one in enumerate(seen[:-1]):
            if one.tool == seen[-1].tool and one.args.get("source") and _accepted(one):
                yield at, one


def _behave_apart(one: Exchange, other: Exchange) -> bool:
    """Both could be run, and did not do the same."""
    first, second = one.result.get("behaviour"), other.result.get("behaviour")
    return bool(first) and bool(second) and first != second


def _way(one: Exchange) -> str:
    """Which program compiled what: `other`, `printed`, or the compiler its source, ""."""
    return next((way for way in ("other", "printed") if one.args.get(way)), "")


oracle = partial(Oracle, judges=("program",), surface="compiler")


def _pair(first: dict[str, Any], second: dict[str, Any], **results: tuple[str, str]) -> tuple[Exchange, ...]:
    sides = (first, second)
    return tuple(
        Exchange(
            "qa_compile",
            {"source": _SOURCE} | side,
            {"outcome": "accepted", "kind": "accepted"} | {name: two[at] for name, two in results.items()},
        )
        for at, side in enumerate(sides)
    )


@oracle(
    id="compiler-nondeterministic",
    says="a compiler makes the same output of the same program",
    severity=Severity.MEDIUM,
    example=_pair({}, {}, sha256=("aa", "bb")),
    control=_pair({}, {}, sha256=("aa", "aa")),
)
def compiler_nondeterministic(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    for at, one in _sources(seen):
        same = one.args["source"] == last.args["source"] and _way(one) == _way(last)
        digests = one.result.get("sha256"), last.result.get("sha256")
        if same and all(digests) and digests[0] != digests[1]:
            title = "the compiler makes two outputs of one source"
            yield Observation(
                _named(title, "compiler-nondeterministic", last, facts), frozenset({"sha256"}), led=(at,)
            )
            return


@oracle(
    id="compiler-metamorphic",
    says="programs that differ in names, dead code or the order of their functions behave alike",
    severity=Severity.HIGH,
    example=_pair({}, {"source": _RENAMED}, behaviour=("aa", "bb")),
    control=_pair({}, {"source": "fn frame(t: i32) -> i32 { t }"}, behaviour=("aa", "bb")),
)
def compiler_metamorphic(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    for at, one in _sources(seen):
        if _way(one) or _way(last) or not _behave_apart(one, last):
            continue
        if relation := related(str(one.args["source"]), str(last.args["source"])):
            title = f"the compiler, on two programs alike but for {relation}"
            sighting = _named(title, f"compiler-metamorphic {relation}", last, facts)
            yield Observation(sighting, frozenset({"behaviour"}), led=(at,))
            return


@oracle(
    id="compiler-differential",
    says="two compilers of one language make modules that behave alike",
    severity=Severity.HIGH,
    example=_pair({}, {"other": True}, behaviour=("aa", "bb")),
    control=_pair({}, {"other": True}, behaviour=("aa", "aa")),
)
def compiler_differential(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    for at, one in _sources(seen):
        twins = one.args["source"] == last.args["source"] and {_way(one), _way(last)} == {"", "other"}
        if twins and _behave_apart(one, last):
            title = "two compilers of one language, on the same program"
            yield Observation(
                _named(title, "compiler-differential", last, facts), frozenset({"behaviour"}), led=(at,)
            )
            return


@oracle(
    id="compiler-round-trip",
    says="an output that is printed and compiled again stays what it was",
    severity=Severity.MEDIUM,
    example=_pair({}, {"printed": True}, sha256=("aa", "bb"), behaviour=("aa", "bb")),
    control=_pair({}, {"printed": True}, sha256=("aa", "bb"), behaviour=("aa", "aa")),
)
def compiler_round_trip(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if _way(last) != "printed" or last.result.get("kind") not in ("accepted", "clean_error"):
        return
    for at, one in enumerate(seen[:-1]):
        if one.tool != last.tool or one.args.get("source") != last.args.get("source") or _way(one):
            continue
        if not _accepted(one):
            continue
        digests, behaviours = (
            {one.result.get(name), last.result.get(name)} for name in ("sha256", "behaviour")
        )
        other, alike = len(digests) == 2 and all(digests), len(behaviours) == 1 and all(behaviours)
        if last.result.get("outcome") == "clean_error":
            what, read = "is refused", "outcome"
        elif _accepted(last) and other and not alike:
            what, read = "compiles to another output", "sha256"
        else:
            continue
        title = f"the compiler's printed source {what}"
        yield Observation(_named(title, "compiler-round-trip", last, facts), frozenset({read}), led=(at,))
        return


def _named(title: str, what: str, last: Exchange, facts: Facts) -> Sighting:
    """Of programs that are made of other constructs it is another defect."""
    key = " ".join(filter(None, (what, facts.language)))
    return Sighting(title, key, where={"input": f"{key} of {shape(last.args)}"})
