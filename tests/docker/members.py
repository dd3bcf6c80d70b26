"""The escape battery as an ordinary user in the group of an engine's socket."""

from __future__ import annotations

import os
import secrets
import subprocess
from contextlib import ExitStack
from pathlib import Path

from tests.dockerd import DockerEngine
from tests.jail.test_battery import ROOT, SITE, USER, VERSION, kept

PYTHON = f"/usr/bin/{VERSION}"
_PATHS = f"{ROOT}:{SITE}"
"""As they are: the engine mounts them, and it does not see the mounts that another namespace has."""


def why_no_member(engine: DockerEngine) -> str:
    """Why no such user can run the battery, "" if one can: what a skipped test says."""
    if _group(engine) == 0:
        return "the engine's socket has no group of its own (Debian: the group docker)"
    if not Path(PYTHON).exists():
        return f"no {PYTHON}"
    words = [PYTHON, "-c", "import docker, tests.jail.driver"]
    done = subprocess.run(words, cwd="/", env=_environment(), capture_output=True, user=USER, extra_groups=[])
    return "another user can read neither this checkout nor its packages" if done.returncode else ""


def start_member(stack: ExitStack, engine: DockerEngine, *names: str) -> subprocess.Popen[str]:
    """Start the driver as this user; `tests.jail.test_battery.finish` has its report."""
    process = subprocess.Popen(
        [PYTHON, "-m", "tests.jail.driver", f"docker {engine.socket}", *names],
        cwd="/",
        env=_environment(),
        stdout=subprocess.PIPE,
        text=True,
        user=USER,
        group=USER,
        extra_groups=[_group(engine)],
    )
    return kept(stack, process)


def _group(engine: DockerEngine) -> int:
    return os.stat(engine.socket.removeprefix("unix://")).st_gid


def _environment() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "PYTHONPATH": _PATHS, "QA_CANARY": secrets.token_hex(8)}
