"""One place for one defect, whatever input shows it."""

from __future__ import annotations

import pytest

from sandbox.judging.verdict import judge
from sandbox.programs.process import Ending
from sandbox.runners.port import Execution
from tests.sandbox.endings import PYTHON, TRACEBACK, ended, frame, recursion


def test_a_recursion_has_one_signature_whatever_its_depth() -> None:
    first = judge(PYTHON, b"", recursion(300))
    assert (first.kind, first.place) == (
        "internal-error",
        "parse.py:expr < visit.py:visit < parse.py:term recursion",
    )
    for depth, on_top in ((200, ""), (331, frame("parse.py", "expr")), (90, frame("scan.py", "peek"))):
        assert judge(PYTHON, b"", recursion(depth, on_top)).signature == first.signature
    cut = recursion(900).stderr[:60_000]  # no last line: the trace did not fit
    assert judge(PYTHON, b"", Execution(Ending.CLEAN_ERROR, 1, b"", cut)).signature == first.signature


def raised(*frames: str, said: str, code: str = "raise Panic()") -> Execution:
    trace = TRACEBACK + "".join(frame("a.py", name) for name in frames)
    return ended(1, trace.removesuffix("    x()\n") + f"    {code}\n{said}\n")


def test_an_expression_that_failed_is_one_defect_whoever_called_it() -> None:
    said = "AttributeError: type object 'BytesT' has no attribute 'typ'"
    first = raised("main", "assign", "types", "name", said=said, code="return [t.typ]")
    second = raised(
        "main", "index", "value", "name", said=said.replace("Bytes", "String"), code="return t.typ"
    )
    assert judge(PYTHON, b"", first).place == "a.py:name AttributeError typ"
    assert judge(PYTHON, b"", second).signature == judge(PYTHON, b"", first).signature
    other = raised("main", "name", said="AttributeError: 'X' has no attribute 'length'", code="t.length")
    assert judge(PYTHON, b"", other).place == "a.py:name AttributeError length"
    assert judge(PYTHON, b"x.length", other).place == "a.py:name AttributeError"  # the source's own name


def test_a_check_that_failed_is_a_defect_of_its_caller() -> None:
    one, other = (raised("main", by, "check", said="KeyError: 3") for by in ("load", "store"))
    assert judge(PYTHON, b"", one).place == "a.py:check < a.py:load"
    assert judge(PYTHON, b"", other).place == "a.py:check < a.py:store"
    deeper = raised("main", "run", "load", "check", said="p.CompilerPanic: no")
    assert judge(PYTHON, b"", deeper).place == "a.py:check < a.py:load"
    made = raised("main", "load", "build", "__init__", said="p.CompilerPanic: no")
    assert judge(PYTHON, b"", made).place == "a.py:__init__ < a.py:build < a.py:load"
    wrapped = raised("main", "f", said="KeyError: 1", code="x[1]").stderr.decode() + (
        "\nThe above exception was the direct cause of the following exception:\n\n"
    )
    again = wrapped + raised("main", "tag", said="p.CompilerPanic: no").stderr.decode()
    assert judge(PYTHON, b"", ended(1, again)).place == "a.py:f KeyError"


def test_a_source_too_deep_for_the_parser_of_python_is_not_out_of_memory() -> None:
    library = '  File "/usr/lib/python3.11/ast.py", line 50, in parse\n    return compile(source, filename)\n'
    own = TRACEBACK + frame("cli.py", "main") + frame("parse.py", "parse") + library
    memory = judge(PYTHON, b"", ended(1, own + "           ^^^^^^^^\nMemoryError\n"))
    recursed = judge(PYTHON, b"", ended(1, own + "RecursionError: maximum recursion depth exceeded\n"))
    assert memory.kind == "internal-error"
    assert memory.signature == recursed.signature == "internal-error parse.py:parse recursion"
    assert judge(PYTHON, b"", raised("f", said="MemoryError", code="x = [0] * n")).kind == "memory"


def test_a_warm_and_a_cold_run_have_one_signature() -> None:
    own = frame("c/parse.py", "item") + frame("c/scan.py", "next")
    lark = frame("lark/parser.py", "feed") + '  File "/usr/lib/python3.11/re.py", line 3, in match\n    x\n'
    cold = TRACEBACK + frame("__main__.py", "<module>") + own + lark + "KeyError: 'a'\n"
    warm = (
        TRACEBACK
        + '  File "/opt/sandbox/runners/warm_python.py", line 3, in _run\n'
        + own
        + "KeyError: 'b'\n"
    )
    first, second = judge(PYTHON, b"", ended(1, cold)), judge(PYTHON, b"", ended(1, warm))
    assert first.place == "scan.py:next KeyError"
    assert first.signature == second.signature


@pytest.mark.parametrize(
    ("between", "place"),
    [
        ("During handling of the above exception, another exception occurred:", "b.py:second TypeError"),
        ("The above exception was the direct cause of the following exception:", "a.py:first KeyError"),
    ],
)
def test_the_place_is_the_cause_not_what_was_being_handled(between: str, place: str) -> None:
    first = TRACEBACK + frame("a.py", "first") + "KeyError: 1\n"
    second = TRACEBACK + frame("b.py", "second") + "TypeError: 2\n"
    assert judge(PYTHON, b"", ended(1, f"{first}\n{between}\n\n{second}")).place == place
