"""The hostile programs of this folder, as profiles."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sandbox.programs.program import Program, WarmStart
from sandbox.runners.choice import LIBRARY

HERE = Path(__file__).parent
PYTHON = Program(
    command=("{python}", "-B", str(HERE / "target.py")),
    warm="python",
    warm_entry="target:main",
    environment={"PYTHONPATH": str(HERE)},
    memory_mb=1536,
    sample="hello",
)


def native(folder: Path) -> Program:
    """The native one, compiled into a folder; skips where that cannot be done."""
    compiler = shutil.which("cc")
    if compiler is None or not Path(LIBRARY).exists():
        pytest.skip("no C compiler here, or `make setup` ran without one")
    target = folder / "target"
    subprocess.run([compiler, "-O0", "-o", target, HERE / "target.c"], check=True, timeout=60)
    return Program(command=(str(target),), warm="fork-server", memory_mb=1536, sample="hello")


def node() -> Program:
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node is not installed")
    command = (found, "--max-old-space-size=64", str(HERE / "cold.js"))
    adapter = str(HERE / "adapter.js")
    return Program(command=command, warm="node", warm_entry=adapter, memory_mb=2048, sample="hello")


def program(way: WarmStart, folder: Path) -> Program:
    if way is WarmStart.FORK_SERVER:
        return native(folder)
    if way is WarmStart.NODE:
        return node()
    return PYTHON
