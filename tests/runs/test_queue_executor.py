"""The work loop: how many at a time, in which order, and how it ends."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from socket import gethostname
from types import SimpleNamespace
from typing import cast

import anyio
import anyio.lowlevel
import pytest

from fleet.clock import SystemClock
from fleet.drivers.session import RunOver
from fleet.errors import TryAgain
from fleet.gate.stop import resume, stop
from fleet.runs.call.halt import Halt, journal_halt
from fleet.runs.context import FleetContext, until_stopped
from fleet.runs.executor import GONE_S
from fleet.runs.run import forget_unbegun
from fleet.runs.signals import MOST_S, QUIET_S, Bursts
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow, NewRun, RunRow
from tests.runs.conftest import Shop, firing, persona

pytestmark = pytest.mark.anyio


class Crowd:
    """Work that counts who works at the same time, until it is let go."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.most = 0
        self.overlaps: list[str] = []
        self.gate = anyio.Event()

    async def __call__(self, row: RunRow) -> None:
        self.now[row.persona] += 1
        self.most = max(self.most, self.now.total())
        if self.now[row.persona] > 1:
            self.overlaps.append(row.persona)
        try:
            await self.gate.wait()
            await anyio.lowlevel.checkpoint()
        finally:
            self.now[row.persona] -= 1


async def until(check: Callable[[], bool], seconds: float = 20) -> None:
    with anyio.fail_after(seconds):
        while True:
            if check():
                return
            await anyio.sleep(0.01)


async def test_a_thread_that_cannot_start_ends_the_daemon_once_the_run_is_told(shop: Shop) -> None:
    async def threadless(_row: RunRow) -> None:
        raise RuntimeError("can't start new thread")

    shop.work = threadless
    await shop.queue.fire(firing("qa-a"))
    with anyio.fail_after(20), pytest.raises(ExceptionGroup) as caught:
        await shop.executor.run()
    (error,) = caught.value.exceptions
    assert isinstance(error, TryAgain)
    assert "cannot start a thread" in str(error)
    assert "ulimit -u" in error.remedy
    assert [key for key, _, _ in shop.ended] == ["qa-a@manual:1"]
    assert len(shop.told("fault.met")) == 1


async def test_two_due_triggers_of_one_persona_never_overlap(shop: Shop) -> None:
    shop.work = crowd = Crowd()
    shop.limit(4)
    for number in range(3):
        await shop.queue.fire(firing("qa-a", f"manual:{number}"))
    await shop.queue.fire(firing("qa-b"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: len(shop.began) == 2)
        await anyio.sleep(0.05)
        assert sorted(shop.executor.live.values()) == ["qa-a", "qa-b"]
        crowd.gate.set()
        await until(lambda: len(shop.ended) == 4)
        shop.executor.drain(0)
    assert crowd.overlaps == []
    assert [key for key in shop.began if key.startswith("qa-a")] == [f"qa-a@manual:{n}" for n in range(3)]


async def test_no_more_runs_at_a_time_than_the_limit_which_may_change(shop: Shop) -> None:
    shop.work = crowd = Crowd()
    for name in shop.personas:
        await shop.queue.fire(firing(name))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: len(shop.began) == 2)
        await anyio.sleep(0.05)
        assert len(shop.began) == 2
        shop.limit(3)
        shop.signals.work.set()
        await until(lambda: len(shop.began) == 3)
        crowd.gate.set()
        await until(lambda: len(shop.ended) == 4)
        shop.executor.drain(0)
    assert crowd.most == 3


async def test_stop_pauses_claiming_and_its_end_goes_on(shop: Shop) -> None:
    stop(shop.state, "test", "because", SystemClock())
    await shop.queue.fire(firing("qa-a"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await anyio.sleep(0.2)
        assert shop.began == []
        assert resume(shop.state)
        shop.signals.work.set()
        await until(lambda: len(shop.ended) == 1)
        shop.executor.drain(0)
    assert len(shop.told("queue.paused")) == len(shop.told("queue.resumed")) == 1
    assert "because" in shop.told("queue.paused")[0].reason


async def test_a_run_that_ends_before_the_stop_is_polled_is_told_as_well(shop: Shop) -> None:
    shop.work = crowd = Crowd()
    await shop.queue.fire(firing("qa-a"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: len(shop.began) == 1)
        stop(shop.state, "test", "because", SystemClock())
        crowd.gate.set()
        await until(lambda: bool(shop.told("flights.ended")))
        shop.executor.drain(0)
    (ended,) = shop.told("flights.ended")
    assert ended.runs == 1


async def test_who_resumed_is_told_and_how_long_the_flights_took_to_end(shop: Shop) -> None:
    shop.work = crowd = Crowd()
    await shop.queue.fire(firing("qa-a"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: len(shop.began) == 1)
        stop(shop.state, "test", "because", SystemClock())
        shop.signals.work.set()
        await until(lambda: bool(shop.told("queue.paused")))
        assert shop.told("flights.ended") == []
        crowd.gate.set()
        await until(lambda: bool(shop.told("flights.ended")))
        halt = Halt("resume", f"ada@{gethostname()}", "it was a drill")
        await journal_halt(shop.journal, SystemClock(), halt)
        assert resume(shop.state)
        shop.signals.work.set()
        await until(lambda: bool(shop.told("queue.resumed")))
        stop(shop.state, "test", "once more", SystemClock())
        shop.signals.work.set()
        await until(lambda: len(shop.told("queue.paused")) == 2)
        (shop.state / "STOP").unlink()  # by hand: the earlier resume is not taken for this one
        shop.signals.work.set()
        await until(lambda: len(shop.told("queue.resumed")) == 2)
        shop.executor.drain(0)
    (ended,) = shop.told("flights.ended")
    assert (ended.runs, 0 <= ended.seconds < 60) == (1, True)
    assert [(one.who, one.why) for one in shop.told("queue.resumed")] == [(halt.who, halt.why), ("", "")]


async def test_what_stop_does_not_end_in_time_is_named_once(shop: Shop) -> None:
    shop.work = crowd = Crowd()
    await shop.queue.fire(firing("qa-a"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: len(shop.began) == 1)
        [run] = shop.executor.live
        stop(shop.state, "test", "because", SystemClock())
        shop.signals.work.set()
        await until(lambda: bool(shop.told("queue.paused")))
        assert (shop.executor.remains, shop.told("fault.met")) == ("", [])
        past = time.time() - GONE_S - 1
        os.utime(shop.state / "STOP", (past, past))
        shop.signals.work.set()
        await until(lambda: bool(shop.told("fault.met")))
        said = shop.executor.remains
        assert said == f"60 s after STOP these have not ended: {run}"
        beats = shop.beats
        shop.signals.work.set()
        await until(lambda: shop.beats > beats + 1)
        crowd.gate.set()
        await until(lambda: shop.executor.remains == "")
        shop.executor.drain(0)
    (fault,) = shop.told("fault.met")
    assert (fault.where, fault.error_message) == ("STOP", said)


async def test_outside_the_testing_windows_no_run_starts(shop: Shop) -> None:
    shop.closed = "outside the windows: next from 22:00"
    await shop.queue.fire(firing("qa-a"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: bool(shop.told("queue.paused")))
        assert (shop.began, shop.told("queue.paused")[0].reason) == ([], shop.closed)
        shop.closed = ""
        shop.signals.work.set()
        await until(lambda: len(shop.ended) == 1)
        shop.executor.drain(0)


async def test_what_is_in_flight_ends_when_the_window_closes(tmp_path: Path) -> None:
    looks = iter(["", "closed at 06:00"])
    with pytest.raises(RunOver) as over:
        await until_stopped(tmp_path, anyio.sleep_forever, lambda: next(looks, "closed at 06:00"))
    assert (over.value.outcome, over.value.detail) == ("window_closed", "closed at 06:00")


async def test_stop_ends_a_run_in_order_whatever_is_cancelled_with_it(tmp_path: Path) -> None:
    """A future that others wait for too says only that it was cancelled: that must not end the daemon."""

    async def work() -> None:
        stop(tmp_path, "test", "by hand", SystemClock())
        shared = asyncio.get_running_loop().create_future()
        with suppress(asyncio.CancelledError):
            await anyio.sleep_forever()
        shared.cancel()
        await shared

    with pytest.raises(RunOver, match="by hand"):
        await until_stopped(tmp_path, work)


async def test_a_run_is_cancelled_on_request_with_the_words_of_whoever_asked(shop: Shop) -> None:
    shop.work = crowd = Crowd()
    shop.limit(1)
    await shop.queue.fire(firing("qa-a"))
    await shop.queue.fire(firing("qa-b"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: len(shop.began) == 1)
        for row in await shop.journal.runs():
            assert await shop.journal.ask_cancel(row.run_id, "enough")
        await until(lambda: len(shop.ended) == 2)
        shop.executor.drain(0)
    assert sorted(shop.ended) == [
        ("qa-a@manual:1", "cancelled", False),
        ("qa-b@manual:1", "cancelled", False),
    ]
    assert {row.detail for row in await shop.journal.runs()} == {"enough"}
    assert len(shop.began) == 1
    assert not crowd.gate.is_set()
    assert not await shop.journal.ask_cancel((await shop.journal.runs())[0].run_id, "late")


async def test_draining_claims_nothing_more_and_cancels_after_the_grace(shop: Shop) -> None:
    shop.work = Crowd()
    shop.limit(1)
    await shop.queue.fire(firing("qa-a"))
    await shop.queue.fire(firing("qa-b"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: len(shop.began) == 1)
        shop.executor.drain(0.1)
    assert shop.ended == [("qa-a@manual:1", "cancelled", False)]
    states = {row.persona: (row.state, row.detail) for row in await shop.journal.runs()}
    assert states == {"qa-a": ("ended", "the daemon was asked to stop"), "qa-b": ("queued", "")}


async def test_a_run_in_flight_may_end_within_the_grace(shop: Shop) -> None:
    shop.work = crowd = Crowd()
    await shop.queue.fire(firing("qa-a"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: len(shop.began) == 1)
        shop.executor.drain(30)
        crowd.gate.set()
    assert shop.ended == [("qa-a@manual:1", "done", False)]


async def test_a_run_that_raises_disturbs_nothing(shop: Shop) -> None:
    async def work(row: RunRow) -> None:
        if row.persona == "qa-a":
            raise ZeroDivisionError("ours")

    shop.work = work
    await shop.queue.fire(firing("qa-a"))
    await shop.queue.fire(firing("qa-b"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: len(shop.ended) == 2)
        shop.executor.drain(0)
    assert ("qa-b@manual:1", "done", False) in shop.ended
    (fault,) = shop.told("fault.met")
    assert "ZeroDivisionError: ours" in fault.error_message


async def test_what_a_run_found_is_told_and_a_gone_persona_is_cancelled(shop: Shop) -> None:
    async def work(row: RunRow) -> None:
        await shop.journal.add_finding(FindingRow(run_id=row.run_id, fingerprint="f" * 12, state="confirmed"))

    shop.work = work
    await shop.queue.fire(firing("qa-a"))
    await shop.queue.fire(firing("qa-b"))
    del shop.personas["qa-b"]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: len(shop.ended) == 2)
        shop.executor.drain(0)
    assert sorted(shop.ended) == [("qa-a@manual:1", "done", True), ("qa-b@manual:1", "cancelled", False)]


async def test_a_run_that_met_new_behaviour_is_told_as_one_that_found_something(shop: Shop) -> None:
    async def work(row: RunRow) -> None:
        await shop.journal.discover(row.run_id)

    shop.work = work
    await shop.queue.fire(firing("qa-a"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: len(shop.ended) == 1)
        shop.executor.drain(0)
    assert shop.ended == [("qa-a@manual:1", "done", True)]


async def test_a_run_that_is_not_settled_is_left_and_told(shop: Shop) -> None:
    async def unsettled(row: RunRow, _persona: object) -> None:
        await shop.journal.start_settling(row.run_id)

    shop.executor._execute = unsettled  # the port it was made with
    await shop.queue.fire(firing("qa-a"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        assert await shop.signals.leftovers.wait(20)
        assert [row.persona for row in await shop.executor.left()] == ["qa-a"]
        shop.executor.drain(0)
    assert shop.ended == []


async def test_the_loop_itself_is_what_beats(shop: Shop) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: shop.beats > 0)
        before = shop.beats
        shop.signals.work.set()
        await until(lambda: shop.beats > before)
        shop.executor.drain(0)
    assert shop.beats >= before + 1


async def test_a_journal_that_refuses_does_not_keep_a_daemon_from_ending(shop: Shop) -> None:
    """The disk is full when it is told to stop: what is in flight is cancelled all the same."""
    crowd = Crowd()
    shop.work = crowd
    await shop.queue.fire(firing("qa-a"))
    refusing = Refusing(shop.journal)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await until(lambda: len(shop.began) == 1)
        shop.executor._world = cast(FleetContext, SimpleNamespace(**vars(shop.world) | {"journal": refusing}))
        shop.executor.drain(0)
    assert refusing.asked > 0
    assert [row.state for row in await shop.journal.runs()] == ["ended"]  # by the run itself


class Refusing:
    """A journal on a full disk."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        async def refuse(*_args: object, **_kwargs: object) -> None:
            self.asked += 1
            raise TryAgain("the disk is full")

        return refuse


@pytest.mark.parametrize("place", ["embedded"], indirect=True)
async def test_what_a_trigger_queued_outlives_a_run_by_hand(shop: Shop) -> None:
    """`fleet run` ends what a person began and nobody claimed, and nothing else."""
    await shop.queue.fire(firing("qa-a", "2026-11-21T18:00:00Z"))
    await shop.journal.trigger(
        NewRun(
            run_id="byhandxx",
            persona="qa-b",
            key="qa-b@manual:byhandxx",
            platform="devnet",
            trigger="manual",
            rung="",
            budget={},
        )
    )
    await forget_unbegun(shop.world)
    states = {row.persona: (row.state, row.outcome) for row in await shop.journal.runs()}
    assert states == {"qa-a": ("queued", ""), "qa-b": ("ended", "cancelled")}


async def test_triage_does_not_wait_for_a_place_among_others(shop: Shop) -> None:
    shop.personas["qa-list"] = persona("qa-list", "triage")
    shop.work = crowd = Crowd()
    shop.limit(1)
    for name in ("qa-a", "qa-b", "qa-list"):
        await shop.queue.fire(firing(name))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        first = 1 if shop.journal.shared else 2  # daemons that share a journal share one order
        await until(lambda: len(shop.began) == first)
        await anyio.sleep(0.1)
        began = sorted(key.partition("@")[0] for key in shop.began)
        assert began == (["qa-a"] if shop.journal.shared else ["qa-a", "qa-list"])
        crowd.gate.set()
        await until(lambda: len(shop.ended) == 3)
        shop.executor.drain(0)


async def test_a_burst_of_posts_is_one_pass_of_triage(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    if shop.journal.shared:
        monkeypatch.setattr("fleet.runs.signals.QUIET_S", 0.0)  # one waits at a time there, no more
    else:
        monkeypatch.setattr("fleet.runs.signals.QUIET_S", 0.5)
    shop.personas["qa-list"] = persona("qa-list", "triage")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        for block in range(20):
            await shop.queue.fire(firing("qa-list", f"log-changed:{block}:ab"))
            await anyio.sleep(0.02)
        await until(lambda: bool(shop.ended))
        await anyio.sleep(0.2)
        passes = len(shop.began)
        shop.executor.drain(0)
    assert passes == 1 or (shop.journal.shared and passes <= 20)


def test_a_burst_ends_with_quiet_or_after_a_while_and_with_its_run() -> None:
    now = 0.0
    bursts = Bursts(lambda: now)
    bursts.note("qa-list")
    assert bursts.under_way() == {"qa-list"}
    now = QUIET_S
    assert bursts.under_way() == set()
    for _ in range(int(MOST_S - QUIET_S) - 1):
        now += 1.0
        bursts.note("qa-list")
    assert bursts.under_way() == {"qa-list"}
    now = MOST_S
    bursts.note("qa-list")
    assert bursts.under_way() == set()  # posts that never end delay a pass by half a minute at most
    bursts.began("qa-list")
    bursts.note("qa-list")
    assert bursts.under_way() == {"qa-list"}
