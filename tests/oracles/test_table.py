"""Adding an oracle is one file and one line: the run judges, proves and learns with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from fleet.oracles.model import Facts

ROOT = Path(__file__).parents[2]


def test_an_added_oracle_judges_proves_and_is_learned_from(tmp_path: Path) -> None:
    house = tmp_path / "house"
    shutil.copytree(ROOT / "fleet", house / "fleet", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("sandbox", "config", "personas"):
        (house / folder).symlink_to(ROOT / folder)
    shutil.copy(Path(__file__).with_name("teapot.py"), house / "fleet" / "oracles")
    table = house / "fleet" / "oracles" / "table.py"
    before = table.read_text("utf-8")
    after = before.replace('NAMES = ("program.compiler"', 'NAMES = ("teapot", "program.compiler"').replace(
        '    "program.compiler",', '    "program.compiler", "teapot",'
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


def test_a_face_has_one_spelling_in_a_signature() -> None:
    here = Facts(site="http://h:1", face="http://h:1/face/{name}/")
    for spelled in ("{site}/face/claude/x", "{site}/face/docs/x", "{face:docs}x", "{face}x"):
        assert here.folded(f"trace {spelled} 500") == "trace {face}x 500"
    assert here.folded("trace {site}/facets/x") == "trace {site}/facets/x"
    apart = Facts(site="http://h:1", face="http://{name}.h:1/")
    assert apart.folded("trace {site}/face/claude/x {face:a}y") == "trace {site}/face/claude/x {face}y"
    assert Facts().folded("trace {site}/face/a/x") == "trace {site}/face/a/x"
