"""A round on a real small compiler: what it finds, that it repeats, and that it ends."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from sandbox.fuzz.relate import VARIES
from sandbox.guest import answer
from sandbox.programs.program import Program
from sandbox.spec import PROTOCOL, Context
from sandbox.tools import TOOLS

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc here for a small compiler")

SAMPLE = "fn frame() { 1 }"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A compiler of text with four defects; it prints the source's words, one a line."""
    folder = tmp_path_factory.mktemp("compiler")
    source = Path(__file__).with_name("compiler.c")
    subprocess.run(["gcc", "-O1", "-o", folder / "cc", source], check=True, timeout=60)
    return Program(
        command=(str(folder / "cc"),),
        loader=(str(folder / "cc"),),
        sample=SAMPLE,
        family="rust",
        output="text",
    )


def fuzzed(program: Program, **args: Any) -> dict[str, Any]:
    """One whole round of qa_fuzz."""
    context = Context(run="r", prefix="qa-r-", program=program, deadline_s=90.0)
    given = {"seconds": 60.0, "executions": 700, "seed": 2} | args
    line = json.dumps({"v": PROTOCOL, "tool": "qa_fuzz", "args": given, "ctx": asdict(context)})
    # as in a jail, in a small process: what a child held at most is measured against its parent's size
    guest = [sys.executable, "-m", "sandbox.guest"]
    said = subprocess.run(guest, input=f"{line}\n", capture_output=True, text=True, check=True, timeout=100)
    result: dict[str, Any] = json.loads(said.stdout)["result"]
    assert result["ok"], result
    return result


def by_signature(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["signature"]: one for one in result["defects"]}


CORPUS = [
    "fn frame() { 1 }",
    "fn a() { b @ c; let panic = 2; }",
    "x " * 20,
    *(f"{'#' * one} é" for one in range(1, 41)),  # one in five of them is run again
]


@pytest.fixture(scope="session")
def found(program: Program) -> dict[str, Any]:
    """Of steady programs only, so that the round with this seed is always the same."""
    return fuzzed(program, corpus=CORPUS[:3])


def test_defects_are_found_and_minimal(found: dict[str, Any]) -> None:
    defects = by_signature(found)
    assert {"panic at sign", "crash SIGABRT"} <= set(defects)
    assert (defects["panic at sign"]["source"], defects["panic at sign"]["kind"]) == ("@", "panic")
    assert defects["panic at sign"]["origin"] == "corpus"
    assert defects["panic at sign"]["from_size"] == len(CORPUS[1])
    assert defects["crash SIGABRT"]["source"].count("(") == 70 + 70 // 8  # the nest's margin
    assert (found["executions"] <= 700, found["stopped"]) == (True, "executions")
    assert 0 < found["shrinking"] < found["executions"]


def test_an_output_that_varies_is_found_by_running_again(program: Program) -> None:
    found = fuzzed(program, corpus=CORPUS, executions=300)
    assert by_signature(found)[VARIES.signature]["source"] == "#"


def test_a_round_repeats(program: Program) -> None:
    """On a program that is itself steady: no input of this round holds a `#`."""
    one, two = (fuzzed(program, corpus=CORPUS[:3], executions=150) for _ in range(2))
    timed = {"latency_ms", "seconds", "cpu_s"}
    assert {key: one[key] for key in one.keys() - timed} == {key: two[key] for key in two.keys() - timed}


def test_what_is_known_is_neither_shrunk_nor_shown(program: Program, found: dict[str, Any]) -> None:
    known = [*by_signature(found), VARIES.signature]
    again = fuzzed(program, corpus=CORPUS, known=known, executions=300)
    assert set(by_signature(again)) & set(known) == set()
    assert again["shrinking"] == 0


def test_an_anomaly_that_does_not_repeat_is_counted_and_not_shown(program: Program, tmp_path: Path) -> None:
    once = Program(
        **{name: getattr(program, name) for name in ("family", "output", "sample")},
        command=(*program.command, str(tmp_path / "once")),
    )
    result = fuzzed(once, corpus=["fn once() { }"], executions=60)
    assert (result["unstable"], [one for one in result["defects"] if "once" in one["source"]]) == (1, [])


def test_new_inputs_are_given_back_and_the_given_ones_are_not(
    program: Program, found: dict[str, Any]
) -> None:
    assert found["behaviours"] > 0
    assert not set(found["corpus"]) & set(CORPUS)
    assert sum(map(len, found["corpus"])) <= 64 << 10


def test_a_loader_is_fed_bytes(program: Program) -> None:
    result = fuzzed(program, part="loader", corpus=["61206240"], executions=400)
    assert by_signature(result)["panic at sign"]["source"] == "40"


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"part": "linker"}, "/args/part: expected compiler or loader"),
        ({"seconds": 0.0}, "/args/seconds: expected more than 0"),
        ({"seconds": 61.0}, "/args/seconds: expected more than 0, at most 60"),
        ({"executions": 0}, "/args/executions: expected 1 to"),
        ({"part": "loader", "corpus": ["0g"]}, "/args/corpus: the inputs of a loader are hex"),
        ({"corpus": ["x" * (129 << 10)]}, "/args/corpus: expected at most"),
        ({"corpus": "text"}, "/args/corpus: expected an array"),
    ],
)
def test_a_mistake_in_the_arguments_is_an_answer(program: Program, args: dict[str, Any], error: str) -> None:
    result = answer(TOOLS["qa_fuzz"], args, Context(run="r", prefix="qa-r-", program=program))
    assert (result["ok"], result["error_class"]) == (False, "bad_request")
    assert result["error"].startswith(error)


def test_a_program_that_cannot_start_is_ours(tmp_path: Path) -> None:
    missing = Program(command=(str(tmp_path / "nothing"),), sample="x")
    result = answer(TOOLS["qa_fuzz"], {"seconds": 5.0}, Context(run="r", prefix="qa-r-", program=missing))
    assert (result["ok"], result["error_class"]) == (False, "cannot_start")
