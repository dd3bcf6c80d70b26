"""A version is built only where each safety control holds, and what came of it is kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fleet.files import ROOT
from tests.release import CONTROLS, held, release


def test_a_control_that_does_not_hold_keeps_a_version_from_being_built(tmp_path: Path) -> None:
    built = tmp_path / "built"
    build = [sys.executable, "-c", f"open({str(built)!r}, 'w')"]

    def but_one(paths: Sequence[str]) -> bool:
        return list(paths) != ["b"]

    controls = {"kill switch": ["a"], "scope enforcement": ["b"]}
    assert release(build, controls=controls, folder=tmp_path / "r", holds=but_one) == 1
    assert not built.exists()
    [kept] = (tmp_path / "r").iterdir()
    assert json.loads(kept.read_text())["controls"] == {"kill switch": True, "scope enforcement": False}
    assert release(build, controls={"kill switch": ["a"]}, folder=tmp_path / "r", holds=but_one) == 0
    assert built.exists()


@pytest.mark.parametrize(
    ("text", "well"), [("def test_a(): assert True", True), ("def test_a(): assert False", False)]
)
def test_what_fails_is_seen(tmp_path: Path, text: str, well: bool) -> None:
    (tmp_path / "test_a.py").write_text(text)
    assert held(["-p", "no:cacheprovider", str(tmp_path / "test_a.py")]) is well


def test_each_control_has_tests_that_are_there_and_a_release_needs_them() -> None:
    assert list(CONTROLS) == [
        *("scope enforcement", "kill switch", "escalation triggers", "rate limiting"),
        *("data isolation", "manipulation resistance"),
    ]
    assert [path for paths in CONTROLS.values() for path in paths if not (ROOT / path).exists()] == []
    assert (
        "release: setup\n\t@$(BIN)/python -m tests.release -- $(MAKE) wheel\n"
        in (ROOT / "Makefile").read_text()
    )
