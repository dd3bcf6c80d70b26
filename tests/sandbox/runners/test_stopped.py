"""A Python program that is stopped says where it was, and later forks have what the first one imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sandbox.programs.process import Ending
from sandbox.programs.program import Program
from sandbox.runners import server
from sandbox.runners.choice import runner
from sandbox.runners.python_stack import split

LAZY = """import os, signal, sys, time
def spin(word):
    while True:
        len(word)
def late(word):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    while signal.SIGUSR2 not in signal.sigpending():
        pass
    time.sleep(0.3)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR2])
    spin(word)
def main():
    import lazy_part
    word = sys.stdin.read()
    if word == "loop":
        spin(word)
    elif word == "late":
        late(word)
    elif word == "work":
        sum(range(6_000_000))
    print(word)
if __name__ == "__main__":
    main()
"""
FRAME = '  File "/opt/tc/{0}.py", line 7 in {1}\n'
STACK = "Stack (most recent call first):\n"


def test_it_says_the_innermost_function_that_is_in_every_stack() -> None:
    calls = FRAME.format("lib", "find") + FRAME.format("emit", "depth") + FRAME.format("cli", "main")
    plain = FRAME.format("emit", "depth") + FRAME.format("cli", "main")
    idle = '  File "/opt/sandbox/runners/python_warm.py", line 9 in _work\n'
    said = f"warning: x\n{STACK}{calls}{STACK}{plain}{STACK}{idle}{STACK}".encode()
    assert split(said) == (b"warning: x\n", "emit.py:depth")
    assert split(b"no stack") == (b"no stack", "")
    assert split(f"{STACK}{calls}".encode()) == (b"", "lib.py:find")


def test_a_stack_that_was_cut_off_while_it_was_written_does_not_count() -> None:
    whole = FRAME.format("emit", "depth") + FRAME.format("cli", "main")
    cut = FRAME.format("lib", "find")
    assert split(f"{STACK}{whole}{STACK}{whole}{STACK}{cut}".encode()) == (b"", "emit.py:depth")


@pytest.fixture
def lazy(tmp_path: Path) -> Program:
    (tmp_path / "lazy_main.py").write_text(LAZY)
    (tmp_path / "lazy_part.py").write_text(
        f"with open({str(tmp_path / 'imports')!r}, 'a') as file: file.write('x')\n"
    )
    return Program(
        command=(sys.executable, "-B", str(tmp_path / "lazy_main.py")),
        environment={"PYTHONPATH": str(tmp_path)},
        warm="python",
        warm_entry="lazy_main:main",
        sample="hello",
        output="text",
    )


def test_a_hang_does_not_count_the_inputs_that_its_process_served_before(lazy: Program) -> None:
    runs = runner(lazy, "compiler")
    try:
        before = sum(runs.run(b"work", 5).cpu_s for _ in range(9))
        assert runs.run(b"loop", 0.05).cpu_s < before / 2
    finally:
        runs.close()


def test_a_hang_has_a_place_and_the_next_execution_imports_nothing(lazy: Program, tmp_path: Path) -> None:
    runs = runner(lazy, "compiler")
    try:
        assert runs.name == "python"
        assert runs.run(b"hello", 5.0).ending is Ending.ACCEPTED
        before = (tmp_path / "imports").stat().st_size
        stopped = runs.run(b"loop", 0.1)
        assert (stopped.ending, stopped.where, stopped.stderr) == (Ending.HANG, "lazy_main.py:spin", b"")
        assert runs.run(b"hello", 5.0).stdout == b"hello\n"
        assert (tmp_path / "imports").stat().st_size == before
    finally:
        runs.close()


def test_a_hang_that_answers_late_has_a_place(lazy: Program) -> None:
    runs = runner(lazy, "compiler")
    try:
        stopped = runs.run(b"late", 0.1)
        assert (stopped.ending, stopped.where, stopped.stderr) == (Ending.HANG, "lazy_main.py:late", b"")
    finally:
        runs.close()


def test_what_a_process_did_for_earlier_inputs_does_not_count(
    lazy: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_CORES", 8)  # looked at long before its limit
    runs = runner(lazy, "compiler")
    try:
        for _ in range(12):
            assert runs.run(b"work", 0.4).ending is Ending.ACCEPTED
    finally:
        runs.close()
