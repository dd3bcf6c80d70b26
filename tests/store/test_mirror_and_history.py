"""The mirror of the log, the figures of earlier runs, and small facts."""

from __future__ import annotations

import statistics
from dataclasses import replace

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.chain.node.codec import Entry
from fleet.errors import ChainError
from fleet.store.journal import Journal
from fleet.store.rows import SampleRow
from fleet.store.tables.history import KEPT, LOOKS_KEPT, MEASURES_KEPT, WINDOW, baseline

pytestmark = pytest.mark.anyio


def _entries(*texts: str) -> list[Entry]:
    return [Entry("0x" + "a" * 40, 1_000 + n, text) for n, text in enumerate(texts)]


async def test_reading_the_same_twice_adds_nothing(journal: Journal) -> None:
    assert await journal.mirror_cursor() == (0, 0)
    log = _entries("a", "b", "c")
    assert await journal.mirror(0, 0, log[:2]) == 2
    assert await journal.mirror(0, 0, log) == 1
    assert await journal.mirror(0, 1, log[1:]) == 0
    assert await journal.mirror(0, 3, []) == 0
    assert await journal.mirror_cursor() == (0, 3)
    assert [(e.index, e.text) for e in await journal.entries()] == [(0, "a"), (1, "b"), (2, "c")]


async def test_a_rewritten_past_is_noticed_and_nothing_kept(journal: Journal) -> None:
    await journal.mirror(0, 0, _entries("a", "b"))
    with pytest.raises(ChainError, match="entry 1 of the log differs from the one read before"):
        await journal.mirror(0, 0, _entries("a", "B", "c"))
    with pytest.raises(ValueError, match="entries 2 to 2 of the log are missing"):
        await journal.mirror(0, 3, _entries("d"))
    assert await journal.mirror_cursor() == (0, 2)


async def test_a_cleared_log_is_a_new_epoch_and_the_old_one_stays(journal: Journal) -> None:
    await journal.mirror(0, 0, _entries("a", "b"))
    assert await journal.new_epoch() == 1
    assert await journal.mirror_cursor() == (1, 0)
    await journal.mirror(1, 0, _entries("c"))
    with pytest.raises(ChainError, match="epoch 0 of the log is over; it is 1 now"):
        await journal.mirror(0, 2, _entries("d"))
    assert [(e.epoch, e.index, e.text) for e in await journal.entries()] == [
        (0, 0, "a"),
        (0, 1, "b"),
        (1, 0, "c"),
    ]
    assert [e.text for e in await journal.entries(epoch=1)] == ["c"]


async def test_entries_are_chained(journal: Journal) -> None:
    await journal.mirror(0, 0, _entries("a", "b"))
    await journal.new_epoch()
    await journal.mirror(1, 0, _entries("x", "b"))
    digests = [e.digest for e in await journal.entries()]
    assert len(set(digests)) == 4
    assert all(len(digest) == 64 for digest in digests)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=()), max_size=30), max_size=5),
    timestamp=st.integers(-5, 2**64),
)
async def test_hostile_text_comes_back_as_it_was(journal: Journal, texts: list[str], timestamp: int) -> None:
    epoch = await journal.new_epoch()
    await journal.mirror(epoch, 0, [Entry("0x1", timestamp, text) for text in texts])
    kept = await journal.entries(epoch)
    assert [e.text for e in kept] == texts
    assert all(0 <= e.timestamp <= 2**63 - 1 for e in kept)


async def test_history_is_the_lowest_median_of_twenty_in_a_row(journal: Journal) -> None:
    for value in (9.0, 1.0, 2.0, 3.0):
        await journal.note("four", value)
    for value in [1e9] * 30 + [float(n) for n in range(20)] + [1e9] * 30:
        await journal.note("many", value)
    assert await journal.history() == {"many": 9.5}
    assert await journal.noted() == {"four": 4, "many": 80}
    await journal.note("four", 2)
    assert await journal.history() == {"many": 9.5, "four": 2.0}


def test_a_slow_regression_does_not_move_the_baseline() -> None:
    """Each figure is one per cent above the one before: none of them stands out."""
    slower = [100 * 1.01**n for n in range(KEPT)]
    assert baseline(slower) == statistics.median(slower[:WINDOW])


@pytest.mark.parametrize(
    ("notes", "lowest"),
    [
        ([5.0, 1.0, 3.0, 2.0, 4.0], 3.0),
        ([1.0] * 9 + [7.0] * 10, 7.0),
        ([1.0] * 9 + [7.0] * 20, 7.0),  # a streak of luck shorter than half of `WINDOW`
        ([1.0] * 10 + [7.0] * 20, 4.0),
        ([7.0] * 30 + [1.0] * 11 + [7.0] * 30, 1.0),
    ],
)
def test_baselines(notes: list[float], lowest: float) -> None:
    assert baseline(notes) == lowest


async def test_samples_come_back_by_measure_and_platform(journal: Journal) -> None:
    rows = [
        SampleRow(measure="m", own=(1.5, 2.0), control=(1.0,), build="v\x001"),
        SampleRow(measure="n", own=(3.0,)),
    ]
    for row in (*rows, replace(rows[0], own=(2.5, 4.0))):
        await journal.keep_sample("p", row)
    await journal.keep_sample("q", rows[1])
    kept = await journal.past("p")
    assert {name: [one.own for one in looks] for name, looks in kept.items()} == {
        "m": [(1.5, 2.0), (2.5, 4.0)],
        "n": [(3.0,)],
    }
    assert (kept["m"][0].control, kept["m"][0].build, bool(kept["m"][0].at)) == ((1.0,), "v\\x001", True)
    assert list(await journal.past("q")) == ["n"]


async def test_only_the_latest_samples_count(journal: Journal) -> None:
    for value in range(LOOKS_KEPT + 3):
        await journal.keep_sample("p", SampleRow(measure="m0", own=(float(value),)))
    assert [one.own[0] for one in (await journal.past("p"))["m0"]] == [*map(float, range(3, LOOKS_KEPT + 3))]
    for number in range(1, MEASURES_KEPT + 1):
        await journal.keep_sample("p", SampleRow(measure=f"m{number}", own=(1.0,)))
    before = await journal.past("p")
    assert (len(before), "m0" in before) == (MEASURES_KEPT, False)
    await journal.forget_before("2026-11-22")
    assert await journal.past("p") == before


@pytest.mark.parametrize("own", [(float("nan"),), (1.0,) * 101])
async def test_what_is_no_sample_is_refused(journal: Journal, own: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="not a sample"):
        await journal.keep_sample("p", SampleRow(measure="m", own=own))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
async def test_what_is_no_number_is_no_measurement(journal: Journal, value: float) -> None:
    with pytest.raises(ValueError, match="not a measurement"):
        await journal.note("p95", value)


async def test_small_facts(journal: Journal) -> None:
    assert await journal.get("cursor") is None
    await journal.put("cursor", "1")
    await journal.put("cursor", "2\0")
    assert await journal.get("cursor") == "2\\x00"
    with pytest.raises(ValueError, match="journal's own"):
        await journal.put("schema", "2")


async def test_a_fact_is_swapped_by_one_of_those_who_read_the_same(journal: Journal) -> None:
    won: list[str] = []

    async def swap(old: str | None, value: str) -> None:
        if await journal.swap("cursor", old, value):
            won.append(value)

    for old in (None, "again"):
        won.clear()
        async with anyio.create_task_group() as tasks:
            for value in "abc":
                tasks.start_soon(swap, old, value)
        assert [await journal.get("cursor")] == won
        await journal.put("cursor", "again")
    assert not await journal.swap("cursor", "before", "c")
    assert not await journal.swap("cursor", None, "c")
    assert not await journal.swap("nothing", "c", "d")
    assert await journal.get("cursor") == "again"
    assert await journal.get("nothing") is None
