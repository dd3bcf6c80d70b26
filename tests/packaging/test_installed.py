"""The wheel as people install it, with its dependencies from PyPI: `make wheel-test`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.test_look import served
from tests.packaging.conftest import Fleet, outside

pytestmark = [
    pytest.mark.skipif("WHEEL_TEST" not in os.environ, reason="asks PyPI: make wheel-test"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def fleet(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """In a new environment, on a machine without bubblewrap, anvil or anything of this checkout."""
    folder = tmp_path_factory.mktemp("in stalled")
    environment, programs = folder / "an environment", folder / "bin"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[devnet,jail]"]
    subprocess.run([str(environment / "bin" / "python"), *words], check=True)
    programs.mkdir()
    for place in (Path(one) for one in os.environ["PATH"].split(":")):
        for program in place.iterdir() if place.is_dir() else ():
            link = programs / program.name
            if program.name not in ("bwrap", "anvil", "fleet") and not os.path.lexists(link):
                link.symlink_to(program)
    return outside(folder / "else where", [str(environment / "bin" / "fleet")], PATH=str(programs))


def test_it_says_what_it_is(fleet: Fleet) -> None:
    assert fleet("--version").stdout.startswith("fleet ")
    assert "demo" in fleet("--help").stdout
    assert {one["from"] for one in json.loads(fleet("personas", "list", "--json").stdout)} == {"shipped"}


def test_its_jail_is_the_one_of_pypi(fleet: Fleet) -> None:
    """No platform is configured, so that doctor has something to say."""
    checks = {
        one["check"]: one for one in json.loads(fleet("check", "machine", "--json", code=4).stdout)["checks"]
    }
    assert checks["jail"]["ok"]
    assert fleet("fuzz", "devnet-clean", "--minutes", "0.05", "--seed", "1").returncode == 0


def test_it_looks_at_a_server_on_loopback(fleet: Fleet) -> None:
    with served(careless=True) as host:
        found = json.loads(fleet("look", host, "--persona", "qa-security", "--json", code=1).stdout)
    assert [one["severity"] for one in found["items"]] == ["high"]
    assert found["items"][0]["title"].startswith("Script injection: GET /search, parameter q")


def test_the_demo_names_the_command_that_brings_its_chain(fleet: Fleet) -> None:
    told = fleet("demo", code=1).stderr
    assert "anvil, the local chain, is not installed" in told
    assert "npm install --ignore-scripts --prefix" in told
    assert "@foundry-rs/anvil@1.7.1" in told
