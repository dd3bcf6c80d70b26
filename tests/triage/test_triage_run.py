from __future__ import annotations

import json
import random
import string
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.clock import iso
from fleet.errors import ConfigError, TryAgain, Unreachable
from fleet.findings.envelope import MAX_BYTES, read
from fleet.findings.instances import Instance
from fleet.findings.records import write_record
from fleet.runs.settlement.turn import POSTING, TURN_S, posting
from fleet.store.journal import MEMORY, Journal
from fleet.store.rows import DecisionRow, MirroredEntry
from fleet.triage.items.decisions import named, record_of
from fleet.triage.items.pass_inputs import PassInputs
from fleet.triage.run import FILES, TriageMemory, TriageResult, TriageTask, decide, triage
from tests.triage.test_also import MORNING, NOON, entry
from tests.triage.triage_log import FLEET, HUMAN, START, TRUSTED, ScriptedLog, finding, inputs

pytestmark = pytest.mark.anyio


class FakeClock:
    def __init__(self) -> None:
        self.at = datetime.fromtimestamp(START, UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


def decision(item: str, at: datetime) -> DecisionRow:
    return named(DecisionRow(item=item, kind="fixed", reason="x", who="a", at=iso(at), platform="p"))


class World:
    """A log, a journal and a state directory; `go` is one pass of triage that posts what is due."""

    def __init__(self, journal: Journal, folder: Path) -> None:
        self.log, self.journal, self.folder, self.clock = ScriptedLog(), journal, folder, FakeClock()
        self.memory = TriageMemory()

    async def go(self, *, post: bool = True) -> TriageResult:
        self.clock.at += timedelta(minutes=1)
        done = await triage(self.log, self.journal, self.task(), self.memory)
        if post and done.meta_text:
            self.log.post(done.meta_text)
        return done

    def task(self, **weights: float) -> TriageTask:
        known = PassInputs(now=self.clock.now(), weights=weights)
        return TriageTask(name="", platform="p", trusted=TRUSTED, folder=self.folder, known=known)

    async def fixed(self, item: str) -> None:
        """A person's decision."""
        row = DecisionRow(
            item=item, kind="fixed", reason="x", who="a", at=iso(self.clock.now()), platform="p"
        )
        await self.journal.add_decision(named(row))

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


async def test_where_it_was_met_after_its_entry_was_posted_is_on_the_list(world: World) -> None:
    world.log.post(entry("a", Instance("{site}/b", 1, MORNING, MORNING)))
    met = [
        Instance("{site}/b", 3, MORNING, NOON),
        Instance("{site}/c", 1, NOON, NOON),
        Instance("{site}/a/{n}"),
    ]
    for places, listed in (({}, [("{site}/b", 1)]), ({"a" * 12: met}, [("{site}/b", 3), ("{site}/c", 1)])):
        task = replace(world.task(), places=places)
        (item,) = (await triage(world.log, world.journal, task, world.memory)).items
        assert [(one.where, one.times) for one in item.also] == listed


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
    await world.fixed(done.items[0].fingerprint)
    done = await world.go()
    assert done.items == ()
    assert done.meta_text is not None
    assert world.file() == []
    world.log.entries.clear()
    for n in range(3):
        world.log.post(finding("publish" if n == 0 else str(n), title=f"after {n}"))
    assert sorted(item.title for item in (await world.go()).items) == ["after 0", "after 1", "after 2"]
    assert len(await world.journal.entries(0)) == 3


async def test_lost_files_are_written_again_as_they_were(world: World) -> None:
    world.log.post(finding())
    await world.go()
    await world.go()  # reads the summary that the first pass posted
    before = (world.folder / "worklist.md").read_bytes()
    (world.folder / "worklist.md").unlink()
    assert (await world.go()).changed is False
    assert (world.folder / "worklist.md").read_bytes() == before


async def test_a_lost_journal_makes_the_same_list_again_from_the_log(world: World) -> None:
    """Byte for byte; the rows for re-runs too."""
    for text in (finding("a"), finding("b", surface="security"), finding("c", run="r2"), "a word of ours"):
        world.log.post(text)
    world.log.post("words of a stranger", sender=HUMAN)
    item = (await world.go()).items[1].fingerprint
    record = record_of(decision(item, world.clock.now()))
    world.log.post(write_record(record, surface="compiler", title="x"))
    await world.go()
    done = await world.go()
    assert [one.state for one in done.closed] == ["fixed"]
    before = [(world.folder / name).read_bytes() for name in FILES]
    rows = [replace(row, at="") for row in await world.journal.items("p")]
    async with await Journal.open(MEMORY) as empty:
        for name in FILES:
            (world.folder / name).unlink()
        again = await triage(world.log, empty, world.task())
        assert (again.items, again.closed) == (done.items, done.closed)
        assert [replace(row, at="") for row in await empty.items("p")] == rows
    assert [(world.folder / name).read_bytes() for name in FILES] == before


async def test_what_is_kept_between_passes_is_dropped_when_the_past_changed(world: World) -> None:
    world.log.post(finding("a", title="a"))
    world.log.post(finding("b", title="b"))
    await world.go(post=False)
    kept = world.memory.fold
    world.log.post(finding("c", title="c"))
    assert [item.title for item in (await world.go(post=False)).items] == ["a", "b", "c"]
    assert world.memory.fold is kept
    assert kept is not None
    kept.index.digest = "another past"
    assert [item.title for item in (await world.go(post=False)).items] == ["a", "b", "c"]
    assert world.memory.fold is not kept
    world.log.entries.clear()
    world.log.post(finding("d", title="d"))
    assert [item.title for item in (await world.go(post=False)).items] == ["d"]


async def test_one_process_posts_at_a_time_and_a_dead_ones_turn_ends(world: World) -> None:
    async with posting(world.journal, world.clock) as mine:
        async with posting(world.journal, world.clock) as theirs:
            assert (mine, theirs) == (True, False)
        world.clock.at += timedelta(seconds=TURN_S + 1)
        async with posting(world.journal, world.clock) as later:
            assert later
            world.clock.at += timedelta(seconds=1)
    async with posting(world.journal, world.clock) as again:
        assert again


async def test_a_turn_lasts_as_long_as_its_process_lives(world: World) -> None:
    async with posting(world.journal, world.clock, turn_s=1.2):
        world.clock.at += timedelta(minutes=5)
        before = await world.journal.get(POSTING)
        for _ in range(3000):
            if await world.journal.get(POSTING) != before:
                break
            await anyio.sleep(0.02)
        async with posting(world.journal, world.clock) as theirs:
            assert not theirs


async def test_work_whose_turn_a_peer_has_taken_is_cancelled(world: World) -> None:
    async def work() -> None:
        async with posting(world.journal, world.clock, turn_s=1.2):
            await world.journal.put(POSTING, "a-peer 2999-01-01T00:00:00Z")
            await anyio.sleep(60)

    with pytest.raises(TryAgain, match="a peer has taken the turn"):
        await work()
    assert await world.journal.get(POSTING) == "a-peer 2999-01-01T00:00:00Z"


@pytest.mark.parametrize("trouble", [Unreachable("the journal is away"), OSError("of another kind")])
async def test_work_whose_turn_cannot_be_renewed_ends_before_a_peer_may_take_it(
    world: World, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    swaps = iter([world.journal.swap])

    async def once(*asked: Any) -> bool:
        if (swap := next(swaps, None)) is None:
            raise trouble
        return await swap(*asked)

    monkeypatch.setattr(world.journal, "swap", once)

    async def work() -> None:
        async with posting(world.journal, world.clock, turn_s=1.2):
            await anyio.sleep(20)
            patient.append(1)

    patient: list[int] = []
    with pytest.raises((TryAgain, type(trouble))):
        await work()
    assert patient == []


async def test_bad_weights_are_a_configuration_error(world: World) -> None:
    world.log.post(finding())
    with pytest.raises(ConfigError, match="positive"):
        await triage(world.log, world.journal, world.task(ux=-1.0))


def spelled(number: int) -> str:
    """A word of its own for each number: notes that differ in a number alone are one item."""
    return "".join(random.Random(number).choices(string.ascii_lowercase, k=12))


def test_twenty_thousand_entries_take_a_few_seconds() -> None:
    texts = [finding(f"enum E{n}{{}}", title=f"defect {n}", run=f"r{n % 50}") for n in range(500)]
    entries = [
        MirroredEntry(
            epoch=0,
            index=n,
            sender=FLEET if n % 2 else f"0x{n:040x}",
            timestamp=START + n,
            text=texts[n * 7 % 500] if n % 4 else f"{spelled(n)} {spelled(n + 1)} with an ünusual letter",
        )
        for n in range(20_000)
    ]
    started = time.perf_counter()
    decided = decide(entries, TRUSTED, inputs())
    items, summary = decided.items, decided.summary
    seconds = time.perf_counter() - started
    print(f"20,000 entries: {seconds:.1f} s, {len(items)} items")
    assert len(items) == 5_000 + 375
    assert summary is not None
    assert seconds < 20
