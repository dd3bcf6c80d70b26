"""Which names a reorg has given back: the run's own, of late, and nobody else's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from fleet.clock import SystemClock
from fleet.errors import Refused
from fleet.runs.context import FleetContext
from fleet.runs.settlement.reorg import DEEP, _Gone, undone
from fleet.store.rows import EffectState
from tests.runs.conftest import Shop, firing

pytestmark = pytest.mark.anyio
OWN, STRANGER = "0x" + "a1" * 20, "0x" + "b2" * 20


async def name_of(shop: Shop, state: EffectState, *, owner: str, number: int = 1) -> str:
    """A name of an ended run, as the journal has it and as the chain does."""
    await shop.queue.fire(firing("qa-a", f"tick:{number}"))
    run = (await shop.journal.runs())[0].run_id
    ref = f"qa-{run}-1"
    effect = await shop.journal.intend(run, "name", ref, {"owner": OWN})
    await shop.journal.resolve(effect, state)
    if owner:
        shop.chain.names[number], shop.chain.owners[number] = ref, owner
    return ref


@pytest.mark.parametrize(
    ("state", "owner", "found"),
    [
        ("released", OWN, True),
        ("failed", OWN, True),  # its registration was not there when it was looked for
        ("released", "", False),
        ("released", STRANGER, False),  # somebody took the name: not ours to release
        ("done", OWN, False),  # still to be released, with its key
    ],
)
async def test_only_what_its_own_key_holds_again(
    shop: Shop, state: EffectState, owner: str, found: bool
) -> None:
    ref = await name_of(shop, state, owner=owner)
    assert [name.ref for name in await undone(shop.world)] == ([ref] if found else [])


async def test_old_blocks_are_final(shop: Shop) -> None:
    ref = await name_of(shop, "released", owner=OWN)

    @dataclass
    class Later(SystemClock):
        by: timedelta

        def now(self) -> datetime:
            return super().now() + self.by

    def at(by: timedelta) -> FleetContext:
        return cast(FleetContext, SimpleNamespace(**vars(shop.world) | {"clock": Later(by)}))

    assert [name.ref for name in await undone(at(DEEP - timedelta(minutes=1)))] == [ref]
    assert await undone(at(DEEP + timedelta(minutes=1))) == []


def test_a_destroyed_key_signs_nothing() -> None:
    keys = _Gone("qa-ab12-1", OWN)
    assert keys.addresses() == {"qa-ab12-1": OWN}
    with pytest.raises(Refused, match="destroyed"):
        keys.get("qa-ab12-1")
