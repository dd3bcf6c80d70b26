"""JSON web tokens with the weaknesses that released applications have had."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Container
from typing import Any

STRONG = "7d1f4b0a9e6c4c5f8a22b1f0e3d94c7710f6a8c2"
WEAK = "secret"
LIFETIME_S = 1800


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _plain(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def secret(bad: Container[str]) -> str:
    return WEAK if "jwt-weak" in bad else STRONG


def _signed(head: str, body: str, key: str) -> str:
    return _b64(hmac.new(key.encode(), f"{head}.{body}".encode(), hashlib.sha256).digest())


def issue(bad: Container[str], claims: dict[str, Any]) -> str:
    """A signed token for these claims."""
    if "jwt-no-expiry" not in bad:
        claims = {**claims, "exp": int(time.time()) + LIFETIME_S}
    head = _b64(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    body = _b64(json.dumps(claims).encode())
    return f"{head}.{body}.{_signed(head, body, secret(bad))}"


def read(bad: Container[str], token: str) -> dict[str, Any] | None:
    """The claims of a valid token."""
    try:
        head, body, signature = token.split(".")
        algorithm = json.loads(_plain(head))["alg"]
        claims: dict[str, Any] = json.loads(_plain(body))
    except (ValueError, KeyError, TypeError):
        return None
    unsigned = "unsigned" in bad or ("jwt-none" in bad and str(algorithm).lower() == "none")
    if not unsigned and (
        algorithm != "HS256" or not hmac.compare_digest(signature, _signed(head, body, secret(bad)))
    ):
        return None
    return claims if "sub" in claims and claims.get("exp", 1 << 40) > time.time() else None
