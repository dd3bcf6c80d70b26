"""The keeper of a daemon, and `fleet runs prune`: on a state directory with runs of a hundred days ago."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from fleet.clock import SystemClock
from fleet.config import FleetConfig, KeepSection, Platform
from fleet.events.daemon_events import Feed
from fleet.runs.context import FleetContext
from fleet.runs.vault import Vault
from fleet.service.retention import FolderRetention
from fleet.store.journal import Journal
from fleet.store.rows import NewRun
from tests.cli_process import run_fleet
from tests.feed import read_feed
from tests.runs.test_retention import taken

pytestmark = pytest.mark.anyio


class Long(SystemClock):
    def now(self) -> datetime:
        return datetime.now(UTC) - timedelta(days=100)


@asynccontextmanager
async def long_ago(state: Path, *runs: str) -> AsyncIterator[Journal]:
    """Runs that ended then, each with a folder of 2000 bytes."""
    async with await Journal.open(state / "fleet.db", clock=Long()) as journal:
        for run in runs:
            await journal.trigger(
                NewRun(run_id=run, persona="p", key=run, platform="d", trigger="t", rung="observe", budget={})
            )
            await journal.finish(run, "done", "all is well")
            (state / "runs" / run).mkdir(parents=True)
            (state / "runs" / run / "trajectory.jsonl").write_bytes(bytes(2000))
        yield journal


@pytest.fixture
async def state(tmp_path: Path, anyio_backend: str) -> Path:
    """Two runs, of which `held` still has a name."""
    async with long_ago(tmp_path, "over", "held") as journal:
        await journal.intend("held", "name", "qa-held-1", {})
    return tmp_path


def folders(state: Path) -> list[str]:
    return sorted(path.name for path in (state / "runs").iterdir())


@pytest.fixture
async def world(state: Path) -> AsyncIterator[FleetContext]:
    async with await Journal.open(state / "fleet.db") as journal:
        yield cast(
            FleetContext,
            SimpleNamespace(
                state=state,
                journal=journal,
                clock=SystemClock(),
                config=FleetConfig(),
                platform=Platform(name="d"),
                vault=Vault(state, "", SystemClock()),
            ),
        )


def keeper(world: FleetContext, feed: Feed) -> FolderRetention:
    return FolderRetention(world, feed, first_s=0.01)


def told(state: Path) -> list[dict[str, Any]]:
    origin = {"at", "correlation_id", "event_type", "source"}
    return [event.model_dump(exclude=origin) for event in read_feed(state / "events.jsonl")]


async def test_what_is_old_goes_and_is_told_once(state: Path, world: FleetContext) -> None:
    size = taken(state / "runs" / "over")
    feed = Feed(state / "events.jsonl", clock=SystemClock())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keeper(world, feed).run)
        for _ in range(1000):
            await anyio.sleep(0.01)
            if told(state):
                break
        tasks.cancel_scope.cancel()
    await keeper(world, feed).look()
    feed.close()
    assert told(state) == [{"type": "runs.removed", "runs": 1, "bytes": size}]
    assert folders(state) == ["held"]


async def test_nothing_goes_while_stop_is_there_or_what_is_kept_for_ever(
    state: Path, world: FleetContext
) -> None:
    feed = Feed(state / "events.jsonl", clock=SystemClock())
    one = keeper(world, feed)
    (state / "STOP").write_text("")
    await one.look()
    (state / "STOP").unlink()
    vars(world)["config"] = FleetConfig(keep=KeepSection(days=0, megabytes=0))  # a reload
    await one.look()
    assert (folders(state), told(state)) == (["held", "over"], [])
    vars(world)["config"] = FleetConfig()
    await one.look()
    feed.close()
    assert folders(state) == ["held"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system, which only root may")
async def test_what_cannot_be_removed_is_told_once_and_stops_nobody(state: Path, world: FleetContext) -> None:
    mount = state / "runs" / "over" / "mount"
    mount.mkdir()
    await anyio.run_process(["mount", "-t", "tmpfs", "-o", "size=64k", "qa", str(mount)])
    feed = Feed(state / "events.jsonl", clock=SystemClock())
    one = keeper(world, feed)
    try:
        await one.look()
        await one.look()
        (event,) = told(state)
        assert (event["type"], event["run"]) == ("run.unsettled", "")
        assert event["reason"].startswith("old runs are not removed: run over: cannot remove")
        assert folders(state) == ["held", "over"]
    finally:
        await anyio.run_process(["umount", str(mount)])
    left = taken(state / "runs" / "over")
    await one.look()
    feed.close()
    assert told(state)[1:] == [{"type": "runs.removed", "runs": 1, "bytes": left}]


def fleet(state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_fleet(
        *words,
        timeout=60,
        env={"PATH": os.environ["PATH"], "HOME": str(state), "STATE_DIRECTORY": str(state)},
    )


async def test_a_person_prunes(state: Path) -> None:
    size = taken(state / "runs" / "over")
    planned = json.loads(fleet(state, "runs", "prune", "--dry-run", "--json").stdout)
    assert (planned["dry_run"], planned["days"], planned["megabytes"]) == (True, 90, 10_000)
    assert [(one["run"], one["bytes"]) for one in planned["runs"]] == [("over", size)]
    assert folders(state) == ["held", "over"]
    assert "0 runs would be removed" in fleet(state, "runs", "prune", "--dry-run", "--days", "101").stdout
    said = fleet(state, "runs", "prune", "--days", "99")
    assert (said.returncode, said.stdout.splitlines()[-1]) == (0, "1 run removed, 0.0 MB")
    assert folders(state) == ["held"]
    shown = fleet(state, "runs", "show", "over").stdout
    assert "over  p  ended  done  all is well" in shown
    assert "or was pruned (keep.days)" in shown
    assert json.loads(fleet(state, "runs", "prune", "--json").stdout)["runs"] == []


async def test_a_number_of_days_that_is_none_is_refused(state: Path) -> None:
    said = fleet(state, "runs", "prune", "--days", "0")
    assert said.returncode == 2
    assert "--days" in said.stderr
    assert folders(state) == ["held", "over"]


async def test_a_journal_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    said = fleet(tmp_path, "runs", "prune")
    assert (said.returncode, "no journal yet" in said.stderr) == (2, True)
    assert not (tmp_path / "fleet.db").exists()
