"""A compiler's outcome is its wait status: real children, each ending in one of the six ways."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.compiler import compile_source, load_module, span
from sandbox.errors import Deadline, Failure, JailBroken
from sandbox.programs import process
from sandbox.programs.process import Ending
from sandbox.programs.program import Program
from sandbox.spec import Context

ROOT = Path(__file__).parents[2]
WASM = "0061736d01000000"


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", f"import sys, os, signal, time\n{code}")


@pytest.mark.parametrize(
    ("code", "ending", "status"),
    [
        ("sys.stdout.write(sys.stdin.read())", Ending.ACCEPTED, 0),
        ("sys.stderr.write('LH0204: no'); sys.exit(1)", Ending.CLEAN_ERROR, 1),
        (
            "sys.stderr.write('panicked at'); sys.exit(0)",
            Ending.ACCEPTED,
            0,
        ),  # what it prints decides nothing
        ("sys.exit(1)", Ending.PANIC, 1),  # an error nobody can read
        ("sys.stderr.write('LH0204: no'); sys.exit(101)", Ending.PANIC, 101),
        ("sys.stderr.write('LH0204: no'); sys.exit(2)", Ending.PANIC, 2),
        ("os.kill(os.getpid(), signal.SIGSEGV)", Ending.CRASH, -11),
        ("os.kill(os.getpid(), signal.SIGABRT)", Ending.CRASH, -6),
        ("os.kill(os.getpid(), signal.SIGKILL)", Ending.MEMORY, -9),
        ("x = bytearray(900 << 20)", Ending.CLEAN_ERROR, 1),
    ],
)
def test_endings(code: str, ending: Ending, status: int) -> None:
    if "900 <<" in code:
        code = f"try:\n {code}\nexcept MemoryError: sys.stderr.write('out of memory'); sys.exit(1)"
    ended = process.run(python(code), b"text", 10)
    assert (ended.ending, ended.code) == (ending, status)


def test_a_bad_end_with_the_memory_nearly_used_up_is_for_memory() -> None:
    """In a process as small as a guest: a peak counts only above the parent's own, and a test's is large.

    Started by a shell: a program that replaces a copy of this process would keep this one's peak as its own.
    """
    eater = python("x = bytearray(440 << 20); sys.exit(101)")
    guest = f"from sandbox.programs import process\nprint(*process.run({eater!r}, b'', 10).ending, sep='')"
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-S", "-c", guest],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.stdout, done.stderr) == ("memory\n", "")


def test_a_hang_is_killed_with_its_descendants(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"if os.fork() == 0: open({str(note)!r}, 'w').write(str(os.getpid()))\n"
        "time.sleep(60)"
    )
    started = time.monotonic()
    assert process.run(python(code), b"", 1.0).ending is Ending.HANG
    assert time.monotonic() - started < 5
    for _ in range(100):
        if not alive(int(note.read_text())):
            return
        time.sleep(0.02)
    pytest.fail("a descendant outlived its group")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_descendant_that_keeps_the_pipe_does_not_keep_us() -> None:
    code = "sys.stdout.write('out'); sys.stdout.flush()\nif os.fork() == 0: os.setsid(); time.sleep(3)"
    started = time.monotonic()
    ended = process.run(python(code), b"", 10)
    assert (ended.ending, ended.stdout) == (Ending.ACCEPTED, b"out")
    assert time.monotonic() - started < 2


def test_large_input_and_output_do_not_deadlock() -> None:
    data = os.urandom(3 << 20)
    code = "d = sys.stdin.buffer.read(); sys.stderr.write('e' * 1_000_000); sys.stdout.buffer.write(d)"
    ended = process.run(python(code), data, 20)
    assert (ended.ending, ended.stdout, len(ended.stderr)) == (Ending.ACCEPTED, data, process.STDERR)


def test_input_that_nobody_reads() -> None:
    assert process.run(python("sys.exit(0)"), b"x" * (8 << 20), 10).ending is Ending.ACCEPTED


def test_output_without_end_is_a_crash_and_bounded() -> None:
    ended = process.run(python("while True: sys.stdout.write('x' * 65536)"), b"", 20)
    assert ended.ending is Ending.CRASH
    assert len(ended.stdout) == process.STDOUT


def test_the_child_sees_no_environment_and_no_descriptors() -> None:
    os.environ["QA_SECRET"] = "x"
    with open("/dev/null") as spare:
        os.set_inheritable(spare.fileno(), True)
        ended = process.run(python("print(sorted(os.environ), sorted(os.listdir('/proc/self/fd')))"), b"", 10)
    assert ended.stdout.decode().startswith("['HOME', 'LANG', 'PATH'] ['0', '1', '2', '3']")


def test_a_profile_gives_environment_folder_and_memory(tmp_path: Path) -> None:
    code = (
        "import resource\n"
        "sys.stdin.read()\n"  # a limit is there before the input
        "print(os.environ['WORD'], os.environ['LANG'], os.getcwd(), resource.getrlimit(resource.RLIMIT_DATA))"
    )
    here = os.getcwd()
    ended = process.run(
        python(code), b"", 10, environment={"WORD": "x"}, folder=str(tmp_path), memory=99 << 20
    )
    assert ended.stdout.decode() == f"x C.UTF-8 {tmp_path} ({99 << 20}, {99 << 20})\n"
    assert os.getcwd() == here


def test_a_folder_that_is_not_there_is_no_answer_of_the_program(tmp_path: Path) -> None:
    here = os.getcwd()
    with pytest.raises(Failure, match="cannot be started here: No such file or directory"):
        process.run(python("pass"), b"", 10, folder=str(tmp_path / "none"))
    assert os.getcwd() == here


def test_no_descriptors_are_lost() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for code in ("pass", "sys.exit(1)", "time.sleep(9)"):
        process.run(python(code), b"x", 0.5)
    with pytest.raises(Failure):
        process.run(("/nowhere/compiler",), b"", 1)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[3..9] unknown name", (3, 9)),
        ("LH0204: unknown name [3..9]", (3, 9)),
        ("error: LH0204: unknown name [3..9]", (3, 9)),
        ("LH0204: [3..9] unknown name", (3, 9)),
        ("unknown name", (-1, -1)),
        ("LH0204: array[0..4] of [3..9]", (3, 9)),
        ("[3..] x", (-1, -1)),
        ("[99999999999..5] x", (-1, -1)),
    ],
)
def test_spans(text: str, found: tuple[int, int]) -> None:
    assert span(text) == found


def test_accepted_source_is_measured() -> None:
    ctx = Context(
        run="r",
        prefix="",
        program=Program(command=python(f"sys.stdout.buffer.write(bytes.fromhex('{WASM}'))")),
    )
    done = compile_source("x", ctx, Deadline(10))
    assert (done.ending, done.valid, done.entry, len(done.module)) == (Ending.ACCEPTED, True, "", 8)


def test_accepted_source_with_invalid_output_is_told() -> None:
    ctx = Context(
        run="r",
        prefix="",
        program=Program(command=python(f"sys.stdout.buffer.write(bytes.fromhex('{WASM}07ff'))")),
    )
    assert not compile_source("x", ctx, Deadline(10)).valid


def test_the_loader_gets_the_bytes_and_names_the_entry() -> None:
    ctx = Context(
        run="r",
        prefix="",
        program=Program(loader=python("print('frame' if len(sys.stdin.buffer.read()) == 8 else '')")),
    )
    done = load_module(bytes.fromhex(WASM), ctx, Deadline(10))
    assert (done.ending, done.entry, done.valid) == (Ending.ACCEPTED, "frame", True)
    assert load_module(b"x", ctx, Deadline(10)).entry == ""
    silent = Context(run="r", prefix="", program=Program(loader=python("print('no entry')")))
    assert load_module(b"x", silent, Deadline(10)).entry == ""


def test_without_a_compiler_nothing_is_claimed() -> None:
    with pytest.raises(JailBroken, match="no compiler configured"):
        compile_source("x", Context(run="r", prefix=""), Deadline(1))
