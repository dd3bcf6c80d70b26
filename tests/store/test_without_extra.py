"""A journal on a server without the extra `postgres`: what to install is said, whichever part is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fleet.files import ROOT

FLEET = """
import sys
absent = sys.argv.pop(1).split(",")
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
from fleet.cli import main
main()
"""


@pytest.mark.parametrize(
    "absent", ["psycopg,psycopg_pool", "greenlet", "psycopg,psycopg_pool,greenlet,procrastinate"]
)
def test_the_remedy_names_the_extra(absent: str, tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", FLEET, absent, "status"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={
            "STATE_DIRECTORY": str(tmp_path),
            "PATH": "/usr/bin:/bin",
            "QA_FLEET_STORE": '{ url = "postgresql://qa@127.0.0.1:1/fleet" }',
        },
    )
    assert said.returncode == 3, said.stderr
    assert "pip install 'qa-fleet[postgres]'" in said.stderr
    assert "Traceback" not in said.stderr
