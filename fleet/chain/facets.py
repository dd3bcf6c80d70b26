"""A diamond's facets: which functions it offers, and one hash that says whether anything but their order
changed.

Own reader because eth_abi costs 0.3 s and 20 MB, which an idle daemon must not pay. The answer is a
stranger's: every offset and length is checked, and no part may be counted twice.
"""

from __future__ import annotations

import hashlib

from fleet.chain.abi import FUNCTIONS
from fleet.chain.codec import Malformed
from fleet.chain.hexes import as_bytes
from fleet.chain.rpc import Rpc
from fleet.errors import RpcError

WORD = 32


def facets_digest(data: bytes) -> str:
    """SHA-256 (hex) of the sorted address-to-selectors map that `facets()` answered; else Malformed."""
    facets: dict[bytes, set[bytes]] = {}
    for address, selectors in _facets(data):
        facets.setdefault(address, set()).update(selectors)
    lines = [f"{a.hex()}:{','.join(s.hex() for s in sorted(facets[a]))}\n" for a in sorted(facets)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def selectors(data: bytes) -> frozenset[str]:
    """Every selector (`0x` and 8 hex digits) that `facets()` answered; else Malformed."""
    return frozenset("0x" + one.hex() for _, found in _facets(data) for one in found)


async def offered(rpc: Rpc, diamond: str) -> frozenset[str] | None:
    """The selectors that a diamond offers now; None when it has no loupe, or one that answers nonsense.

    Unreachable passes through: a node that does not answer says nothing about the diamond.
    """
    call = {"to": diamond, "data": "0x" + FUNCTIONS["facets"].selector.hex()}
    try:
        return selectors(as_bytes(await rpc.call("eth_call", [call, "latest"])))
    except (RpcError, Malformed):
        return None


def _facets(data: bytes) -> list[tuple[bytes, list[bytes]]]:
    """`(address,bytes4[])[]`: an array of offsets to pairs of an address and an offset to selectors."""
    array = _uint(data, 0)
    count = _uint(data, array)
    base = array + WORD
    if base + count * WORD > len(data):
        raise Malformed("more facets than bytes")
    found, room = [], len(data) // WORD
    for place in range(count):
        at = base + _uint(data, base + place * WORD)
        list_at = at + _uint(data, at + WORD)
        size = _uint(data, list_at)
        room -= size + 1
        if room < 0:
            raise Malformed("more selectors than bytes")
        words = [_word(data, list_at + WORD * (1 + number)) for number in range(size)]
        if any(any(word[4:]) for word in words):
            raise Malformed("a selector with dirty padding")
        found.append((_word(data, at)[12:], [word[:4] for word in words]))
    return found


def _word(data: bytes, at: int) -> bytes:
    if at + WORD > len(data):
        raise Malformed("data ends early")
    return data[at : at + WORD]


def _uint(data: bytes, at: int) -> int:
    return int.from_bytes(_word(data, at), "big")
