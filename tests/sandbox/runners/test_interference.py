"""A program that kills, stops or limits what started it is seen to do so, by every way of starting it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sandbox.compiler import compile_source
from sandbox.errors import Deadline
from sandbox.judging.verdict import judge
from sandbox.programs.process import Ending
from sandbox.programs.program import OutputKind, Program
from sandbox.runners.choice import runner
from sandbox.runners.port import Runner
from sandbox.spec import Context

KILLED, STOPPED = "killed the process that started it", "stopped the process that started it"
CHANGED = "changed {} of the process that started it"
ACTS: Mapping[str, tuple[str, str]] = {
    "kill -9": ("os.kill(p, 9)", f"{KILLED} (SIGKILL)"),
    "kill -TERM": ("os.kill(p, 15)", f"{KILLED} (SIGTERM)"),
    "kill -SEGV": ("os.kill(p, 11)", f"{KILLED} (SIGSEGV)"),
    "stop": ("os.kill(p, signal.SIGSTOP)", STOPPED),
    "descriptors": ("r.prlimit(p, r.RLIMIT_NOFILE, (3, 3))", CHANGED.format("RLIMIT_NOFILE")),
    "processor time": ("r.prlimit(p, r.RLIMIT_CPU, (9, 9))", CHANGED.format("RLIMIT_CPU")),
    "memory": ("r.prlimit(p, r.RLIMIT_AS, (1 << 30, 1 << 30))", CHANGED.format("RLIMIT_AS")),
    "file size": ("r.prlimit(p, r.RLIMIT_FSIZE, (0, 0))", CHANGED.format("RLIMIT_FSIZE")),
    "processors": ("os.sched_setaffinity(p, {0})", CHANGED.format("processors")),
    "priority": ("os.setpriority(os.PRIO_PROCESS, p, 19)", CHANGED.format("priority")),
}
COMPILER = """import os, resource as r, signal, sys
text, p = sys.stdin.read(), os.getppid()
if "(" in text:
    {act}
print("out of", text)
"""


def program(root: Path, act: str) -> Program:
    file = root / "cc.py"
    file.write_text(COMPILER.format(act=act))
    return Program(
        command=(sys.executable, "-I", "-S", str(file)), output=OutputKind.TEXT.value, sample="hello"
    )


@pytest.fixture
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Program, Runner, str]]:
    act, said = ACTS[request.param]
    one = program(tmp_path, act)
    made = runner(one, "compiler")
    yield one, made, said
    made.close()


@pytest.mark.parametrize("runs", ACTS, indirect=True)
def test_a_search_sees_it_and_the_next_input_is_judged_by_itself(runs: tuple[Program, Runner, str]) -> None:
    one, made, said = runs
    for source, kind in (
        (b"a", "accepted"),
        (b"(", "interference"),
        (b"b", "accepted"),
        (b"((", "interference"),
    ):
        done = made.run(source, 5.0)
        verdict = judge(one, source, done)
        assert (verdict.kind, verdict.said) == (kind, said if kind == "interference" else ""), done
        assert not verdict.sound or kind == "accepted"


@pytest.mark.parametrize("name", ACTS)
def test_a_single_call_shows_it_with_its_control(tmp_path: Path, name: str) -> None:
    act, said = ACTS[name]
    ctx = Context(run="r", prefix="qa-r-", program=program(tmp_path, act), deadline_s=20.0)
    began = time.monotonic()
    done = compile_source("(", ctx, Deadline(20.0), 5.0)
    assert (done.ending, done.diagnostic, done.verdict.kind) == (Ending.INTERFERENCE, said, "interference")
    assert time.monotonic() - began < 15
    assert compile_source("a", ctx, Deadline(20.0), 5.0).ending is Ending.ACCEPTED


@pytest.mark.parametrize(
    "act", ["pass", "r.prlimit(0, r.RLIMIT_NOFILE, (9, 9))", "os.nice(5)", "os.kill(p, 0)"]
)
def test_what_a_program_does_to_itself_is_its_own(tmp_path: Path, act: str) -> None:
    ctx = Context(run="r", prefix="qa-r-", program=program(tmp_path, act), deadline_s=20.0)
    assert compile_source("(", ctx, Deadline(20.0), 5.0).ending is Ending.ACCEPTED


def test_where_the_control_does_it_too_nothing_can_be_told(tmp_path: Path) -> None:
    one = program(tmp_path, "pass")
    text = COMPILER.replace('if "(" in text:', "if True:").format(act="os.kill(p, 9)")
    (tmp_path / "cc.py").write_text(text)
    ctx = Context(run="r", prefix="qa-r-", program=one, deadline_s=20.0)
    done = compile_source("(", ctx, Deadline(20.0), 5.0)
    assert (done.ending, done.diagnostic.startswith("could not tell: its control killed")) == (
        Ending.UNKNOWN,
        True,
    )
