"""The end of every run, and the recovery of one that was killed: check each open effect and complete it.

Nothing is repeated blindly. A transaction is looked up by hash, a post by text, a name by owner; the keys go
last, because everything else needs them. Settling twice changes nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import timedelta

from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.ports import Role, TxRequest
from fleet.chain.signing.delegate import call_in
from fleet.chain.signing.tx import parse
from fleet.clock import iso
from fleet.errors import ConfigError, TryAgain
from fleet.events.model import KeysRevoked, ResourceReleased
from fleet.events.stream import Stream
from fleet.runs.call.wallet import Wallet
from fleet.runs.context import FleetContext, RunContext
from fleet.runs.settlement.outbox import report_all, report_released
from fleet.store.rows import EffectRow

RESENT = frozenset({"post", "withdraw"})
"""Purposes of transactions that are sent again after a crash; others are only looked up."""
ADOPTED = ("stipend ", "release ", "sweep ", "clear ")
"""Prefixes of purposes of stipends and clean-up: a peer sends the same bytes."""
ROUNDS = 3
"""How often a name may reappear during settling before it waits."""


def waits_key(run: str) -> str:
    """Where the journal keeps how a run ended whose clean-up has to wait."""
    return f"outcome.{run}"


async def settle(context: RunContext, wallet: Wallet) -> None:
    """Finish every effect of a run; FleetError when something could not be checked and must wait."""
    world, run, stream = context.fleet, context.run, context.stream
    world.chain.signer.open_run(wallet.scope)
    try:
        await transactions(world, run)
        await report_all(context)
        await report_released(context)
        await give_back(world, run, stream, wallet)
    finally:
        world.chain.signer.close_run(run)


async def owes(world: FleetContext, run: str, wallet: Wallet) -> bool:
    """Whether settling this run would ask the chain for anything."""
    journal = world.journal
    return bool(
        wallet.keys.labels()
        or await journal.effects(run, ["tx"], ["open"])
        or await journal.effects(run, ["name"], ["open", "done"])
        or await journal.findings(run, ["posting", "confirmed"])
    )


async def release_left(world: FleetContext, run: str, stream: Stream, wallet: Wallet) -> None:
    """Clean up after an ended run: names that its own keys still hold, then the keys."""
    world.chain.signer.open_run(wallet.scope)
    try:
        await transactions(world, run)
        await give_back(world, run, stream, wallet)
    finally:
        world.chain.signer.close_run(run)


async def transactions(world: FleetContext, run: str) -> None:
    """Resolve every open transaction of a run, or of no run ("": an operator's, triage's).

    On a shared journal the latter may belong to a live process, so those of the last minutes are left alone.
    """
    young = iso(world.clock.now() - timedelta(seconds=world.config.store.stalled_s))
    for effect in await world.journal.effects(run, ["tx"], ["open"]):
        if world.journal.shared and not run and effect.at > young:
            continue
        raw = bytes.fromhex(effect.data["raw"])
        settled = await world.chain.signer.settle_raw(raw, rebroadcast=_still_wanted(world, effect))
        if settled.state == "pending":
            raise TryAgain(
                f"transaction {settled.tx} of run {run} is in no block yet: {settled.reason}",
                remedy="try again in a minute",
            )
        found = settled.receipt
        mined = {"status": found.status, "block": found.block} if found else {}
        good = mined.get("status") == 1
        await world.journal.resolve(
            effect.effect_id, "done" if good else "failed", {"reason": settled.reason} | mined
        )


def _still_wanted(world: FleetContext, effect: EffectRow) -> bool:
    """Whether to send it again.

    On a shared journal also stipends and clean-up: their sender may be alive and still send them, and a
    replacement may be the very same bytes.
    """
    purpose = effect.data.get("purpose", "")
    return purpose in RESENT or (world.journal.shared and purpose.startswith(ADOPTED))


async def held(world: FleetContext, names: Sequence[EffectRow]) -> list[EffectRow]:
    """The names that are held by the key the run made for them."""
    owners = await world.chain.names.owners_of_names([name.ref for name in names])
    return [
        name
        for name, owner in zip(names, owners, strict=True)
        if owner and owner == name.data["owner"].lower()
    ]


async def give_back(world: FleetContext, run: str, stream: Stream, wallet: Wallet) -> None:
    """Release the names, sweep the keys, and destroy them once they hold nothing.

    It checks again after the sweep: a reorg in between drops a release, and the sweep takes its nonce. An
    unreadable key does not block the rest: its file stays, and ConfigError says what a person can do.
    """
    for _ in range(ROUNDS):
        await release_names(world, run, stream, wallet)
        for label in wallet.keys.addresses() if world.platform.chain.diamond else ():
            await world.chain.sponsor.sweep(wallet.scope, label)
        if not await held(world, await _own(world, run, wallet)):
            stuck = wallet.keys.broken()
            await _nothing_on_its_way(world, run, wallet)
            wallet.keys.destroy(keep=stuck)
            for effect in await world.journal.effects(run, ["key"], ["open", "done"]):
                if effect.ref not in stuck:
                    gone = {"key": ""} if "key" in effect.data else None
                    await world.journal.resolve(effect.effect_id, "released", gone)
            if stuck:
                files = " ".join(shlex.quote(str(wallet.keys.folder / label)) for label in stuck)
                remedy = f"put back the right file, or give up what {', '.join(stuck)} may hold: rm {files}"
                why = "; ".join(map(str, stuck.values()))
                raise ConfigError(f"run {run} is settled except for this: {why}; {remedy}", remedy=remedy)
            return
    raise TryAgain(f"names of run {run} keep coming back", remedy="the chain is being reorganised")


async def revoke(world: FleetContext, run: str, stream: Stream, wallet: Wallet) -> list[str]:
    """Under STOP, destroy the keys of a run that hold nothing; those that are kept, because only they can
    release a name, return a stipend or end a transaction once a person lets the fleet go on."""
    effects = await world.journal.effects(run, ["name", "tx"])
    holding = {one.ref for one in effects if one.kind == "name" and one.state in ("open", "done")}
    for one in effects:
        holding |= {str(one.data.get("key", "")), str(one.data.get("purpose", "")).removeprefix("stipend ")}
    kept = [label for label in wallet.keys.labels() if label in holding]
    gone = [label for label in wallet.keys.labels() if label not in holding]
    if gone:
        wallet.keys.destroy(keep=kept)
    for effect in await world.journal.effects(run, ["key"], ["open", "done"]):
        if effect.ref in gone:
            await world.journal.resolve(
                effect.effect_id, "released", {"key": ""} if "key" in effect.data else None
            )
    if gone or kept:
        stream.emit(KeysRevoked(revoked=tuple(gone), kept=tuple(kept)))
    return kept


async def release_names(world: FleetContext, run: str, stream: Stream, wallet: Wallet) -> None:
    """Release what this run minted: recorded by the run, and owned by the key it made for it."""
    for effect in await world.journal.effects(run, ["name"], ["open", "done"]):
        owner = await world.chain.names.owner_of_name(effect.ref)
        if not owner:
            await world.journal.resolve(effect.effect_id, "released" if effect.state == "done" else "failed")
        elif owner != effect.data["owner"].lower() or effect.ref not in wallet.keys.labels():
            await world.journal.resolve(effect.effect_id, "failed", {"reason": f"owned by {owner}"})
    for effect in await held(world, await _own(world, run, wallet)):
        await _release(world, run, effect, wallet)
        await world.journal.resolve(effect.effect_id, "released")
        stream.emit(ResourceReleased(kind="name", ref=effect.ref))


async def _own(world: FleetContext, run: str, wallet: Wallet) -> list[EffectRow]:
    """Names whose key exists, in any recorded state: a reorg may have undone their release."""
    labels = wallet.keys.addresses()
    return [name for name in await world.journal.effects(run, ["name"]) if name.ref in labels]


async def _release(world: FleetContext, run: str, effect: EffectRow, wallet: Wallet) -> None:
    token_id = await world.chain.names.id_of_name(effect.ref)
    wallet.scope.minted[token_id] = effect.ref
    gas = world.platform.gas.release_name
    await world.chain.sponsor.act(
        wallet.scope,
        TxRequest(
            role=Role.THROWAWAY,
            to=world.platform.chain.diamond,
            gas=gas,
            charge="none",
            run=run,
            data=FUNCTIONS["releaseName"].encode(token_id),
            key=effect.ref,
            purpose=f"release {effect.ref}",
            cleanup=True,
        ),
    )
    if await world.chain.names.owner_of_name(effect.ref):
        raise TryAgain(f"{effect.ref} is still owned after its release", remedy="try again in a minute")


async def _nothing_on_its_way(world: FleetContext, run: str, wallet: Wallet) -> None:
    """A signed transaction that was never seen can no longer act: its nonce is used, or its key is empty.

    On a shared journal its signer may be alive, and a name that it mints now could never be released.
    """
    for effect in await world.journal.effects(run, ["tx"], ["failed"]) if world.journal.shared else ():
        ours = effect.data.get("role") == Role.THROWAWAY and effect.data.get("key") in wallet.keys.labels()
        if not ours or "status" in effect.data:
            continue
        raw = bytes.fromhex(effect.data["raw"])
        if await world.chain.signer.is_dead(raw):
            continue
        unsigned, _ = parse(raw)
        if unsigned.payer or call_in(unsigned.data):  # the key's own next word makes it void
            await world.chain.sponsor.void(wallet.scope, str(effect.data["key"]))
        if not await world.chain.signer.is_dead(raw):
            raise TryAgain(
                f"transaction {effect.ref} of run {run} may still come", remedy="try again in a minute"
            )
