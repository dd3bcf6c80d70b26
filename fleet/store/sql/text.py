"""Text that every database accepts."""

from __future__ import annotations


def plain(text: str) -> str:
    """The text with lone surrogates and NUL escaped; idempotent."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")
