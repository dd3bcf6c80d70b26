"""What every command prints in rows: for an eye on a terminal, for a program in a pipe."""

from __future__ import annotations

import sys

import pytest

from fleet.cli.console import table

HOSTILE = ["=HYPERLINK(1)", "+1", "-2+3", "@SUM(A1)", "\x1b[0m=1", "\t=1", "\uff1d1"]


@pytest.mark.parametrize("cell", HOSTILE)
def test_no_cell_of_a_pipe_is_a_formula(cell: str, capsys: pytest.CaptureFixture[str]) -> None:
    table(("a", "b"), [("text", cell), (cell, "text")])
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [len(line) for line in lines] == [2, 2, 2]
    assert (lines[1][1][0], lines[2][0][0]) == ("'", "'")


def test_numbers_of_ours_stay_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    table(("n", "x", "text"), [(-1, -0.5, "a-b")])
    assert capsys.readouterr().out == "n\tx\ttext\n-1\t-0.5\ta-b\n"


def test_a_terminal_shows_the_text_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    table(("a",), [("=1+[b]1",)])
    shown = capsys.readouterr().out
    assert ("=1+[b]1" in shown, "'" in shown) == (True, False)
