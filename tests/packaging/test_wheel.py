"""The wheel, unpacked: what is in it, and that its code opens nothing else."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path

import pytest

from fleet.app.sbom import NAME as SBOM
from fleet.files import ROOT
from tests.packaging.conftest import Fleet, outside, source

CHECKOUT_ONLY = {
    "fleet/config/files.py",
    "fleet/files.py",
    "fleet/cli/operate/service.py",  # the folder of a unit: the checkout, or the installation
    "fleet/devnet/solc.py",  # rewrites the artifacts, which are committed
}
"""Files that may name the folder around the package."""


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a space is in the path, as there may be."""
    folder = tmp_path_factory.mktemp("in stalled") / "site packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def fleet(unpacked: Path) -> Fleet:
    return outside(
        unpacked.parent / "else where", [sys.executable, "-m", "fleet.cli"], PYTHONPATH=str(unpacked)
    )


def test_it_has_every_file_of_the_code_and_every_shipped_file_and_no_other(unpacked: Path) -> None:
    there = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    names = [str(path.relative_to(ROOT)) for path in source()]
    code = {name for name in names if name.startswith(("fleet/", "sandbox/"))}
    shipped = {
        f"fleet/shipped/{name}"
        for name in names
        if name.startswith(("config/", "docs/", "personas/", "package.json"))
    }
    wanted = code | shipped | {"fleet/devnet/compiler/rustlite/_parser.py", f"fleet/shipped/{SBOM}"}
    found = {name for name in there if ".dist-info/" not in name}
    assert found == wanted


def test_no_code_reads_a_file_by_its_place_in_a_checkout() -> None:
    """Files beside a module are named from `__file__`; all others from `SHIPPED` of fleet/files.py."""
    found = {
        name
        for path in source()
        if path.suffix == ".py"
        and (name := str(path.relative_to(ROOT))).startswith("fleet/")
        and re.search(
            r"\bROOT\b|\.parents\[|__file__\)\.(resolve\(\)\.)?parent\.parent", path.read_text("utf-8")
        )
    }
    assert found == CHECKOUT_ONLY


@pytest.mark.jail
def test_it_works_outside_of_a_checkout(fleet: Fleet, unpacked: Path) -> None:
    """Guest code, compiler and libraries of a jail are mounted from the installation."""
    listed = json.loads(fleet("personas", "list", "--json").stdout)
    assert {Path(one["file"]).parent for one in listed} == {unpacked / "fleet" / "shipped" / "personas"}
    found = json.loads(fleet("fuzz", "devnet-clean", "--minutes", "0.05", "--seed", "1", "--json").stdout)
    assert found["executions"] > 0


def test_what_no_wheel_has_is_named_with_the_command_that_brings_it(fleet: Fleet, unpacked: Path) -> None:
    told = fleet("fuzz", "solc", code=4).stderr
    assert f"'{unpacked}/fleet/shipped/config/targets/install.py' solc" in told
    assert "/data/qa-fleet/.targets/solc " in told
