"""The bench of a newcomer's first look: its list, and what it reads off a command's lines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import first
from bench.first import User, targets
from bench.wild import packages

KINDS = ["web application", "API with OpenAPI", "static site", "MCP server", "contract by ABI"]


def test_the_list_has_one_of_each_kind_that_no_other_list_has() -> None:
    listed = targets()
    assert [one.kind for one in listed.values()] == KINDS
    assert not listed.keys() & packages().keys()
    for one in listed.values():
        assert (bool(one.pypi), bool(one.npm)) in ((True, False), (False, True)), one.name
        assert bool(one.before) == bool(one.pypi), one.name
        assert all("==" in name for name in one.pypi[:1]), one.name
        assert bool(one.start) != bool(one.artifact), one.name
        assert len(one.types) == len(one.arguments), one.name


@pytest.mark.anyio
async def test_each_line_has_its_second_whole_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "fleet"
    program.write_text('#!/bin/sh\necho "asking $HOME"; printf "  proven 3/3" >&2; echo "  of $1"; exit 1\n')
    program.chmod(0o755)
    monkeypatch.setattr(first, "FLEET", program)
    typed = await User(tmp_path / "home").types(["look", "x"], log="look.txt")
    assert typed.text == f"asking {tmp_path / 'home'}\n  proven 3/3  of look"
    assert (typed.code, typed.first("  proven ")) == (1, typed.lines[1][0])
    assert (tmp_path / "home" / "look.txt").read_text().count("\n") == 2


@pytest.mark.anyio
async def test_what_does_not_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "fleet"
    program.write_text(f'#!/bin/sh\necho up; exec {sys.executable} -c "import time; time.sleep(3600)"\n')
    program.chmod(0o755)
    monkeypatch.setattr(first, "FLEET", program)
    typed = await User(tmp_path / "home").types(["up"], stop_s=0.5)
    assert (typed.text, typed.code) == ("up", -15)
