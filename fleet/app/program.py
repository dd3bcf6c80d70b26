"""The command line of this installation, for what a person copies into a shell."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def program(*, anywhere: bool = False) -> str:
    """This program as a shell in this folder starts it, or a shell `anywhere`."""
    named = Path(sys.argv[0])
    found = shutil.which("fleet")
    if found and named.exists() and os.path.samefile(found, named):
        return "fleet"
    path = named if named.name == "fleet" and named.is_file() else Path(sys.executable)
    path = path.absolute()
    near = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) and not anywhere else path
    return shlex.quote(str(near)) + ("" if path.name == "fleet" else " -m fleet.cli")
