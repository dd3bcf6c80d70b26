"""One deep recursion is one defect, whatever input goes round it; two recursions stay two."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from sandbox.judging.verdict import judge
from sandbox.programs import process
from sandbox.runners.port import Execution
from tests.sandbox.endings import JAVASCRIPT
from tests.sandbox.fuzz.scripted import PROGRAM, ScriptedRunner, ended, search

RECORDED = Path(__file__).parent / "recursions.jsonl"
"""Traces of terser 5.51, AssemblyScript 0.28 and Less 4.9 on inputs that nest 20,000 times."""
FAMILIES = {
    "terser": (
        {"paren", "array", "call", "index", "mixed", "obj", "ternary"},
        {"block", "if", "else", "func"},
        {"plus"},
    ),
    "asc": ({"paren", "call", "func"}, {"block", "if"}, {"type"}),
    "less": ({"paren", "fn", "minus"}, {"block"}),
}
"""Inputs that go round one recursion: of expressions, of statements, of types."""


@cache
def traces(compiler: str) -> dict[str, bytes]:
    rows = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]
    return {row["input"]: row["stderr"].encode() for row in rows if row["compiler"] == compiler}


@pytest.mark.parametrize("compiler", FAMILIES)
def test_a_search_lists_each_recursion_once(compiler: str) -> None:
    told = traces(compiler)

    def does(source: bytes) -> Execution:
        return ended(code=1, err=told[source.decode()]) if source.decode() in told else ended()

    found = search(ScriptedRunner(does), program=replace(PROGRAM, tool_chain="javascript"))
    found.run([], [name.encode() for name in told])
    assert len(found.defects) == len(FAMILIES[compiler])
    firsts = {one.first.decode() for one in found.defects.values()}
    assert all(len(firsts & family) == 1 for family in FAMILIES[compiler])
    again = search(
        ScriptedRunner(does), program=replace(PROGRAM, tool_chain="javascript"), known=[*found.defects]
    )
    again.run([], [name.encode() for name in reversed(told)])
    assert not again.defects


@pytest.mark.parametrize(
    ("compiler", "name"), [("terser", "paren"), ("terser", "func"), ("asc", "type"), ("less", "fn")]
)
def test_where_the_limit_was_met_does_not_name_a_recursion(compiler: str, name: str) -> None:
    lines = traces(compiler)[name].decode().splitlines(keepends=True)
    at = next(index for index, line in enumerate(lines) if line.startswith("    at "))
    whole = judge(JAVASCRIPT, b"", ended(code=1, err="".join(lines).encode()))
    for cut in range(1, 12):  # as if the limit had been met so many calls earlier
        less = "".join(lines[:at] + lines[at + cut :])
        assert judge(JAVASCRIPT, b"", ended(code=1, err=less.encode())).signature == whole.signature


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_node_prints_enough_frames_to_see_what_repeats(tmp_path: Path) -> None:
    names = [f"step{number:02}" for number in range(14)]
    rounds = zip(names, [*names[1:], names[0]], strict=True)
    script = tmp_path / "deep.js"
    script.write_text("".join(f"function {one}() {{ return {then}() + 1; }}\n" for one, then in rounds))
    with script.open("a") as more:
        more.write("step00();\n")
    node = str(shutil.which("node"))
    done = process.run((node, str(script)), b"", 20.0, folder=str(tmp_path))
    said = judge(JAVASCRIPT, b"", Execution(done.ending, done.code, done.stdout, done.stderr))
    assert said.place.startswith("deep.js:step00 < deep.js:")
    assert said.place.endswith(" recursion")
