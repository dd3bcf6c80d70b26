"""Forty runs of all personas under skies that mix every disturbance: nothing false, nothing seen lost.

    WEATHER_SEED=7 make weather

Five runs, one of each persona, make a sky; a seed makes them all.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fleet.gate.model import Rung
from tests.platforms.firing import fire, home
from tests.platforms.reckoned import unsettled, wrong
from tests.platforms.skies import drawn, under
from tests.platforms.test_any_platform import PERSONAS

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(3600)]

RUNS = int(os.environ.get("WEATHER_RUNS", "0"))
SEED = int(os.environ.get("WEATHER_SEED", "1"))


@pytest.mark.skipif(not RUNS, reason="takes most of an hour: make weather")
@pytest.mark.parametrize("number", range(max(RUNS // len(PERSONAS), 1)))
async def test_nothing_is_false_and_nothing_that_was_seen_is_lost(tmp_path: Path, number: int) -> None:
    sky = drawn(number, SEED)
    print(f"\n{number} of seed {SEED}: {sky}")
    complaints: list[str] = []
    async with under(sky, tmp_path / "platform") as stand:
        at = await home(tmp_path / "fleet", stand)
        for persona in PERSONAS:
            env = {"QA_FLEET_EXPLORE": "true"} if persona in sky.exploring else {}
            began = time.monotonic()
            fired = await fire(persona, stand, at, rung=Rung.EXERCISE, env=env, timeout_s=1200)
            if not fired.out:
                complaints.append(f"unsettled: {persona}: exit {fired.code}: {fired.err[-500:]}")
                continue
            covered = {key: len(rows) for key, rows in fired.data["coverage"].items()}
            took = f"{time.monotonic() - began:.0f} s"
            print(
                f"   {persona} {fired.code} {fired.data['outcome']}: {fired.data['detail']} {covered} {took}"
            )
            last = persona == PERSONAS[-1]
            found = wrong(at, fired, frozenset(sky.planted), last=last) + await unsettled(stand, at)
            print(*(f"   !! {one}" for one in found), sep="\n")
            complaints += [f"{persona}: {one}" for one in found]
    assert complaints == []
