"""A command that is forked for the tests is the command that a user starts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli_process import run_fleet


@pytest.mark.parametrize(
    ("words", "code"),
    [(("version",), 0), (("personas", "list", "--json"), 0), (("run", "nobody"), 2), (("dial", "--no"), 2)],
)
def test_forked_or_started_it_says_the_same(
    words: tuple[str, ...], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "STATE_DIRECTORY": str(tmp_path / "state")}
    said = []
    for real in ("", "1"):
        monkeypatch.setenv("QA_REAL_START", real)
        done = run_fleet(*words, env=env, cwd=tmp_path)
        said.append((done.returncode, done.stdout, done.stderr))
    assert said[0] == said[1]
    assert said[0][0] == code


def test_one_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "STATE_DIRECTORY": str(tmp_path / "state")}
    with pytest.raises(subprocess.TimeoutExpired):
        run_fleet("status", "--watch", env=env, timeout=1)
    assert run_fleet("version", env=env).returncode == 0
