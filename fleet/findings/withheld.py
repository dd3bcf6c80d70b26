"""Hosts, paths and selectors that are never named in clear on a public log: `[post] mask`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from fleet.config import Platform
from fleet.config.url_list import UrlList

WITHHELD = "[withheld]"
_STOPS = r"\s\"'<>()\[\]{},;`|"
_TOKEN = re.compile(
    rf"(?:\{{(?:site|proxy)\}}|[A-Za-z][A-Za-z0-9+.-]{{1,20}}://)[^{_STOPS}]*"
    rf"|(?<![\w/.\]}}-])/[^{_STOPS}]+"
    r"|(?<![\w.-])(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,18}(?::\d{1,5})?(?![\w-])"
    r"|0x[0-9a-fA-F]{8,}"
)
"""A URL, a path, a host or a number as calls have it."""
_WITHIN = re.compile(r"[?&=#]")


def hider(mask: Iterable[str], *, site: str, proxy: str) -> Callable[[str], str]:
    """What replaces each place of these entries in a text. ValueError for an entry that names nothing."""
    selectors = tuple(one.lower() for one in mask if one.startswith("0x"))
    places = UrlList.of((one for one in mask if not one.startswith("0x")), site=site, proxy=proxy)
    bases = {"{site}": site.rstrip("/"), "{proxy}": proxy.rstrip("/")}

    def named(token: str) -> bool:
        if token.lower().startswith(selectors or ("\0",)):
            return True
        for word, base in bases.items():
            token = token.replace(word, base)
        pieces = [piece for text in {token, unquote(token)} for piece in _WITHIN.split(text) if piece]
        return any(places.match(url) for piece in pieces for url in _urls(piece))

    def _urls(piece: str) -> list[str]:
        if "://" in piece:
            return [piece]
        if piece.startswith("/"):
            return [f"{base or 'http://any'}{piece}" for base in ("", *bases.values())]
        return [f"http://{piece}/"]

    def hide(text: str) -> str:
        return _TOKEN.sub(lambda found: WITHHELD if named(found[0]) else found[0], text)

    return hide if selectors or places.places else str


def withheld(platform: Platform) -> Callable[[str], str]:
    """The same of a profile."""
    return hider(platform.post.mask, site=platform.web.site, proxy=platform.web.proxy)
