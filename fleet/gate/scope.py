"""The permitted targets of a run: names it minted, hosts of the platform, listed agents, known views."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from fleet.config import Platform
from fleet.config.escalation import NO_ESCALATION, EscalationSection
from fleet.config.scope import NO_HOSTS, HostCare
from fleet.config.url_list import NO_URLS, UrlList
from fleet.errors import ConfigError
from fleet.gate.impact import techniques

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,5}")
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?(?:[/?][!-\[\]-~]*)?",
    re.ASCII | re.IGNORECASE,
)
_PORTS = {"http": 80, "https": 443}

Origin = tuple[str, str, int]
"""(scheme, host, port), lower case."""


def is_label(name: object) -> bool:
    """The registry's rule for names: 1 to 63 of a-z 0-9 -, no hyphen at either end (platform-facts 1.3)."""
    return isinstance(name, str) and _LABEL.fullmatch(name) is not None


def is_own_name(name: object, run: str) -> bool:
    """Exactly `qa-<run>-<n>`: the only names that this run may act on."""
    prefix = f"qa-{run}-"
    return (
        bool(run)
        and isinstance(name, str)
        and is_label(name)
        and name.startswith(prefix)
        and _NUMBER.fullmatch(name.removeprefix(prefix)) is not None
    )


def origin_of(url: object) -> Origin | None:
    """Where a URL points; None for anything but plain http(s) without credentials, spaces or escapes.

    Stricter than any client's parser, so that no two of them can disagree about the host.
    """
    match = _URL.fullmatch(url) if isinstance(url, str) else None
    if match is None:
        return None
    scheme = match["scheme"].lower()
    port = int(match["port"] or _PORTS[scheme])
    return (scheme, match["host"].lower(), port) if 0 < port < 65536 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """`faces` are hosts with one label in front: (scheme, ".suffix", port)."""

    origins: frozenset[Origin] = frozenset()
    faces: frozenset[Origin] = frozenset()
    call_targets: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    act_paths: frozenset[tuple[Origin, str]] = frozenset()
    """Where pages may be acted on: an origin, and the path that an act's own path begins with."""
    never: UrlList = NO_URLS
    """Hosts and paths that no rung lifts."""
    care: HostCare = NO_HOSTS
    """How much hangs on each host."""
    proxy: str = ""
    """Where agents are called."""
    agents: Mapping[str, str] = field(default_factory=dict)
    """Where agents are called that are called elsewhere, by name."""
    mcp: frozenset[str] = frozenset()
    """Endpoints of MCP servers."""
    paid: frozenset[tuple[Origin, str]] = frozenset()
    """What is paid for: an origin, and the path that a resource's own path begins with."""
    mcp_never: frozenset[str] = frozenset()
    """Tools of theirs that no rung lifts."""
    risk_most: int = 25
    """The most that one call may risk."""
    escalation: EscalationSection = NO_ESCALATION
    """What a person is asked before."""

    @classmethod
    def of(cls, platform: Platform, functions: Iterable[str]) -> Scope:
        """The scope of a profile; `functions` are the views that `qa_chain` has in its table. ConfigError for
        techniques that do not exist."""
        known = {one.name for one in techniques()}
        if unknown := sorted({*platform.escalation.never} - known):
            remedy = "take a name of docs/reference/tools.md"
            raise ConfigError(f"escalation.never: no technique {', '.join(unknown)}", remedy=remedy)
        web = platform.web
        urls = [url for url in (web.site, web.proxy) if url]
        faces: set[Origin] = set()
        place = origin_of(web.face.replace("{name}", "x")) if web.face else None
        if place and "{name}" in urlsplit(web.face).netloc:
            scheme, host, port = place
            faces.add((scheme, host.removeprefix("x"), port))
        elif web.face:
            urls.append(web.face.replace("{name}", "x"))
        origins = {origin for origin in map(origin_of, urls) if origin}
        for host in web.hosts:
            origins |= {o for o in (origin_of(f"{scheme}://{host}") for scheme in _PORTS) if o}
        return cls(
            origins=frozenset(origins),
            faces=frozenset(faces),
            call_targets=frozenset(platform.agent_names),
            functions=frozenset(functions),
            act_paths=_places(web.acted_on),
            never=web.never_places,
            care=platform.care,
            risk_most=platform.limits.risk_most,
            proxy=web.proxy,
            agents=platform.agent_urls,
            mcp=frozenset(platform.mcp_urls),
            paid=_places(platform.paid_urls),
            mcp_never=frozenset(platform.mcp.never),
            escalation=platform.escalation,
        )

    def has_url(self, url: object) -> bool:
        """True when the URL's exact scheme, host and port are the platform's, or one name's face."""
        origin = origin_of(url)
        if origin is None:
            return False
        scheme, host, port = origin
        label, dot, rest = host.partition(".")
        return origin in self.origins or (is_label(label) and (scheme, dot + rest, port) in self.faces)

    def may_act(self, url: object) -> bool:
        """Whether a page may be acted on: below a listed path, however the URL spells it."""
        return self._below(url, self.act_paths)

    def sells(self, url: object) -> bool:
        """Whether this is what the profile lists as paid for, judged the same way."""
        return self._below(url, self.paid)

    def _below(self, url: object, places: frozenset[tuple[Origin, str]]) -> bool:
        if not isinstance(url, str) or not self.has_url(url):
            return False
        path = urlsplit(url).path
        plain = _decoded(path)
        if any(part.partition(";")[0] in (".", "..") for part in re.split(r"[/\\]", plain)):
            return False
        return any(
            origin_of(url) == origin and _is_below(path, base) and _is_below(plain, base)
            for origin, base in places
        )


def _places(urls: Iterable[str]) -> frozenset[tuple[Origin, str]]:
    return frozenset((origin, urlsplit(url).path) for url in urls if (origin := origin_of(url)))


def _decoded(path: str) -> str:
    """The path as the most generous server may read it; ".." when it hides too much."""
    for _ in range(4):
        plain = unquote(path)
        if plain == path:
            return plain if plain.isprintable() else ".."
        path = plain
    return ".."


def _is_below(path: str, base: str) -> bool:
    return path == base or path.startswith(f"{base.rstrip('/')}/")
