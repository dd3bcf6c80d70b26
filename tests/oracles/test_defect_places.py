"""Where a defect is, by each oracle's own example: one by two ways is one, another construct is another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fleet.findings.fingerprint import identity
from fleet.findings.sighting import Sighting
from fleet.oracles.chain import lookups, stated, views
from fleet.oracles.chain.fourbyte import selector_of
from fleet.oracles.model import Exchange, Facts, Oracle
from fleet.oracles.program import pairs
from fleet.oracles.table import ORACLES, judge

BY_WHAT_IT_SAYS = frozenset({"crash", "act", "input", "trace", "fact"})
"""Parts of a place that may be what was seen: where a program broke, on what."""


def sightings(oracle: Oracle, seen: Sequence[Exchange], given: Facts | None = None) -> list[Sighting]:
    return [one.sighting for one in judge(seen, given or oracle.given) if one.oracle == oracle.id]


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda one: one.id)
def test_each_part_of_a_place_is_stated_or_read(oracle: Oracle) -> None:
    (found,) = sightings(oracle, oracle.example)[:1]
    unread = {part for part, text in found.where.items() if text == found.signature}
    assert unread <= BY_WHAT_IT_SAYS


def test_views_that_disagree_are_one_defect_by_whatever_name() -> None:
    named = {name: selector_of(f"{name}(uint256)") for name in ("ownerOfId", "ownerOf")}
    guide = "".join(f"- `{name}(uint256)` is the owner of a name\n" for name in named)
    page = Exchange("qa_fetch", {"url": "{site}/guide.md"}, {"status": 200, "text": guide})
    words = ["0x" + "0" * 24 + byte * 20 for byte in ("11", "22")]
    watch = [f"{selector}({1:064x})" for selector in named.values()]
    stated_ = sightings(
        stated.stated_views, (page, Exchange("qa_chain", {"watch": watch}, {"ok": True, "before": words}))
    )
    known = sightings(views.views_disagree, views.views_disagree.example)
    assert {identity("on-chain", one, ()) for one in (*stated_, *known)} == {
        identity("on-chain", known[0], ())
    }
    assert sightings(lookups.lookups_disagree, lookups.lookups_disagree.example)[0].where["function"] == (
        "0000000f 00000010"
    )


@pytest.mark.parametrize(
    "oracle", [pairs.compiler_nondeterministic, pairs.compiler_differential], ids=lambda one: one.id
)
def test_programs_of_other_constructs_are_other_defects(oracle: Oracle) -> None:
    def of(source: str) -> str:
        seen = [replace(one, args={**one.args, "source": source}) for one in oracle.example]
        (found,) = sightings(oracle, seen)
        return identity("compiler", found, ())

    assert of("fn f() { let a = 1; }") == of("fn g() { let b = 22; }") != of("enum E { A } fn f() {}")


def test_files_that_nobody_names_and_that_all_fail_are_one_defect() -> None:
    """A page that is named fails by itself, and so does a usual file with a parameter."""

    def of(path: str) -> str:
        args = {"url": "{site}" + path}
        (one,) = judge([Exchange("qa_fetch", args, {"status": 500, "text": "oops"})], Facts())
        return identity("public-site", one.sighting, ())

    usual = [
        "/robots.txt",
        "/.env",
        "/api/v1/openapi.json",
        "/docs/swagger.yaml",
        "/.well-known/security.txt",
    ]
    assert len({of(path) for path in usual}) == 1
    others = ["/boats", "/boats.json", "/robots.txt?a=1", "/status"]
    assert len({of(path) for path in (*usual, *others)}) == 1 + len(others)


def test_routes_that_all_fail_without_a_body_are_one_defect() -> None:
    """One that fails at a value fails by itself."""

    def of(path: str, **sent: object) -> str:
        args = {"url": "{site}" + path, "method": "POST", **sent}
        (one,) = judge([Exchange("qa_fetch", args, {"status": 500, "text": "oops"})], Facts())
        return identity("public-site", one.sighting, ())

    kind = "application/json"
    without = [of("/boats"), of("/oars", fields={}), of("/boats", body="{", body_type=kind)]
    assert len({*without}) == 1
    others = [
        of("/boats", fields={"name": "wren"}),
        of("/oars", fields={"name": "wren"}),
        of("/sails", body="{}", body_type=kind),
        of("/masts", body="<a", body_type="application/xml"),
    ]
    assert len({*without, *others}) == 1 + len(others)
