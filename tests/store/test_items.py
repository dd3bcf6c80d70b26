"""The items of the last triage pass: the list is replaced, and what stays the same is not written again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.store.journal import Journal
from fleet.store.rows import ItemRow

pytestmark = pytest.mark.anyio


def item(name: str, title: str, at: str, **more: object) -> ItemRow:
    said = {"state": "new", "severity": "low", "surface": "ux", "persona": "qa-ux", "repro": "x()"}
    return ItemRow(fingerprint=name, title=title, at=at, trusted=True, **said | more)  # type: ignore[arg-type]


async def test_only_what_differs_is_written(journal: Journal) -> None:
    first, other = item("a", "one", "1"), item("a", "elsewhere", "1")
    await journal.put_items("q", [other])
    await journal.put_items("p", [first, item("b", "two", "1"), item("c", "three", "1")])
    now = [item("a", "one", "2"), item("b", "two", "2", state="fixed"), item("d", "four", "2")]
    await journal.put_items("p", now)
    assert await journal.items("p") == [first, *now[1:]]
    assert await journal.items("q") == [other]
    await journal.put_items("p", ())
    assert await journal.items("p") == []
    assert await journal.items("q") == [other]


async def test_a_strangers_repro_is_left_out(journal: Journal) -> None:
    await journal.put_items("p", [replace(item("a", "one", "1"), trusted=False)])
    assert [one.repro for one in await journal.items("p")] == [""]
