"""`docs/apts.yaml` and the page made from it: each line has what shows it, and claims no more."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

from tests.docs.apts import DOMAINS, PAGE, ROOT, WORDS, load, page

CLAIM = load()
ROWS: list[dict[str, Any]] = CLAIM["requirements"] + CLAIM["agentic_top_10"]
IN_DOMAIN = {"SE": 26, "SC": 20, "HO": 19, "AL": 28, "AR": 20, "MR": 23, "TP": 22, "RP": 15}
"""Requirements of the standard, each with the next number."""
REFS = sorted({ref for row in ROWS for ref in row.get("evidence_refs", ())})


@cache
def names_in(file: Path) -> frozenset[str]:
    nodes = ast.walk(ast.parse(file.read_text()))
    return frozenset(one.name for one in nodes if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_requirement_of_the_standard_has_one_line() -> None:
    wanted = [f"APTS-{code}-{at:03}" for code, most in IN_DOMAIN.items() for at in range(1, most + 1)]
    assert [row["requirement_id"] for row in CLAIM["requirements"]] == wanted
    assert [row["id"] for row in CLAIM["agentic_top_10"]] == [f"ASI{at:02}" for at in range(1, 11)]
    assert IN_DOMAIN.keys() == DOMAINS.keys()


def test_each_file_and_each_test_that_a_line_names_is_there() -> None:
    named = {ref: ref.partition("::") for ref in REFS}
    assert [ref for ref, (name, _, _) in named.items() if not (ROOT / name).exists()] == []
    tests = {ref: (ROOT / name, test) for ref, (name, _, test) in named.items() if test}
    assert [ref for ref, (file, test) in tests.items() if test not in names_in(file)] == []
    assert [ref for ref, (_, test) in tests.items() if not test.startswith("test_")] == []


def test_each_line_says_why_and_what_shows_it() -> None:
    for row in ROWS:
        line, refs = row.get("requirement_id") or row["id"], row.get("evidence_refs", [])
        assert row["status"] in WORDS, line
        assert row["rationale"], line
        if row["status"] == "met":
            assert any("::" in ref for ref in refs), f"{line} met: name a test"
            assert "Missing" not in row["rationale"], line
        if row["status"] == "partially_met":
            assert refs, line
            assert "issing" in row["rationale"] or ";" in row["rationale"], f"{line}: say what is missing"


def test_no_tier_is_claimed_that_is_not_whole() -> None:
    claimed = CLAIM["claimed_conformance"]["claimed_tier"]
    whole = 0
    for tier in (1, 2, 3):
        of = [
            row["status"] for row in CLAIM["requirements"] if row["tier"] == tier and row["level"] == "MUST"
        ]
        if whole == tier - 1 and set(of) <= {"met", "not_applicable"}:
            whole = tier
    assert claimed == (whole or "none")


def test_the_page_is_made_from_the_claim() -> None:
    assert PAGE.read_text() == page(CLAIM), "python -m tests.docs.apts"
