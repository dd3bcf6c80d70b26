"""The look at boundaries: each result is on record, and what does not hold is a STOP, once."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from fleet.clock import SystemClock
from fleet.config.limits import LimitsSection
from fleet.errors import TryAgain
from fleet.events.daemon_events import BoundaryChecked, Feed
from fleet.events.daemon_words import words
from fleet.gate.stop import resume, stopped
from fleet.jail.model import Tier
from fleet.jail.selfcheck import _SAW
from fleet.runs.call.sightings import SIGHTED
from fleet.service import boundary_watch
from fleet.service.boundary_watch import EVERY_S, BoundaryWatch
from fleet.service.resources import ResourceWatch
from tests.feed import read_feed
from tests.service.test_reload import Stand
from tests.service.test_reload import stand as stand

pytestmark = [pytest.mark.anyio]


async def test_each_boundary_is_looked_at_on_schedule_and_each_result_is_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boundary_watch, "EVERY_S", 0.01)
    feed, faults = Feed(tmp_path / "events.jsonl", clock=SystemClock()), ["", "", "cut"]
    broken = list[tuple[str, str]]()

    async def scope() -> str:
        return ""

    async def records() -> str:
        return faults.pop(0)

    async def told(name: str, fault: str) -> None:
        broken.append((name, fault))
        over.set()

    over = anyio.Event()
    watch = BoundaryWatch({"scope": scope, "records": records}, feed, SystemClock(), told)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch.run)
            await over.wait()
            tasks.cancel_scope.cancel()
    feed.close()
    events = read_feed(tmp_path / "events.jsonl")
    looks = [(one.check, one.fault) for one in events if isinstance(one, BoundaryChecked)]
    assert looks == [("scope", ""), ("records", "")] * 2 + [("scope", ""), ("records", "cut")]
    assert broken == [("records", "cut")]
    assert EVERY_S == 1_800


@pytest.mark.devnet
@pytest.mark.jail
async def test_a_record_that_was_tampered_with_sets_stop_once(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.service.daemon.AGAIN_S", 0.0)
    state, daemon = stand.world.state, stand.daemon
    folder = state / "runs" / "abcdefgh"
    folder.mkdir(parents=True)
    feed = Feed(state / "runs" / "abcdefgh" / "trajectory.jsonl", clock=SystemClock())
    for check in ("one", "two", "three"):
        feed.publish(BoundaryChecked(check=check))
    feed.close()
    assert await daemon._records_fault() == ""
    assert await daemon._scope_fault() == ""
    assert await daemon._jail_fault() == ""
    seen = replace(await stand.world.jail.probe(), checks=(("network", False, f"{_SAW}a stranger"),))

    async def leaky() -> Tier:
        return seen

    monkeypatch.setattr(stand.world.jail, "probe", leaky)
    assert await daemon._jail_fault() == f"network: {_SAW}a stranger"
    path = folder / "trajectory.jsonl"
    path.write_text(path.read_text().replace("two", "too"))
    fault = await daemon._records_fault()
    assert fault.startswith("runs/abcdefgh/trajectory.jsonl: line 3 does not follow")
    await daemon._boundary_broken("the records", fault)
    pause = stopped(state)
    assert pause is not None
    assert "the records did not hold" in pause.why
    assert fault in pause.check
    assert resume(state, "I looked")
    await daemon._boundary_broken("the records", fault)  # known: a person resumed
    assert stopped(state) is None
    await daemon._boundary_broken("the records", "another fault")
    assert stopped(state) is not None
    daemon._resources = ResourceWatch(LimitsSection(memory_megabytes=64), memory=lambda: 65 << 20)
    said = "the service holds 65 MB of memory, of 64 at most"
    assert (await daemon._exhausted(), await daemon._exhausted()) == (said, said)
    kept = await stand.world.journal.facts(f"{SIGHTED}{stand.world.platform.name}:strain:the service")
    assert [json.loads(one)["what"] for one in kept.values()] == [said]


@pytest.mark.devnet
@pytest.mark.jail
async def test_records_are_looked_at_in_turn_and_what_is_broken_in_each_look(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much is kept, one look reads about so much of it."""
    monkeypatch.setattr("fleet.service.daemon.AGAIN_S", 0.0)
    monkeypatch.setattr("fleet.service.daemon.LOOK_BYTES", 1)
    state, daemon = stand.world.state, stand.daemon
    paths = [state / "runs" / name / "trajectory.jsonl" for name in ("aaaaaaaa", "bbbbbbbb", "cccccccc")]
    for path in paths:
        path.parent.mkdir(parents=True)
        feed = Feed(path, clock=SystemClock())
        feed.publish(BoundaryChecked(check="one"))
        feed.publish(BoundaryChecked(check="two"))
        feed.close()
    paths[1].write_text(paths[1].read_text().replace("one", "won"))
    assert await daemon._records_fault() == ""
    assert (await daemon._records_fault()).startswith(
        "runs/bbbbbbbb/trajectory.jsonl: line 2 does not follow"
    )
    assert (await daemon._records_fault()).startswith("runs/bbbbbbbb/")  # not yet seen to hold
    paths[1].unlink()
    assert [await daemon._records_fault() for _ in range(2)] == ["", ""]
    paths[0].write_text(paths[0].read_text().replace("one", "won"))
    assert (await daemon._records_fault()).startswith("runs/aaaaaaaa/")


async def test_a_look_that_a_journal_cuts_off_is_on_record_and_the_next_one_comes(tmp_path: Path) -> None:
    feed, broken = Feed(tmp_path / "events.jsonl", clock=SystemClock()), list[str]()

    async def away() -> str:
        raise TryAgain("the journal does not answer")

    async def leaks() -> str:
        return "a leak"

    async def told(name: str, _: str) -> None:
        broken.append(name)
        raise TryAgain("the journal does not answer")

    watch = BoundaryWatch({"records": away, "jail": leaks}, feed, SystemClock(), told)
    await watch.look()
    feed.close()
    events = read_feed(tmp_path / "events.jsonl")
    why = "not looked at to its end: the journal does not answer"
    looks = [(one.check, one.fault) for one in events if isinstance(one, BoundaryChecked)]
    assert looks == [("records", why), ("jail", "a leak"), ("jail", why)]
    assert broken == ["jail"]


@pytest.mark.devnet
@pytest.mark.jail
async def test_what_does_not_hold_is_a_stop_also_while_the_journal_is_away(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> str:
        raise TryAgain("the journal does not answer")

    for name in ("get", "put"):
        monkeypatch.setattr(stand.daemon.world.journal, name, away)
    with suppress(TryAgain):
        await stand.daemon._boundary_broken("the jail", "a leak")
    pause = stopped(stand.world.state)
    assert pause is not None
    assert "the jail did not hold" in pause.why


def test_the_words_of_a_look() -> None:
    said = [words(BoundaryChecked(check="the records", fault=one)) for one in ("", "cut")]
    assert said == ["the records: holds", "the records: cut"]
