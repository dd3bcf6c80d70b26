"""Which folders of ended runs go, and that nothing else does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fleet.clock import SystemClock, iso
from fleet.config import KeepSection
from fleet.runs.retention import FRESH, MEGABYTE, RunFolder, choose, look, tidy
from fleet.store.journal import Journal
from fleet.store.rows import NewRun

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def kept(run: str, age: timedelta | None, megabytes: int = 1) -> RunFolder:
    """`age` None: it must stay."""
    return RunFolder(run=run, bytes=megabytes * MEGABYTE, ended=iso(NOW - age) if age is not None else "")


@pytest.mark.parametrize(
    ("days", "megabytes", "gone"),
    [
        (90, 1000, []),
        (10, 1000, ["old"]),  # ten days and a second
        (2, 1000, ["old", "older by name", "week"]),
        (0, 0, []),
        (0, 30, []),  # exactly as much as is allowed
        (0, 29, ["old"]),
        (0, 26, ["old"]),
        (0, 25, ["old", "older by name"]),
        (0, 1, ["old", "older by name", "week", "yesterday"]),  # not what is fresh, nor what must stay
        (2, 24, ["old", "older by name", "week"]),
    ],
)
def test_the_oldest_go_first_until_it_fits(days: int, megabytes: int, gone: list[str]) -> None:
    folders = [
        kept("yesterday", DAY, 2),
        kept("held", None, 10),
        kept("fresh", FRESH - timedelta(seconds=1), 6),
        kept("older by name", 9 * DAY, 4),
        kept("old", 10 * DAY + timedelta(seconds=1), 4),
        kept("week", 7 * DAY, 4),
    ]
    chosen = choose(folders, KeepSection(days=days, megabytes=megabytes, record_days=0), NOW)
    assert [one.run for one in chosen] == gone


def test_for_size_alone_the_records_of_a_run_stay() -> None:
    def one(run: str, days: int) -> RunFolder:
        return replace(kept(run, days * DAY, 10), bulk=8 * MEGABYTE)

    folders = [one("quarter", 90), one("older", 91), one("month", 30), replace(one("slim", 40), bulk=0)]

    def chosen(megabytes: int, engaged: datetime | None = None) -> list[tuple[str, bool, int]]:
        gone = choose(folders, KeepSection(days=400, megabytes=megabytes), NOW, engaged)
        return [(one.run, one.records_stay, one.bytes // MEGABYTE) for one in gone]

    assert chosen(40) == []
    assert chosen(39) == [("older", False, 10)]
    assert chosen(29) == [("older", False, 10), ("quarter", True, 8)]
    assert chosen(1) == [("older", False, 10), ("quarter", True, 8), ("month", True, 8)]
    # the tests go on, or ended less than 90 days ago: the whole time of the tests and 90 days are kept
    assert chosen(29, NOW + DAY) == chosen(29, NOW - 89 * DAY) == [("older", True, 8), ("quarter", True, 8)]
    assert chosen(29, NOW - 90 * DAY) == chosen(29)


def test_a_shorter_time_than_that_of_the_records_is_an_error_that_names_both() -> None:
    with pytest.raises(ValidationError, match=r"days = 30 would remove records before record_days = 90"):
        KeepSection(days=30)
    assert (KeepSection(days=30, record_days=30).days, KeepSection(days=0).days) == (30, 0)


_FOLDERS = st.lists(
    st.builds(
        kept,
        st.uuids().map(str),
        st.none() | st.timedeltas(timedelta(0), timedelta(days=200)),
        st.integers(0, 50),
    ),
    max_size=30,
)


@given(_FOLDERS, st.integers(0, 100), st.integers(0, 300))
def test_what_must_stay_stays_and_the_rest_is_within_its_limits(
    folders: list[RunFolder], days: int, megabytes: int
) -> None:
    gone = choose(folders, KeepSection(days=days, megabytes=megabytes, record_days=0), NOW)
    left = [one for one in folders if one not in gone]
    assert all(one.ended for one in gone)
    assert max((one.ended for one in gone), default="") <= min(
        (one.ended for one in left if one.ended), default="3"
    )
    if days:
        assert all(one.ended >= iso(NOW - days * DAY) for one in left if one.ended)
    if megabytes and sum(one.bytes for one in left) > megabytes * MEGABYTE:
        assert all(one.ended >= iso(NOW - FRESH) for one in left if one.ended)
    if not megabytes:
        assert all(days and one.ended < iso(NOW - days * DAY) for one in gone)


class Long(SystemClock):
    """A hundred days ago."""

    def now(self) -> datetime:
        return NOW - 100 * DAY


@pytest.fixture
async def journal(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Journal]:
    """Two runs that ended a hundred days ago; `held` still has a name."""
    async with await Journal.open(tmp_path / "fleet.db", clock=Long()) as journal:
        for run in ("over", "held"):
            assert await journal.trigger(
                NewRun(run_id=run, persona="p", key=run, platform="d", trigger="t", rung="observe", budget={})
            )
            await journal.intend(run, "tx", "0x1", {})
            await journal.finish(run, "done")
        for effect in await journal.effects(None):
            await journal.resolve(effect.effect_id, "done")
        await journal.intend("held", "name", "qa-held-1", {})
        yield journal


def taken(folder: Path) -> int:
    """What `du` says: blocks, and 512 bytes for each inode."""
    blocks, inodes = (
        int(subprocess.run(["du", "-s", how, folder], capture_output=True, check=True).stdout.split()[0])
        for how in ("--block-size=1", "--inodes")
    )
    return blocks + 512 * inodes


async def test_many_small_files_count_as_what_they_take(tmp_path: Path, journal: Journal) -> None:
    made = folder(tmp_path, "over")
    for number in range(100):
        (made / "evidence" / f"{number}.json").write_bytes(b"{}")
    (one,) = await look(tmp_path, journal)
    assert one.bytes == taken(made)
    assert one.bytes > 100 * 512


def folder(state: Path, run: str) -> Path:
    made = state / "runs" / run
    (made / "evidence").mkdir(parents=True)
    (made / "trajectory.jsonl").write_bytes(bytes(1000))
    (made / "evidence" / "a.json").write_bytes(bytes(500))
    return made


async def test_the_folder_of_a_run_that_is_over_goes_and_no_other(tmp_path: Path, journal: Journal) -> None:
    over, held, unknown = (folder(tmp_path, run) for run in ("over", "held", "unknown"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(bytes(9000))
    (over / "link").symlink_to(outside)
    (tmp_path / "runs" / "linked").symlink_to(outside)
    sizes = {one.run: (one.bytes, bool(one.ended)) for one in await look(tmp_path, journal)}
    assert sizes == {
        "over": (taken(over), True),
        "held": (taken(held), False),
        "unknown": (taken(unknown), False),
    }
    gone, stuck = await tidy(tmp_path, journal, KeepSection(), NOW)
    assert ([one.run for one in gone], stuck) == (["over"], [])
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["held", "linked", "unknown"]
    assert (outside / "file").stat().st_size == 9000
    assert sorted(path.name for path in held.iterdir()) == ["evidence", "trajectory.jsonl"]
    assert sorted(path.name for path in unknown.iterdir()) == ["evidence", "trajectory.jsonl"]
    assert await journal.effects("over") == []
    assert len(await journal.effects("held")) == 2
    assert await tidy(tmp_path, journal, KeepSection(), NOW) == ([], [])


async def test_the_records_of_a_young_run_stay_when_its_evidence_goes(
    tmp_path: Path, journal: Journal
) -> None:
    over = folder(tmp_path, "over")
    (over / "evidence" / "picture.png").write_bytes(bytes(3 * MEGABYTE))
    (over / "link").symlink_to(tmp_path)
    keep = KeepSection(days=400, record_days=365, megabytes=1)
    ((one,), stuck) = await tidy(tmp_path, journal, keep, NOW)
    assert (one.run, one.records_stay, one.bytes > 3 * MEGABYTE, stuck) == ("over", True, True, [])
    assert sorted(path.name for path in over.iterdir()) == ["link", "trajectory.jsonl"]
    assert len(await journal.effects("over")) == 1
    assert await tidy(tmp_path, journal, keep, NOW) == ([], [])


async def test_a_crash_between_journal_and_folder_is_made_good(tmp_path: Path, journal: Journal) -> None:
    folder(tmp_path, "over")
    assert await journal.forget("over")  # and killed before its folder went
    gone, _ = await tidy(tmp_path, journal, KeepSection(), NOW)
    assert [one.run for one in gone] == ["over"]
    assert list((tmp_path / "runs").iterdir()) == []


async def test_a_tree_as_deep_as_a_jail_can_make_it(tmp_path: Path, journal: Journal) -> None:
    top = folder(tmp_path, "over")
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    gone, stuck = await tidy(tmp_path, journal, KeepSection(), NOW)
    assert ([one.run for one in gone], stuck) == (["over"], [])
    assert not top.exists()


async def test_the_runs_may_lie_on_another_disk(tmp_path: Path, journal: Journal) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    folder(tmp_path, "over")
    gone, _ = await tidy(tmp_path, journal, KeepSection(), NOW)
    assert [one.run for one in gone] == ["over"]
    assert list((tmp_path / "disk").iterdir()) == []


async def test_a_fleet_that_never_ran_has_nothing_to_remove(tmp_path: Path, journal: Journal) -> None:
    assert await tidy(tmp_path, journal, KeepSection(), NOW) == ([], [])


async def test_for_ever_means_days_of_spending_too(tmp_path: Path, journal: Journal) -> None:
    await journal.spend("held", "calls", 1, 5)
    folder(tmp_path, "over")
    await tidy(tmp_path, journal, KeepSection(days=0), NOW)
    assert (await journal.spent_today())[""] == {"calls": 1}  # of that day, by its clock
    await tidy(tmp_path, journal, KeepSection(days=90), NOW)
    assert (await journal.spent_today())[""] == {}
