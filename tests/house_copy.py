"""A copy of the house in which a test makes a change, and the files that it had to touch for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LINKED = ("sandbox", "config", "personas")
COPIED = ("fleet", "docs/reference")


class HouseCopy:
    """The product and its generated documents, copied; its data is linked."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "house"
        for name in COPIED:
            shutil.copytree(ROOT / name, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in LINKED:
            (self.root / name).symlink_to(ROOT / name)

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace a text that is in the file once."""
        file = self.root / path
        before = file.read_text("utf-8")
        assert before.count(old) == 1, (path, old)
        file.write_text(before.replace(old, new), "utf-8")

    def run(self, *args: str, state: Path | None = None) -> str:
        """What `python` prints, with the rooms of this copy, over this state directory."""
        done = subprocess.run(
            [sys.executable, *args],
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=100,
            stdin=subprocess.DEVNULL,
            env=dict(os.environ)
            | {"PYTHONPATH": f"{self.root}{os.pathsep}{ROOT}"}
            | ({"STATE_DIRECTORY": str(state)} if state else {}),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def answers(self, module: str, *args: str) -> Any:
        """The JSON that a module prints."""
        return json.loads(self.run("-m", module, *args))

    def changed(self) -> list[str]:
        """The files that are not as they are in the repository."""
        files = [path for name in COPIED for path in (self.root / name).rglob("*") if path.is_file()]
        here = {str(path.relative_to(self.root)): path for path in files if "__pycache__" not in path.parts}
        same = (name for name, path in here.items() if (ROOT / name).is_file() and _equal(path, ROOT / name))
        return sorted({*here} - {*same})


def _equal(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes()
