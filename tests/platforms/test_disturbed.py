"""The clean devnet on a bad day: whatever stands in the way of a run, nothing false is posted.

And the seeded one under the same: what was seen is proven, or stands as unproven with its reason.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from fleet.gate.model import Rung
from tests.platforms.firing import fire, home
from tests.platforms.front import Weather as Way
from tests.platforms.full import full
from tests.platforms.served import burning, restarting
from tests.platforms.stand import DISTURBED, Stand, everywhere
from tests.platforms.test_any_platform import PERSONAS

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(3600)]

TIMES = int(os.environ.get("PLATFORM_TIMES", "1"))
FULL = TIMES > 1
HERE = PERSONAS if FULL else ("qa-smoke",)

Weather = Callable[[Stand], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def busy(stand: Stand) -> AsyncIterator[None]:
    with burning(4):
        yield


@asynccontextmanager
async def restarted(stand: Stand) -> AsyncIterator[None]:
    async with restarting(stand.web, every_s=6.0, down_s=1.0):
        yield


def by(**weather: Any) -> tuple[dict[str, Any], Weather]:
    """A day with this in front of each part of the web."""
    return {"fronts": everywhere(Way(**weather))}, lambda stand: nullcontext()


DAYS: dict[str, tuple[dict[str, Any], Weather]] = {
    "calm": ({}, lambda stand: nullcontext()),
    "busy": ({}, busy),
    "far": ({"fronts": DISTURBED}, lambda stand: nullcontext()),
    "restarts": ({}, restarted),
    "slow-compiler": ({"compiler_start_s": 2.0, "burn": True}, lambda stand: nullcontext()),
    "interim": by(interim=0.5),
    "firewall": by(blocks=True),
    "bans": by(ban_s=4.0),
    "limits": by(limited=0.2),
    "node": ({"fronts": {"rpc": Way(limited=0.05, bad=0.05)}}, lambda stand: nullcontext()),
}
DAYS_HERE = tuple(DAYS) if FULL else ("far",)
EXPLORED = ("firewall", "bans", "interim")
"""Days on which the explorers of qa-security ask as well: their attacks meet these."""


@pytest.mark.parametrize("day", DAYS_HERE)
async def test_a_clean_platform_stays_clean(tmp_path: Path, day: str) -> None:
    options, weather = DAYS[day]
    posted: list[str] = []
    async with full(tmp_path / "devnet", **options) as stand:
        at = await home(tmp_path / "fleet", stand)
        for persona in HERE:
            async with weather(stand):
                explore = day in EXPLORED and persona == "qa-security"
                env = {"QA_FLEET_EXPLORE": "true"} if explore else {}
                fired = await fire(persona, stand, at, rung=Rung.EXERCISE, env=env)
            assert fired.out, fired.err
            coverage = {key: len(rows) for key, rows in fired.data["coverage"].items()}
            print(persona, day, fired.code, fired.data["outcome"], coverage)
            rows = [
                row
                for row in fired.data["findings"]
                if row["state"] not in ("dropped", "unverified", "flaky")
            ]
            posted += [entry.text for entry in fired.entries] + [row["title"] for row in rows]
    assert posted == [], "\n".join(posted)


@pytest.mark.skipif(not FULL, reason="takes minutes: make platforms")
@pytest.mark.parametrize("day", DAYS)
async def test_nothing_that_was_seen_is_lost(tmp_path: Path, day: str) -> None:
    options, weather = DAYS[day]
    lost = []
    async with full(
        tmp_path / "devnet", defects=("sponsor-key-exposed", "compiler-panic", "invalid-wasm"), **options
    ) as stand:
        at = await home(tmp_path / "fleet", stand)
        for persona in ("qa-security", "qa-fuzz"):
            for _ in range(2):
                async with weather(stand):
                    fired = await fire(persona, stand, at, rung=Rung.EXERCISE)
                print(persona, day, [(row["title"], row["state"]) for row in fired.data["findings"]])
                states = {row["state"] for row in fired.data["findings"]}
                lost += [persona] if states & {"dropped", "raised"} else []
    assert lost == []
