"""Keccak-256, keys of metadata, and the fleet's spelling of an address: `0x` and 40 lower-case hex digits."""

from __future__ import annotations

import re

from Crypto.Hash import keccak

ZERO_ADDRESS = "0x" + "0" * 40

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")


def keccak256(data: bytes) -> bytes:
    """The 32-byte digest; Ethereum's variant, not NIST SHA-3."""
    return keccak.new(digest_bits=256, data=data).digest()


def is_address(text: object) -> bool:
    """True for `0x` and exactly 40 hex digits; a checksum in the letters is ignored."""
    return isinstance(text, str) and _ADDRESS.fullmatch(text) is not None


def lower(address: str) -> str:
    """The canonical spelling; ValueError when it is not an address."""
    if not is_address(address):
        raise ValueError("not an address: expected 0x and 40 hex digits")
    return address.lower()


def metadata_key(name: str) -> bytes:
    """The diamond's metadata key for this name (platform-facts 1.4)."""
    return keccak256(name.encode())
