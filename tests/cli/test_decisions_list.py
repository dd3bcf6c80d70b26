"""The list of decisions: whole for a pipe, short names and minutes for a terminal."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from fleet.cli.items.decide import rows_of
from fleet.store.rows import QUEUED, DecisionRow

AT, END = "2026-11-21T22:51:10Z", "2026-12-01T00:00:00Z"
SNOOZE = DecisionRow(
    item="abcdef012345", kind="snooze", reason="later", who="ann", at=AT, name="a1b2c3d4e5f6", until=END
)
UNDO = DecisionRow(
    item="abcdef012345",
    kind="undo",
    reason="no",
    who="ann",
    at=AT,
    name="b" * 12,
    undoes=SNOOZE.name,
    entry=QUEUED,
)


def test_a_pipe_gets_names_and_times_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    assert rows_of([SNOOZE, UNDO], {UNDO.name}) == [
        (SNOOZE.name, SNOOZE.item, f"snooze until {END} (undone)", AT, "ann", "later", "no"),
        (UNDO.name, UNDO.item, f"undo {SNOOZE.name}", AT, "ann", "no", "to be posted"),
    ]


def test_a_terminal_gets_as_many_digits_as_tell_them_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    like = replace(UNDO, name="a1b2c3d90000")
    names = [row[0] for row in rows_of([SNOOZE, like], {SNOOZE.name})]
    assert names == ["a1b2c3d4", "a1b2c3d9"]
    assert rows_of([SNOOZE, UNDO], {SNOOZE.name}) == [
        ("a1b2c3", "abcdef", "snooze until 2026-12-01 00:00", "2026-11-21 22:51", "ann", "later", "no"),
        ("bbbbbb", "abcdef", "undo a1b2c3 (undone)", "2026-11-21 22:51", "ann", "no", "to be posted"),
    ]
