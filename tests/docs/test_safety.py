"""`docs/safety.md`: its table is that of the battery, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fleet.chain.signing.policy import EMITS
from fleet.files import SHIPPED
from fleet.jail.battery.probes.battery import ALL
from fleet.jail.battery.scenarios import SCENARIOS
from fleet.jail.diagnosis import LOAD
from tests.jail.table import COLUMNS, FIRST, LAST, PAGE, WEAKER, meaning

ROOT = Path(__file__).parents[2]
TEXT = PAGE.read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.partition(FIRST)[2].partition(LAST)[0].splitlines()
    if line.startswith("|")
]


def test_every_probe_has_its_line_and_every_backend_its_word() -> None:
    head, _, *rows = ROWS
    assert head[2:] == list(COLUMNS.values())
    assert [row[:2] for row in rows] == [[name, meaning(name)] for name in sorted([*ALL, *SCENARIOS])]
    for name, _, *words in rows:
        wanted = ["weaker" if name in WEAKER.get(column, {}) else "holds" for column in COLUMNS]
        assert words == wanted, f"{name}: make safety-table"


def test_what_is_weaker_has_its_reason() -> None:
    for listed in WEAKER.values():
        for probe, one in listed.items():
            assert f"{probe}: {one['why']}." in TEXT


def test_the_profile_is_loaded_by_the_command_that_a_refusal_names() -> None:
    assert f"    {LOAD}\n".replace(f"{SHIPPED}/", "") in TEXT


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:tests|config)/[\w./*-]+)`", TEXT))))
def test_a_file_that_is_named_is_there(path: str) -> None:
    assert list(ROOT.glob(path))


def test_what_it_says_of_the_service_unit_is_what_the_shipped_unit_sets() -> None:
    unit = (ROOT / "config/qa-fleet.service").read_text()
    said = TEXT.partition("**A hardened service unit**")[2].partition("\n\n")[0]
    allowed, _, forbidden = said.partition("must not set")
    stated = re.findall(r"`(\w+)=([^`]+)`", allowed)
    assert [name for name, _ in stated] == ["RestrictNamespaces", "ProtectProc"]
    assert all(f"\n{name}={value}\n" in unit for name, value in stated)
    for name in set(re.findall(r"`(\w+)`", forbidden)) - {name for name, _ in stated}:
        assert f"\n{name}=" not in unit, name


def test_the_calls_that_the_page_names_are_those_of_the_policy() -> None:
    section = PAGE.read_text("utf-8").partition("## What the fleet signs")[2]
    rows = {str(role): re.findall(rf"^\| {role} \| (.*) \|$", section, re.M)[0] for role in EMITS}
    named = {role: set(re.findall(r"`([a-z]+[A-Z]\w*|approve|register)`", row)) for role, row in rows.items()}
    assert named == {str(role): set(calls) - {""} for role, calls in EMITS.items()}
    assert [role for role, row in rows.items() if "transfer" in row] == [
        str(role) for role, calls in EMITS.items() if "" in calls
    ]
