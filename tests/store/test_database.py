"""The database itself: private, damaged, foreign, newer, locked, read-only, on a full disk, and cancelled."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import insert, select, text

from fleet.errors import ConfigError, TryAgain
from fleet.jail.locate import find_bwrap
from fleet.store.journal import Journal
from fleet.store.sql.database import Connection, Mode
from fleet.store.sql.migrations import SCHEMA_VERSION
from fleet.store.sql.schema import META, METADATA
from fleet.store.sql.sqlite import SqliteDatabase
from tests.doubles.journal import new_run
from tests.store.conftest import Places

pytestmark = pytest.mark.anyio
Queue = Callable[..., Awaitable[bool]]
ROOT = Path(__file__).parents[2]


async def _fill(path: Path | str, runs: int = 1) -> None:
    async with await Journal.open(path) as journal:
        for n in range(runs):
            await journal.trigger(new_run(f"r{n}", key=f"k{n}", trigger="t" * 500))


async def test_no_thread_is_started_after_the_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    journal = await Journal.open(tmp_path / "fleet.db")
    monkeypatch.setattr(threading, "_start_new_thread", refuse)
    await journal.put("a", "b")
    assert await journal.get("a") == "b"
    await journal.aclose()
    with pytest.raises(TryAgain, match="thread: can't start new thread"):
        await Journal.open(tmp_path / "fleet.db")


async def test_the_file_is_private_durable_and_strict(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    await _fill(path)
    assert path.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(path) as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        tables = dict(raw.execute("SELECT name, strict FROM pragma_table_list WHERE schema='main'"))
    raw.close()
    tables.pop("sqlite_schema")
    assert set(tables.values()) == {1}
    assert METADATA.tables.keys() == tables.keys()


async def test_what_was_written_is_there_after_reopening(places: Places) -> None:
    place = places()
    await _fill(place, runs=2)
    async with await Journal.open(place) as journal:
        assert [row.run_id for row in await journal.runs()] == ["r1", "r0"]


async def test_a_newer_journal_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    await _fill(path)
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE meta SET value='99' WHERE key='schema'")
    raw.close()
    with pytest.raises(ConfigError, match=rf"\(schema 99; this program knows {SCHEMA_VERSION}\)") as refused:
        await Journal.open(path)
    assert "run the newer fleet" in refused.value.remedy


@pytest.mark.parametrize("statement", ["CREATE TABLE other (x)", "CREATE TABLE meta (key, value)"])
async def test_another_program_s_database_is_refused(tmp_path: Path, statement: str) -> None:
    with sqlite3.connect(tmp_path / "fleet.db") as raw:
        raw.execute(statement)
    raw.close()
    with pytest.raises(ConfigError, match="not a journal of this fleet"):
        await Journal.open(tmp_path / "fleet.db")


async def test_garbage_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    path.write_bytes(b"no database at all" * 300)
    with pytest.raises(ConfigError, match="not a database"):
        await Journal.open(path)
    assert path.read_bytes().startswith(b"no database")


async def test_a_damaged_page_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    await _fill(path, runs=60)
    with path.open("r+b") as handle:
        handle.seek(4096)
        handle.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(ConfigError, match="damaged") as refused:
        async with await Journal.open(path) as journal:
            await journal.runs()
    assert "backup" in refused.value.remedy


async def test_what_is_wrong_with_a_journal_is_named(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    await _fill(path, runs=60)
    async with await Journal.open(path) as journal:
        assert await journal.faults() == []
    with sqlite3.connect(path) as raw:
        raw.execute("DROP TABLE skips")
        raw.execute("ALTER TABLE history DROP COLUMN at")
        raw.execute("PRAGMA writable_schema=ON")
        raw.execute("UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'history'")
    raw.close()
    async with await Journal.open(path) as journal:
        faults = await journal.faults()
    assert {"no table skips", "no column history.at"} <= set(faults)
    assert any("page" in fault.lower() for fault in faults)


@pytest.mark.parametrize("suffix", ["", "-wal"])
@pytest.mark.parametrize("how", ["removed", "replaced"])
async def test_a_journal_that_is_taken_away_records_nothing_more(
    tmp_path: Path, suffix: str, how: str
) -> None:
    path = tmp_path / "fleet.db"
    async with await Journal.open(path) as journal:
        await journal.put("a", "b")
        gone = path.with_name(path.name + suffix)
        if how == "removed":
            gone.unlink()
        else:
            shutil.copy(gone, tmp_path / "copy")
            (tmp_path / "copy").replace(gone)
        for act in (journal.put("a", "c"), journal.get("a"), journal.at_hand("devnet")):
            with pytest.raises(ConfigError, match=f"{re.escape(str(gone))}: removed or replaced") as caught:
                await act
        assert not caught.value.retryable


@pytest.mark.parametrize("kind", ["directory", "fifo", "no parent"])
async def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "fleet.db"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path = tmp_path / "missing" / "fleet.db"
    with pytest.raises(ConfigError, match=r"not a file|cannot create"):
        await Journal.open(path)


async def test_every_commit_is_synced_and_references_are_checked(tmp_path: Path) -> None:
    database = await SqliteDatabase.open(tmp_path / "fleet.db")
    names = ("synchronous", "foreign_keys", "journal_mode")
    found = [(await database.rows(select(text(n)).select_from(text(f"pragma_{n}"))))[0][0] for n in names]
    await database.aclose()
    assert found == [2, 1, "wal"]


async def test_a_transaction_that_waits_for_something_else_is_rolled_back(tmp_path: Path) -> None:
    database = await SqliteDatabase.open(tmp_path / "fleet.db")

    async def wait(connection: Connection) -> None:
        await connection.execute(insert(META).values(key="a", value="b"))
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waits for nothing but its database"):
        await database.write("x", wait)
    assert not await database.rows(select(META).where(META.c.key == "a"))
    await database.aclose()


async def test_many_reads_at_once_are_one_trip_and_write_nothing(
    journal: Journal, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await queue("r1")
    await journal.spend("r1", "calls", 2, 5)

    async def read(view: Journal) -> tuple[object, ...]:
        return await view.runs(), await view.spent("r1"), await view.states_of(), await view.facts("none:")

    one_by_one, trips, run = await read(journal), list[str](), journal._db._run

    async def counted(mode: Mode, work: Callable[[Any], Awaitable[object]]) -> object:
        trips.append(mode)
        return await run(mode, work)

    monkeypatch.setattr(journal._db, "_run", counted)
    assert await journal.at_once(read) == one_by_one
    assert trips == ["view"]
    with pytest.raises(TypeError, match="only read"):
        await journal.at_once(lambda view: view.ask_cancel("r1", "why"))
    with pytest.raises(TypeError, match="only read"):
        await journal.at_once(lambda view: view.trigger(new_run("r2")))
    assert await read(journal) == one_by_one


async def test_two_openings_read_and_then_write_in_turn(places: Places) -> None:
    place = places()
    async with await Journal.open(place) as one, await Journal.open(place) as two:
        epochs = await asyncio.gather(*(journal.new_epoch() for journal in [one, two] * 10))
    assert sorted(epochs) == list(range(1, 21))


async def test_locked_by_another_process_means_try_again(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    await _fill(path)
    async with await Journal.open(path, busy_s=0.1) as journal:
        raw = sqlite3.connect(path, isolation_level=None)
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(TryAgain, match="another process is writing"):
            await journal.finish("r0", "completed")
        assert (await journal.run("r0")).state == "queued"
        raw.execute("ROLLBACK")
        raw.close()
        assert await journal.finish("r0", "completed")


async def test_a_cancelled_scope_does_not_cut_a_write(journal: Journal, queue: Queue) -> None:
    await queue()
    written = 0
    for delay in (0.01, 0.02, 0.03):
        with anyio.move_on_after(delay):
            while True:
                await journal.spend("r1", "calls", 1, 10**6)
                written += 1
    assert 0 <= (await journal.spent("r1"))["calls"] - written <= 3
    assert await journal.finish("r1", "completed")


async def test_a_cancelled_task_does_not_cut_a_write_either(journal: Journal, queue: Queue) -> None:
    await queue()
    written = 0

    async def write_for_ever() -> None:
        nonlocal written
        while True:
            await journal.spend("r1", "calls", 1, 10**6)
            written += 1

    for steps in range(40):
        task = asyncio.create_task(write_for_ever())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert 0 < (await journal.spent("r1"))["calls"] - written <= 40
    assert await journal.finish("r1", "completed")


_SMALL = """
import asyncio, sys
from fleet.errors import FleetError
from fleet.store.journal import Journal
from fleet.store.rows import NewRun

async def main():
    async with await Journal.open(sys.argv[1]) as journal:
        written = 0
        try:
            while written < 4000:
                run = NewRun(run_id=f"r{written}", persona="p", key=f"k{written}", platform="d",
                             trigger="t" * 20000, rung="observe", budget={})
                await journal.trigger(run)
                written += 1
        except FleetError as error:
            print(type(error).__name__, len(await journal.runs(limit=9999)) == written > 0, error.remedy)

try:
    asyncio.run(main())
except FleetError as error:
    print(type(error).__name__, error.remedy)
"""


def _boxed(*options: str, path: str) -> str:
    done = subprocess.run(
        [find_bwrap(), "--dev-bind", "/", "/", *options, sys.executable, "-c", _SMALL, path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_full_disk_means_try_again_and_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    out = _boxed("--size", "1000000", "--tmpfs", str(tmp_path / "small"), path=f"{tmp_path}/small/fleet.db")
    assert out == "TryAgain True free some space, then try again\n"


@pytest.mark.parametrize("exists", [False, True])
async def test_a_read_only_disk_is_an_error_with_a_remedy(tmp_path: Path, exists: bool) -> None:
    if exists:
        await _fill(tmp_path / "fleet.db")
    out = _boxed("--ro-bind", str(tmp_path), str(tmp_path), path=str(tmp_path / "fleet.db"))
    assert out.startswith("ConfigError ")
    assert "writable" in out
