"""A severity has one home."""

from __future__ import annotations

import ast
from pathlib import Path

from fleet.severity import GRAVE, MINOR, ON_THE_LOG, SEVERITIES, WEIGHTS, Severity, weight
from tests.house_copy import ROOT, HouseCopy

HOME = "fleet/severity.py"
SCHEMA = "docs/reference/persona.schema.json"
OTHER_SCALES = {
    "fleet/oracles/web/browser.py": "axe-core has words of its own for the impact on a reader",
    "fleet/config/escalation.py": "the levels of impact of a call",
    "fleet/config/scope.py": "how much hangs on a host",
    "fleet/service/ingress.py": "what the target's own monitoring says",
    "fleet/gate/impact.py": "the same levels, and a host on which much hangs",
    "fleet/gate/risk.py": "the same levels and hosts, with their points",
    "fleet/gate/assessment.py": "the same hosts, with what hangs on them",
    "fleet/runs/call/sightings.py": "the same, where a critical host is tested",
    "fleet/app/tool_reference.py": "the same, in worked examples of impact",
}
"""Modules that name `critical` as a text, each with its reason."""


def test_what_follows_from_the_table() -> None:
    assert [*WEIGHTS] == ["critical", "high", "medium", "low", "info", "unknown"]
    assert sorted(WEIGHTS.values(), reverse=True) == [*WEIGHTS.values()]
    assert (*WEIGHTS, "meta") == ON_THE_LOG
    assert (SEVERITIES[:2], SEVERITIES[-2:]) == (GRAVE, MINOR)
    assert f"{Severity.HIGH}" == "high"
    assert Severity.HIGH.weight == weight("high") == 4.0
    assert weight("worst") == weight("unknown") == 0.25


def test_a_new_severity_is_one_line_and_the_schema_that_is_made_from_it(tmp_path: Path) -> None:
    house = HouseCopy(tmp_path)
    house.replace(HOME, '    HIGH = "high", 4.0', '    SERIOUS = "serious", 6.0, 8.5\n    HIGH = "high", 4.0')
    schema = house.run("-m", "fleet.cli", "personas", "schema")
    (house.root / SCHEMA).write_text(schema, "utf-8")
    assert house.changed() == [SCHEMA, HOME]
    assert house.answers("tests.findings.newcomer", "severity", "serious") == {
        "probe": "serious",
        "entry": "serious",
        "skimmed": "serious",
        "record": "serious",
        "proven in this order": ["critical", "serious", "low"],
        "unproven": ["critical", "serious", "low"],
        "at once": ["serious", "critical"],
        "level": "error",
        "selected": [1],
    }
    assert "critical, serious, high" in house.run("-m", "fleet.cli", "items", "severity", "--help")


def test_no_other_module_lists_severities() -> None:
    naming = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "fleet").rglob("*.py")
        if b"critical" in (text := path.read_bytes())
        for one in ast.walk(ast.parse(text))
        if isinstance(one, ast.Constant) and one.value == "critical"
    }
    assert naming == {HOME, *OTHER_SCALES}
