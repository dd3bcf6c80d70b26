"""What a caller could have put into an answer itself, and the page that an answer belongs to. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from fleet.personas.needs import strings

OWN = re.compile(r"\bqa-[a-z0-9]{4,40}-\d{1,4}\b|\{name\}")
"""A name that a run minted."""
_FACE = re.compile(r"\{face:[^{}]{1,80}\}")
_FOLDS = (
    (re.compile(r"^\d+(?:$|[%~;])"), "{n}"),
    (re.compile(r"^(?:0x[0-9a-fA-F]+|[0-9a-f]{16,}|[0-9a-f]{8}-[0-9a-f-]{27})$"), "{hex}"),
    (re.compile(r"%[0-9a-fA-F]{2}|qa[0-9a-f]{10}|^.{65,}$"), "{value}"),
)
_UNDECODED = re.compile(r"%(?![0-9a-fA-F]{2})")
"""A `%` that stands for no byte (RFC 3986, 2.1)."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_KEY = re.compile(r"[0-9a-fA-F]{64}|PRIVATE")


def gave(args: Mapping[str, Any], words: str) -> bool:
    """Whether the call's arguments contain these words: an echo of them is not the platform's, nor is one
    without the control characters that a page leaves out."""
    return any(
        words in told for one in strings(args) for told in (unquote(one), _CONTROL.sub("", unquote(one)))
    )


def gave_key(args: Mapping[str, Any]) -> bool:
    """Whether an argument contains a possible key, or names a page of a name that a run minted."""
    return any(_KEY.search(unquote(text)) or OWN.search(text) for text in strings(args))


def route(args: Mapping[str, Any]) -> str:
    """A URL without its query: the page, not the question."""
    parts = urlsplit(OWN.sub("{name}", str(args.get("url", ""))))
    return f"{parts.scheme}://{parts.netloc}{parts.path}" if parts.scheme else parts.path


def family(args: Mapping[str, Any]) -> str:
    """The route that a page belongs to: without a face's name, numbers, hashes, and values of an attack. A
    server refuses a null byte behind a name, or bytes that are no text, for all its paths, or for none."""
    folded = _FACE.sub("{face}", route(args))
    parts = folded.split("/")
    words = [next((word for form, word in _FOLDS if form.search(part)), part) for part in parts]
    if any("%00" in part and word == "{value}" for part, word in zip(parts, words, strict=True)):
        return f"{host(args)}/{{nul}}"
    if _UNDECODED.search(folded) or not _is_utf8(folded):
        return f"{host(args)}/{{percent}}"
    return "/".join(words)


def _is_utf8(path: str) -> bool:
    try:
        unquote(path, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


def host(args: Mapping[str, Any]) -> str:
    """The host of a page, as its URL is spelled: `{site}`, `https://…`; every face is one."""
    scheme, mark, rest = _FACE.sub("{face}", route(args)).partition("://")
    return (scheme + mark if mark else "") + (rest if mark else scheme).partition("/")[0]
