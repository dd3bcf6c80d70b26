"""Runs and effects: claimed once, ended once, resolved along the table, kept in order."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any

import anyio
import pytest

from fleet.errors import UsageError
from fleet.store.dispatch.source import Embedded, Owner
from fleet.store.journal import Journal
from fleet.store.rows import EFFECT_MOVES, EffectState, FindingRow, NewRun, RunRow
from fleet.store.tables.base import plain

pytestmark = pytest.mark.anyio
Queue = Callable[..., Awaitable[bool]]


async def test_a_key_is_one_run_for_ever(journal: Journal, queue: Queue) -> None:
    assert await queue("r1", key="tick-1")
    assert not await queue("r2", key="tick-1")
    assert not await queue("r1", key="tick-2")
    await journal.finish("r1", "completed")
    assert not await queue("r3", key="tick-1")
    assert [row.run_id for row in await journal.runs()] == ["r1"]


def made(number: int, **other: Any) -> NewRun:
    """One run among many; none of its values is another's."""
    run = NewRun(
        run_id=f"r{number}",
        persona=f"qa-{number}",
        key=f"key {number}",
        platform="devnet",
        trigger=f"every {number}s",
        rung="observe",
        budget={"calls": number},
        priority=number,
        due=f"2026-11-21T18:00:00.{number:06d}+00:00",
    )
    return replace(run, **other)


async def test_every_one_of_many_is_recorded_with_all_its_values(journal: Journal) -> None:
    ugly = {"key": "k\ud800\0", "persona": "qa-\0", "trigger": "\udfff", "platform": "\0net"}
    plainly: dict[str, Any] = {
        "key": "k\\ud800\\x00",
        "persona": "qa-\\x00",
        "trigger": "\\udfff",
        "platform": "\\x00net",
    }
    runs = [made(number) for number in range(250)] + [
        made(250, **ugly),
        made(251, budget={"a": [{"\ud800": 1}]}),
    ]
    assert await journal.trigger_all(runs) == {run.run_id for run in runs}
    at = (await journal.run("r0")).created
    assert at.endswith("Z")
    for run in (runs[0], runs[249], replace(runs[250], **plainly), runs[251]):
        assert await journal.run(run.run_id) == RunRow(**asdict(run), state="queued", created=at)
    assert len(await journal.runs(1000)) == 252


async def test_a_run_without_a_time_is_due_now(journal: Journal) -> None:
    assert await journal.trigger(made(1, due=""))
    row = await journal.run("r1")
    assert (row.due, row.priority) == (row.created, 1)


@pytest.mark.parametrize(("bad", "kind"), [({"x": float("nan")}, ValueError), ({"x": object()}, TypeError)])
async def test_what_a_document_cannot_hold_is_the_callers_mistake(
    journal: Journal, queue: Queue, bad: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        await journal.trigger(made(1, budget=bad))
    await queue()
    with pytest.raises(kind):
        await journal.intend("r1", "name", "n", bad)
    assert await journal.effects("r1") == []


async def test_of_many_at_once_the_ids_of_new_ones_come_back(journal: Journal) -> None:
    assert await journal.trigger_all([]) == set()
    assert await journal.trigger_all([made(1), made(2)]) == {"r1", "r2"}
    known_id, known_key, twice = made(2, key="new"), made(3, key="key 1"), made(5, key="key 4")
    assert await journal.trigger_all([known_id, made(1), known_key, made(4), twice]) == {"r4"}
    assert {(row.run_id, row.key) for row in await journal.runs()} == {
        ("r1", "key 1"),
        ("r2", "key 2"),
        ("r4", "key 4"),
    }


async def test_many_at_once_are_all_recorded_or_none(journal: Journal) -> None:
    bad = made(201, priority=1 << 63)
    with pytest.raises(Exception, match=r"range|large"):
        await journal.trigger_all([*(made(number) for number in range(201)), bad])
    assert await journal.runs() == []


async def test_a_run_row_says_everything(journal: Journal, queue: Queue) -> None:
    await queue()
    await journal.claim("r1", pid=41, pid_start=99)
    row = await journal.run("r1")
    assert (row.persona, row.platform, row.trigger, row.rung, row.budget) == (
        "qa-smoke",
        "devnet",
        "person",
        "observe",
        {"calls": 5},
    )
    assert (row.state, row.pid, row.pid_start, row.outcome, row.ended) == ("running", 41, 99, "", "")
    assert row.created.endswith("Z")
    assert row.started >= row.created


async def test_the_row_of_a_run_says_where_the_dial_stood_when_it_was_claimed(
    journal: Journal,
) -> None:
    dial = iter(["exercise", "propose", "exercise"])
    source = Embedded(journal, "devnet", Owner(1, 1), rung=lambda: next(dial))
    await journal.trigger_all([made(1, rung=""), made(2, rung="")])
    assert await source.begin("r1")
    taken = await source.take({"qa-2": 1}, ())
    assert taken is not None
    assert (taken.run_id, taken.rung, (await journal.run("r1")).rung) == ("r2", "propose", "exercise")
    assert not await source.begin("r1")
    assert (await journal.run("r1")).rung == "exercise"


async def test_one_of_many_claims_wins(journal: Journal, queue: Queue) -> None:
    await queue()
    won: list[bool] = []

    async def claim(pid: int) -> None:
        won.append(await journal.claim("r1", pid=pid, pid_start=0))

    async with anyio.create_task_group() as tasks:
        for pid in range(10):
            tasks.start_soon(claim, pid)
    assert sorted(won) == [False] * 9 + [True]


async def test_a_run_ends_once_and_moves_only_forward(journal: Journal, queue: Queue) -> None:
    await queue()
    assert not await journal.start_settling("r1")
    assert await journal.claim("r1", pid=1, pid_start=1)
    assert await journal.start_settling("r1")
    assert await journal.start_settling("r1")
    assert not await journal.claim("r1", pid=2, pid_start=2)
    assert await journal.finish("r1", "completed", "all \ud800 well\0")
    assert not await journal.finish("r1", "failed")
    assert not await journal.start_settling("r1")
    row = await journal.run("r1")
    assert (row.state, row.outcome, row.detail) == ("ended", "completed", "all \\ud800 well\\x00")


async def test_open_runs_are_those_without_an_outcome(journal: Journal, queue: Queue) -> None:
    for run_id in ("a", "b", "c", "d"):
        await queue(run_id)
    for run_id in ("b", "c", "d"):
        await journal.claim(run_id, pid=1, pid_start=1)
    await journal.start_settling("c")
    await journal.finish("d", "completed")
    assert [row.run_id for row in await journal.open_runs()] == ["b", "c"]
    assert [row.run_id for row in await journal.queued_runs()] == ["a"]
    assert [row.run_id for row in await journal.runs(limit=2)] == ["d", "c"]


async def test_the_order_of_names_is_the_order_of_their_bytes(journal: Journal, queue: Queue) -> None:
    for run_id in ("b", "B", "a-b", "ab", "_"):
        await queue(run_id)
    rows = await journal.runs()
    assert {row.run_id for row in rows} == {"b", "ab", "a-b", "_", "B"}
    by_bytes = sorted(rows, key=lambda row: (row.created, row.run_id.encode()), reverse=True)
    assert rows == by_bytes  # `created` has whole seconds, and one may end meanwhile


HOSTILE = ["\0", "a\0b", "\ud800", "'; DROP TABLE runs; --", "%s %(x)s :x", "\u202e"]


@pytest.mark.parametrize("word", HOSTILE)
async def test_a_hostile_word_is_only_a_word(journal: Journal, queue: Queue, word: str) -> None:
    assert await queue(word, key=word)
    assert not await queue("other", key=word)
    assert await journal.claim(word, pid=1, pid_start=1)
    assert await journal.spend(word, word, 1, 2) == 1
    effect = await journal.intend(word, "name", word, {word: word})
    assert await journal.add_finding(FindingRow(run_id=word, fingerprint=word, state="confirmed"))
    assert await journal.claim_posting(word, word)
    await journal.put(word, word)
    known = (await journal.run(word)).run_id
    assert (await journal.findings(word))[0].run_id == (await journal.effects(word))[0].run_id == known
    assert (await journal.effects(word))[0].effect_id == effect
    assert (await journal.get(word), await journal.spent(word)) == (plain(word), {plain(word): 1})
    assert await journal.posted(word) is None


async def test_what_is_unknown_is_said(journal: Journal) -> None:
    with pytest.raises(UsageError, match="no run named 'nope'"):
        await journal.run("nope")
    assert not await journal.claim("nope", pid=1, pid_start=1)
    with pytest.raises(UsageError, match="no such run"):
        await journal.intend("nope", "name", "qa-nope-1", {})
    with pytest.raises(UsageError, match="no effect 7"):
        await journal.resolve(7, "done")


async def test_an_effect_is_open_until_somebody_looked(journal: Journal, queue: Queue) -> None:
    await queue()
    key = await journal.intend("r1", "key", "caller", {})
    sent = await journal.intend("r1", "tx", "0xab", {"raw": "02f8", "nonce": 2**70})
    own = await journal.intend("", "tx", "0xcd", {})
    await journal.resolve(sent, "done", {"status": 1, "nonce": 3})
    rows = {row.effect_id: row for row in await journal.effects(None)}
    assert list(rows) == [key, sent, own]
    assert rows[sent].data == {"raw": "02f8", "nonce": 3, "status": 1}
    assert (rows[sent].state, rows[key].state, rows[own].run_id) == ("done", "open", "")
    still_open = await journal.effects("r1", states=["open"])
    assert [row.effect_id for row in still_open] == [key]
    assert [row.effect_id for row in await journal.effects("r1", kinds=("tx", "name"))] == [sent]
    assert [row.effect_id for row in await journal.effects("")] == [own]


@pytest.mark.parametrize(("before", "after"), list(itertools.product(EFFECT_MOVES, EFFECT_MOVES)))
async def test_effects_move_along_the_table(
    journal: Journal, queue: Queue, before: EffectState, after: EffectState
) -> None:
    await queue()
    effect = await journal.intend("r1", "name", "qa-r1-1", {"id": 7})
    await journal.resolve(effect, before)
    if before == after or after in EFFECT_MOVES[before]:
        await journal.resolve(effect, after)
    else:
        with pytest.raises(ValueError, match="cannot become"):
            await journal.resolve(effect, after, {"id": 8})
    (row,) = await journal.effects("r1")
    assert row.data == {"id": 7}
    assert row.state == (after if after in EFFECT_MOVES[before] else before)


async def test_a_document_that_json_cannot_hold_is_a_bug(journal: Journal, queue: Queue) -> None:
    await queue()
    with pytest.raises(ValueError, match="JSON compliant"):
        await journal.intend("r1", "name", "x", {"nan": float("nan")})
    with pytest.raises(TypeError):
        await journal.intend("r1", "name", "x", {"raw": b"bytes"})
    assert await journal.effects("r1") == []
