"""Metadata keys: the hash of a name (platform-facts 1.4)."""

from __future__ import annotations

from fleet.chain.digest import keccak256


def metadata_key(name: str) -> bytes:
    """The diamond's metadata key for this name."""
    return keccak256(name.encode())
