"""A state directory that another command holds: which one, since when, and how to wait for it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fleet.app.lock import held, only_one
from fleet.cli.run.run import _wait_for
from fleet.clock import SystemClock
from fleet.errors import Refused, TryAgain
from fleet.gate.stop import stop

HOLD = """
import sys, time
from pathlib import Path
from fleet.app.lock import only_one
with only_one(Path(sys.argv[1])):
    print(flush=True)
    sys.stdin.readline()
"""


@contextmanager
def held_by(state: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HOLD, str(state), *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        yield process
    finally:
        process.communicate(b"\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("/x/bin/fleet", "propose", "c0ffee12ab34"), "fleet propose c0ffee12ab34"),
        (("fleet", "items", "verify", "c0ffee12ab34"), "fleet items verify c0ffee12ab34"),
        (("fleet", "run", "qa-\x1b[31mux\n"), "fleet run qa-"),
    ],
)
def test_a_refusal_names_the_command_and_its_time(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    with held_by(tmp_path, *words) as process, pytest.raises(TryAgain) as refused, only_one(tmp_path):
        pass
    text = str(refused.value)
    assert text.startswith(f"another fleet (pid {process.pid}) is using {tmp_path}: {said}")
    assert f", since {time.strftime('%Y-')}" in text
    assert text.isprintable()
    assert "--wait" in refused.value.remedy


def test_a_command_can_wait_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with held_by(tmp_path, "fleet", "propose", "c0ffee12ab34") as process:
        assert process.stdin is not None
        end = threading.Timer(1.2, process.stdin.close)
        begun = time.monotonic()
        end.start()
        _wait_for(tmp_path)
        assert time.monotonic() - begun > 1
        assert "waiting: another fleet" in capsys.readouterr().err
        process.wait()
        process.stdin = None
    with only_one(tmp_path):
        pass


def test_what_waited_does_not_run_under_a_stop(tmp_path: Path) -> None:
    stop(tmp_path, "ann", "maintenance", SystemClock())
    with pytest.raises(Refused, match="maintenance"):
        _wait_for(tmp_path)


@pytest.mark.parametrize("content", ["", "12 34\n", "not a pid\n", "\x00\xff"])
def test_a_lock_without_a_pid_has_its_message_all_the_same(tmp_path: Path, content: str) -> None:
    (tmp_path / "fleet.lock").write_text(content, "utf-8")
    assert held(tmp_path).startswith("another fleet")
    assert str(tmp_path) in held(tmp_path)
