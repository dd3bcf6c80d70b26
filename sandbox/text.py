"""Bytes and text of strangers made fit for a result line: decoded, cleaned, cut, secrets masked."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from html import unescape
from urllib.parse import unquote

from sandbox.secrets.mnemonics import phrases
from sandbox.secrets.patterns import SECRETS, SecretPattern, hide_all

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_BLOB = re.compile(r"[A-Za-z0-9+/]{32,}={0,2}")
MAX_BLOBS = 200
_CERTAIN = tuple(one for one in SECRETS if one.certain)
KINDS = tuple(sorted({*(one.kind for one in _CERTAIN), "mnemonic"}))
"""Every kind of secret that `mask` names."""
_ESCAPE = re.compile(r"\\{1,8}(?:u00([0-9a-fA-F]{2})|x([0-9a-fA-F]{2})|([nrt\"'/]))")
_BLANK = {"n": "\n", "r": "\n", "t": "\t"}


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
    """The text with every certain secret masked, and the sorted kinds that were seen; never a value.

    Secrets are found in the text, in what it says without the escapes of JSON, HTML and URLs (a source map
    holds programs as JSON texts), and in base64.
    """
    text, found = _masked(text)
    kinds = set(found.values())
    if any(sign in text for sign in "\\&%"):
        plain, hidden = _masked(_unescaped(text))
        kinds |= set(hidden.values())
        for value, kind in hidden.items():
            # a value that is itself escaped cannot be cut out: then the plain text is kept instead
            text = text.replace(value, f"[{kind}]") if value in text else plain
    for blob in _BLOB.findall(text)[:MAX_BLOBS]:
        if inside := _of_blob(blob):
            text = text.replace(blob, f"[{inside[0]}]")
            kinds |= set(inside)
    return text, tuple(sorted(kinds))


def _masked(text: str) -> tuple[str, dict[str, str]]:
    """The text with its certain secrets masked, and the kind of each."""
    values: dict[str, str] = {}

    def certain(secret: SecretPattern) -> Callable[[re.Match[str]], bool]:
        def leaks(found: re.Match[str]) -> bool:
            leak = secret.leaks(found)
            if leak:
                values[found[found.lastindex or 0]] = secret.kind
            return leak

        return leaks

    text = hide_all(text, _CERTAIN, lambda one: f"[{one.kind}]", certain)
    for phrase in phrases(text):
        values[phrase] = "mnemonic"
        text = text.replace(phrase, "[mnemonic]")
    return text, values


def _unescaped(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        digits = found[1] or found[2]
        return chr(int(digits, 16)) if digits else _BLANK.get(found[3], found[3])

    return unquote(unescape(_ESCAPE.sub(plain, text)))


def _of_blob(blob: str) -> tuple[str, ...]:
    """Kinds of secrets in a text that is base64."""
    try:
        inside = base64.b64decode(blob + "=" * (-len(blob) % 4), validate=True).decode("ascii")
    except ValueError:
        return ()
    return tuple(sorted(set(_masked(inside)[1].values()))) if inside.isprintable() or "\n" in inside else ()
