"""A call of a compiler by any profile, and its verdict in the answer of qa_compile."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.compiler import Compilation, compile_source, load_module
from sandbox.errors import Deadline
from sandbox.programs.program import Program
from sandbox.spec import Context, Mistake
from sandbox.tools import qa_compile
from tests.sandbox.test_chain_tools import MODULE
from tests.sandbox.test_process import python

ECHO = python("sys.stdout.buffer.write(sys.stdin.buffer.read())")


def compiled(source: str, **program: Any) -> Compilation:
    context = Context(run="r", prefix="", program=Program(**{"output": "text", "command": ECHO} | program))
    return compile_source(source, context, Deadline(20), 4.0)


def test_source_and_output_are_files_when_the_profile_says_so() -> None:
    code = (
        "data = open(sys.argv[1]).read() + sys.stdin.read()\n"
        "open(sys.argv[2], 'w').write(sys.argv[1] + ' ' + data)"
    )
    done = compiled(
        "text",
        command=(*python(code), "{source}", "{output}"),
        source_by="file",
        file_name="main.ts",
        output_file="out.wat",
    )
    assert (done.ending.value, done.verdict.kind) == ("accepted", "accepted")
    path, text = done.module.decode().split(" ")
    assert (Path(path).name, text) == ("main.ts", "text")
    assert not Path(path).parent.exists()


def test_an_output_file_that_is_missing_or_a_link_is_no_output() -> None:
    for code in ("pass", "os.symlink('/etc/hostname', sys.argv[1])", "os.mkfifo(sys.argv[1])"):
        done = compiled("", command=(*python(code), "{output}"), output_file="out", output="wasm")
        assert (done.module, done.valid, done.verdict.kind) == (b"", False, "invalid-output")


def test_environment_and_folder_are_the_profiles(tmp_path: Path) -> None:
    code = "print(os.environ['MODE'], os.environ['HOME'], os.getcwd())"
    done = compiled("", command=python(code), environment={"MODE": "strict"}, folder=str(tmp_path))
    assert done.module.decode() == f"strict /box {tmp_path}\n"


def test_memory_is_the_profiles_and_a_control_shows_whose_fault_it_is() -> None:
    code = "x = sys.stdin.read() != 'good' and bytearray(200 << 20)"
    done = compiled("bad", command=python(code), memory_mb=64, sample="good")
    assert (done.ending.value, done.verdict.kind, done.verdict.said) == (
        "memory",
        "memory",
        "MemoryError",
    )
    assert compiled("bad", command=python(code), memory_mb=512, sample="good").ending.value == "accepted"
    killed = python("if sys.stdin.read() != 'good': os.kill(os.getpid(), signal.SIGKILL)")
    assert compiled("bad", command=killed, sample="good").ending.value == "memory"
    always = python("os.kill(os.getpid(), signal.SIGKILL)")
    unknown = compiled("bad", command=always, sample="good")
    assert (unknown.ending.value, unknown.verdict.kind) == ("unknown", "unknown")
    assert unknown.diagnostic.startswith("could not tell")


@pytest.mark.parametrize(
    ("code", "clean", "outcome", "kind"),
    [
        ("sys.stderr.write('bad'); sys.exit(1)", (1,), "clean_error", "clean_error"),
        ("sys.stdout.write('bad'); sys.exit(1)", (1,), "clean_error", "clean_error"),
        ("sys.stderr.write('bad'); sys.exit(2)", (1,), "panic", "panic"),
        ("sys.stderr.write('bad'); sys.exit(2)", (1, 2), "clean_error", "clean_error"),
        ("sys.stderr.write('bad'); sys.exit(1)", (2,), "panic", "panic"),
        ("def f(): {}['x']\nf()", (1,), "clean_error", "internal-error"),
        ("os.abort()", (1,), "crash", "crash"),
    ],
)
def test_endings_go_by_the_profiles_exits(code: str, clean: tuple[int, ...], outcome: str, kind: str) -> None:
    done = compiled("", command=python(code), clean_exits=clean)
    assert (done.ending.value, done.verdict.kind) == (outcome, kind)


def test_an_answer_has_the_verdict_and_the_behaviour() -> None:
    write = f"sys.stdout.buffer.write(bytes.fromhex('{MODULE.hex()}'))"
    program = Program(command=python(write), other=python("def f(): {}['x']\nf()"), tool_chain="python")
    context = Context(run="r", prefix="", program=program)
    result = qa_compile.run(qa_compile.Args(source="x"), context)
    assert (result.kind, result.valid, result.has_entry, len(result.behaviour)) == (
        "accepted",
        True,
        True,
        32,
    )
    other = qa_compile.run(qa_compile.Args(source="x", other=True), context)
    assert (other.outcome, other.kind, other.said) == ("clean_error", "internal-error", "KeyError: {text}")
    assert (other.error, other.place, other.behaviour) == ("KeyError: 'x'", "<string>:f KeyError", "")
    with pytest.raises(Mistake):
        qa_compile.run(qa_compile.Args(module_hex="00", other=True), context)


@pytest.mark.parametrize(
    ("printer", "seen"),
    [
        ("sys.stdout.write('again ' + sys.stdin.buffer.read().decode())", ("accepted", "accepted")),
        ("sys.stdout.write('bad')", ("clean_error", "clean_error")),
        ("sys.exit(1)", ("unknown", "accepted")),
    ],
)
def test_what_is_printed_is_compiled_again(printer: str, seen: tuple[str, str]) -> None:
    compiler = "text = sys.stdin.read()\nif text == 'bad': sys.exit('error: bad')\nprint(text[-1:], end='')"
    program = Program(command=python(compiler), printer=python(printer), output="text")
    context = Context(run="r", prefix="", program=program)
    result = qa_compile.run(qa_compile.Args(source="x", printed=True), context)
    assert (result.outcome, result.kind) == seen
    if seen[0] == "accepted":
        assert result.sha256 == qa_compile.run(qa_compile.Args(source="x"), context).sha256
    refused = qa_compile.run(qa_compile.Args(source="bad", printed=True), context)
    assert (refused.outcome, refused.error) == ("unknown", "nothing to print: the source is not accepted")
    for args in ({"module_hex": "00"}, {"source": "x", "other": True}):
        with pytest.raises(Mistake):
            qa_compile.run(qa_compile.Args(**args, printed=True), context)


def test_a_loader_has_a_verdict_and_its_words_are_no_module() -> None:
    loader = python("n = len(sys.stdin.buffer.read())\nif n == 1: sys.exit(101)\nprint('frame')")
    context = Context(run="r", prefix="", program=Program(loader=loader, source_by="file", output_file="x"))
    good = load_module(MODULE, context, Deadline(20), 4.0)
    assert (good.entry, good.valid, good.verdict.kind) == ("frame", True, "accepted")
    assert load_module(b"\0", context, Deadline(20), 4.0).verdict.kind == "panic"
    assert sys.executable in loader
