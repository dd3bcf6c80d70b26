"""What explorers of every subject take from a page's URL and text. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

TOOL = "qa_fetch"
NUMBER = re.compile(r"\d+(?:\.\d+)?")
HASH = re.compile(r"\b(?:0x)?[0-9a-fA-F]{8,}\b|\b[0-9a-f]{8}-[0-9a-f-]{20,}\b")


def first_page(url: str) -> str:
    """That of the same server, in the form that the URL has; of a face the face itself."""
    if url.startswith("{"):
        place = url.partition("}")[0] + "}"
        return place if place.startswith("{face:") else f"{place}/"
    return urlunsplit((*urlsplit(url)[:2], "/", "", ""))


def body_template(result: Mapping[str, Any], given: Iterable[str]) -> str:
    """Hash of a text without numbers, hashes, and the values that were sent."""
    text = str(result.get("text", ""))
    for value in sorted(set(given), key=len, reverse=True):
        if len(value) > 1:
            text = text.replace(value, "@")
    return short_hash(NUMBER.sub("0", HASH.sub("#", text[:4_000])))


def short_hash(text: str) -> str:
    """Ten digits of a text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:10]
