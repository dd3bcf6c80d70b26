"""What is remembered of expectations from one start to the next."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fleet.drivers.expect_check import LARGEST, ExpectationCache
from fleet.personas.check import Wants

WANTED: tuple[list[str], Wants] = (["qa_fetch"], "bool")
ASKED = """
import sys
from pathlib import Path
from fleet.drivers.expect_check import ExpectationCache
found = ExpectationCache(Path(sys.argv[1])).check(sys.argv[2], ["qa_fetch"], "bool")
print(list(found), "celpy" in sys.modules)
"""


def asked(path: Path, text: str) -> str:
    """What a new process says, and whether it loaded the grammar for it."""
    said = subprocess.run([sys.executable, "-c", ASKED, str(path), text], capture_output=True, text=True)
    assert not said.returncode, said.stderr
    return said.stdout.strip()


def test_the_next_start_does_not_load_the_grammar(tmp_path: Path) -> None:
    path = tmp_path / "expectations"
    assert asked(path, "result.ok") == "[] True"
    assert asked(path, "result.ok") == "[] False"
    assert asked(path, "result.ok ") == "[] True"
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_does_not_compile_is_refused_at_every_start(tmp_path: Path) -> None:
    path = tmp_path / "expectations"
    for _ in range(2):
        assert "not a CEL expression" in ExpectationCache(path).check("result.ok &&", *WANTED)[0].message
    assert not path.exists()


def test_a_file_that_cannot_be_used_costs_time_alone(tmp_path: Path) -> None:
    torn, link = tmp_path / "torn", tmp_path / "link"
    torn.write_bytes(b"\xff\x00 half a li")
    link.symlink_to(tmp_path / "elsewhere")
    for path in (torn, link, tmp_path / "no" / "folder", tmp_path):
        assert not ExpectationCache(path).check("result.ok", *WANTED)
        assert "not a CEL expression" in ExpectationCache(path).check("1 +", *WANTED)[0].message
    assert not (tmp_path / "elsewhere").exists()


def test_it_does_not_grow_without_end(tmp_path: Path) -> None:
    path = tmp_path / "expectations"
    path.write_bytes(b"x" * (LARGEST + 1))
    assert not ExpectationCache(path).check("result.ok", *WANTED)
    assert path.stat().st_size == 65


def test_the_types_of_the_variables_are_part_of_what_is_remembered(tmp_path: Path) -> None:
    kept = ExpectationCache(tmp_path / "expectations")
    assert not kept.check("result.status == 200", ["qa_fetch"], "bool")
    assert kept.check("result.status == 200", ["qa_chain"], "bool")
    assert kept.check("result.status == 200", ["qa_fetch"], "number")
