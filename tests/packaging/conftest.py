"""The wheel, made of what is committed, as `make wheel` makes it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fleet.files import ROOT

Fleet = Callable[..., subprocess.CompletedProcess[str]]


def source() -> list[Path]:
    """The files of the checkout that git knows, those not yet committed among them."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built in a copy without tests, in which a machine's own build products lie about."""
    copy = tmp_path_factory.mktemp("source")
    for path in source():
        name = path.relative_to(ROOT)
        if name.parts[0] not in ("tests", "bench"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy / name)
    for stray in ("sandbox/_build/forkserver.so", "config/__pycache__/probe.cpython-311.pyc"):
        (copy / stray).parent.mkdir(exist_ok=True)
        (copy / stray).touch()
    words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist", "."]
    built = subprocess.run([sys.executable, *words], cwd=copy, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return next((copy / "dist").glob("*.whl"))


def outside(folder: Path, program: list[str], **more: str) -> Fleet:
    """`fleet` of an installation, in an empty directory of a user who has nothing of ours."""
    folder.mkdir(parents=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CONFIG_HOME": str(folder / "configuration"),
    } | more

    def fleet(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*program, *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, (words, done.stdout, done.stderr)
        assert str(ROOT) not in (done.stdout + done.stderr).replace(program[0], "")
        return done

    return fleet
