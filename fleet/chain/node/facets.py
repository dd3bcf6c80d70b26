"""A diamond's facets: the functions it offers, and a hash of them that ignores their order."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.codec import Malformed
from fleet.chain.node.hexes import as_bytes
from fleet.chain.node.rpc import Rpc
from fleet.errors import RpcError
from sandbox.chain.surface import dispatched, is_whole


def facets_digest(data: bytes) -> str:
    """SHA-256 (hex) of the sorted address-to-selectors map that `facets()` answered; else Malformed."""
    facets: dict[str, set[bytes]] = {}
    for address, selectors in _facets(data):
        facets.setdefault(address, set()).update(selectors)
    lines = [f"{a[2:]}:{','.join(s.hex() for s in sorted(facets[a]))}\n" for a in sorted(facets)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def selectors(data: bytes) -> frozenset[str]:
    """Every selector (`0x` and 8 hex digits) that `facets()` answered; else Malformed."""
    return frozenset("0x" + one.hex() for _, found in _facets(data) for one in found)


async def offered(rpc: Rpc, diamond: str, named: Collection[str] = ()) -> frozenset[str] | None:
    """The selectors that a contract offers now: by its loupe, else those `named` by its own ABI, else by its
    code; None when none of these says it.

    Unreachable passes through: a silent node says nothing about the contract.
    """
    call = {"to": diamond, "data": "0x" + FUNCTIONS["facets"].selector.hex()}
    try:
        return selectors(as_bytes(await rpc.call("eth_call", [call, "latest"])))
    except (RpcError, Malformed):
        pass
    if named:
        return frozenset(named)
    try:
        code = as_bytes(await rpc.call("eth_getCode", [diamond, "latest"]))
    except RpcError:
        return None
    return frozenset(dispatched(code)) or None if is_whole(code) else None


def _facets(data: bytes) -> list[tuple[str, tuple[bytes, ...]]]:
    found: list[tuple[str, tuple[bytes, ...]]] = FUNCTIONS["facets"].decode(data)[0]
    return found
