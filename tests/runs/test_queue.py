"""From a firing to exactly one row, or to a recorded reason why not."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import anyio
import pytest

from fleet.gate.budget import Unit
from fleet.runs.queue import MOST_WAITING, Queue
from fleet.store.journal import Journal
from fleet.store.rows import READ_BLOCKS
from fleet.triggers.model import Skip
from tests.runs.conftest import DUE, Shop, firing, persona

pytestmark = pytest.mark.anyio


async def test_one_key_is_one_run_however_many_schedulers_fire_it(shop: Shop) -> None:
    again = Queue(shop.journal, "devnet", shop.personas, shop.feed)
    taken = []

    async def fire(queue: Queue) -> None:
        taken.append(await queue.fire(firing("qa-a", "2026-11-21T18:00:00Z")))

    async with anyio.create_task_group() as tasks:
        for queue in (shop.queue, again) * 5:
            tasks.start_soon(fire, queue)
    assert sorted(taken) == [False] * 9 + [True]
    assert [row.key for row in await shop.journal.runs()] == ["qa-a@2026-11-21T18:00:00Z"]
    assert len(shop.told("trigger.fired")) == 1


async def test_one_key_is_one_run_across_a_restart_even_after_it_ended(shop: Shop) -> None:
    assert await shop.queue.fire(firing("qa-a"))
    (row,) = await shop.journal.runs()
    await shop.journal.finish(row.run_id, "done")
    async with await Journal.open(shop.place) as journal:
        later = Queue(journal, "devnet", shop.personas, shop.feed)
        assert not await later.fire(firing("qa-a"))
        assert [row.state for row in await journal.runs()] == ["ended"]
    assert await shop.skips() == []  # nothing was missed


async def test_a_row_says_why_when_and_under_which_limits(shop: Shop) -> None:
    await shop.queue.fire(firing("qa-a"), priority=7)
    (row,) = await shop.journal.runs()
    assert (row.state, row.trigger, row.priority, row.platform) == ("queued", "a test", 7, "devnet")
    assert row.due == "2026-11-21T18:00:00.000000+00:00"
    assert row.budget["calls"] == 5


async def test_a_tick_while_one_waits_is_a_skip_with_the_reason(shop: Shop) -> None:
    await shop.queue.fire(firing("qa-a", "2026-11-21T18:00:00Z"))
    assert not await shop.queue.fire(firing("qa-a", "2026-11-21T18:00:05Z"))
    reason = "a run of it waits already (qa-a@2026-11-21T18:00:00Z)"
    assert await shop.skips() == [Skip("qa-a", "qa-a@2026-11-21T18:00:05Z", reason)]
    assert [event.reason for event in shop.told("trigger.skipped")] == [reason]


async def test_events_wait_beside_each_other_up_to_a_limit(shop: Shop) -> None:
    for number in range(MOST_WAITING):
        assert await shop.queue.fire(firing("qa-a", f"registered:{number}:0"))
    assert not await shop.queue.fire(firing("qa-a", "registered:999:0"))
    assert await shop.skips() == [
        Skip("qa-a", "qa-a@registered:999:0", f"{MOST_WAITING} runs of it wait already")
    ]
    assert await shop.queue.fire(firing("qa-b", "registered:999:0"))


async def test_what_cannot_run_is_a_skip(shop: Shop) -> None:
    shop.personas["qa-model"] = persona("qa-model", driver="model")
    assert not await shop.queue.fire(firing("qa-model"))
    assert not await shop.queue.fire(firing("qa-gone"))
    assert [skip.reason for skip in await shop.skips()] == [
        "no such persona any more",
        "its driver 'model' cannot drive a run here",
    ]


async def test_a_day_that_is_spent_is_a_skip_that_names_it(shop: Shop) -> None:
    """The persona's or the fleet's, in what a run needs: calls to look, writes to act, nothing for triage."""
    fleet: dict[Unit, int] = {}
    queue = Queue(shop.journal, "devnet", shop.personas, shop.feed, day=lambda: fleet)
    shop.personas["qa-a"] = persona("qa-a", budget={"calls": 9, "day": {"calls": 4}})
    shop.personas["qa-b"] = persona("qa-b", budget={"calls": 9, "writes": 1})
    shop.personas["qa-triage"] = persona("qa-triage", driver="triage", budget={"calls": 9})
    assert await queue.fire(firing("qa-a", "manual:1"))
    (row,) = await shop.journal.runs()
    await shop.journal.spend(row.run_id, "calls", 4, 9)
    assert not await queue.fire(firing("qa-a", "manual:2"))
    fleet["writes"] = 0
    assert not await queue.fire(firing("qa-b", "manual:1"))
    fleet |= {"writes": 1, "calls": 4}
    assert not await queue.fire(firing("qa-b", "manual:2"))
    assert await queue.fire(firing("qa-triage"))
    fleet["calls"] = 5
    assert await queue.fire(firing("qa-b", "manual:3"))
    assert [skip.reason for skip in reversed(await shop.skips())] == [
        "the budget of 4 calls a day of qa-a is spent",
        "the budget of 0 writes a day of the fleet is spent",
        "the budget of 4 calls a day of the fleet is spent",
    ]


async def test_priority_first_then_the_longest_due(shop: Shop) -> None:
    await shop.queue.fire(firing("qa-a", due=DUE))
    await shop.queue.fire(firing("qa-b", due=DUE - timedelta(seconds=0.5)))
    await shop.queue.fire(firing("qa-c", due=DUE + timedelta(hours=1)), priority=1)
    order = []
    while row := await shop.journal.claim_next("devnet", pid=1, pid_start=1):
        order.append(row.persona)
    assert order == ["qa-c", "qa-b", "qa-a"]


async def test_two_claimers_never_get_two_runs_of_one_persona(shop: Shop) -> None:
    for number in range(4):
        await shop.queue.fire(firing("qa-a", f"manual:{number}"))
    claimed = []

    async def claim(journal: Journal) -> None:
        claimed.append(await journal.claim_next("devnet", pid=1, pid_start=1))

    async with await Journal.open(shop.place) as other:
        async with anyio.create_task_group() as tasks:
            for journal in (shop.journal, other) * 4:
                tasks.start_soon(claim, journal)
        (row,) = [row for row in claimed if row]
        await other.start_settling(row.run_id)  # as a person's journal, which is not fenced
    assert await shop.journal.claim_next("devnet", pid=1, pid_start=1, apart=["qa-a"]) is None
    assert await shop.journal.claim_next("elsewhere", pid=1, pid_start=1) is None


async def test_many_at_once_are_judged_as_one_by_one_would_be(shop: Shop) -> None:
    shop.personas |= {f"qa-{n}": persona(f"qa-{n}") for n in range(50)}
    early, late = "2026-11-21T18:00:00Z", "2026-11-21T18:00:05Z"
    ended = firing("qa-0", early)
    await shop.queue.fire(ended)
    await shop.journal.finish((await shop.journal.runs())[0].run_id, "done")
    await shop.queue.fire(firing("qa-1", early))
    firings = [
        *(firing(f"qa-{n}", early) for n in range(50)),  # two of them known
        firing("qa-0", late),  # nothing of it waits
        firing("qa-1", late),  # one of it waits
        firing("qa-2", late),  # one of it waits by now
        firing("qa-2", early),  # the same twice
        firing("qa-3", "manual:9"),
        firing("qa-nobody"),
    ]
    told = len(shop.told("trigger.fired"))
    await shop.queue.fire_all(firings)
    waiting = {row.key for row in await shop.journal.runs(100) if row.state == "queued"}
    assert waiting == {f"qa-{n}@{early}" for n in range(1, 50)} | {f"qa-0@{late}", "qa-3@manual:9"}
    assert sorted((skip.key, skip.reason) for skip in await shop.skips()) == [
        (f"qa-1@{late}", f"a run of it waits already (qa-1@{early})"),
        (f"qa-2@{late}", f"a run of it waits already (qa-2@{early})"),
        ("qa-nobody@manual:1", "no such persona any more"),
    ]
    events = shop.told("trigger.fired")[told:]
    assert {event.key for event in events} == waiting - {f"qa-1@{early}"}
    rows = {row.run_id: row for row in await shop.journal.runs(100)}
    assert {rows[event.run].key for event in events} == {event.key for event in events}
    await shop.queue.fire_all(firings[:50])
    assert len(await shop.journal.runs(100)) == len(rows)


async def test_many_at_once_are_one_run_each_however_many_schedulers_fire_them(shop: Shop) -> None:
    shop.personas |= {f"qa-{n}": persona(f"qa-{n}") for n in range(30)}
    again = Queue(shop.journal, "devnet", shop.personas, shop.feed)
    async with anyio.create_task_group() as tasks:
        for queue in (shop.queue, again) * 3:
            tasks.start_soon(queue.fire_all, [firing(f"qa-{n}") for n in range(30)])
    assert sorted(row.key for row in await shop.journal.runs(100)) == sorted(
        f"qa-{n}@manual:1" for n in range(30)
    )
    assert len(shop.told("trigger.fired")) == 30


async def test_a_persona_that_changed_is_looked_at_anew(shop: Shop) -> None:
    await shop.queue.fire_all([firing("qa-a")])
    shop.personas["qa-a"] = persona("qa-a", budget={"calls": 7})
    await shop.queue.fire_all([firing("qa-a", "manual:2")])
    del shop.personas["qa-a"]
    await shop.queue.fire_all([firing("qa-a", "manual:3")])
    found = {row.key: row.budget["calls"] for row in await shop.journal.runs()}
    assert found == {"qa-a@manual:1": 5, "qa-a@manual:2": 7}
    assert [skip.reason for skip in await shop.skips()] == ["no such persona any more"]


async def test_many_at_once_respect_a_day_that_is_spent(shop: Shop) -> None:
    limits: dict[Unit, int] = {"calls": 0}
    queue = Queue(shop.journal, "devnet", shop.personas, shop.feed, day=lambda: limits)
    await queue.fire_all([firing("qa-a"), firing("qa-b")])
    assert await shop.journal.runs() == []
    assert {skip.persona for skip in await shop.skips()} == {"qa-a", "qa-b"}
    assert all("is spent" in skip.reason for skip in await shop.skips())


async def test_all_reasons_at_once_to_run_items_again_are_one_run(shop: Shop) -> None:
    shop.personas["qa-a"] = persona("qa-a", "retest")
    marks = ("facets-changed:7:ab", "build-changed:cd:1", "outage-over:ef", "2026-11-21T18:00:00Z")
    assert [await shop.queue.fire(firing("qa-a", mark)) for mark in marks] == [True, False, False, False]
    reason = "a run of it waits already (qa-a@facets-changed:7:ab): it runs the same items again"
    assert [skip.reason for skip in await shop.skips()] == [reason] * 3
    assert await shop.queue.fire(firing("qa-b", marks[0]))
    assert await shop.queue.fire(firing("qa-b", marks[1]))  # others are not joined


@pytest.mark.sampled(3)
@pytest.mark.parametrize("driver", ["auto", "triage"])
@pytest.mark.parametrize(
    "kind", ["log-changed", "log-grew", "log-cleared", "facets-changed", "build-changed", "outage-over"]
)
async def test_of_one_kind_of_change_one_run_waits(
    shop: Shop, kind: str, driver: Literal["auto", "triage"]
) -> None:
    shop.personas["qa-a"] = persona("qa-a", driver)
    fired = [await shop.queue.fire(firing("qa-a", f"{kind}:{block}:ab")) for block in range(9)]
    assert fired == [True] + [False] * 8
    assert {skip.reason for skip in await shop.skips()} == {f"a run of it waits already (qa-a@{kind}:0:ab)"}
    assert await shop.queue.fire(firing("qa-a", "2026-11-21T18:00:00Z"))  # another kind
    assert await shop.queue.fire(firing("qa-b", f"{kind}:1:ab"))


@pytest.mark.parametrize(("driver", "fired"), [("triage", False), ("auto", True)])
async def test_what_a_pass_of_triage_has_posted_starts_no_other_pass(
    shop: Shop, driver: Literal["auto", "triage"], fired: bool
) -> None:
    shop.personas["qa-a"] = persona("qa-a", driver)
    await shop.journal.put(f"{READ_BLOCKS}devnet", "17 18")
    assert await shop.queue.fire(firing("qa-a", "log-changed:18:ab")) == fired
    assert len(await shop.journal.runs()) == fired
    assert await shop.queue.fire(firing("qa-b", "log-changed:18:ab"))
    shop.personas["qa-c"] = persona("qa-c", driver)
    assert await shop.queue.fire(firing("qa-c", "log-changed:1:ab"))  # another block


@pytest.mark.parametrize("kind", ["registered", "item-confirmed", "file", "hook", "manual"])
async def test_triggers_that_each_mean_something_of_its_own_all_wait(shop: Shop, kind: str) -> None:
    fired = [await shop.queue.fire(firing("qa-a", f"{kind}:{number}:0")) for number in range(5)]
    assert fired == [True] * 5
