"""A contract whose owner, code, pause and treasury change while it is watched: announced, or silently."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from anyio.from_thread import BlockingPortal

from fleet.chain.node import codec
from fleet.chain.node.digest import keccak256
from fleet.chain.node.rpc import Rpc
from fleet.devnet import node
from fleet.triggers.chain.posture import topic
from fleet.triggers.chain.posture_read import SLOTS

DEFECTS = ("owner-silent", "upgrade-silent", "pause-silent", "invariant-broken")
GAS = 2_000_000
OWED = 100
INVARIANT = "treasury >= owed"


def word(value: str | int | bytes) -> bytes:
    """A number, an address or bytes as 32 bytes."""
    if isinstance(value, str):
        value = int(value, 16)
    return value.to_bytes(32) if isinstance(value, int) else value


def view(signature: str, kinds: Sequence[str], *values: object) -> dict[bytes, bytes]:
    """The slots by which a `Watched` answers this view."""
    key = int.from_bytes(keccak256(signature.encode())[:4])
    data = codec.encode(kinds, values)
    words = [data[at : at + 32] for at in range(0, len(data), 32)]
    return {word(key): word(len(words))} | {word(key + 1 + at): one for at, one in enumerate(words)}


def slot(name: str, address: str) -> dict[bytes, bytes]:
    return {word(SLOTS[name]): word(address)}


def owned_by(address: str) -> dict[bytes, bytes]:
    return view("owner()", ["address"], address)


def encoded(slots: Mapping[bytes, bytes], event: Sequence[str | bytes] = (), data: bytes = b"") -> bytes:
    """The calldata that makes a `Watched` emit this event (its signature, then topics), and set these
    slots."""
    topics = [word(topic(str(event[0]))), *map(word, event[1:])] if event else []
    values = [topics, data, list(slots), list(slots.values())]
    return codec.encode(["bytes32[]", "bytes", "bytes32[]", "bytes32[]"], values)


def steps(defects: frozenset[str]) -> Iterator[tuple[dict[bytes, bytes], tuple[str, ...]]]:
    """What changes, and the event that announces it (none of a silent change); each time to another value."""
    for turn in itertools.count(1):
        who, code, stops = f"0x{0xACE00000 + turn:040x}", f"0x{0xC0DE0000 + turn:040x}", turn % 2 == 1
        said: dict[str, tuple[dict[bytes, bytes], tuple[str, ...]]] = {
            "owner-silent": (owned_by(who), ("OwnershipTransferred(address,address)", who, who)),
            "upgrade-silent": (slot("implementation", code), ("Upgraded(address)", code)),
            "pause-silent": (
                view("paused()", ["bool"], stops),
                ("Paused(address)" if stops else "Unpaused(address)",),
            ),
        }
        for defect, (slots, event) in said.items():
            yield slots, () if defect in defects else event
        broken = "invariant-broken" in defects and stops
        yield view("treasury()", ["uint256"], OWED - broken), ()


@contextmanager
def changing(
    portal: BlockingPortal, rpc: Rpc, contract: str, sender: str, defects: frozenset[str], every_s: float
) -> Iterator[None]:
    """One change each `every_s` seconds, for as long as the context lasts."""
    portal.call(node.transact, rpc, sender, contract, encoded(view("owed()", ["uint256"], OWED)))
    turns, over = steps(defects), threading.Event()
    for _ in range(4):
        portal.call(node.transact, rpc, sender, contract, encoded(*next(turns)))

    def work() -> None:
        while not over.wait(every_s):
            portal.call(node.transact, rpc, sender, contract, encoded(*next(turns)))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
