"""A journal of an older version becomes one of this: shaped like a new one, with all that was in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fleet.errors import BudgetExceeded
from fleet.store.journal import Journal
from fleet.store.sql.migrations import SCHEMA_VERSION
from tests.store.cluster import Cluster

pytestmark = pytest.mark.anyio
OLD = Path(__file__).with_name("old")
TO_1 = """
DROP TABLE skips; DROP INDEX runs_by_persona; ALTER TABLE runs DROP COLUMN priority;
ALTER TABLE runs DROP COLUMN due; ALTER TABLE runs DROP COLUMN cancel;
UPDATE meta SET value = '1' WHERE key = 'schema';
"""
NARROW = """
ALTER TABLE runs ALTER COLUMN priority TYPE INTEGER;
ALTER TABLE runs ALTER COLUMN due TYPE TEXT COLLATE "default";
ALTER TABLE runs ALTER COLUMN cancel TYPE TEXT COLLATE "default";
"""
"""What version 2 was where it had been version 1, on PostgreSQL."""
LITE = (
    'SELECT m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk FROM sqlite_schema m,'
    " pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1, 2",
    "SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY 1",
)
POSTGRES = (
    "SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default"
    " FROM information_schema.columns WHERE table_schema = current_schema ORDER BY 1, 2",
    "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema ORDER BY 1",
)
Do = Callable[[str], list[tuple[Any, ...]]]


class Noon:
    """Noon of the day on which the old journal was left."""

    def now(self) -> datetime:
        return datetime(2026, 1, 2, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def _lite(path: Path) -> Do:
    def do(statements: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(path) as raw:
            if statements.startswith("SELECT"):
                found = raw.execute(statements).fetchall()
            else:
                found = raw.executescript(statements).fetchall()
        raw.close()
        return found

    return do


def _places(kind: str, request: pytest.FixtureRequest, folder: Path) -> list[tuple[Path | str, Do]]:
    """An empty one, and one for the old version."""
    if kind == "file":
        return [(path, _lite(path)) for path in (folder / "new.db", folder / "old.db")]
    cluster: Cluster = request.getfixturevalue("cluster")
    urls = [cluster.place(), cluster.place()]
    return [(url, lambda text, url=url: cluster.do(text, url)) for url in urls]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("kind", "back"),
    [("file", ""), ("file", TO_1), ("postgres", ""), ("postgres", TO_1), ("postgres", NARROW)],
    ids=["file-2", "file-1", "postgres-2", "postgres-1", "postgres-2-of-1"],
)
async def test_an_old_journal_becomes_one_of_this_version(
    kind: str, back: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    (new, ask_new), (old, ask_old) = _places(kind, request, tmp_path)
    made = OLD / ("v2.sqlite.sql" if kind == "file" else "v2.postgres.sql")
    for text in (made.read_text(), (OLD / "data.sql").read_text(), back):
        ask_old(text or ";")
    await (await Journal.open(new)).aclose()
    async with await Journal.open(old, clock=Noon()) as journal:
        assert [row.run_id for row in await journal.runs()] == ["r2", "r1", "r0"]
        assert await journal.get("cursor") == "7"
        assert await journal.spent("r1") == {"calls": 3, "writes": 1}
        assert await journal.spent_today() == {
            "": {"calls": 9, "writes": 1},
            "qa-x": {"calls": 8, "writes": 1},
            "qa-y": {"calls": 1},
        }
        with pytest.raises(BudgetExceeded, match="8 calls a day of qa-x"):
            await journal.spend("r1", "calls", 1, 9, day={"persona": {"calls": 8}})
        await journal.settle(await journal.reserve("r1", {"calls": 1}, {"run": {"calls": 9}}), {"calls": 0})
        await journal.skip([("qa-x", "k10", "late")])
    assert ask_old("SELECT value FROM meta WHERE key = 'schema'") == [(str(SCHEMA_VERSION),)]
    for shape in LITE if kind == "file" else POSTGRES:
        assert ask_old(shape) == ask_new(shape)


async def test_an_upgrade_that_dies_is_done_again(tmp_path: Path) -> None:
    """The steps and the new number are one transaction: what a table in the way stops changes nothing."""
    do = _lite(tmp_path / "old.db")
    for text in ((OLD / "v2.sqlite.sql").read_text(), (OLD / "data.sql").read_text()):
        do(text)
    do("CREATE TABLE reserves (x)")
    before = do("SELECT name FROM sqlite_schema ORDER BY name")
    with pytest.raises(Exception, match="already exists"):
        await Journal.open(tmp_path / "old.db")
    assert do("SELECT name FROM sqlite_schema ORDER BY name") == before
    assert do("SELECT value FROM meta WHERE key = 'schema'") == [("2",)]
    do("DROP TABLE reserves")
    async with await Journal.open(tmp_path / "old.db", clock=Noon()) as journal:
        assert (await journal.spent_today())[""] == {"calls": 9, "writes": 1}
