"""The last check of our log entries, at finality: a reorg deeper than `confirmations` may drop one.

A dropped entry is sent again as the same bytes from the journal, which cannot be on the chain twice. Only
when another transaction has used their nonce is the entry posted anew.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from fleet.chain import codec
from fleet.chain.abi import FUNCTIONS
from fleet.chain.recovery import NOT_SENT
from fleet.chain.tx import parse
from fleet.clock import iso
from fleet.runs.context import FleetContext
from fleet.store.rows import EffectRow, FindingRow

BACK = timedelta(days=1)
"""Longest watch on an entry: a node that mines on demand may never reach finality."""

Tell = Callable[[str, str], None]
"""Called with the run and the fate of its entry."""


async def look_at_posts(world: FleetContext, tell: Tell) -> None:
    """Recent entries that are final by now, or whose block the chain no longer reaches."""
    mined = await world.journal.effects(None, ["tx"], ["done"], since=iso(world.clock.now() - BACK))
    watched = [one for one in mined if one.data.get("purpose") == "post" and not one.data.get("final")]
    if not watched:
        return
    head, finality = await world.chain.log.head(), world.platform.chain.finality_blocks
    for effect in watched:
        block = int(effect.data.get("block", 0))
        if head < block or head >= block + finality:
            await _look(world, effect, head, tell)


async def _look(world: FleetContext, effect: EffectRow, head: int, tell: Tell) -> None:
    await world.journal.tend(effect.run_id)
    settled = await world.chain.signer.settle_raw(bytes.fromhex(effect.data["raw"]))
    found = settled.receipt
    if settled.state == "pending" or settled.reason == NOT_SENT:
        return  # checked again later
    if found is None or found.status != 1:
        await _post_again(world, effect, tell)
    elif found.block == effect.data.get("block"):
        await world.journal.resolve(effect.effect_id, "done", {"final": True})
    else:  # dropped, or in another block: watch it from there
        await _place(world, effect, tell)
        await world.journal.resolve(effect.effect_id, "done", {"block": found.block})


async def _post_again(world: FleetContext, effect: EffectRow, tell: Tell) -> None:
    """Findings only: other entries are renewed by their own writers if they still hold."""
    row = await _finding(world, effect)
    if row is not None and not await _place(world, effect, tell) and not await _said_since(world, row):
        if not await _claim(world, effect):
            return
        posted = await world.chain.log.post(
            row.envelope, charge="none"
        )  # outside the run, which has paid for it
        await world.journal.set_finding(
            row.run_id, row.fingerprint, state="posted", tx=posted.tx, index=posted.index
        )
        tell(
            row.run_id, f"entry {row.index} was dropped by the chain, and was posted again as {posted.index}"
        )
    await world.journal.resolve(effect.effect_id, "failed", {"reason": "dropped by a reorg"})


async def _place(world: FleetContext, effect: EffectRow, tell: Tell) -> bool:
    """Record the current index of a finding's entry; False when it is not on the log."""
    row = await _finding(world, effect)
    index = await world.chain.log.find(row.envelope, world.chain.identity) if row else None
    if row is None or index is None:
        return False
    await world.journal.set_finding(row.run_id, row.fingerprint, state="posted", index=index)
    tell(row.run_id, f"entry {row.index} was dropped by the chain, and is there again as {index}")
    return True


async def _said_since(world: FleetContext, row: FindingRow) -> bool:
    """Whether a later run found the same, missed the entry and posted its own."""
    later = await world.journal.posted(row.fingerprint)
    if later is None or later.run_id == row.run_id:
        return False
    return await world.chain.log.find(later.envelope, world.chain.identity) is not None


async def _finding(world: FleetContext, effect: EffectRow) -> FindingRow | None:
    """The finding whose entry a transaction wrote, matched by text."""
    unsigned, _ = parse(bytes.fromhex(effect.data["raw"]))
    (text,) = codec.decode(FUNCTIONS["submitFeedback"].inputs, unsigned.data[4:])
    rows = await world.journal.findings(effect.run_id or None, ["posted"])
    return next((row for row in rows if row.envelope == text), None)


async def _claim(world: FleetContext, effect: EffectRow) -> bool:
    """Claim the post among several daemons; another one takes over from one that died."""
    key, now = f"again.{effect.ref}", world.clock.now()
    before = await world.journal.get(key)
    late = iso(now - timedelta(seconds=2 * world.config.store.stalled_s))
    if before is not None and (before > late) and world.journal.shared:
        return False
    return await world.journal.swap(key, before, iso(now))
