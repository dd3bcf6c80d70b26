"""Bytes and text of strangers made fit for a result line: decoded, cleaned, cut, secrets masked."""

from __future__ import annotations

import re

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)

_SECRETS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "private-key",
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]{0,8192}?-----END [A-Z ]*PRIVATE KEY-----"),
    ),
    (
        # 64 hex digits are a key only where the words before them say so: a hash looks the same
        "private-key",
        re.compile(
            r"(?i)(?:private|secret|signing|signer|sponsor|fee[_ -]?payer|payer|deployer|wallet|master)"
            r"[_ -]?(?:private)?[_ -]?key\b[\"'`]?[\s:=>\"'`]{0,8}(?:is\s+)?((?:0x)?[0-9a-f]{64})\b"
        ),
    ),
    (
        "private-key",
        re.compile(
            r"(?i)\b(?:priv[_-]?key|privkey|fee[_ -]?payer|sponsor)[\"'`]?\s{0,4}[:=]\s{0,4}[\"'`]?"
            r"((?:0x)?[0-9a-f]{64})\b"
        ),
    ),
    ("api-key", re.compile(r"\b(?:sk-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,}|gh[pousr]_[A-Za-z0-9]{30,})")),
    ("bearer", re.compile(r"(?i)\bbearer\s+([A-Za-z0-9._~+/-]{16,}=*)")),
)


def clean(text: str, limit: int = 500) -> str:
    """At most `limit` characters without controls, direction marks, zero-width marks or lone surrogates."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n"))[:limit]


def decode(raw: bytes, charset: str = "utf-8") -> str:
    """Text of a body; bytes that do not fit, and charsets nobody has, never raise."""
    try:
        return raw.decode(charset, "replace")
    except (LookupError, ValueError):
        return raw.decode("utf-8", "replace")


def mask(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with every secret masked, and the sorted kinds that were seen; never a value."""
    kinds: set[str] = set()
    for kind, pattern in _SECRETS:

        def hide(found: re.Match[str], kind: str = kind) -> str:
            kinds.add(kind)
            whole = found.group(0)
            secret = found.group(found.lastindex) if found.lastindex else whole
            return whole.replace(secret, f"[{kind}]")

        text = pattern.sub(hide, text)
    return text, tuple(sorted(kinds))
