"""Lanes: one per sender, and not one for every throwaway key that there ever was."""

from __future__ import annotations

from typing import cast

import pytest

from fleet.chain.lane import KEPT, Lanes
from fleet.chain.rpc import Rpc

pytestmark = pytest.mark.anyio
NO_NODE = cast(Rpc, None)


async def test_a_process_that_stays_keeps_the_latest_senders_and_forgets_the_others() -> None:
    lanes = Lanes(NO_NODE)
    sponsor = lanes.of("0xsponsor")
    first = lanes.of("0x0")
    for number in range(10 * KEPT):
        lanes.of(f"0x{number}")
        assert lanes.of("0xsponsor") is sponsor
    assert len(lanes) == KEPT
    assert lanes.of(f"0x{10 * KEPT - 1}") is lanes.of(f"0x{10 * KEPT - 1}")
    assert lanes.of("0x0") is not first


async def test_a_lane_in_use_is_never_forgotten() -> None:
    lanes = Lanes(NO_NODE)
    held = lanes.of("0xheld")
    async with held.lock:
        for number in range(2 * KEPT):
            lanes.of(f"0x{number}")
        assert lanes.of("0xheld") is held
