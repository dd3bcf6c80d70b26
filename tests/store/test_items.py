"""The items of the last triage pass: the list is replaced, and what stays the same is not written again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.dialects import sqlite

from fleet.chain.node.codec import Entry
from fleet.store.journal import Journal
from fleet.store.rows import ItemRow
from fleet.store.tables.items import said_by

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


async def test_the_records_of_a_log_are_found_by_its_index(journal: Journal) -> None:
    texts = [
        "qa/v1 source=qa-triage sev=info",
        "qa/v1 source=qa-triagen sev=info",
        "qa/v1 source=qa-ux",
        "\0",
    ]
    await journal.mirror(0, 0, [Entry("0xa", 1, text) for text in texts])
    assert [one.index for one in await journal.record_entries("qa-triage")] == [0]
    assert [one.index for one in await journal.record_entries("qa-triagen")] == [1]


async def test_records_are_found_without_reading_the_log(tmp_path: Path) -> None:
    async with await Journal.open(tmp_path / "fleet.db"):
        pass
    plan = str(said_by("qa-triage").compile(dialect=sqlite.dialect()))
    with closing(sqlite3.connect(tmp_path / "fleet.db")) as db:
        steps = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {plan}", [b"", b"", b"", b""])]
    assert steps[0].startswith("SEARCH log USING INDEX log_by_head")
