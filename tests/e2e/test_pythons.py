"""The demo, clean and seeded, by every supported Python that is here: `make pythons`.

`make test` runs the demo by its own Python (test_readme.py) and lets every other one
compile and load a program in its jail (tests/jail/test_toolcheck.py); an environment of each takes minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.pythons import SUPPORTED, found, roll_call

pytestmark = [
    pytest.mark.devnet,
    pytest.mark.jail,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(
        "PYTHONS_FULL" not in os.environ, reason="an environment of each Python: make pythons"
    ),
]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def _roll_call(request: pytest.FixtureRequest) -> None:
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    reporter.write_line(f"\n{roll_call()}")


def environment(version: str) -> str:
    """An interpreter of that version with the locked packages; kept, since making it takes a minute."""
    python = found(version)
    if not python:
        pytest.skip(f"there is no Python {version} here")
    folder = ROOT / f".venv-{version}"
    inside, lock = str(folder / "bin" / "python"), ROOT / "requirements.lock"
    ready = folder / ".ready"
    if not ready.exists() or ready.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run([python, "-m", "venv", folder], check=True)
        pip = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "-r", str(lock)], check=True)
        ready.touch()
    return inside


@pytest.mark.parametrize("seeded", [False, True], ids=["clean", "seeded"])
@pytest.mark.parametrize("version", SUPPORTED)
def test_the_demo(version: str, seeded: bool, tmp_path: Path) -> None:
    python = environment(version)
    done = subprocess.run(
        [python, "-m", "fleet.cli", "demo", "--json", *([] if seeded else ["--clean"])],
        capture_output=True,
        text=True,
        timeout=900,
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "STATE_DIRECTORY": str(tmp_path / "state")},
    )
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert (got["missed"], got["false_findings"], got["names_leaked"], got["jails_left"]) == ([], 0, 0, 0)
    assert got["defects_found"] == got["defects_seeded"]
    assert (got["defects_seeded"] > 0, got["findings_posted"] > 0) == (seeded, seeded)
