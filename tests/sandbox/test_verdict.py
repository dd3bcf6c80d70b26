"""What is said of an execution: no finding of a sound compiler, one signature for one defect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sandbox.judging.port import ExecutionVerdict
from sandbox.judging.verdict import judge, reason
from sandbox.programs.process import STDOUT, Ending
from sandbox.programs.program import Program
from sandbox.runners.port import Execution
from tests.sandbox.endings import JAVASCRIPT, PYTHON, TRACEBACK, ended, frame, recursion

RECORDED = Path(__file__).parent / "executions"
"""What real compilers answered to programs written by hand, one a line; the output in hex."""
PROGRAMS = {
    "vyper": Program(tool_chain="python", output="evm", family="vyper"),
    "solc": Program(tool_chain="javascript", output="evm", family="solidity"),
    "asc": Program(tool_chain="javascript", family="typescript", entries=("f", "main")),
    "wat2wasm": Program(tool_chain="c", family="wat", entries=("f",)),
}


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_sound_compiler_is_never_accused(path: Path) -> None:
    known = PROGRAMS[path.stem.partition("-")[0]]
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len(rows) >= 40
    for row in rows:
        done = ended(row["code"], row["stderr"], bytes.fromhex(row["output"]))
        for program in (known, Program(output=known.output)):
            verdict = judge(program, row["source"].encode(), done)
            assert verdict.kind == ("accepted" if row["code"] == 0 else "clean_error"), row
            assert verdict.place == ""


@pytest.mark.parametrize(
    ("program", "done", "kind", "place"),
    [
        (
            PYTHON,
            ended(1, TRACEBACK + frame("a.py", "f") + "KeyError: 'x'\n"),
            "internal-error",
            "a.py:f KeyError",
        ),
        (PYTHON, ended(1, "AssertionError\n"), "internal-error", ""),
        (PYTHON, ended(1, "vyper.exceptions.CompilerPanic: unhandled exception\n"), "internal-error", ""),
        (PYTHON, ended(1, "vyper.exceptions.TypeMismatch: dislike types\n"), "clean_error", ""),
        (PYTHON, ended(1, "This is a compiler bug. Please report.\n"), "internal-error", ""),
        (PYTHON, ended(1, "error: this cannot happen, please report it\n"), "internal-error", ""),
        (PYTHON, ended(1, "error: found bug, expected report\n"), "clean_error", ""),
        (PYTHON, ended(1, "MemoryError\n"), "memory", ""),
        (JAVASCRIPT, ended(1, "TypeError: Type string is not implicitly convertible"), "clean_error", ""),
        (
            JAVASCRIPT,
            ended(
                1,
                "TypeError: Cannot read properties of undefined (reading 'x')\n"
                "    at Parser.item (/opt/tc/dist/c.js:12:3)\n    at run (/opt/tc/dist/c.js:14:3)\n"
                "    at Module._compile (node:internal/modules/cjs/loader:1105:14)\n",
            ),
            "internal-error",
            "c.js:Parser.item TypeError x",
        ),
        (
            JAVASCRIPT,
            ended(
                1,
                "Internal compiler error:\n/solidity/libsolidity/codegen/X.cpp(94): Throw in function "
                "void solidity::X::visit(const Y &)\nDynamic exception type: InternalCompilerError\n",
            ),
            "internal-error",
            "X.cpp:void solidity::X::visit",
        ),
        (
            JAVASCRIPT,
            ended(
                1,
                "InternalCompilerError: Internal compiler error (/root/p/libsolidity/codegen/LValue.cpp:391):"
                "Clearing of unsupported type requested: mapping(uint256 => uint256)\n",
            ),
            "internal-error",
            "LValue.cpp:391",
        ),
        (JAVASCRIPT, ended(1, "InternalCompilerError: \n"), "internal-error", ""),
        (JAVASCRIPT, ended(1, "Exception: Unknown exception during compilation.\n"), "internal-error", ""),
        (
            JAVASCRIPT,
            ended(1, "CompilerError: Stack too deep, try removing local variables.\n"),
            "clean_error",
            "",
        ),
        (
            JAVASCRIPT,
            ended(1, "UnimplementedFeatureError: Unimplemented feature (/p/A.cpp:3):Nested arrays\n"),
            "clean_error",
            "",
        ),
        (
            JAVASCRIPT,
            ended(
                1,
                "\u258c Whoops, the AssemblyScript compiler has crashed during compile :-(\n\u258c \n"
                "\u258c RangeError: Maximum call stack size exceeded\n"
                + 5
                * (
                    "\u258c     at t.binary (/src/compiler.ts:4080:23)\n"
                    "\u258c     at t.any (/src/compiler.ts:3478:21)\n"
                ),
            ),
            "internal-error",
            "compiler.ts:t.any < compiler.ts:t.binary recursion",
        ),
        (JAVASCRIPT, ended(1, "UnimplementedFeatureError: Copying of arrays"), "clean_error", ""),
        (
            Program(),
            ended(101, "thread 'main' panicked at src/parse.rs:12:5:\nindex out of bounds: 3\n"),
            "panic",
            "parse.rs: index out of bounds: {n}",
        ),
        (
            Program(),
            ended(101, "thread 'main' panicked at 'no such `x`', src/parse.rs:12:5\n"),
            "panic",
            "parse.rs: no such {text}",
        ),
        (
            Program(tool_chain="go"),
            ended(2, "panic: runtime error: x\n\ngoroutine 1 [running]:\nmain.f(0x1)\n\t/s/m.go:12 +0x1d\n"),
            "panic",
            "m.go:main.f",
        ),
        (
            Program(tool_chain="c"),
            ended(-6, "cc1: gen.c:12: emit: Assertion `x > 3' failed.\n"),
            "crash",
            "gen.c:emit",
        ),
        (Program(tool_chain="c"), ended(-11), "crash", ""),
        (Program(), ended(1), "panic", ""),
        (Program(), ended(2, "bad token"), "panic", ""),
        (Program(clean_exits=(2,)), ended(2, "bad token"), "clean_error", ""),
        (Program(clean_error=r"^E\d+: "), ended(1, "E12: bad token"), "clean_error", ""),
        (Program(clean_error=r"^E\d+: "), ended(1, "something else"), "internal-error", ""),
        (
            Program(tool_chain="python", clean_error=r"^own\.UserError: "),
            ended(1, TRACEBACK + frame("a.py", "f") + "own.UserError: no\n"),
            "clean_error",
            "",
        ),
        (Program(), ended(-9, ending=Ending.MEMORY), "memory", ""),
        (Program(), ended(-9, ending=Ending.HANG), "hang", ""),
        (Program(output="text"), ended(0, "a.c:3:4: runtime error: shift"), "internal-error", ""),
        (Program(output="text"), ended(0, "warning: unused"), "accepted", ""),
    ],
)
def test_kinds_and_places(program: Program, done: Execution, kind: str, place: str) -> None:
    verdict = judge(program, b"source", done)
    assert (verdict.kind, verdict.place) == (kind, place)


ASC = "ERROR TS2322: Type 'a' is wrong.\n\n\u258c Whoops, the AssemblyScript compiler has crashed :-(\n"
HELP = "\u258c \n\u258c If you see where the error is, feel free to send a request.\n"


def test_what_a_crash_says_is_not_the_users_error_before_it() -> None:
    bare = judge(JAVASCRIPT, b"", ended(1, ASC + "\u258c > undefined\n" + HELP))
    assert bare == ExecutionVerdict("internal-error", "Whoops, the AssemblyScript compiler has crashed :-(")
    stack = "".join(f"\u258c     at {name} (/c/asc.js:1:3)\n" for name in ("Y.assert", "On.init", "On.run"))
    thrown = ended(1, ASC + "\u258c AssertionError: assertion failed\n" + stack + HELP)
    verdict = judge(JAVASCRIPT, b"", thrown)
    assert (verdict.kind, verdict.place) == ("internal-error", "asc.js:On.init < asc.js:On.run")
    late = ended(1, "ERROR TS1: no\nRangeError: too deep\n" + stack.replace("\u258c ", ""))
    assert reason(JAVASCRIPT, late, "internal-error") == "RangeError: too deep"


def test_a_diagnostic_that_was_cut_off_is_not_an_internal_error() -> None:
    program = Program(clean_error=r"^FAILURE \d+ error")
    said = "ERROR TS2322: no such type\n" * 2_500 + "FAILURE 2500 errors\n"
    assert judge(program, b"", ended(1, said[: 64 << 10])).kind == "clean_error"
    assert judge(program, b"", ended(1, said[:60_000])).kind == "internal-error"


def test_output_without_end_is_a_crash() -> None:
    assert judge(Program(), b"", ended(-9, "", b"x" * STDOUT, Ending.CRASH)) == ExecutionVerdict(
        "crash", "output without end"
    )


def test_words_of_the_dictionary_that_the_source_has_say_nothing() -> None:
    said = "error: no such name in\n 3 | // Internal compiler error, panicked at\n"
    assert judge(Program(), b"// Internal compiler error, panicked at", ended(1, said)).kind == "clean_error"
    assert judge(Program(), b"// other", ended(1, said)).kind == "internal-error"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("let abc1 = 3;", "no value named abc1 [4..8]"), ("let q_x = 3;", "no value named q_x [11..14]")),
        (("a", "/tmp/run-1/s.c:3:4: error: bad 'int'"), ("a", "/box/s.c:31:44: error: bad 'long'")),
        (("a", "error: at 0xdeadbeef, offset 17"), ("a", "error: at 0x12, offset 4")),
    ],
)
def test_messages_of_one_kind_have_one_template(first: tuple[str, str], second: tuple[str, str]) -> None:
    one, other = (judge(Program(), source.encode(), ended(1, said)) for source, said in (first, second))
    assert one == other
    assert one.said


def test_codes_of_a_message_stay() -> None:
    assert judge(Program(), b"", ended(1, "LH0204: bad [1..2]")).said == "LH0204: bad {span}"
    assert judge(Program(), b"", ended(1, "ERROR TS2304: bad 7")).said == "ERROR TS2304: bad {n}"


def test_the_line_to_be_shown_is_the_reason() -> None:
    warned = "/opt/site/x.py:116: VyperWarning: large\n\nvyper.exceptions.TypeMismatch: dislike types\n"
    assert reason(PYTHON, ended(1, warned), "clean_error") == "vyper.exceptions.TypeMismatch: dislike types"
    thrown = TRACEBACK + frame("a.py", "f") + "KeyError: 'x'\n"
    assert reason(PYTHON, ended(1, thrown), "internal-error") == "KeyError: 'x'"
    panic = "thread 'main' panicked at x.rs:1:2:\nno\n"
    assert reason(Program(), ended(101, panic), "panic") == "thread 'main' panicked at x.rs:1:2:"
    assert reason(Program(), ended(1, ""), "panic") == ""
    missing = TRACEBACK + frame("a.py", "f") + "FileNotFoundError: no interface 'a'\n"
    assert reason(PYTHON, ended(1, missing), "clean_error") == "FileNotFoundError: no interface 'a'"
    assert reason(PYTHON, recursion(160), "internal-error") == "RecursionError: maximum"
