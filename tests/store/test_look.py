"""What an idle daemon asks every second is asked of the database only when somebody wrote."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import anyio
import pytest
from sqlalchemy import func, select

from fleet.store.journal import MEMORY, Journal
from fleet.store.sql.sqlite import GRAIN_S, SqliteDatabase
from fleet.store.tables.runs import KEPT_SKIPS
from tests.doubles.journal import new_run
from tests.store.conftest import Places

pytestmark = pytest.mark.anyio
RANDOM = select(func.random())
"""Another answer each time that it is asked."""


async def _write(journal: Journal, number: int) -> None:
    await journal.trigger(new_run(f"r{number}", key=f"k{number}", rung=""))


async def test_the_answer_stays_until_somebody_else_writes(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    database = await SqliteDatabase.open(path)
    try:
        answers = [await database.look("r", RANDOM), await database.look("r", RANDOM)]
        assert answers[0] != answers[1]  # just written: the next change may look the same
        await anyio.sleep(GRAIN_S + 0.1)
        answers = [await database.look("r", RANDOM) for _ in range(3)]
        assert answers[0] == answers[1] == answers[2]
        assert await database.look("another", RANDOM) != answers[0]
        with sqlite3.connect(path) as other:
            other.execute("INSERT INTO meta VALUES ('a', 'b')")
        other.close()
        assert await database.look("r", RANDOM) != answers[0]
    finally:
        await database.aclose()


async def test_a_journal_in_memory_is_always_asked() -> None:
    database = await SqliteDatabase.open(MEMORY)
    try:
        answers = {str(await database.look("r", RANDOM)) for _ in range(3)}
        assert len(answers) == 3
    finally:
        await database.aclose()


async def test_every_write_of_another_process_is_seen_at_once(places: Places) -> None:
    place = places()
    async with await Journal.open(place) as ours, await Journal.open(place) as theirs:
        assert await ours.at_hand("d") == ({}, False)
        for number in range(1, 40):
            await _write(theirs, number)
            assert await ours.at_hand("d") == ({"p": number}, False)
        await anyio.sleep(GRAIN_S + 0.1)
        for _ in range(2):
            assert await ours.at_hand("d") == ({"p": 39}, False)
            assert await ours.at_hand("elsewhere") == ({}, False)
        await theirs.ask_cancel("r7", "enough")
        assert await ours.at_hand("d") == ({"p": 39}, True)


async def test_many_skips_at_once_keep_the_latest(places: Places) -> None:
    async with await Journal.open(places()) as journal:
        await journal.skip([("p", "first", "r")])
        await journal.skip([])
        await journal.skip([("p", f"k{number}", "r") for number in range(KEPT_SKIPS)])
        kept = [row.key for row in await journal.skips(KEPT_SKIPS + 5)]
        assert kept == [f"k{number}" for number in reversed(range(KEPT_SKIPS))]
