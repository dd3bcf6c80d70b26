"""Where a canary stands in the scripts of a page: as a word of a program, or inside a text. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

_LITERAL = re.compile(
    r"\"(?:[^\"\\\n]|\\[\s\S])*\"|'(?:[^'\\\n]|\\[\s\S])*'|`(?:[^`\\]|\\[\s\S])*`|//[^\n]*|/\*[\s\S]*?\*/"
)
"""Texts and comments of a script, from its left; one that is never closed is not one."""


class _Scripts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "script" and dict(attrs).get("type") in _RUN
        self.texts += [value or "" for name, value in attrs if name.startswith("on") and len(name) > 2]

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts.append(data)


_RUN = (None, "", "module", "text/javascript", "application/javascript")


def runs(result: Mapping[str, Any], canary: str) -> bool:
    """Whether the canary is a word of a program in the part of the page that the result holds."""
    reader = _Scripts()
    try:
        reader.feed(str(result.get("text", "")))
        reader.close()
    except (AssertionError, ValueError, RecursionError):
        return False
    return any(canary in _LITERAL.sub(" ", text) for text in reader.texts)
