"""Several logs in one journal, reorganisations, lagging nodes, and nodes without bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import anyio
import pytest

from fleet.chain.node.codec import Entry
from fleet.errors import ChainError
from fleet.store.journal import MEMORY, Journal
from fleet.store.rows import LogRecord
from fleet.triage.log.check import compare
from fleet.triage.log.mirror import MirrorState, follow
from fleet.triage.log.pages import IN_FLIGHT, PageReader, PassLimits
from tests.triage.triage_log import FLEET, ScriptedLog

pytestmark = pytest.mark.anyio
NAME = "31337:0xd1"


@pytest.fixture
async def journal() -> AsyncIterator[Journal]:
    async with await Journal.open(MEMORY) as opened:
        yield opened


def filled(count: int, words: str = "entry") -> ScriptedLog:
    log = ScriptedLog()
    for n in range(count):
        log.post(f"{words} {n}")
    return log


async def texts(journal: Journal, epoch: int) -> list[str]:
    return [entry.text for entry in await journal.mirror_since(epoch, 0)]


async def test_a_reorganisation_replaces_what_follows_the_common_ancestor_and_is_recorded(
    journal: Journal,
) -> None:
    log = filled(500)
    await follow(log, journal, name=NAME)
    log.entries[300:] = [one._replace(text=f"fork of {one.text}") for one in log.entries[300:450]]
    done = await follow(log, journal, name=NAME)
    assert (done.epoch, done.next_index, done.resets, done.rewinds) == (0, 450, 0, 1)
    assert await texts(journal, 0) == [one.text for one in log.entries]
    (event,) = await journal.rewinds()
    assert (event.log, event.epoch, event.index, event.gone, event.new, event.back) == (
        NAME,
        0,
        300,
        200,
        150,
        False,
    )


async def test_entries_that_change_places_before_the_last_one_are_noticed(journal: Journal) -> None:
    log = filled(40)
    log.entries = [one._replace(timestamp=1) for one in log.entries]
    await follow(log, journal, name=NAME)
    log.entries[20], log.entries[21] = log.entries[21], log.entries[20]
    assert (await follow(log, journal, name=NAME)).rewinds == 1
    assert await texts(journal, 0) == [one.text for one in log.entries]


async def test_a_lagging_node_is_believed_only_when_it_stays_behind(journal: Journal) -> None:
    log = filled(50)
    await follow(log, journal, name=NAME)
    late = log.entries[45:]
    del log.entries[45:]
    assert await follow(log, journal, name=NAME) == MirrorState(0, 50, 0, 0, behind=5)
    log.entries += late
    log.post("news")
    assert await follow(log, journal, name=NAME) == MirrorState(0, 51, 1, 0)
    del log.entries[45:]
    await follow(log, journal, name=NAME)
    done = await follow(log, journal, name=NAME, patience_s=0)
    assert (done.next_index, done.rewinds, done.behind) == (45, 1, 0)


async def test_a_clear_that_a_reorganisation_undid_leaves_one_epoch(journal: Journal) -> None:
    log = filled(5)
    await follow(log, journal, name=NAME)
    old, log.entries = log.entries, [Entry(FLEET, 9, "after the clear")]
    assert (await follow(log, journal, name=NAME)).epoch == 1
    log.entries = old
    done = await follow(log, journal, name=NAME)
    assert (done.epoch, done.next_index, done.new, done.rewinds) == (0, 5, 0, 1)
    assert [one.epoch for one in await journal.epochs()] == [0]
    assert [one.back for one in await journal.rewinds()] == [True]


async def test_each_log_has_epochs_of_its_own(journal: Journal) -> None:
    one, other = filled(3, "one"), filled(4, "other")
    for _ in range(2):  # in turns, as two daemons on one database do
        assert (await follow(one, journal, name="1:0xaa")).epoch == 0
        assert (await follow(other, journal, name="2:0xaa")).epoch == 1
    one.entries.clear()
    assert (await follow(one, journal, name="1:0xaa")).epoch == 2
    other.post("more")
    assert await follow(other, journal, name="2:0xaa") == MirrorState(1, 5, 1, 0)
    assert [(row.epoch, row.log, row.why, row.entries) for row in await journal.epochs()] == [
        (0, "1:0xaa", "first", 3),
        (1, "2:0xaa", "another log", 5),
        (2, "1:0xaa", "cleared", 0),
    ]


@pytest.mark.parametrize(("same", "epoch"), [(True, 1), (False, 2)])
async def test_a_journal_without_names_belongs_to_the_log_that_agrees_with_it(
    journal: Journal, same: bool, epoch: int
) -> None:
    log = filled(3)
    await journal.mirror(0, 0, [Entry(FLEET, 1, "before a clear")])
    await journal.new_epoch()
    await journal.mirror(1, 0, log.entries[:2])
    if not same:
        log = filled(3, "of another log")
    done = await follow(log, journal, name=NAME)
    assert (done.epoch, done.new) == (epoch, 1 if same else 3)
    assert {row.epoch: row.log for row in await journal.epochs()} == (
        {0: NAME, 1: NAME} if same else {0: "", 1: "", 2: NAME}
    )


class Endless(ScriptedLog):
    """A node whose log has no end; each read takes a moment."""

    size = 10

    async def count(self) -> int:
        return 2**255

    async def range(self, start: int, count: int, /) -> list[Entry]:
        await anyio.sleep(0.001)
        return [Entry(FLEET, at, "x" * self.size) for at in range(start, start + count)]


async def test_a_log_without_end_meets_the_deadline_and_what_was_read_stays(journal: Journal) -> None:
    with pytest.raises(ChainError, match="no end within 3 s"):
        await follow(Endless(), journal, name=NAME, limits=PassLimits(seconds=3))
    assert (await journal.mirror_cursor())[1] > 0
    assert await journal.first_broken(0) is None


async def test_a_deadline_while_the_journal_writes_cuts_the_reads_short_and_no_more() -> None:
    class Stuck(ScriptedLog):
        async def range(self, start: int, count: int, /) -> list[Entry]:
            if start + count > IN_FLIGHT:
                await anyio.sleep_forever()
            return await super().range(start, count)

    wrote: list[int] = []

    async def written(start: int, entries: Sequence[LogRecord]) -> None:
        with anyio.CancelScope(shield=True):  # as a transaction is
            await anyio.sleep(0.1)
        wrote.append(start)

    with anyio.move_on_after(0.02) as scope:
        log = Stuck([Entry(FLEET, at, str(at)) for at in range(5)])
        await PageReader(log, PassLimits(), 1).read_on(0, 5, None, written)
    assert (scope.cancelled_caught, wrote) == (True, [0])


async def test_a_log_without_end_meets_the_limit_of_bytes(journal: Journal) -> None:
    with pytest.raises(ChainError, match="more than 100000 bytes in one pass"):
        await follow(Endless(), journal, name=NAME, limits=PassLimits(bytes=100_000))
    _, upto = await journal.mirror_cursor()
    assert 0 < upto <= 10_000


async def test_an_entry_of_fifty_megabytes_is_named_and_the_rest_stays(journal: Journal) -> None:
    log = filled(10)
    log.entries[7] = Entry(FLEET, 1, "x" * (50 << 20))
    with pytest.raises(ChainError, match="entry 7 of the log is longer than 1048576 bytes"):
        await follow(log, journal, name=NAME, page=3)
    assert await texts(journal, 0) == [f"entry {n}" for n in range(6)]


async def test_a_megabyte_is_mirrored_as_it_is(journal: Journal) -> None:
    log = ScriptedLog([Entry(FLEET, 1, "x" * (1 << 20))])
    assert (await follow(log, journal, name=NAME)).new == 1


async def test_a_count_that_never_holds_still_ends_in_an_error(journal: Journal) -> None:
    class Flickering(ScriptedLog):
        async def count(self) -> int:
            self.reads += 1
            return 10 if self.reads % 2 else 3

        async def range(self, start: int, count: int, /) -> list[Entry]:
            return [Entry(FLEET, self.reads, "x")] * count

    with pytest.raises(ChainError, match="rewritten repeatedly"):
        await follow(Flickering(), journal, name=NAME)


async def test_rows_and_chunks_are_the_same_entries(journal: Journal) -> None:
    await follow(filled(25), journal, name=NAME)
    chunks = [chunk async for chunk in journal.mirror_chunks(0, 3, 10)]
    assert [len(chunk) for chunk in chunks] == [10, 10, 2]
    rows = [(one[0], one[1], one[2], one[3].decode()) for chunk in chunks for one in chunk]
    entries = await journal.mirror_since(0, 3)
    assert rows == [(one.index, one.sender, one.timestamp, one.text) for one in entries]
    assert [one.index for one in await journal.mirror_since(0, 20, 2)] == [20, 21]


async def test_the_digest_of_a_pass_covers_the_whole_epoch(journal: Journal) -> None:
    log = filled(40)
    first = await follow(log, journal, name=NAME)
    assert first.digest == await journal.mirror_digest(0, 39)
    log.entries[38] = log.entries[38]._replace(text="changed")
    assert (await follow(log, journal, name=NAME)).digest != first.digest
    assert await journal.mirror_digest(0, 40) == ""


@pytest.mark.parametrize("changed", [0, 3, 250, 999])
async def test_a_comparison_names_the_first_index_that_differs(journal: Journal, changed: int) -> None:
    log = filled(1_000)
    await follow(log, journal, name=NAME)
    assert (await compare(log, journal, 0, 1_000)).differs is None
    log.entries[changed:] = [one._replace(text="changed") for one in log.entries[changed:]]
    assert (await compare(log, journal, 0, 1_000)).differs == changed


async def test_a_log_that_is_shorter_than_its_mirror_differs_where_it_ends(journal: Journal) -> None:
    log = filled(30)
    await follow(log, journal, name=NAME)
    del log.entries[20:]
    assert (await compare(log, journal, 0, 30)).differs == 20
