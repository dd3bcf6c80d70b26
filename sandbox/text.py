"""Bytes and text of strangers made fit for a result line: decoded, cleaned, cut, secrets masked."""

from __future__ import annotations

import re

from sandbox.secret_patterns import SECRETS, SecretPattern

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def clean(text: str, limit: int = 500) -> str:
    """At most `limit` characters without controls, direction marks, zero-width marks or lone surrogates."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n"))[:limit]


def decode(raw: bytes, charset: str = "utf-8") -> str:
    """Text of a body; bytes that do not fit, and unknown charsets, never raise."""
    try:
        return raw.decode(charset, "replace")
    except (LookupError, ValueError):
        return raw.decode("utf-8", "replace")


def mask(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with every certain secret masked, and the sorted kinds that were seen; never a value."""
    kinds: set[str] = set()
    for secret in SECRETS:
        if secret.certain is None:
            continue

        def leaks(found: re.Match[str], secret: SecretPattern = secret) -> bool:
            leak = secret.leaks(found)
            if leak:
                kinds.add(secret.kind)
            return leak

        text = secret.hide(text, f"[{secret.kind}]", leaks)
    return text, tuple(sorted(kinds))
