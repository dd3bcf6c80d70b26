"""Which names a reorg has given back: the run's own, of late, and nobody else's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from fleet.chain.ports import RunScope, Settlement
from fleet.clock import SystemClock
from fleet.config import FleetConfig
from fleet.errors import Refused
from fleet.runs.context import FleetContext
from fleet.runs.janitor import Janitor
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


class Keys:
    """A sponsor and a signer on whose chain these keys have a delegate, and nothing sent before is there."""

    def __init__(self, *delegated: str) -> None:
        self.has, self.again = list(delegated), list[str]()

    async def delegated(self, addresses: Sequence[str]) -> list[str]:
        return [one for one in addresses if one in self.has]

    async def act_again(self, scope: RunScope, label: str, raw: bytes) -> Settlement:
        self.again.append(f"{label} {raw.hex()}")
        self.has = [one for one in self.has if one != scope.keys.addresses()[label]]
        return Settlement(state="mined", tx="")

    async def settle_raw(self, raw: bytes) -> Settlement:
        return Settlement(state="failed", tx="", reason="another transaction used its nonce")

    def open_run(self, scope: RunScope) -> None:
        """Every scope is taken."""

    def close_run(self, run: str) -> None:
        """As above."""


@pytest.mark.parametrize(
    ("purpose", "delegated", "again"),
    [
        ("clear caller", OWN, ["caller 04aa"]),
        ("clear caller", STRANGER, []),  # it is cleared still
        ("sweep caller", OWN, []),
    ],
)
async def test_a_delegate_that_a_reorg_gave_back_is_taken_away_again(
    shop: Shop, purpose: str, delegated: str, again: list[str]
) -> None:
    await shop.queue.fire(firing("qa-a"))
    row = await shop.source.take({"qa-a": 1}, ())
    assert row is not None
    data = {"purpose": purpose, "raw": "04aa", "key": "caller", "to": OWN, "role": "throwaway"}
    effect = await shop.journal.intend(row.run_id, "tx", "0x1", data)
    await shop.journal.resolve(effect, "done", {"status": 1, "block": 1})
    await shop.journal.finish(row.run_id, "done", "")
    await shop.source.done(row.run_id)
    keys = Keys(delegated)
    vars(shop.world.chain).update(sponsor=keys, signer=keys)
    vars(shop.world).update(config=FleetConfig(), folder=lambda run: shop.world.state / "runs" / run)
    janitor = Janitor(shop.world, shop.executor, shop.feed, ended=lambda _row, **_found: None)
    for _ in range(2):
        await janitor.sweep()
    assert keys.again == again
