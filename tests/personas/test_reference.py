"""The reference of tools and persona files is generated, complete, and the one that is shipped."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fleet.app.tool_reference import NAMES, SCENARIOS, markdown, reference, words
from fleet.config.json_schema import schema
from fleet.drivers.expect import VARIABLES
from fleet.drivers.expect_check import check
from fleet.files import ROOT
from fleet.personas.model import Persona
from fleet.runs.call.guest_protocol import bad_args
from sandbox.spec import ToolSpec
from sandbox.tools import TOOLS

SPECS = pytest.mark.parametrize("spec", TOOLS.values(), ids=list(TOOLS))


def test_the_shipped_reference_is_the_generated_one() -> None:
    """To write it anew: fleet personas tools --markdown > docs/reference/tools.md"""
    assert (ROOT / "docs/reference/tools.md").read_text("utf-8") == markdown()


def test_the_worked_examples_are_classified_by_the_table_and_cover_every_phase() -> None:
    assert len(SCENARIOS) >= 10
    assert len({one.phase for one in SCENARIOS}) == 4
    by_name = {one.name: one for one in SCENARIOS}
    spray = by_name["password spraying, a few default passwords"]
    assert spray.classified().scores == (3, 4, 6)  # the scores of qa_account, one less in production
    assert (spray.classified().level, spray.asked()) == (
        "high",
        "the host's `approved` in the signed profile, then an approver, within 15 minutes",
    )
    assert by_name["buffer overflow in a compiler"].asked() == "nobody: the dial permits it"
    assert by_name["remove what a test made"].asked().startswith("not made")
    assert by_name["directory traversal"].asked() == "the host's `approved` in the signed profile"
    text = (ROOT / "docs/reference/tools.md").read_text("utf-8")
    for one in SCENARIOS:
        scores = " | ".join(map(str, one.classified().scores))
        assert f"| {one.name} | {one.phase} | `{one.classified().name}` | {one.host} | {scores} |" in text


def test_the_shipped_schema_is_the_generated_one() -> None:
    """To write it anew: fleet personas schema > docs/reference/persona.schema.json"""
    text = (ROOT / "docs/reference/persona.schema.json").read_text("utf-8")
    assert text == json.dumps(schema(Persona), indent=2) + "\n"


@SPECS
def test_every_field_has_a_type_and_a_text(spec: ToolSpec) -> None:
    one = reference(spec)
    rows: list[dict[str, Any]] = [*one["args"], *one["result"]]
    rows += [inner for row in rows for inner in row.get("fields", ())]
    assert [row["name"] for row in rows if not row["says"] or not row["type"]] == []
    late = [row["name"] for row in rows if row["name"].endswith("_ms") and row["unit"] != "ms"]
    assert late == []


@SPECS
def test_every_example_is_good(spec: ToolSpec) -> None:
    assert bad_args(spec, spec.example) is None
    assert not check(spec.expects, [spec.name], "bool")


def test_every_variable_of_an_expectation_is_explained() -> None:
    assert set(NAMES) == set(VARIABLES)
    assert all(text for rows in words().values() for text in rows.values())


def test_no_result_has_a_number_for_what_is_not_stated() -> None:
    """An expectation that compares it would hold for nothing: such a field is absent."""
    rows = re.findall(r"^\| `(\w+)` \| (?:int|double) \|[^|]*\| (.*) \|$", markdown(), re.M)
    assert ("gas_quote", "The platform's own figure; absent where it states none.") in rows
    assert [
        name for name, text in rows if re.search(r"\b0 (?:without one|where it|if it|when it)", text)
    ] == []
