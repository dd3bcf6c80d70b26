"""The platform's own URLs, in the form of a repro: `{site}/x`, `{face:docs}`, `{proxy}/y`. Pure.

A link is the text of a stranger: its braces and odd characters are percent-encoded, so it cannot smuggle in a
placeholder, and what does not point at the platform, or at what its profile never lets be asked, is "".
"""

from __future__ import annotations

import re
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from fleet.config import Platform
from fleet.drivers.template import Bindings
from fleet.gate.scope import Scope, is_label

MAX_URL = 400
_SAFE = "%/:?#[]@!$&'()*+,;=~"
_LABEL = "([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)"
_PORTS = {"http": ":80", "https": ":443"}


class OwnUrls:
    """The URLs of one platform."""

    def __init__(self, platform: Platform) -> None:
        web, self._platform = platform.web, platform
        self._scope = Scope.of(platform, ())
        self._bindings = Bindings(run="", name="", site=web.site, proxy=web.proxy, face=web.face)
        bases = {"{site}": web.site, "{proxy}": web.proxy}
        self._bases = {place: _canonical(url).rstrip("/") for place, url in bases.items() if url}
        before, _, after = web.face.partition("{name}")
        self._face = re.compile(re.escape(before) + _LABEL + re.escape(after)) if web.face else None
        # names directly below the site cannot be distinguished from its pages
        self._distinct = before.rstrip("/") != web.site.rstrip("/")
        self.hosts = tuple(_canonical(f"http{'s' * host.endswith(':443')}://{host}") for host in web.hosts)
        """The profile's further hosts."""

    @property
    def places(self) -> tuple[str, ...]:
        """Site and proxy in a repro's form, once if they are one."""
        return tuple({url: place for place, url in reversed(self._bases.items())}.values())[::-1]

    @property
    def origins(self) -> tuple[str, ...]:
        """The platform's own origins, as a browser sends them."""
        parts = [urlsplit(url) for url in (*self._bases.values(), *self.hosts)]
        return tuple(dict.fromkeys(f"{one.scheme}://{one.netloc}" for one in parts))

    def named(self) -> tuple[str, ...]:
        """The pages that the profile names: its site, the faces of its agents, its targets."""
        targets = (*self._platform.call_targets, *self._platform.targets.values())
        found = ("{site}/" if "{site}" in self._bases else "", *map(self.target, targets))
        return tuple(dict.fromkeys(filter(None, found)))

    def target(self, text: str) -> str:
        """A target of the profile as a page; "" if it is not one. A name is its face."""
        return self.face(text) or self.spelled(self.actual(text))

    def face(self, name: str) -> str:
        """The face of a name; "" for any other text, or where the platform has none."""
        return f"{{face:{name}}}" if self._face is not None and is_label(name) else ""

    def may_act(self, spelled: str) -> bool:
        """Whether the profile lists the page as one that may be acted on."""
        return self._scope.may_act(self.actual(spelled))

    def actual(self, spelled: str) -> str:
        """The URL that a repro's form stands for."""
        return self._bindings.text(spelled)

    def spelled(self, link: str, page: str = "", *, faces: bool = True) -> str:
        """A link, relative to a page that is in a repro's form, in that form; "" for any that is not ours."""
        try:
            url = _canonical(urljoin(self.actual(page), link.strip()))
        except ValueError:
            return ""
        if len(url) > MAX_URL or not self._scope.has_url(url) or self._scope.never.match(url):
            return ""
        found = [
            (len(base), place, url[len(base) :])
            for place, base in self._bases.items()
            if url.startswith(base) and url[len(base) : len(base) + 1] in ("", "/", "?")
        ]
        if faces and self._distinct and self._face is not None and (match := self._face.match(url)):
            rest = url[match.end() :]
            if match[0].endswith("/") or rest[:1] in ("", "/", "?"):
                found.append((len(match[0].rstrip("/")), self.face(match[1]), rest))
        if not found:
            return url
        _, place, rest = max(found, key=lambda one: one[0])
        return place + (rest if rest or place.startswith("{face") else "/")


def _canonical(url: str) -> str:
    """Without a fragment, a default port, or a character that needs encoding."""
    scheme, netloc, path, query, _ = urlsplit(url)
    netloc = netloc.lower().removesuffix(_PORTS.get(scheme, "\0"))
    return urlunsplit((scheme, netloc, quote(path, safe=_SAFE) or "/", quote(query, safe=_SAFE + "?"), ""))
