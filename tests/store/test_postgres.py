"""What only a server can do: be away, restart, refuse, be set up wrongly, end a connection in a commit."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import anyio
import psycopg
import pytest

from fleet.errors import BudgetExceeded, ConfigError, TryAgain
from fleet.store.journal import Journal
from fleet.store.sql.postgres import RECEIPTS_KEPT
from tests.doubles.journal import new_run
from tests.store.cluster import Cluster
from tests.store.relay import Fate, Relay, relayed

pytestmark = pytest.mark.anyio


@pytest.fixture
async def place(cluster: Cluster) -> str:
    """A journal with one run in it."""
    place = cluster.place()
    async with await Journal.open(place) as journal:
        await _queue(journal)
    return place


@pytest.fixture
async def journal(place: str) -> AsyncIterator[Journal]:
    async with await Journal.open(place, busy_s=0.5) as opened:
        yield opened


async def _queue(journal: Journal, run_id: str = "r1") -> bool:
    return await journal.trigger(new_run(run_id))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
async def test_a_restart_between_two_calls_is_not_noticed(
    cluster: Cluster, place: str, how: signal.Signals
) -> None:
    async with await Journal.open(place, busy_s=20) as journal:
        for _ in range(2):
            await journal.spend("r1", "calls", 1, 9)
            cluster.stop(how)
            cluster.start()
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(journal.spend, "r1", "calls", 1, 9)
        assert await journal.spent("r1") == {"calls": 8}


class _Writer:
    """Spends without end, and counts."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.done = journal, 0

    async def run(self) -> None:
        while True:
            await self.journal.spend("r1", "calls", 1, 10**6)
            self.done += 1

    async def more(self, count: int) -> None:
        until = self.done + count
        while self.done < until:  # noqa: ASYNC110 (the writers signal nothing on purpose)
            await anyio.sleep(0.01)


async def test_writing_goes_on_over_a_restart(cluster: Cluster, place: str) -> None:
    async with await Journal.open(place, busy_s=20) as journal:
        writer = _Writer(journal)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            tasks.start_soon(writer.run)
            await writer.more(10)
            await anyio.to_thread.run_sync(cluster.stop)
            cluster.spawn()
            await anyio.to_thread.run_sync(cluster.wait)
            await writer.more(20)
            tasks.cancel_scope.cancel()
        assert 0 <= (await journal.spent("r1"))["calls"] - writer.done <= 2  # what was begun is ended


async def test_a_server_that_is_away_means_try_again(cluster: Cluster, journal: Journal, place: str) -> None:
    cluster.stop()
    try:
        for work in (lambda: journal.spend("r1", "calls", 1, 9), lambda: Journal.open(place, busy_s=0.1)):
            with pytest.raises(TryAgain, match="the database does not answer"):
                await work()
    finally:
        cluster.start()
    assert await journal.spend("r1", "calls", 1, 9) == 8


async def test_a_row_that_somebody_else_holds_means_try_again(cluster: Cluster, place: str) -> None:
    with psycopg.connect(place) as other:
        other.execute("UPDATE runs SET detail = 'mine'")
        async with await Journal.open(place, busy_s=0.2) as journal:
            with pytest.raises(TryAgain, match="others are writing the same"):
                await journal.finish("r1", "completed")
            other.rollback()
            assert await journal.finish("r1", "completed")


@asynccontextmanager
async def _behind_a_relay(
    cluster: Cluster, place: str, folder: Path, busy_s: float
) -> AsyncIterator[tuple[Journal, Relay]]:
    """A journal whose connections can be ended."""
    through = place.replace(quote(str(cluster.folder)), quote(str(folder)))
    async with (
        relayed(cluster.folder / ".s.PGSQL.5432", folder) as relay,
        await Journal.open(through, busy_s=busy_s) as journal,
    ):
        yield journal, relay


@pytest.mark.parametrize("fate", ["lost before", "lost after", "late"])
async def test_a_connection_that_ends_in_a_commit_changes_nothing(
    cluster: Cluster, place: str, tmp_path: Path, fate: Fate
) -> None:
    """Whether it took place is found out: each write is done once, and answers as if nothing had been."""
    async with _behind_a_relay(cluster, place, tmp_path, 10) as (journal, relay):
        for left in (8, 7):
            relay.fates += [fate, fate]
            assert await journal.spend("r1", "calls", 1, 9) == left
        relay.fates.append(fate)
        assert await journal.claim("r1", pid=1, pid_start=1)
        assert not await journal.claim("r1", pid=1, pid_start=1)
        assert relay.fates == []
    assert await _spent(place) == {"calls": 2}


@pytest.mark.parametrize("word", [b"INTO budget", b"INTO receipts"])
async def test_a_connection_that_ends_before_the_commit_changes_nothing(
    cluster: Cluster, place: str, tmp_path: Path, word: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with _behind_a_relay(cluster, place, tmp_path, 10) as (journal, relay):
        relay.word = word
        relay.fates += ["lost before", "lost after"]
        assert await journal.spend("r1", "calls", 1, 9) == 8
        assert relay.fates == []
    assert await _spent(place) == {"calls": 1}
    assert caplog.messages == []


async def _spent(place: str) -> dict[str, int]:
    async with await Journal.open(place) as journal:
        return await journal.spent("r1")


async def test_a_server_that_goes_in_a_commit_and_stays_away_leaves_a_doubt(
    cluster: Cluster, place: str, tmp_path: Path
) -> None:
    async with _behind_a_relay(cluster, place, tmp_path, 0.5) as (journal, relay):
        relay.fates += ["lost after"] * 100
        with pytest.raises(TryAgain, match="it is recorded or it is not") as doubt:
            await journal.spend("r1", "calls", 1, 9)
    assert doubt.value.remedy == "look before you repeat"
    assert await _spent(place) == {"calls": 1}


async def test_old_receipts_are_cleared_away(cluster: Cluster, journal: Journal, place: str) -> None:
    cluster.do("UPDATE receipts SET at = at - interval '2 hours'", place)
    async with anyio.create_task_group() as tasks:
        for number in range(RECEIPTS_KEPT):
            tasks.start_soon(journal.put, f"key{number}", "")
    assert cluster.do("SELECT count(*) FROM receipts", place) == [(RECEIPTS_KEPT,)]


async def test_commits_are_on_the_disk_whatever_the_role_says(cluster: Cluster) -> None:
    cluster.do("DROP ROLE IF EXISTS hasty; CREATE ROLE hasty LOGIN SUPERUSER")
    cluster.do("ALTER ROLE hasty SET synchronous_commit = off")
    schema = cluster.place().rpartition("%3D")[2]
    place = cluster.url(user="hasty", schema=schema)
    assert cluster.do("SHOW synchronous_commit", place) == [("off",)]
    async with await Journal.open(place) as journal:
        cluster.do(
            f"CREATE FUNCTION {schema}.note() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN NEW.value = current_setting(''synchronous_commit''); RETURN NEW; END';"
            f"CREATE TRIGGER note BEFORE INSERT ON {schema}.meta"
            f" FOR EACH ROW EXECUTE FUNCTION {schema}.note()"
        )
        await journal.put("how", "?")
        assert await journal.get("how") == "on"


@pytest.mark.parametrize(
    ("user", "database", "said"),
    [
        ("nobody", "postgres", "access denied"),
        ("qa", "nowhere", "no such database"),
        ("low", "postgres", "access"),
    ],
)
async def test_who_may_not_is_told_so(cluster: Cluster, user: str, database: str, said: str) -> None:
    cluster.do("DROP ROLE IF EXISTS low; CREATE ROLE low LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    with pytest.raises(ConfigError, match=said) as refused:
        await Journal.open(cluster.url(database, user=user), busy_s=0.1)
    assert refused.value.remedy


async def test_a_wrong_password_is_told_and_not_shown(cluster: Cluster) -> None:
    cluster.do("DROP ROLE IF EXISTS locked; CREATE ROLE locked LOGIN PASSWORD 'right'")
    rules = cluster.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all locked scram-sha-256\n{before}")
    cluster.do("SELECT pg_reload_conf()")
    try:
        with pytest.raises(ConfigError, match="access denied") as refused:
            await Journal.open(cluster.url(user="locked:hunter2"), busy_s=0.1)
    finally:
        rules.write_text(before)
        cluster.do("SELECT pg_reload_conf()")
    assert "hunter2" not in f"{refused.value!r}{refused.value.remedy}"


@pytest.mark.parametrize(
    "url", ["postgresql://user:hunter2@host:port/x", "postgresql://u:hunter2@/x?frobnicate=1&host=/tmp"]
)
async def test_a_url_that_is_none_is_told_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        await Journal.open(url, busy_s=0.1)
    assert "hunter2" not in f"{refused.value!r}{refused.value.remedy}"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE TABLE runs (x int)", "not a journal of this fleet"),
        ("CREATE TABLE meta (key text, value text)", "not a journal of this fleet"),
        (
            "CREATE TABLE meta (key text, value text); INSERT INTO meta VALUES ('schema', '99')",
            "newer version",
        ),
    ],
)
async def test_tables_of_somebody_else_are_left_alone(cluster: Cluster, statement: str, said: str) -> None:
    place = cluster.place()
    cluster.do(statement, place)
    with pytest.raises(ConfigError, match=said):
        await Journal.open(place)


async def test_a_queue_may_live_beside_the_journal(cluster: Cluster) -> None:
    place = cluster.place()
    cluster.do("CREATE TABLE procrastinate_jobs (id int)", place)
    async with await Journal.open(place) as journal:
        assert journal.shared
        assert await _queue(journal)


async def test_another_encoding_is_refused(cluster: Cluster) -> None:
    cluster.do("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0")
    with pytest.raises(ConfigError, match="its encoding is LATIN1"):
        await Journal.open(cluster.url("latin"))


async def test_many_open_an_empty_database_at_once(cluster: Cluster) -> None:
    place = cluster.place()

    async def use(number: int) -> None:
        async with await Journal.open(place) as journal:
            await _queue(journal, f"r{number}")

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(use, number)
    assert cluster.do("SELECT count(*) FROM runs", place) == [(6,)]


async def test_an_error_of_a_write_undoes_it(journal: Journal) -> None:
    with pytest.raises(BudgetExceeded):
        await journal.spend("r1", "calls", 9, 1)
    assert await journal.spent("r1") == {}
