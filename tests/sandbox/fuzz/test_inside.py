"""Inputs with something odd inside one token: escapes, digits, suffixes, letters, comments."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from sandbox.fuzz.inputs.table import seeds, strategies
from sandbox.programs.program import Program
from tests.sandbox.fuzz.scripted import PROGRAM
from tests.sandbox.fuzz.test_loop import by_signature, fuzzed

INPUTS = 4_000
SAMPLE = b'fn frame(t: i32) -> i32 { let s = "plain"; let n = 12u8; t + 1 } // said\n'
DEFECTS: Mapping[str, str] = {
    "an escape of a surrogate in a string": r'"[^"\n]*\\u\{?d800',
    "an escape that is cut off": r'"[^"\n]*\\x"',
    "an octal escape": r'"[^"\n]*\\[1-3][0-7][0-7]',
    "a number with a long run of digits": r"\d{30}",
    "a suffix that no number has": r"\b\d\w*zz\b",
    "an exponent without digits": r"\b\d\w*e\+(?!\d)",
    "a name with a letter outside ASCII": r"[a-z]\u0130|\u0130[a-z]",
    "a very long name": r"[A-Za-z0_]{255}",
    "the end of a comment in a line's comment": r"//[^\n]*\*/",
}
"""What a compiler would break on."""


@pytest.mark.parametrize("name", DEFECTS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_defect_inside_a_token_is_met_within_a_bounded_number_of_inputs(name: str, seed: int) -> None:
    pattern, chance = re.compile(DEFECTS[name]), Random(seed)
    source = strategies(replace(PROGRAM, family="rust"), "compiler", "")["spelling"]
    made = (source([SAMPLE], chance) for _ in range(INPUTS))
    assert any(pattern.search(one.decode("utf-8", "replace")) for one in made if one is not None)


@pytest.mark.parametrize("family", ["rust", "solidity", "vyper", "typescript", "wat", "c", "json", "generic"])
def test_every_family_has_inputs_of_it(family: str) -> None:
    program = replace(PROGRAM, family=family)
    source, chance = strategies(program, "compiler", "")["spelling"], Random(3)
    corpus = seeds(program, "compiler")
    assert len({one for _ in range(300) if (one := source(corpus, chance)) is not None}) > 150


@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc here for a small compiler")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("family", ["rust", "vyper", "typescript"])
def test_a_whole_search_finds_what_is_wrong_inside_of_strings(family: str, tmp_path: Path) -> None:
    source = Path(__file__).with_name("lexer.c")
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "cc", source], check=True, timeout=60)
    program = Program(command=(str(tmp_path / "cc"),), sample="fn a() {}", family=family, output="text")
    found = by_signature(fuzzed(program, executions=1_500))
    assert {"panic escape without digits", "panic no width for it", "crash SIGABRT"} <= set(found)
