"""What is remembered of expectations from one start to the next."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fleet.drivers.expect import LARGEST, ExpectationCache

ASKED = """
import sys
from pathlib import Path
from fleet.drivers.expect import ExpectationCache
print(ExpectationCache(Path(sys.argv[1])).check(sys.argv[2]), "celpy" in sys.modules)
"""


def asked(path: Path, text: str) -> str:
    """What a new process says, and whether it loaded the grammar for it."""
    said = subprocess.run([sys.executable, "-c", ASKED, str(path), text], capture_output=True, text=True)
    assert not said.returncode, said.stderr
    return said.stdout.strip()


def test_the_next_start_does_not_load_the_grammar(tmp_path: Path) -> None:
    path = tmp_path / "expectations"
    assert asked(path, "result.ok") == "None True"
    assert asked(path, "result.ok") == "None False"
    assert asked(path, "result.ok ") == "None True"
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_does_not_compile_is_refused_at_every_start(tmp_path: Path) -> None:
    path = tmp_path / "expectations"
    for _ in range(2):
        assert "not a CEL expression" in str(ExpectationCache(path).check("result.ok &&"))
    assert not path.exists()


def test_a_file_that_cannot_be_used_costs_time_alone(tmp_path: Path) -> None:
    torn, link = tmp_path / "torn", tmp_path / "link"
    torn.write_bytes(b"\xff\x00 half a li")
    link.symlink_to(tmp_path / "elsewhere")
    for path in (torn, link, tmp_path / "no" / "folder", tmp_path):
        assert ExpectationCache(path).check("result.ok") is None
        assert "not a CEL expression" in str(ExpectationCache(path).check("1 +"))
    assert not (tmp_path / "elsewhere").exists()


def test_it_does_not_grow_without_end(tmp_path: Path) -> None:
    path = tmp_path / "expectations"
    path.write_bytes(b"x" * (LARGEST + 1))
    assert ExpectationCache(path).check("result.ok") is None
    assert path.stat().st_size == 65
