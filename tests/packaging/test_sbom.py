"""The bill of materials names every pin of the locks, and an altered installation is named."""

from __future__ import annotations

import importlib.metadata
import json
import re
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet import __version__
from fleet.app import sbom
from fleet.cli.check import machine
from fleet.files import ROOT


def test_every_pin_has_its_line_with_its_hashes() -> None:
    parts = {one["purl"]: one for one in sbom.bill(ROOT, __version__)["components"]}
    pins = re.findall(r"(?m)^([A-Za-z0-9._-]+)==([^\s;\\]+)", (ROOT / "requirements.lock").read_text())
    assert len(pins) > 100
    for name, version in pins:
        one = parts[f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version.replace('+', '%2B')}"]
        assert one["externalReferences"][0]["hashes"], name
    npm = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert {one["version"] for path, one in npm.items() if path} <= {one["version"] for one in parts.values()}
    python = [one for one in parts.values() if one["purl"].startswith("pkg:pypi/")]
    told = {one["name"]: {told["name"] for told in one["properties"]} for one in python}
    assert {name for name, seen in told.items() if {"qa-fleet:use", "qa-fleet:released"} - seen} == set()
    assert {one["name"] for one in python if not one["licenses"][0]["license"]["name"]} == set()
    licensed = {path.rpartition("node_modules/")[2] for path, one in npm.items() if one.get("license")} - {""}
    assert licensed == {one["name"] for one in parts.values() if "licenses" in one and one not in python}


def test_a_risk_is_how_critical_a_use_is_times_how_long_ago_the_pin_was_released() -> None:
    def part(name: str, **told: str) -> dict[str, Any]:
        return {
            "name": name,
            "properties": [{"name": f"qa-fleet:{key}", "value": value} for key, value in told.items()],
        }

    parts = [
        part("kept", use="service", released="2026-01-01"),
        part("old", use="service", released="2024-11-01"),
        part("older", use="service", released="2022-01-01"),
        part("tests", use="tests", released="2022-01-01"),
        part("npm"),
    ]
    assert sbom.risks(parts, date(2026, 6, 1)) == {"kept": 3, "old": 6, "older": 9, "tests": 3, "npm": 2}


def test_it_is_a_cyclonedx_document_and_the_same_each_time() -> None:
    one = sbom.bill(ROOT, "1.2.3")
    assert (one["bomFormat"], one["specVersion"], one["version"]) == ("CycloneDX", "1.6", 1)
    assert one["metadata"]["component"]["version"] == "1.2.3"
    assert one == sbom.bill(ROOT, "1.2.3")
    references = [part["bom-ref"] for part in one["components"]]
    assert len(references) == len({*references})


def installed(wheel: Path, into: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(into)


def test_an_altered_file_of_an_installation_is_named(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(wheel, tmp_path)
    found = importlib.metadata.Distribution.at(next(tmp_path.glob("*.dist-info")))
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: found)
    bill = json.loads((tmp_path / "fleet" / "shipped" / sbom.NAME).read_text())
    assert bill == sbom.bill(ROOT, found.version)
    assert sbom.altered() == []
    assert anyio.run(machine.installation, None)[0][1]
    (tmp_path / "fleet" / "gate" / "rules.py").write_text("RULES = ()\n")
    (tmp_path / "fleet" / "gate" / "stop.py").unlink()
    assert sorted(sbom.altered() or []) == ["fleet/gate/rules.py", "fleet/gate/stop.py"]
    [(_, good, seen)] = anyio.run(machine.installation, None)
    assert (good, "2 files not as in the wheel: fleet/gate/rules.py" in seen) == (False, True)


def test_a_checkout_says_so_and_other_versions_are_counted(tmp_path: Path) -> None:
    assert anyio.run(machine.installation, None) == [
        ("installation", True, "a checkout: git says what was changed")
    ]
    assert sbom.other_versions(tmp_path) == []
    part = {"name": "pytest", "version": "0.1", "purl": "pkg:pypi/pytest@0.1"}
    (tmp_path / sbom.NAME).write_text(json.dumps({"components": [part]}))
    assert sbom.other_versions(tmp_path) == [f"pytest {pytest.__version__} for 0.1"]
