"""Finds releases that a reorg undid, for a while, and repeats them.

The keys are destroyed by then and sign nothing new: the journalled bytes are sent again in the order of their
nonces, and the sponsor replaces a stipend that was dropped too, or makes a sponsored key's call anew. What
took a key's delegate away is found and repeated likewise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from fleet.chain.keys import Secret
from fleet.chain.ports import Role, RunScope
from fleet.chain.signing.tx import UnsignedTx, parse
from fleet.clock import iso
from fleet.errors import Refused, TryAgain
from fleet.runs.context import FleetContext
from fleet.runs.settlement.settle import held
from fleet.store.rows import EffectRow

DEEP = timedelta(minutes=15)
"""Largest age of a release; older blocks count as final."""

Mined = list[tuple[bytes, UnsignedTx]]


async def undone(world: FleetContext) -> list[EffectRow]:
    """Names recently released, or never seen minted, that the run's own key holds now."""
    names = await world.journal.effects(None, ["name"], ["released", "failed"], since=_since(world))
    return await held(world, names)


async def delegated(world: FleetContext) -> list[EffectRow]:
    """Transactions of late that took a key's delegate away, where it is there now; one for each key."""
    sent = await world.journal.effects(None, ["tx"], ["done"], since=_since(world))
    clears = {one.data["to"]: one for one in sent if one.data.get("purpose", "").startswith("clear ")}
    return [clears[key] for key in await world.chain.sponsor.delegated(list(clears))] if clears else []


def _since(world: FleetContext) -> str:
    return iso(world.clock.now() - DEEP)


async def release_again(world: FleetContext, name: EffectRow, tell: Callable[[], None]) -> None:
    """Send its release transactions again; TryAgain while it is still owned afterwards."""
    sent = await _mined(world, name)
    scope = RunScope(run=name.run_id, prefix=f"qa-{name.run_id}-", keys=_Gone(name.ref, name.data["owner"]))
    scope.minted[await world.chain.names.id_of_name(name.ref)] = name.ref
    world.chain.signer.open_run(scope)
    try:
        for raw, unsigned in sent:
            settled = await world.chain.signer.settle_raw(raw)
            if settled.state == "failed" and unsigned.data:  # what paid it is gone; a sweep needs nothing
                settled = await world.chain.sponsor.act_again(scope, name.ref, raw)
            if settled.state == "pending":
                break
    finally:
        world.chain.signer.close_run(name.run_id)
    if await held(world, [name]):
        raise TryAgain(
            f"{name.ref} is owned again after a reorg, and what released it could not be sent again",
            remedy="it will be retried; its key is gone, so only the journalled transactions can release it",
        )
    tell()


async def clear_again(world: FleetContext, clear: EffectRow) -> None:
    """Take the delegate away again: the same bytes, or the key's word in them anew; TryAgain if it stays."""
    label, key, run = clear.data["key"], clear.data["to"], clear.run_id
    scope = RunScope(run=run, prefix=f"qa-{run}-", keys=_Gone(label, key))
    raw = bytes.fromhex(clear.data["raw"])
    world.chain.signer.open_run(scope)
    try:
        if (await world.chain.signer.settle_raw(raw)).state == "failed":
            await world.chain.sponsor.act_again(scope, label, raw)
    finally:
        world.chain.signer.close_run(run)
    if await world.chain.sponsor.delegated([key]):
        raise TryAgain(
            f"{label} has a delegate again after a reorg, and it could not be taken away",
            remedy="it will be retried; only the sponsor can act through it, and the key owns nothing",
        )


async def _mined(world: FleetContext, name: EffectRow) -> Mined:
    """The transactions of the name's own key, in order of nonces."""
    found = []
    for effect in await world.journal.effects(name.run_id, ["tx"], ["done", "failed"]):
        own = (effect.data.get("role"), effect.data.get("key")) == (Role.THROWAWAY, name.ref)
        if own and "status" in effect.data:
            raw = bytes.fromhex(effect.data["raw"])
            found.append((raw, parse(raw)[0]))
    return sorted(found, key=lambda one: one[1].nonce)


@dataclass(frozen=True, slots=True)
class _Gone:
    """A KeyRing whose one key is destroyed: it may be paid, and signs nothing."""

    label: str
    address: str

    def get(self, label: str) -> Secret:
        raise Refused(f"the key {label!r} is destroyed", rule="key")

    def addresses(self) -> dict[str, str]:
        return {self.label: self.address}
