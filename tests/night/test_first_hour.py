"""The first hour of a fresh daemon, its clock as it is: every persona has run, and page, status, digest and
notices say what that came to.

The shipped personas start within ten minutes of a fleet's first start, so an hour is those minutes; what
comes later is in what they say of next times.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fleet.clock import iso
from fleet.devnet.devnet import Devnet
from fleet.service.triggers import SPREAD_S
from tests.night.evening import CONFIG, Watched, resident
from tests.notices.stand import SECRET, private, receiving_inbox
from tests.platforms.firing import Home

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.devnet,
    pytest.mark.jail,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif("NIGHT" not in os.environ, reason="takes minutes: make night"),
]

SEEDED = {
    "sponsor-key-exposed": ("critical", "Secret is public: GET /client.js shows"),
    "os-error-leak": ("medium", "os error 2"),
}
PERIODS = {
    "qa-perf": timedelta(hours=24),
    "qa-retest": timedelta(hours=6),
    "qa-security": timedelta(hours=1),
    "qa-smoke": timedelta(minutes=30),
    "qa-ux": timedelta(hours=6),
}
"""What starts at a fixed distance from its first start."""
EVERY = {*PERIODS, "qa-fuzz", "qa-triage"}
"""qa-mcp has nothing to look at there, qa-fix waits for a higher rung."""


READ = ("qa-triage", "cancelled", "the pass that posted these entries has read them")
"""A pass that found its work done."""


@pytest.fixture
async def fresh(tmp_path: Path) -> AsyncIterator[Watched]:
    """A daemon that nothing was ever done with, on a platform with two defects."""
    async with Devnet(tmp_path / "devnet", keys=tmp_path / "keys", defects=SEEDED) as devnet:
        at = Home(tmp_path / "state", tmp_path / "config")
        for folder in (at.state, at.config, at.config / "platforms"):
            folder.mkdir(mode=0o700)
        shutil.copytree(devnet.keys, at.state / "keys")
        shutil.copy(devnet.profile, at.config / "platforms" / "devnet.toml")
        with receiving_inbox() as inbox:
            (at.config / "fleet.toml").write_text('platform = "devnet"\n' + CONFIG.format(url=inbox.url))
            private(at.state / "keys" / "notify-webhook", SECRET)
            async with resident(tmp_path, at, inbox) as one:
                yield one


async def test_every_persona_has_run_and_everything_says_so(fresh: Watched) -> None:
    began = datetime.now(UTC)

    def ran() -> dict[str, dict[str, str]]:
        rows = json.loads(fresh.says("runs", "list", "--all", "--limit", "1000", "--json"))
        ended = {one["persona"]: one for one in reversed(rows) if one["state"] == "ended"}
        return ended if ended.keys() >= EVERY else {}

    first = await fresh.until(ran, seconds=1_500)
    assert first.keys() == EVERY
    starts = {name: datetime.fromisoformat(one["created"]) for name, one in first.items()}
    assert all(at - began <= timedelta(seconds=SPREAD_S) for at in starts.values())

    await fresh.until(lambda: len(fresh.listed()) >= len(SEEDED))
    status = fresh.status(iso(began - timedelta(minutes=5)))
    following = {one["persona"]: datetime.fromisoformat(one["at"]) for one in status["next"]}
    for name, period in PERIODS.items():
        assert abs(following[name] - starts[name] - period) < timedelta(minutes=1), name
    assert (status["digest"]["fixed"], status["digest"]["regressed"]) == ([], [])
    ends = {(one["persona"], one["outcome"], one["detail"]) for one in status["runs"]}
    assert {one for one in ends if one[1] != "done"} <= {READ}, ends
    new = {one["title"]: one["severity"] for one in status["digest"]["new"]}
    for severity, words in SEEDED.values():
        assert [one for title, one in new.items() if words in title] == [severity], new
    assert len(new) == len(SEEDED), new

    page, personas = fresh.room("/"), fresh.room("/personas")
    assert "Well" in page
    assert f"{len(new)} new" in page
    assert all(title in page for title in new)
    assert personas.count("none yet") == len(json.loads(fresh.says("personas", "list", "--json"))) - len(
        EVERY
    )
    digest = json.loads(fresh.says("items", "digest", "--since", iso(began - timedelta(minutes=5)), "--json"))
    assert {one["title"] for one in digest["new"]} == {*new}
    told = [one for one in fresh.notices() if "new finding: " in one]
    assert len(told) == len(new), told
    assert all(any(title in one for one in told) for title in new), told
