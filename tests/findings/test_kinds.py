"""Kinds of findings: each oracle has exactly one, and its table says what a stranger needs."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from fleet.files import ROOT
from fleet.findings.kinds import Kind, kind_of, kinds, link, markdown
from fleet.oracles.table import ORACLES
from sandbox.tools import TOOLS

RATED_ONE_BY_ONE = {"quote-injection": "a quote that causes an error; a condition shows more"}
"""Oracles whose severity is not their kind's, each with its reason."""


def test_each_oracle_has_one_kind_of_its_severity() -> None:
    named = [oracle for kind in kinds().values() for oracle in kind.oracles]
    assert len(named) == len(set(named))
    assert {one.id for one in ORACLES} == set(named) - {"platform-unreachable"}
    differ = {one.id for one in ORACLES if (kind := kind_of(one.id)) and kind.severity != one.severity}
    assert differ == set(RATED_ONE_BY_ONE)


@pytest.mark.parametrize("kind", kinds().values(), ids=lambda one: one.id)
def test_a_kind_reads_as_english_and_names_no_field(kind: Kind) -> None:
    for text in (kind.name, kind.wrong, kind.why, kind.healthy, kind.fix, kind.reason):
        assert not re.search(r"\b[a-z]+_[a-z_]+\b|\{|\}|\bTrue\b|\bNone\b|  ", text), text
    for reference in kind.references:
        assert link(reference) or reference.startswith(("OWASP ", "WCAG ", "ISO/IEC ")), reference


def test_what_is_expected_of_a_field_is_said_of_fields_that_decide() -> None:
    named = {field.name for spec in TOOLS.values() for field in fields(spec.result)}
    stated = 0
    for kind in kinds().values():
        assert set(kind.expected) <= named, kind.id
        assert all(0 < len(words) <= 60 for words in kind.expected.values()), kind.id
        stated += bool(kind.expected)
    assert stated > 40


def test_the_reference_is_the_tables() -> None:
    """To write it anew: fleet items kinds --markdown > docs/reference/findings.md"""
    assert (ROOT / "docs/reference/findings.md").read_text("utf-8") == markdown()
