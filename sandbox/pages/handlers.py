"""Whether markup that was sent became an element of a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from sandbox import http

MAX_PAGE = 400_000
"""Characters of a page that are looked at."""


class _Handlers(HTMLParser):
    """Whether a page has an element with this id and a handler of its own: not its text, escaped or not."""

    def __init__(self, ident: str) -> None:
        super().__init__()
        self.ident, self.found = ident, False

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        self.found |= names.get("id") == self.ident and "onerror" in names


def runs_handler(text: str, ident: str, reply: http.HttpReply) -> bool:
    """Whether a page has an element of ours, `id=IDENT onerror=…`, and its policy lets scripts run."""
    policy = reply.headers.get("content-security-policy", "")
    bound = re.search(r"(?:^|;)\s*(?:script-src|default-src)\b", policy) and "'unsafe-inline'" not in policy
    if bound or f"id={ident}" not in text or not reply.content_type.startswith("text/html"):
        return False
    page = _Handlers(ident)
    page.feed(text[:MAX_PAGE])
    return page.found
