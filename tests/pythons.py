"""Every supported Python that is on this machine: found by asking, not by its name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13")
_ASK = "import sys, venv, ctypes, ssl; print('%d.%d' % sys.version_info[:2])"
_PLACES = ("/usr/local/bin", "/usr/bin", "/opt/python/bin")


@cache
def found(version: str) -> str:
    """The path of an interpreter of this version, the running one first; "" when there is none."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    return next((path for path in _candidates(version) if _is(path, version)), "")


def _candidates(version: str) -> Iterator[str]:
    """Versions of pyenv before the path: what stands there on the path is a shim that may refuse."""
    name = f"python{version}"
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for folder in sorted(root.glob(f"{version}.*"), reverse=True):
        yield str(folder / "bin" / name)
    for place in (*os.environ.get("PATH", "").split(os.pathsep), *_PLACES):
        yield os.path.join(place, name)


def _is(path: str, version: str) -> bool:
    if not os.access(path, os.X_OK):
        return False
    done = subprocess.run([path, "-I", "-c", _ASK], capture_output=True, text=True, timeout=30)
    return done.stdout.strip() == version


def roll_call() -> str:
    """Which there are, and which are missing: for a person who reads the test's output."""
    lines = [f"python {version}: {found(version) or 'missing, not tried'}" for version in SUPPORTED]
    return "\n".join(lines)
