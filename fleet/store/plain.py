"""Text that every database takes."""

from __future__ import annotations


def plain(text: str) -> str:
    """The text with lone surrogates and NUL written as escapes; twice is once."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")
