"""The composition root wires and gets out of the way: no call of a run or of the daemon goes through it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import pytest

import fleet.app
from fleet.app.bootstrap import Options
from fleet.app.daemon import make
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import TxRequest
from fleet.chain.signing.judge import Judge, NodeFacts
from fleet.clock import SystemClock
from fleet.events.daemon_events import Feed
from fleet.runs.run import fire
from fleet.service.metrics import Tally
from fleet.service.readiness import Notifier
from fleet.store.journal import Journal
from fleet.triggers.model import Firing
from tests.acceptance.conftest import CREATE, House, persona, probe, step

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]
APP = str(Path(fleet.app.__file__).parent)
FRONT = 'tools = ["qa_create", "qa_fetch"]\nbudget = { calls = 20, writes = 2, reports = 2 }'


@contextmanager
def calls_into_app() -> Iterator[set[str]]:
    """Every function of the composition root that is called, or goes on, while the block runs."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(APP):
            found.add(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


def probes() -> tuple[str, str]:
    seen = probe("seen", step("qa_fetch", url="{site}/llms.txt"), expect="result.status == 418")
    return probe("mint", CREATE, expect="result.ok"), seen


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The files on the stack at each charge, and whenever the signer judges: next it signs."""
    found: list[set[str]] = []

    def files() -> set[str]:
        frame, names = sys._getframe(1), set()
        while frame is not None:
            names.add(frame.f_code.co_filename)
            frame = frame.f_back  # type: ignore[assignment]
        return names

    check, spend = Judge.check, Journal.spend

    def judged(judge: Judge, request: TxRequest, sender: str, node: NodeFacts | None) -> None:
        found.append(files())
        return check(judge, request, sender, node)

    async def spent(journal: Journal, *args: Any, **limits: Any) -> int:
        found.append(files())
        return await spend(journal, *args, **limits)

    monkeypatch.setattr(Judge, "check", judged)
    monkeypatch.setattr(Journal, "spend", spent)
    return found


async def test_a_run_is_judged_paid_signed_and_posted_without_it(
    house: House, tmp_path: Path, stacks: list[set[str]]
) -> None:
    one = persona(tmp_path, FRONT, *probes())
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        with calls_into_app() as calls:
            report = await fire(world, one)
        assert (report.outcome, report.settled) == ("done", True)
        assert [row.state for row in report.findings] == ["posted"]
        spent = await world.journal.spent(report.run)
        assert (spent["writes"], spent["reports"]) == (1, 1)
    assert len(stacks) > 6
    assert any(name.endswith("chain/signing/judge.py") for names in stacks for name in names)
    assert [name for names in stacks for name in names if name.startswith(APP)] == []
    assert calls == set()


async def test_the_daemon_works_and_reloads_without_it(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = persona(tmp_path, FRONT, *probes())
    state = await house.state(tmp_path)
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path))
    (tmp_path / "fleet.toml").write_text("concurrency = 3\n")
    ended: list[str] = []
    async with house.world(state, one) as world, Rpc(world.platform.chain.rpc) as rpc:
        feed = Feed(state / "events.jsonl", clock=SystemClock())
        options = Options(state, (tmp_path / "personas",), "devnet")
        daemon = make(options, world, rpc, {"qa-row": one}, feed, Notifier(), Tally())

        async def until_settled() -> None:
            firing = Firing("qa-row@manual:1", "qa-row", "a test", SystemClock().now())
            assert await daemon.queue.fire(firing)
            await daemon.reload()
            while not ended:
                rows = await world.journal.runs()
                ended.extend(row.outcome for row in rows if row.state == "ended")
                await anyio.sleep(0.05)
            daemon.executor.drain(0)

        with calls_into_app() as calls:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(daemon.janitor.run)
                tasks.start_soon(until_settled)
                await daemon.executor.run()
                tasks.cancel_scope.cancel()
        await daemon.health.snapshot()
        feed.close()
    assert ended == ["done"]
    assert world.config.concurrency == 3
    assert calls == set()
