"""What an answer lets others do: whether markup that was sent runs in it, whether any cache may keep it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from sandbox import http

MAX_PAGE = 400_000
"""Characters of a page that are looked at."""

_SHARED = re.compile(r"(?i)(?:^|[\s,])(?:public|s-maxage=[1-9])")


def kept_by_caches(reply: http.HttpReply) -> bool:
    """Whether a shared cache may keep it, though it was asked with a session (RFC 9111, 3.5)."""
    return bool(_SHARED.search(reply.headers.get("cache-control", "")))


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
