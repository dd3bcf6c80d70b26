"""What the watch of contracts says of generated changes: each defect at each place, by seeds of its own.

    make bench-posture [ARGS="--seed 1000 --only owner,selector"]

A house is a watched contract, the contract that owns it, and the one that administers it, with announced
changes of each. A defect is one change that nobody announced, at one of them; its twin is the same house with
that change announced. It is found when it is told as silent (or broken) at its block; whatever else is told
as such, or of a twin, is false. docs/bench/watch.md has the first results.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import anyio

from fleet.chain.node.rpc import Rpc
from fleet.config.watch import InvariantSection, WatchSection
from fleet.devnet.anvil import Anvil
from fleet.devnet.surfaces.posture import owned_by, slot, view
from fleet.triggers.chain.telling import TOLD, name_of, tellings
from tests.triggers.watched import WatchedChain, watched

PLACES = ("contract", "owner", "admin")
Change = tuple[dict[bytes, bytes], tuple[str, ...]]
"""Slots, and the event that announces them."""


def address(chance: Random) -> str:
    return f"0x{chance.getrandbits(160):040x}"


def _facets(chance: Random) -> Change:
    facets = [
        (address(chance), [chance.randbytes(4) for _ in range(chance.randint(1, 3))])
        for _ in range(chance.randint(1, 3))
    ]
    return view("facets()", ["(address,bytes4[])[]"], facets), (
        "DiamondCut((address,uint8,bytes4[])[],address,bytes)",
    )


def _owners(chance: Random) -> Change:
    owners = [address(chance) for _ in range(chance.randint(1, 4))]
    return view("getOwners()", ["address[]"], owners), ("AddedOwner(address)", owners[0])


def _number(signature: str, event: str) -> Callable[[Random], Change]:
    return lambda chance: (view(signature, ["uint256"], chance.randint(1, 10**9)), (event,))


CHANGES: Mapping[str, Callable[[Random], Change]] = {
    "owner": lambda chance: (
        owned_by(who := address(chance)),
        ("OwnershipTransferred(address,address)", who),
    ),
    "pending-owner": lambda chance: (
        view("pendingOwner()", ["address"], address(chance)),
        ("OwnershipTransferStarted(address,address)",),
    ),
    "implementation": lambda chance: (
        slot("implementation", code := address(chance)),
        ("Upgraded(address)", code),
    ),
    "admin": lambda chance: (slot("admin", address(chance)), ("AdminChanged(address,address)",)),
    "beacon": lambda chance: (slot("beacon", code := address(chance)), ("BeaconUpgraded(address)", code)),
    "delay": _number("getMinDelay()", "MinDelayChange(uint256,uint256)"),
    "threshold": _number("getThreshold()", "ChangedThreshold(uint256)"),
    "safe-owners": _owners,
    "selector": _facets,
    "paused": lambda chance: (view("paused()", ["bool"], chance.random() < 0.5), ("Paused(address)",)),
}
"""By part, another value of it; `paused` may stay as it was."""
KEPT = {"contract": ("owner", "admin"), "owner": (), "admin": ()}
"""What makes the other two watched: it does not change but by a defect."""
DEFECTS = (*CHANGES, "delegates", "invariant")


@dataclass
class Visit:
    """What was told as silent or broken, as address and part; and what was due."""

    told: list[tuple[str, str]]
    due: tuple[str, str]


async def visit(rpc: Rpc, sender: str, seed: int, defect: str, place: str, *, announced: bool) -> Visit:
    chance = Random(seed)
    at = {one: await watched(rpc, sender) for one in PLACES}
    holds = InvariantSection(
        views={"treasury": f"{at[place]} treasury()(uint256)", "owed": f"{at[place]} owed()(uint256)"},
        holds="treasury >= owed",
    )
    person = address(chance)
    expected = (f"{person} code",) if announced else ()
    section = WatchSection(contracts=(at["contract"],), invariants={"solvent": holds}, expected=expected)
    chain = WatchedChain(rpc, sender, section)
    for one, contract in at.items():
        slots = {key: value for part in CHANGES.values() for key, value in part(chance)[0].items()}
        slots |= view("paused()", ["bool"], False) | view("owed()", ["uint256"], 100)
        slots |= view("treasury()", ["uint256"], 100 + chance.randint(0, 9))
        if one == "contract":
            slots |= owned_by(at["owner"]) | slot("admin", at["admin"])
        if one == place:
            slots |= view("pendingOwner()", ["address"], person)
        await chain.write(contract, slots)
    assert await chain.look() == []
    blocks, every = chance.randint(6, 12), chance.randint(1, 3)
    when = chance.randrange(2, blocks)
    for number in range(blocks):
        if number == when and defect == "delegates":
            await rpc.call("anvil_setCode", [person, "0xef0100" + address(chance)[2:]])
            await rpc.call("evm_mine")
        elif number == when:
            await chain.write(at[place], *_defect(defect, chance, announced=announced))
        else:
            one = chance.choice(PLACES)
            part = chance.choice(
                [each for each in CHANGES if each not in (*KEPT[one], defect, "pending-owner")]
            )
            await chain.write(at[one], *CHANGES[part](chance))
        if number % every == 0:
            await chain.look()
    for _ in range(3):  # an invariant is proven at three blocks
        await rpc.call("evm_mine")
    await chain.look()
    told = [
        (each.part.partition(" ")[0], name_of(each.part))
        for _, one in tellings({key: text for key, text in chain.facts.items() if key.startswith(TOLD)})
        for each in one.changes
        if each.judged in ("silent", "broken")
    ]
    due = (
        ("invariant", "invariant")
        if defect == "invariant"
        else (person, "code")
        if defect == "delegates"
        else (at[place], defect)
    )
    return Visit(told, due)


def _defect(defect: str, chance: Random, *, announced: bool) -> Change:
    """The one change that counts: unannounced, or as its twin has it."""
    if defect == "invariant":
        return view("treasury()", ["uint256"], 101 if announced else 99), ()
    slots, event = CHANGES[defect](chance)
    slots = view("paused()", ["bool"], True) if defect == "paused" else slots
    return slots, event if announced else ()


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1_000)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    named = chosen.only.split(",") if chosen.only else DEFECTS
    started, missed, false = time.monotonic(), list[str](), list[str]()
    cells = [(defect, place) for defect in named for place in PLACES]
    with tempfile.TemporaryDirectory() as folder:
        async with Anvil(Path(folder) / "chain.json", history=256) as anvil, Rpc(anvil.url) as rpc:
            sender = str((await rpc.call("eth_accounts"))[0])
            for number, (defect, place) in enumerate(cells):
                seed = chosen.seed + number
                found = await visit(rpc, sender, seed, defect, place, announced=False)
                twin = await visit(rpc, sender, seed, defect, place, announced=True)
                name = f"{defect} at {place}, seed {seed}"
                missed += [] if found.due in found.told else [name]
                false += [f"{name}: {one}" for one in set(found.told) - {found.due}]
                false += [f"twin of {name}: {one}" for one in twin.told]
                print("found " if found.due in found.told else "MISSED", name, flush=True)
    hit = len(cells) - len(missed)
    print(json.dumps({"found": hit, "of": len(cells), "missed": missed, "false": false}, indent=1))
    print(f"{hit}/{len(cells)}, {len(false)} false, {len(cells)} twins, {time.monotonic() - started:.0f} s")
    sys.exit(bool(false))


if __name__ == "__main__":
    anyio.run(main)
