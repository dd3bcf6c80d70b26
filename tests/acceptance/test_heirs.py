"""A daemon that was only slow, and the peer that took it for dead: one of them settles the run, once."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from fleet.app.wiring import open_world
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext
from fleet.runs.run import RunReport, fire, resettle
from fleet.store.dispatch.dispatcher import Dispatcher
from fleet.store.rows import RunRow
from tests.acceptance.conftest import CREATE, House, persona, probe, step
from tests.acceptance.doubles import between
from tests.store.cluster import Cluster, running

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]

STALLED_S = 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.fixture
def place(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A journal on the server, and a configuration that names it."""
    place = cluster.place()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "fleet.toml").write_text(f'[store]\nurl = "{place}"\nstalled_s = {STALLED_S}\n')
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path / "config"))
    return place


@asynccontextmanager
async def _peer(house: House, root: Path, keys: Path, one: LoadedPersona) -> AsyncIterator[FleetContext]:
    """Another host of the same fleet: its own state directory, the fleet's keys."""
    state = await house.state(root)
    shutil.copytree(keys, state / "keys", dirs_exist_ok=True)
    async with open_world(state, personas={one.persona.name: one}, platform="devnet") as world:
        yield replace(world, spread_s=0.0)


async def _taken_over(peer: FleetContext) -> RunRow:
    with anyio.fail_after(30):
        while True:
            assert await peer.source.take({}, ()) is None
            if rows := await peer.source.left():
                return rows[0]
            await anyio.sleep(0.05)


async def _until(check: Callable[[], Any]) -> None:
    with anyio.fail_after(30):
        while not check():  # noqa: ASYNC110 (events of the run, not of the test)
            await anyio.sleep(0.02)


async def test_a_run_that_a_peer_took_over_is_settled_by_it_and_left_alone_by_its_maker(
    house: House, tmp_path: Path, place: str
) -> None:
    one = persona(
        tmp_path,
        'tools = ["qa_create", "qa_chain"]\nbudget = { calls = 60, writes = 20 }',
        probe("mint", CREATE, step("qa_chain", function="registrationCost"), CREATE, expect="result.ok"),
    )
    slow, settled = anyio.Event(), anyio.Event()

    async def tamper(method: str, _params: list[Any], real: Any) -> Any:
        if slow.is_set():
            await settled.wait()
        return real

    def watch(event: object) -> None:
        if getattr(event, "tool", "") == "qa_chain":
            slow.set()

    reports: list[RunReport] = []
    async with between(house.rpc, tamper) as url:
        state = await house.state(tmp_path, (house.devnet.chain.url, url))
        async with (
            house.world(state, one, watch=watch) as world,
            _peer(house, tmp_path / "two", state / "keys", one) as peer,
            anyio.create_task_group() as tasks,
        ):

            async def work() -> None:
                reports.append(await fire(world, one))

            tasks.start_soon(work)
            await _until(slow.is_set)
            keeper = cast(Dispatcher, world.source)._keeper
            assert keeper is not None
            keeper.cancel()  # as if its loop stood still
            row = await _taken_over(peer)
            name = f"qa-{row.run_id}-1"
            assert await peer.chain.names.owner_of_name(name) != ""
            report = await resettle(peer, row)
            assert (report.outcome, report.settled) == ("failed", True)  # not crashed: one process is both
            assert await peer.chain.names.owner_of_name(name) == ""
            effects = await peer.journal.effects(row.run_id)
            assert {(one.state, one.data["key"]) for one in effects if one.kind == "key"} == {
                ("released", "")
            }
            assert not (peer.folder(row.run_id) / "keys").exists()

            signed = len(await house.signed())
            settled.set()
            await _until(lambda: reports)
            (late,) = reports
            assert not late.settled
            assert "a peer took it over" in late.detail
            assert len(await house.signed()) == signed
            assert await peer.journal.effects(row.run_id) == effects
            end = await peer.journal.run(row.run_id)
            assert (end.state, end.outcome, end.daemon) == ("ended", "failed", row.daemon)
    assert [event.tool for event in house.said("tool.requested")] == ["qa_create", "qa_chain"]
    assert house.said("footer") == []
