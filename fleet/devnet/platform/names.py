"""Names and text as they come in from outside."""

from __future__ import annotations

import re

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def is_name(text: str) -> bool:
    """A DNS label of 1-63 characters, the registry's own rule (platform-facts 1.3)."""
    return _NAME.fullmatch(text) is not None


def clean_text(text: str) -> str:
    """The same text with lone surrogates replaced: JSON can carry them, UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()
