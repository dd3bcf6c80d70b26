"""Who is calling: the token `<address>:<unix ts>:<0xsig>` in `x-goog-api-key` (platform-facts 1.7)."""

from __future__ import annotations

import re

from coincurve import PublicKey

from fleet.chain.keys import public_address
from fleet.chain.node.digest import keccak256
from fleet.chain.signing.tx import HALF_N

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_SIGNATURE = re.compile(r"0x[0-9a-fA-F]{130}")


class BadToken(Exception):
    """The text of the 401."""


def verify(token: str, *, scope: str, route: str, now: float, freshness_s: int) -> str:
    """The authenticated address in lower case; BadToken says why not.

    The signed message is `<scope>:<address lower>:<ts>:<route>`; the older form without a route is taken too.
    """
    parts = token.split(":")
    if len(parts) != 3 or not all(parts):
        raise BadToken("missing or malformed auth token")
    address, timestamp, signature = parts
    if not (
        _ADDRESS.fullmatch(address) and _TIMESTAMP.fullmatch(timestamp) and _SIGNATURE.fullmatch(signature)
    ):
        raise BadToken("malformed auth token")
    if abs(now - int(timestamp)) > freshness_s:
        raise BadToken("stale or future timestamp")
    address = address.lower()
    message = f"{scope}:{address}:{timestamp}"
    raw = bytes.fromhex(signature[2:])
    if address not in {recover(f"{message}:{route}", raw), recover(message, raw)}:
        raise BadToken("signature does not match address")
    return address


def recover(message: str, signature: bytes) -> str:
    """Address that signed this text (EIP-191 personal_sign); BadToken for an invalid one."""
    v = signature[64] - 27 if signature[64] >= 27 else signature[64]
    if v not in (0, 1):
        raise BadToken("bad signature: recovery id")
    if int.from_bytes(signature[32:64], "big") > HALF_N:
        raise BadToken("bad signature: high s")
    text = message.encode()
    digest = keccak256(b"\x19Ethereum Signed Message:\n%d" % len(text) + text)
    try:
        public = PublicKey.from_signature_and_message(signature[:64] + bytes([v]), digest, hasher=None)
    except Exception:  # the binding raises bare Exception for a point that is not on the curve
        raise BadToken("bad signature: cannot be recovered") from None
    return public_address(public)
