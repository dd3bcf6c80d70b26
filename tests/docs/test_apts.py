"""`docs/apts.yaml` and the page made from it: each line has what shows it, and claims no more."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize("ref", REFS)
def test_a_file_and_a_test_that_a_line_names_are_there(ref: str) -> None:
    name, _, test = ref.partition("::")
    assert (ROOT / name).exists()
    if test:
        assert test in names_in(ROOT / name)
        assert test.startswith("test_")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.get("requirement_id") or row["id"]))
def test_a_line_says_why_and_what_shows_it(row: dict[str, Any]) -> None:
    refs = row.get("evidence_refs", [])
    assert row["status"] in WORDS
    assert row["rationale"]
    if row["status"] == "met":
        assert any("::" in ref for ref in refs), "met: name a test"
        assert "Missing" not in row["rationale"]
    if row["status"] == "partially_met":
        assert refs
        assert "issing" in row["rationale"] or ";" in row["rationale"], "say what is missing"


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
