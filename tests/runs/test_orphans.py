"""A machine that was taken for dead comes back: a peer settled its runs; its files and keys are there."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleet.chain.run_keys import RunKeys
from fleet.clock import SystemClock
from fleet.events.model import Footer, Header, ToolRequested
from fleet.events.stream import Stream
from fleet.events.trajectory import TrajectoryFile, read
from fleet.runs.settlement.lost_runs import close_orphans
from fleet.store.journal import MEMORY, Journal
from fleet.store.rows import NewRun

pytestmark = pytest.mark.anyio

CLOCK = SystemClock()
HEADER = Header(
    persona="qa-x",
    persona_sha256="0" * 64,
    driver="playbook",
    platform="p",
    chain_id=1,
    rung="observe",
    jail="none",
    budget={},
    trigger="manual",
)


@pytest.fixture
async def journal() -> AsyncIterator[Journal]:
    async with await Journal.open(MEMORY) as opened:
        yield opened


async def begun(journal: Journal, state: Path, run: str, *, footer: bool = False) -> Path:
    """A claimed run with a key, whose file has a header, and a footer when asked for."""
    await journal.trigger(
        NewRun(
            run_id=run, persona="qa-x", key=f"qa-x@{run}", platform="p", trigger="manual", rung="", budget={}
        )
    )
    assert await journal.claim(run, pid=1, pid_start=1)
    folder = state / "runs" / run
    folder.mkdir(parents=True)
    RunKeys(folder).new("caller")
    sink = TrajectoryFile(folder / "trajectory.jsonl")
    stream = Stream(run, clock=CLOCK, sink=sink)
    stream.emit(HEADER)
    if footer:
        stream.emit(Footer(outcome="done"))
    sink.close()
    return folder


async def test_what_a_peer_settled_loses_its_keys_and_gets_its_end(journal: Journal, tmp_path: Path) -> None:
    folder = await begun(journal, tmp_path, "aaaaaaaa")
    await journal.finish("aaaaaaaa", "crashed", "the process ended")
    assert await close_orphans(tmp_path, journal, CLOCK) == []
    last = list(read(folder / "trajectory.jsonl"))[-1]
    assert isinstance(last, Footer)
    assert (last.outcome, last.detail) == ("crashed", "settled by another daemon: the process ended")
    assert not (folder / "keys").exists()
    before = (folder / "trajectory.jsonl").read_bytes()
    assert await close_orphans(tmp_path, journal, CLOCK) == []
    assert (folder / "trajectory.jsonl").read_bytes() == before


async def test_the_end_that_a_peer_left_out_has_the_calls_of_the_record(
    journal: Journal, tmp_path: Path
) -> None:
    folder = await begun(journal, tmp_path, "aaaaaaaa")
    sink = TrajectoryFile(folder / "trajectory.jsonl")
    stream = Stream("aaaaaaaa", clock=CLOCK, sink=sink)
    for number in (1, 2, 3):
        stream.emit(ToolRequested(call=number, tool="qa_fetch", args={}))
    sink.close()
    await journal.finish("aaaaaaaa", "crashed", "the process ended")
    await close_orphans(tmp_path, journal, CLOCK)
    last = list(read(folder / "trajectory.jsonl"))[-1]
    assert isinstance(last, Footer)
    assert last.calls == 3


async def test_what_is_at_work_is_left_alone(journal: Journal, tmp_path: Path) -> None:
    running = await begun(journal, tmp_path, "aaaaaaaa")
    in_hand = await begun(journal, tmp_path, "bbbbbbbb")
    await journal.finish("bbbbbbbb", "crashed", "")
    owes = await begun(journal, tmp_path, "cccccccc")
    await journal.intend("cccccccc", "key", "caller", {})
    await journal.finish("cccccccc", "crashed", "")
    left = await close_orphans(tmp_path, journal, CLOCK, busy={"bbbbbbbb"})
    assert left == ["aaaaaaaa", "bbbbbbbb", "cccccccc"]
    for folder in (running, in_hand, owes):
        assert os.listdir(folder / "keys") == ["caller"]
        assert len(list(read(folder / "trajectory.jsonl"))) == 1


async def test_a_run_that_ended_here_and_one_of_another_journal_are_left_alone(
    journal: Journal, tmp_path: Path
) -> None:
    ended = await begun(journal, tmp_path, "aaaaaaaa", footer=True)
    RunKeys(ended).destroy()
    await journal.finish("aaaaaaaa", "done", "")
    stranger = tmp_path / "runs" / "zzzzzzzz"
    stranger.mkdir()
    RunKeys(stranger).new("caller")
    assert await close_orphans(tmp_path, journal, CLOCK) == []
    assert (stranger / "keys").is_dir()
    assert sum(isinstance(event, Footer) for event in read(ended / "trajectory.jsonl")) == 1


async def test_a_record_that_speaks_of_a_footer_is_none(journal: Journal, tmp_path: Path) -> None:
    folder = await begun(journal, tmp_path, "aaaaaaaa")
    RunKeys(folder).destroy()
    sink = TrajectoryFile(folder / "trajectory.jsonl")
    Stream("aaaaaaaa", clock=CLOCK, sink=sink).emit(
        ToolRequested(call=1, tool="qa_fetch", args={"type": "footer"})
    )
    sink.close()
    await journal.finish("aaaaaaaa", "crashed", "")
    await close_orphans(tmp_path, journal, CLOCK)
    assert isinstance(list(read(folder / "trajectory.jsonl"))[-1], Footer)
