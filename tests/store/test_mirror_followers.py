"""Two followers of one log on one journal, in a file and on PostgreSQL."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from sqlalchemy import update

from fleet.chain.node.codec import Entry
from fleet.errors import ChainError
from fleet.store.journal import Journal
from fleet.store.sql.schema import LOG
from fleet.triage.log.mirror import follow
from tests.store.conftest import Places

pytestmark = pytest.mark.anyio


class Log:
    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries

    async def count(self) -> int:
        return len(self.entries)

    async def range(self, start: int, count: int, /) -> list[Entry]:
        await anyio.lowlevel.checkpoint()
        return self.entries[start : start + count]


def entries(count: int, text: str) -> list[Entry]:
    return [Entry("0x" + "1" * 40, n, f"{text} {n}") for n in range(count)]


async def test_two_followers_lose_nothing_and_double_nothing(places: Places) -> None:
    place = places()
    log = Log(entries(300, "first"))

    async def one(journal: Journal) -> None:
        await follow(log, journal, name="1:0xaa", page=7)

    async with await Journal.open(place) as first, await Journal.open(place) as second:
        for change in ("", "reorg", "clear"):
            if change == "reorg":
                log.entries[200:] = [e._replace(text="fork") for e in log.entries[200:]] * 2
            if change == "clear":
                log.entries = entries(50, "second")
            async with anyio.create_task_group() as group:
                group.start_soon(one, first)
                group.start_soon(one, second)
            epoch = int(change == "clear")
            kept = await second.mirror_since(epoch, 0)
            assert [(e.index, e.text) for e in kept] == [(n, e.text) for n, e in enumerate(log.entries)]
        assert [(e.epoch, e.why, e.entries) for e in await first.epochs()] == [
            (0, "first", 400),
            (1, "cleared", 50),
        ]
        assert [(e.index, e.gone) for e in await first.rewinds()] == [(200, 100)]


async def test_a_rewind_of_what_another_process_changed_is_refused(journal: Journal) -> None:
    await journal.mirror(0, 0, entries(3, "a"))
    tip = await journal.mirror_digest(0, 2)
    await journal.mirror(0, 3, entries(4, "a")[3:])
    with pytest.raises(ChainError, match="another process"):
        await journal.rewind(0, 1, [], tip=tip)
    assert len(await journal.entries()) == 4
    assert await journal.rewinds() == []


async def test_a_broken_chain_names_its_first_index(journal: Journal) -> None:
    await journal.mirror(0, 0, entries(5, "a"))
    assert await journal.first_broken(0) is None

    async def forge(connection: object) -> None:
        forged = update(LOG).where(LOG.c.index == 3).values(text=b"forged")
        await connection.execute(forged)  # type: ignore[attr-defined]

    await journal._db.write("test.forge", forge)
    assert await journal.first_broken(0) == 3
