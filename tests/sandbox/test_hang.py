"""A hang is told from a busy machine: by the table, and by real children beside a control."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import Image
from fleet.runs.call.guest_protocol import answer, request_line
from sandbox.errors import CLASSES
from sandbox.programs import process
from sandbox.programs.hang import MUCH, HangVerdict, ProcessorTime, judge
from sandbox.programs.process import Ending
from sandbox.programs.program import Program
from sandbox.programs.usage import of_group
from sandbox.spec import Context
from sandbox.tools.qa_compile import SPEC, Args, Result, run
from tests.sandbox.test_process import python

HANG, AGAIN, UNKNOWN = HangVerdict.HANG, HangVerdict.AGAIN, HangVerdict.UNKNOWN
PROMPT = ProcessorTime(cpu_s=0.1, wall_s=0.15, queued_s=0.0, ended=True)
LOADED = ProcessorTime(cpu_s=0.1, wall_s=3.0, queued_s=2.8, ended=True)
SLEEPY = ProcessorTime(cpu_s=0.1, wall_s=2.2, queued_s=0.0, ended=True)
SLOW = ProcessorTime(cpu_s=2.0, wall_s=2.1, queued_s=0.0, ended=True)
STUCK = ProcessorTime(cpu_s=0.0, wall_s=9.0, queued_s=8.9, ended=False)


@pytest.mark.parametrize(
    ("child", "control", "verdict"),
    [
        # it ran for the 2.5 s that it may
        (ProcessorTime(2.5, 2.6, 0.0, False), PROMPT, HANG),
        (
            ProcessorTime(2.5, 9.0, 6.4, False),
            LOADED,
            HANG,
        ),  # also on a busy machine: the processor time is its own
        (ProcessorTime(2.5, 2.6, 0.0, False), SLEEPY, HANG),
        (ProcessorTime(2.5, 2.6, 0.0, False), SLOW, AGAIN),
        (ProcessorTime(2.5, 2.6, 0.0, False), ProcessorTime(0.5, 0.5, 0.0, True), HANG),
        (ProcessorTime(2.5, 2.6, 0.0, False), ProcessorTime(0.501, 0.5, 0.0, True), AGAIN),
        (ProcessorTime(2.5, 2.6, 0.0, False), STUCK, UNKNOWN),
        (ProcessorTime(9.0, 2.6, 0.0, False), PROMPT, HANG),  # several threads
        # the second try, eight times as long as the control
        (ProcessorTime(16.0, 16.1, 0.0, False), SLOW, HANG),
        (ProcessorTime(9.9, 16.1, 6.0, False), SLOW, AGAIN),
        # the wall cap: asleep on a free machine is blocked
        (ProcessorTime(0.1, 10.0, 0.0, False), PROMPT, HANG),
        (ProcessorTime(0.1, 10.0, 0.1, False), SLEEPY, HANG),
        (ProcessorTime(0.1, 8.0, 0.0, False), SLEEPY, UNKNOWN),  # not long enough for so slow a start
        (ProcessorTime(0.1, 10.0, 0.0, False), LOADED, UNKNOWN),
        (ProcessorTime(0.1, 10.0, 0.0, False), STUCK, UNKNOWN),
        # the wall cap: it wanted to run and could not, and then the machine was free again
        (ProcessorTime(0.1, 10.0, 9.8, False), PROMPT, UNKNOWN),
        (ProcessorTime(2.4, 10.0, 7.5, False), PROMPT, UNKNOWN),
        (ProcessorTime(2.4, 10.0, 2.7, False), PROMPT, UNKNOWN),
        # the wall cap of a busy machine, after many times what the control needed
        (ProcessorTime(1.9, 18.0, 16.0, False), ProcessorTime(0.04, 1.2, 1.1, True), HANG),
        (ProcessorTime(1.0, 18.0, 16.9, False), ProcessorTime(0.02, 0.5, 0.4, True), HANG),
        (ProcessorTime(0.99, 18.0, 16.9, False), ProcessorTime(0.02, 0.5, 0.4, True), UNKNOWN),  # too short
        (ProcessorTime(1.9, 18.0, 16.0, False), ProcessorTime(0.05, 1.2, 1.1, True), UNKNOWN),
        (ProcessorTime(1.9, 18.0, 16.0, False), STUCK, UNKNOWN),
        (ProcessorTime(2.4, 2.5, 0.0, False), PROMPT, UNKNOWN),  # cut early, and it ran all the time
    ],
)
def test_verdicts(child: ProcessorTime, control: ProcessorTime, verdict: HangVerdict) -> None:
    assert judge(child, control, 2.5) is verdict


def test_what_was_seen_on_a_busy_machine_is_a_hang() -> None:
    seen, control = ProcessorTime(3.9, 18.0, 14.0, False), ProcessorTime(0.09, 0.6, 0.5, True)
    assert judge(seen, control, 5.0) is HANG


SECONDS = st.floats(0, 1e4, allow_nan=False)
SPENT = st.builds(ProcessorTime, SECONDS, SECONDS, SECONDS, st.booleans())


@given(SPENT, SPENT, st.floats(0.1, 20))
def test_a_hang_always_has_a_control_that_ended_and_needed_far_less(
    child: ProcessorTime, control: ProcessorTime, limit_s: float
) -> None:
    if judge(child, control, limit_s) is HANG:
        assert control.ended
        ran = child.cpu_s >= limit_s and child.cpu_s >= MUCH * control.cpu_s
        ran |= child.cpu_s >= 40 * control.cpu_s and child.cpu_s >= 1.0
        assert ran or (child.asleep_s >= child.wall_s / 2 and child.wall_s >= 4 * control.wall_s)


def compiled(code: str, *, source: str = "odd", deadline_s: float = 20.0, timeout_s: float = 2.5) -> Result:
    """qa_compile with a compiler that does `code`, its source in `src`, and with the sample `good`."""
    code = f"src = sys.stdin.read()\n{code}\nsys.stdout.buffer.write(bytes.fromhex('0061736d01000000'))"
    command = ("{python}", *python(code)[1:])
    ctx = Context(run="r", prefix="", program=Program(command=command, sample="good"), deadline_s=deadline_s)
    return run(Args(source=source, timeout_s=timeout_s), ctx)


BURN = "end = time.process_time() + {}\nwhile time.process_time() < end: pass"


@pytest.fixture
def load() -> Iterator[None]:
    """More processes at work than this machine has cores."""
    burners = [
        subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"])
        for _ in range(2 * (os.cpu_count() or 2))
    ]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@pytest.mark.usefixtures("load")
@pytest.mark.parametrize("start", ["time.sleep(2)", BURN.format(2)])
def test_a_slow_start_on_a_busy_machine_is_not_a_hang(start: str) -> None:
    result = compiled(start)
    seen = (result.outcome, result.error_class)
    assert seen in (("accepted", ""), ("unknown", "busy")), result


@pytest.mark.parametrize("endless", ["while True: pass", "os.fork()\nwhile True: pass"])
def test_an_endless_loop_is_a_hang(endless: str) -> None:
    result = compiled(f"if src == 'odd':\n {endless.replace(chr(10), chr(10) + ' ')}", timeout_s=1.0)
    assert (result.outcome, result.ok, result.error_class) == ("hang", False, "")
    assert result.cpu_ms >= max(1000, MUCH * result.control_cpu_ms)
    assert result.control_cpu_ms > 0


CHILD = "up = os.getpid()\nif src == 'odd' and os.fork() == 0:\n {}\n while os.getppid() == up: pass"


@pytest.mark.parametrize("apart", ["pass", "os.setsid()"])
def test_a_child_s_processor_time_counts(apart: str) -> None:
    """The compiler itself only waits: for a child in its group, or for one in a session of its own."""
    result = compiled(CHILD.format(apart) + "\nif src == 'odd': os.wait()", timeout_s=0.5, deadline_s=10.0)
    assert result.outcome == "hang"
    assert result.cpu_ms >= 500


@pytest.mark.anyio
@pytest.mark.jail
async def test_in_a_real_jail(tmp_path: Path) -> None:
    """There /proc is the jail's own: what the child and its children use, and how busy the machine is."""
    jail = BwrapJail(Image(), pool=0, spool=tmp_path)
    try:
        endless = await _jailed(jail, "while src == 'odd': pass")
        assert (endless["outcome"], endless["error_class"]) == ("hang", ""), endless
        assert endless["cpu_ms"] >= max(500, MUCH * endless["control_cpu_ms"])
        assert endless["control_cpu_ms"] > 0
        child = await _jailed(jail, CHILD.format("os.setsid()") + "\nif src == 'odd': os.wait()")
        assert (child["outcome"], child["cpu_ms"] >= 500) == ("hang", True), child
        busy = await _jailed(jail, "while True: pass", deadline_s=4.0)
        assert (busy["outcome"], busy["error_class"]) == ("unknown", "busy"), busy
        assert busy["error"].startswith("could not tell: this machine is busy (load ")
        assert " cores" in busy["error"]
    finally:
        await jail.aclose()


async def _jailed(jail: BwrapJail, code: str, deadline_s: float = 15.0) -> dict[str, Any]:
    command = ("{python}", *python(f"src = sys.stdin.read()\n{code}")[1:])
    context = Context(
        run="r", prefix="", program=Program(command=command, sample="good"), deadline_s=deadline_s
    )
    line = request_line(SPEC, {"source": "odd", "timeout_s": 0.5}, context)
    return answer(SPEC, await jail.call(line, deadline_s=deadline_s + 5))


def test_a_program_that_is_slow_for_every_source_is_tried_again() -> None:
    result = compiled(BURN.format(0.5), timeout_s=0.2)
    assert (result.outcome, result.ok) == ("accepted", True)
    assert result.cpu_ms >= 500 <= result.control_cpu_ms


def test_a_hang_in_a_program_that_is_slow_for_every_source() -> None:
    result = compiled(BURN.format(0.1) + "\nwhile src == 'odd': pass", timeout_s=0.1)
    assert result.outcome == "hang"
    assert result.cpu_ms >= MUCH * result.control_cpu_ms >= MUCH * 100


def test_without_a_control_that_ends_nothing_is_claimed() -> None:
    result = compiled("while True: pass", timeout_s=0.2, deadline_s=4.0)
    assert (result.outcome, result.ok, result.error_class) == ("unknown", False, "busy")
    assert result.error.startswith("could not tell: this machine is busy (load ")
    assert "a control had not ended after " in result.error
    assert "busy" in CLASSES


def test_a_loader_has_the_empty_module_as_its_control() -> None:
    code = "while sys.stdin.buffer.read() != b'\\0asm\\1\\0\\0\\0': pass"
    ctx = Context(run="r", prefix="", program=Program(loader=python(code)))
    result = run(Args(module_hex="00", timeout_s=0.5), ctx)
    assert result.outcome == "hang"
    assert result.control_cpu_ms > 0


def test_no_control_runs_beside_what_ends() -> None:
    result = compiled("pass")
    assert (result.outcome, result.control_cpu_ms) == ("accepted", 0.0)
    assert result.cpu_ms > 0


def test_the_limit_is_of_processor_time() -> None:
    """One second of sleep is not one of work."""
    ended = process.run(python("time.sleep(1)"), b"", 60, cpu_s=0.9)
    assert (ended.ending, ended.spent.ended) == (Ending.ACCEPTED, True)
    assert ended.spent.cpu_s < 0.9 < ended.spent.wall_s
    ended = process.run(python("while True: pass"), b"", 60, cpu_s=0.3)
    assert (ended.ending, ended.spent.ended) == (Ending.HANG, False)
    assert 0.3 <= ended.spent.cpu_s < ended.spent.wall_s + 0.1
    assert process.run(python("time.sleep(60)"), b"", 0.5).spent.cpu_s < 0.5


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel counts no waiting time")
def test_the_time_in_the_queue_is_seen() -> None:
    """Two processes that may only run on one and the same core: each waits while the other runs."""
    core = min(os.sched_getaffinity(0))
    code = f"os.sched_setaffinity(0, {{{core}}})\nos.fork()\nwhile True: pass"
    spent = process.run(python(code), b"", 60, cpu_s=1.0).spent
    assert spent.queued_s >= 0.4


def test_a_name_with_brackets_hides_nothing(tmp_path: Path) -> None:
    strange = tmp_path / "a) R 1 ((1"
    strange.symlink_to(sys.executable)
    child = subprocess.Popen([str(strange), "-I", "-S", "-c", "while True: pass"], start_new_session=True)
    try:
        while (used := of_group(child.pid)).cpu_s < 0.05:
            pass
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    assert 0.05 <= used.cpu_s < math.inf
    assert of_group(child.pid).cpu_s == 0.0
