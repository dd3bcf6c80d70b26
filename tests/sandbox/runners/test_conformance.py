"""Every runner says of a hostile program what one process per input says of it, and goes on."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.programs import process
from sandbox.programs.process import Ending
from sandbox.programs.program import WarmStart
from sandbox.runners.choice import runner
from sandbox.runners.port import Execution, Runner
from tests.sandbox.runners.programs import program

CPU_S = 0.15
FENCED = ctypes.CDLL(None).syscall(444, None, 0, 1) >= 6
"""Whether Landlock keeps a program's signals from its parent."""
ENDINGS = {
    "hello": (Ending.ACCEPTED, 0, b"out:hello", b""),
    "error": (Ending.CLEAN_ERROR, 1, b"", b"error: bad\n"),
    "panic": (Ending.PANIC, 101, b"", b"panicked\n"),
    "abort": (Ending.CRASH, -6, b"", b""),
    "segfault": (Ending.CRASH, -11, b"", b""),
    "flood": (Ending.CRASH, -9, b"x" * process.STDOUT, b""),
    "loop": (Ending.HANG, -9, b"", b""),
    "sleep": (Ending.HANG, -9, b"", b""),
    "descriptors": (Ending.ACCEPTED, 0, b"out:descriptors", b""),
    "litter": (Ending.ACCEPTED, 0, b"out:litter", b""),
    "memory of the last": (Ending.ACCEPTED, 0, b"out:none", b""),
}
NOT_BY_NODE = ("descriptors", "memory of the last")
"""Its one process holds the server's descriptors and its own state, as its docstring says."""


@pytest.fixture(scope="module", params=list(WarmStart))
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    way = WarmStart(request.param)
    found = runner(replace(program(way, tmp_path_factory.mktemp("target")), warm=way.value), "compiler")
    assert found.name == way.value
    yield found
    found.close()


def innocent(subject: Runner) -> None:
    said = subject.run(b"hello", 5)
    assert (said.ending, said.code, said.stdout, said.stderr) == ENDINGS["hello"]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("word", ENDINGS)
def test_an_end_is_what_it_is_for_a_process_of_its_own(subject: Runner, word: str) -> None:
    if subject.name == WarmStart.NODE.value and word in NOT_BY_NODE:
        pytest.skip("one process of Node serves every input")
    limit = CPU_S if ENDINGS[word][0] is Ending.HANG else 5
    said = subject.run(word.encode(), limit)
    assert (said.ending, said.code, said.stdout, said.stderr) == ENDINGS[word]
    innocent(subject)


def test_memory_at_the_limit(subject: Runner) -> None:
    if subject.name == WarmStart.NODE.value:
        pytest.skip("V8 has a limit of its own below ours")
    assert subject.run(b"hog", 5).ending is Ending.MEMORY
    innocent(subject)


def test_what_is_left_behind_is_ended_before_the_next(subject: Runner) -> None:
    said = subject.run(b"daemon", 5)
    assert said.ending is Ending.ACCEPTED
    for _ in range(100):
        if not alive(int(said.stderr)):
            break
        time.sleep(0.02)
    assert not alive(int(said.stderr))
    for _ in range(3):
        innocent(subject)


def test_a_parent_that_is_killed_is_not_the_round(subject: Runner) -> None:
    if not FENCED and subject.name == WarmStart.NODE.value:
        pytest.skip("without Landlock this would end the test")
    said: Execution = subject.run(b"parent", 5)
    own = subject.name == WarmStart.SPAWN.value  # it and its parent share one fence
    assert said.ending is (Ending.ACCEPTED if FENCED and not own else Ending.INTERFERENCE)
    innocent(subject)
