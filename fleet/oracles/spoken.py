"""What a caller could have put into an answer itself, and the page that an answer belongs to. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from fleet.personas.needs import strings

OWN = re.compile(r"\bqa-[a-z0-9]{4,40}-\d{1,4}\b|\{name\}")
"""A name that a run minted."""
_KEY = re.compile(r"[0-9a-fA-F]{64}|PRIVATE")


def gave(args: Mapping[str, Any], words: str) -> bool:
    """Whether the call's arguments contain these words: an echo of them is not the platform's."""
    return any(words in unquote(given) for given in strings(args))


def gave_key(args: Mapping[str, Any]) -> bool:
    """Whether an argument contains a possible key, or names a page of a name that a run minted."""
    return any(_KEY.search(unquote(text)) or OWN.search(text) for text in strings(args))


def route(args: Mapping[str, Any]) -> str:
    """A URL without its query: the page, not the question."""
    parts = urlsplit(OWN.sub("{name}", str(args.get("url", ""))))
    return f"{parts.scheme}://{parts.netloc}{parts.path}" if parts.scheme else parts.path
