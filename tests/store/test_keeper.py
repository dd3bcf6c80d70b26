"""A daemon that does not keep a run any more loses every write about it, in a file and on a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Any

import anyio
import pytest
from sqlalchemy import func, insert, select, text

from fleet.errors import LostRun
from fleet.store.dispatch.jobs import Jobs
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow
from fleet.store.sql.database import Connection
from fleet.store.sql.schema import EFFECTS
from tests.doubles.journal import new_run
from tests.store.cluster import Cluster
from tests.store.conftest import Places

pytestmark = pytest.mark.anyio

FP = "0123456789ab"
_SLEEPS = "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(1)'"


class Pair:
    """Two daemons on one journal; the first has claimed the run `r1` and begun to report."""

    def __init__(self, paused: Journal, peer: Journal) -> None:
        self.paused, self.peer = paused, peer
        self.effect = 0

    async def begin(self) -> None:
        await self.paused.trigger(new_run("r1", "qa-a", rung=""))
        assert await self.paused.claim("r1", pid=1, pid_start=1, daemon="paused")
        self.effect = await self.paused.intend("r1", "tx", "0x1", {})
        await self.paused.add_finding(FindingRow(run_id="r1", fingerprint=FP, state="confirmed"))

    async def writes(self) -> dict[str, Awaitable[Any]]:
        """Every write of a daemon about its run."""
        journal = self.paused
        finding = FindingRow(run_id="r1", fingerprint="another")
        return {
            "intend": journal.intend("r1", "tx", "0x2", {}),
            "resolve": journal.resolve(self.effect, "done"),
            "still_open": journal.still_open(self.effect),
            "add_finding": journal.add_finding(finding),
            "set_finding": journal.set_finding("r1", FP, state="repeated"),
            "claim_posting": journal.claim_posting("r1", FP),
            "spend": journal.spend("r1", "reports", 1, 9),
            "reserve": journal.reserve("r1", {"tokens": 1}, {"run": {"tokens": 9}}),
            "start_settling": journal.start_settling("r1"),
            "put": journal.put("outcome.r1", "done\n", run="r1"),
        }

    async def all_of_it(self) -> list[Any]:
        peer = self.peer
        return [
            await peer.run("r1"),
            await peer.effects("r1"),
            await peer.findings("r1"),
            await peer.spent("r1"),
            await peer.spent_today(),
            await peer.get("outcome.r1"),
        ]


@pytest.fixture
async def pair(places: Places) -> AsyncIterator[Pair]:
    place = places()
    async with (
        await Journal.open(place, keeper="paused", busy_s=20) as paused,
        await Journal.open(place, keeper="peer", busy_s=20) as peer,
    ):
        made = Pair(paused, peer)
        await made.begin()
        yield made


async def test_a_keeper_writes(pair: Pair) -> None:
    for name, write in (await pair.writes()).items():
        if name != "resolve":  # before the look at it
            await write
        else:
            write.close()  # type: ignore[attr-defined]
    await pair.paused.resolve(pair.effect, "done")
    assert await pair.paused.finish("r1", "done")


@pytest.mark.parametrize("ended", [False, True], ids=["settling", "ended"])
async def test_whoever_lost_its_run_writes_nothing_of_it(pair: Pair, ended: bool) -> None:
    assert await pair.peer.adopt("r1", daemon="peer")
    if ended:
        assert await pair.peer.finish("r1", "crashed")
    before = await pair.all_of_it()
    for name, write in (await pair.writes()).items():
        with pytest.raises(LostRun, match="a peer presumed this process dead and now owns run r1"):
            await write
        assert await pair.all_of_it() == before, name
    assert not await pair.paused.finish("r1", "done")
    assert await pair.all_of_it() == before


async def test_a_person_and_a_run_that_waits_are_not_fenced(places: Places) -> None:
    place = places()
    async with await Journal.open(place) as person, await Journal.open(place, keeper="peer") as peer:
        for run in ("r1", "r2"):
            await person.trigger(new_run(run, trigger="", rung=""))
        await person.claim("r1", pid=1, pid_start=1, daemon="other")
        await person.add_finding(FindingRow(run_id="r1", fingerprint=FP, state="confirmed"))
        await peer.intend("", "tx", "0x1", {})  # of no run
        assert await peer.finish("r2", "cancelled")  # that nobody has claimed
        assert [row.state for row in await peer.findings("r1")] == ["confirmed"]


async def test_an_ended_run_is_tended_by_one(pair: Pair) -> None:
    if not pair.peer.shared:
        await pair.peer.tend("r1")  # one daemon to a file: nothing to take over
        assert (await pair.peer.run("r1")).daemon == "paused"
        return
    await pair.peer.tend("r1")  # it has not ended
    assert (await pair.peer.run("r1")).daemon == "paused"
    assert await pair.paused.finish("r1", "done")
    await pair.peer.tend("r1")
    with pytest.raises(LostRun):
        await pair.paused.intend("r1", "tx", "0x2", {})
    assert await pair.peer.intend("r1", "tx", "0x2", {})


async def test_an_intent_that_somebody_settled_is_not_acted_on(pair: Pair) -> None:
    await pair.paused.still_open(pair.effect)
    await pair.paused.resolve(pair.effect, "failed")
    with pytest.raises(LostRun):
        await pair.paused.still_open(pair.effect)


async def test_a_takeover_sees_what_was_begun_before_it(cluster: Cluster) -> None:
    """An intent is written and not committed: the takeover waits for it, and then it is among the effects."""
    place = cluster.place()
    async with (
        await Journal.open(place, keeper="paused", busy_s=20) as paused,
        await Journal.open(place, keeper="peer", busy_s=20) as peer,
    ):
        await Pair(paused, peer).begin()

        async def slow(connection: Connection) -> None:
            await paused._fence(connection, "r1")
            await connection.execute(text("SELECT pg_sleep(1)"))
            row = {"run_id": "r1", "kind": "tx", "ref": "0x2", "state": "open", "data": "{}", "at": ""}
            await connection.execute(insert(EFFECTS), row)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(paused._db.write, "slow", slow)
            while not cluster.do(_SLEEPS):  # noqa: ASYNC110 -- it is in another process
                await anyio.sleep(0.02)
            assert await peer.adopt("r1", daemon="peer")
            assert [effect.ref for effect in await peer.effects("r1", ["tx"])] == ["0x1", "0x2"]


async def test_no_session_may_stand_still_in_a_transaction(cluster: Cluster) -> None:
    """That of the journal and that of the queue: what a stopped daemon has locked is free within seconds."""
    place = cluster.place()
    names = ("idle_in_transaction_session_timeout", "statement_timeout")
    async with await Journal.open(place, keeper="me") as journal:
        asked = select(*map(func.current_setting, names))
        assert [tuple(row) for row in await journal._db.rows(asked)] == [("10s", "30s")]
        async with Jobs(place, "d").open() as jobs:
            query = ", ".join(f"current_setting('{name}') AS {name}" for name in (*names, "lock_timeout"))
            (row,) = await jobs._connector.execute_query_all_async(f"SELECT {query}")
            assert tuple(row.values()) == ("10s", "30s", "5s")
            async with jobs._connector.pool.connection() as connection:
                options = connection.info.get_parameters()
            assert (options["keepalives_idle"], options["tcp_user_timeout"]) == ("10", "20000")


async def test_the_url_says_otherwise(cluster: Cluster) -> None:
    place = f"{cluster.place()}&tcp_user_timeout=7000"
    async with Jobs(place, "d").open() as jobs, jobs._connector.pool.connection() as connection:
        assert connection.info.get_parameters()["tcp_user_timeout"] == "7000"
