from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fleet.errors import ConfigError
from fleet.findings.envelope import MAX_BYTES, read
from fleet.store.journal import MEMORY, Journal
from fleet.store.rows import MirroredEntry
from fleet.triage.run import TriageResult, decide, resolve, triage
from tests.triage.triage_log import FLEET, HUMAN, START, TRUSTED, ScriptedLog, finding

pytestmark = pytest.mark.anyio


class FakeClock:
    def __init__(self) -> None:
        self.at = datetime.fromtimestamp(START, UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


class World:
    """A log, a journal and a state directory; `go` is one pass of triage that posts what is due."""

    def __init__(self, journal: Journal, folder: Path) -> None:
        self.log, self.journal, self.folder, self.clock = ScriptedLog(), journal, folder, FakeClock()

    async def go(self, *, post: bool = True) -> TriageResult:
        self.clock.at += timedelta(minutes=1)
        done = await triage(self.log, self.journal, TRUSTED, {}, self.folder, self.clock)
        if post and done.meta_text:
            self.log.post(done.meta_text)
        return done

    def file(self) -> list[str]:
        return [item["title"] for item in json.loads((self.folder / "worklist.json").read_text())["items"]]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with await Journal.open(MEMORY) as journal:
        yield World(journal, tmp_path)


async def test_an_empty_log_writes_an_empty_list_and_posts_nothing(world: World) -> None:
    done = await world.go()
    assert (done.items, done.changed, done.meta_text) == ((), True, None)
    assert world.file() == []
    assert (await world.go()).changed is False


async def test_row_46_one_summary_per_changed_list_and_none_for_an_unchanged_one(world: World) -> None:
    world.log.post(finding("a"))
    assert (await world.go()).meta_text is not None
    for _ in range(3):
        done = await world.go()
        assert (done.changed, done.meta_text, len(done.items)) == (False, None, 1)
    world.log.post(finding("b", surface="security", title="new"))
    assert (await world.go()).meta_text is not None
    assert (await world.go()).meta_text is None
    assert len(world.log.entries) == 4


async def test_the_summary_names_the_top_three(world: World) -> None:
    for n in range(5):
        world.log.post(finding(str(n), title=f"title {n}", surface="security" if n == 4 else "ux"))
    text = (await world.go()).meta_text
    assert text is not None
    entry = read(text)
    assert (entry.source, entry.severity, entry.grammar) == ("qa-triage", "meta", "canonical")
    assert entry.title == "worklist changed: 5 open, 5 proven"
    assert [line.split(" ", 4)[4] for line in entry.body.splitlines()] == ["title 4", "title 0", "title 1"]
    assert len(text.encode()) <= MAX_BYTES


async def test_the_summary_speaks_of_our_own_items_only(world: World) -> None:
    world.log.post(finding(calls=False, title="ours"))
    for n in range(3):
        world.log.post(finding(f"spam {n}", title="buy this", sev="critical"), sender=HUMAN)
    entry = read((await world.go()).meta_text or "")
    assert (entry.title, entry.body.count("\n")) == ("worklist changed: 1 open, 0 proven", 0)
    assert "buy this" not in entry.body


async def test_a_summary_that_was_not_posted_stays_due(world: World) -> None:
    world.log.post(finding())
    first = await world.go(post=False)
    again = await world.go()
    assert again.meta_text == first.meta_text is not None
    assert again.changed is False
    assert (await world.go()).meta_text is None


async def test_strangers_cannot_make_us_write(world: World) -> None:
    world.log.post(finding())
    await world.go()
    for n in range(5):
        world.log.post(finding(f"spam {n}"), sender=HUMAN)
        world.log.post(finding(sev="meta", surface="triage", calls=False), sender=HUMAN)
        done = await world.go()
        assert (done.changed, done.meta_text) == (True, None)


async def test_exercise_triage_resolve_and_the_next_pass(world: World) -> None:
    """The validation sentence of platform-facts 1.14, verbatim, with rows 44 and 45 behind it."""
    world.log.post(finding("publish", title="publish breaks", run="r1"))
    world.log.post(finding("publish", title="publishing fails", run="r2"))
    done = await world.go()
    assert [(item.title, item.count) for item in done.items] == [("publish breaks", 2)]
    world.clock.at += timedelta(days=1)
    await resolve(world.journal, done.items[0].fingerprint, world.clock)
    done = await world.go()
    assert done.items == ()
    assert done.meta_text is not None
    assert world.file() == []
    world.log.entries.clear()
    for n in range(3):
        world.log.post(finding("publish" if n == 0 else str(n), title=f"after {n}"))
    assert sorted(item.title for item in (await world.go()).items) == ["after 0", "after 1", "after 2"]
    assert len(await world.journal.entries(0)) == 3


async def test_lost_files_are_written_again_with_the_old_date(world: World) -> None:
    world.log.post(finding())
    await world.go()
    before = (world.folder / "worklist.md").read_bytes()
    (world.folder / "worklist.md").unlink()
    assert (await world.go()).changed is False
    assert (world.folder / "worklist.md").read_bytes() == before


async def test_bad_weights_are_a_configuration_error(world: World) -> None:
    world.log.post(finding())
    with pytest.raises(ConfigError, match="positive"):
        await triage(world.log, world.journal, TRUSTED, {"ux": -1.0}, world.folder, world.clock)


def test_twenty_thousand_entries_take_a_few_seconds() -> None:
    texts = [finding(f"enum E{n}{{}}", title=f"defect {n}", run=f"r{n % 50}") for n in range(500)]
    entries = [
        MirroredEntry(
            epoch=0,
            index=n,
            sender=FLEET if n % 2 else f"0x{n:040x}",
            timestamp=START + n,
            text=texts[n * 7 % 500] if n % 4 else f"human words number {n} with an ünusual letter",
        )
        for n in range(20_000)
    ]
    started = time.perf_counter()
    items, summary, _ = decide(entries, TRUSTED, {})
    seconds = time.perf_counter() - started
    print(f"20,000 entries: {seconds:.1f} s, {len(items)} items")
    assert len(items) == 5_000 + 375
    assert summary is not None
    assert seconds < 20
