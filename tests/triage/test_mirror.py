from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.chain.node.codec import Entry
from fleet.errors import ChainError, Unreachable
from fleet.store.journal import MEMORY, Journal
from fleet.triage.log.mirror import MirrorState, follow
from tests.triage.triage_log import ScriptedLog

pytestmark = pytest.mark.anyio


@pytest.fixture
async def journal() -> AsyncIterator[Journal]:
    async with await Journal.open(MEMORY) as opened:
        yield opened


def filled(count: int) -> ScriptedLog:
    log = ScriptedLog()
    for n in range(count):
        log.post(f"entry {n}")
    return log


async def texts(journal: Journal, epoch: int | None = None) -> list[str]:
    return [entry.text for entry in await journal.entries(epoch)]


async def test_row_43_five_thousand_entries_in_pages(journal: Journal) -> None:
    log = filled(5_000)
    assert await follow(log, journal) == MirrorState(epoch=0, next_index=5_000, new=5_000, resets=0)
    assert await texts(journal) == [entry.text for entry in log.entries]
    assert await follow(log, journal) == MirrorState(epoch=0, next_index=5_000, new=0, resets=0)


async def test_row_43_a_log_that_grows_while_it_is_read(journal: Journal) -> None:
    def grow(log: ScriptedLog) -> None:
        if log.reads < 60:
            log.post(f"late {log.reads}")

    log = filled(300)
    log.between = grow
    await follow(log, journal, page=16)
    assert await texts(journal) == [entry.text for entry in log.entries]


async def test_an_empty_log_is_fine(journal: Journal) -> None:
    assert await follow(ScriptedLog(), journal) == MirrorState(0, 0, 0, 0)


async def test_row_44_a_shorter_log_is_a_new_epoch_and_the_old_one_stays(journal: Journal) -> None:
    log = filled(10)
    await follow(log, journal)
    log.entries.clear()
    for n in range(3):
        log.post(f"new {n}")
    assert await follow(log, journal) == MirrorState(epoch=1, next_index=3, new=3, resets=1)
    assert await texts(journal, 1) == ["new 0", "new 1", "new 2"]
    assert await texts(journal, 0) == [f"entry {n}" for n in range(10)]


@pytest.mark.parametrize("count", [10, 25])
async def test_a_cleared_log_that_grew_past_the_cursor_is_noticed(journal: Journal, count: int) -> None:
    log = filled(10)
    await follow(log, journal)
    log.entries.clear()
    for n in range(count):
        log.post(f"other {n}")
    assert await follow(log, journal) == MirrorState(epoch=1, next_index=count, new=count, resets=1)
    assert await texts(journal, 1) == [f"other {n}" for n in range(count)]


async def test_a_log_that_was_emptied_is_a_new_epoch_once(journal: Journal) -> None:
    log = filled(2)
    await follow(log, journal)
    log.entries.clear()
    assert await follow(log, journal) == MirrorState(epoch=1, next_index=0, new=0, resets=1)
    assert await follow(log, journal) == MirrorState(epoch=1, next_index=0, new=0, resets=0)


async def test_a_clear_between_two_pages_mixes_nothing(journal: Journal) -> None:
    def clear_once(log: ScriptedLog) -> None:
        if log.reads == 6:
            log.entries.clear()
            for n in range(40):
                log.post(f"after {n}")

    log = filled(50)
    log.between = clear_once
    done = await follow(log, journal, page=10)
    assert (done.epoch, done.resets) == (1, 1)
    assert await texts(journal, 1) == [f"after {n}" for n in range(40)]
    assert all(text.startswith("entry") for text in await texts(journal, 0))


async def test_a_log_that_never_holds_still_is_not_believed(journal: Journal) -> None:
    def rewrite(log: ScriptedLog) -> None:
        log.entries = [Entry("0x" + "11" * 20, log.reads, f"{log.reads}")] * 3

    with pytest.raises(ChainError, match="repeatedly"):
        await follow(ScriptedLog(between=rewrite), journal, page=1)


async def test_a_log_that_counts_more_than_it_has_ends(journal: Journal) -> None:
    class Liar(ScriptedLog):
        async def count(self) -> int:
            return 2**256 - 1

    log = Liar(filled(5).entries)
    assert await follow(log, journal) == MirrorState(0, 5, 5, 0)


async def test_a_log_that_returns_more_than_was_asked_is_cut(journal: Journal) -> None:
    class Generous(ScriptedLog):
        async def range(self, start: int, count: int, /) -> list[Entry]:
            return self.entries[start:]

    log = Generous(filled(7).entries)
    await follow(log, journal, page=2)
    assert await texts(journal) == [f"entry {n}" for n in range(7)]


async def test_a_read_that_fails_loses_nothing_and_is_no_reset(journal: Journal) -> None:
    def fail(log: ScriptedLog) -> None:
        if log.reads == 5:
            raise Unreachable("the node went away")

    log = filled(50)
    log.between = fail
    with pytest.raises(Unreachable):
        await follow(log, journal, page=10)
    kept = len(await texts(journal))
    assert 0 < kept < 50
    assert await follow(log, journal, page=10) == MirrorState(0, 50, 50 - kept, 0)
    assert await texts(journal) == [f"entry {n}" for n in range(50)]


@given(st.lists(st.one_of(st.integers(1, 6), st.just(0)), max_size=6), st.integers(1, 4))
@settings(max_examples=20, deadline=None)
async def test_the_newest_epoch_is_always_the_log(steps: list[int], page: int) -> None:
    """Each step posts that many entries; 0 clears the log."""
    log, serial = ScriptedLog(), 0
    async with await Journal.open(MEMORY) as journal:
        for step in steps:
            if step == 0:
                log.entries.clear()
            for _ in range(step):
                serial += 1
                log.entries.append(Entry("0x" + "11" * 20, serial, f"text {serial % 3}"))
            done = await follow(log, journal, page=page)
            kept = [(entry.timestamp, entry.text) for entry in await journal.entries(done.epoch)]
            assert kept == [(entry.timestamp, entry.text) for entry in log.entries]
        assert (
            len({(e.epoch, e.index) for e in await journal.entries()})
            == len(await journal.entries())
            == serial
        )
