"""A system is held against what it was before its tests: what differs is named, on record and told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from fleet.app import integrity
from fleet.app.integrity import LOOKED, compare, look, take_baseline, watch_end
from fleet.clock import SystemClock
from fleet.config import FleetConfig
from fleet.config.integrity import CATEGORIES, IntegritySection
from fleet.runs.call.sightings import SIGHTED
from fleet.store.journal import Journal
from tests.runs.table import PLATFORM

pytestmark = pytest.mark.anyio
CLOCK = SystemClock()


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    async with await Journal.open(tmp_path / "fleet.db") as opened:
        yield opened


def system(root: Path) -> FleetConfig:
    """One file for each kind of thing that a system has, and a command that prints it."""
    for name in CATEGORIES:
        (root / name).write_text(f"one of {name}\nanother of {name}\n")
    commands = {name: ("cat", str(root / name)) for name in CATEGORIES}
    return FleetConfig(integrity=IntegritySection.model_validate(commands))


@pytest.mark.parametrize("category", CATEGORIES)
async def test_what_is_new_or_gone_in_each_kind_is_named_on_record_and_told(
    tmp_path: Path, journal: Journal, category: str
) -> None:
    config = system(tmp_path)
    assert await compare(tmp_path, config, PLATFORM, journal, CLOCK) is None
    assert await take_baseline(config, PLATFORM, journal, CLOCK) == {}
    same = await compare(tmp_path, config, PLATFORM, journal, CLOCK)
    assert same is not None
    assert (same.differs, same.looked) == (False, dict.fromkeys(CATEGORIES, 2))
    assert await journal.facts(f"{SIGHTED}paper:fence:integrity") == {}
    (tmp_path / category).write_text(f"another of {category}\nqa-tester\n")
    assert await take_baseline(config, PLATFORM, journal, CLOCK) == {}  # it is taken once
    found = await compare(tmp_path, config, PLATFORM, journal, CLOCK)
    assert found is not None
    assert (found.new, found.gone) == ({category: ["qa-tester"]}, {category: [f"one of {category}"]})
    [told] = (await journal.facts(f"{SIGHTED}paper:fence:integrity")).values()
    assert json.loads(told)["what"] == (
        f"the system is not as before its tests: {category}: +qa-tester; {category}: -one of {category}"
    )
    assert f"{category}: +qa-tester" in (tmp_path / "DECISIONS.md").read_text()


async def test_what_cannot_be_looked_at_is_a_difference_and_no_baseline(
    tmp_path: Path, journal: Journal
) -> None:
    good = system(tmp_path)
    bad = IntegritySection(
        files=("/no/such/program",),
        accounts=("sh", "-c", "echo broken >&2; exit 3"),
        records=("sleep", "60"),
        configuration=("head", "-c", str(integrity.LARGEST + 1), "/dev/zero"),
        seconds=1,
    )
    found, faults = await look(FleetConfig(integrity=bad))
    assert found == {}
    assert faults == {
        "files": "[Errno 2] No such file or directory: '/no/such/program'",
        "accounts": "sh ended with 3: broken",
        "records": "sleep took more than 1 s",
        "configuration": f"head prints more than {integrity.LARGEST} bytes: let it print checksums",
    }
    bad = bad.model_copy(update={"records": (), "configuration": ()})
    assert (await take_baseline(FleetConfig(integrity=bad), PLATFORM, journal, CLOCK)).keys() == {
        "files",
        "accounts",
    }
    await take_baseline(good, PLATFORM, journal, CLOCK)
    told = await compare(tmp_path, FleetConfig(integrity=bad), PLATFORM, journal, CLOCK)
    assert told is not None
    assert told.differs
    assert told.faults.keys() == set(CATEGORIES)


async def test_it_is_looked_at_by_itself_once_the_tests_are_over(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(watch_end.__globals__, "LOOK_S", 0.01)
    config = system(tmp_path)
    over = datetime.now(UTC) + timedelta(seconds=0.3)
    schedule = PLATFORM.schedule.model_copy(update={"not_after": over})
    platform = PLATFORM.model_copy(update={"schedule": schedule})
    assert await take_baseline(config, platform, journal, CLOCK) == {}
    (tmp_path / "accounts").write_text("qa-tester\n")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_end, tmp_path, config, platform, journal, CLOCK)
        with anyio.fail_after(100):
            while await journal.get(LOOKED + platform.name) is None:  # noqa: ASYNC110
                await anyio.sleep(0.02)
        assert CLOCK.now() >= over
        await anyio.sleep(0.1)
        tasks.cancel_scope.cancel()
    assert len(await journal.facts(f"{SIGHTED}paper:fence:integrity")) == 1
