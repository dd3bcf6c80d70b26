"""Adding an oracle is one file and one line: the run judges, proves and learns with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_an_added_oracle_judges_proves_and_is_learned_from(tmp_path: Path) -> None:
    house = tmp_path / "house"
    shutil.copytree(ROOT / "fleet", house / "fleet", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("sandbox", "config", "personas"):
        (house / folder).symlink_to(ROOT / folder)
    shutil.copy(Path(__file__).with_name("teapot.py"), house / "fleet" / "oracles")
    table = house / "fleet" / "oracles" / "table.py"
    before = table.read_text("utf-8")
    after = before.replace('NAMES = ("programs"', 'NAMES = ("teapot", "programs"').replace(
        '    "programs",', '    "programs", "teapot",'
    )
    assert sum(a != b for a, b in zip(before.splitlines(), after.splitlines(), strict=True)) == 1
    table.write_text(after, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "tests.oracles.newcomer", str(tmp_path / "state")],
        cwd=house,
        capture_output=True,
        text=True,
        timeout=100,
        stdin=subprocess.DEVNULL,
        env=dict(os.environ) | {"PYTHONPATH": f"{house}{os.pathsep}{ROOT}"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "found": [["GET {site}/pot answers that it is a teapot", "confirmed", "low"]],
        "learned": ["teapot"],
    }
