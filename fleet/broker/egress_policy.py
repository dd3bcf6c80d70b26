"""Permitted destinations of a jail: exact hosts, exact spellings, and public addresses.

Pure, but for `addresses`, which asks the resolver once. Nothing is normalised into permission: a target in
another spelling than the list's (case, trailing dot, octal, user information) is refused.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from fleet.broker.known_names import KnownNames
from fleet.broker.pace import AWAY_MS, SLOWER, HostPace, SharedTurns, Slow
from fleet.broker.rpc_policy import METHODS, Denied
from fleet.config import Platform, WebSection
from fleet.config.escalation import Level
from fleet.config.never_hosts import everybodys
from fleet.config.platform import FOREIGN_RATE
from fleet.config.ranges import METADATA, NO_RANGES, AddressRanges
from fleet.config.scope import NO_HOSTS, HostCare
from fleet.config.section import is_loopback
from fleet.config.third_parties import third_party
from fleet.config.url_list import NO_URLS, UrlList
from fleet.errors import ConfigError
from fleet.unanswered import NO_NAME
from sandbox.agents.mcp_wire import reads
from sandbox.spec import SAFE, UNSAFE

_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_AUTHORITY = re.compile(r"([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::([1-9][0-9]{0,4}))?", re.ASCII)
_PORTS = {"http": 80, "https": 443}
_FIELD = re.compile(
    rb'"query"\s{0,9}:\s{0,9}"[^{]{0,2000}\{(?:\s|\\[nrt]){0,99}(\w{1,99})(?:\s{0,9}:\s{0,9}(\w{1,99}))?'
)
"""The first field of a GraphQL request, behind an alias in the second group."""
LONGEST_OPERATION = 4_000
"""Bytes of a request in which its first field is looked for."""
_STOPPED, _ACTING = "stop", frozenset({"exercise", "propose"})
"""Words of the dial (fleet/gate/gate.py, `rung_now`) that decide here as well."""
_ESCAPED_DOT_OR_SLASH = re.compile(r"%2e|%2f|%5c", re.IGNORECASE)

_UNICAST = IPv6Network("2000::/3")
"""All of IPv6 that is given to hosts (RFC 4291): what is odd or future lies outside, `is_global` or not."""
_NAT64 = IPv6Network("64:ff9b::/96")
_NOT_HOSTS = (
    IPv4Network("192.0.0.0/24"),  # protocol assignments; its two global hosts are the nearest NAT's
    IPv4Network("192.88.99.0/24"),  # relays from IPv6, out of use (RFC 7526)
    IPv6Network("3fff::/20"),  # documentation (RFC 9637), newer than the table of Python 3.11
)
"""What `is_global` says of these differs from one Python to the next."""


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Scheme, lower-case host without trailing dot, port."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class EgressTarget:
    """A request's absolute target, split."""

    origin: Origin
    path: str


class Lookup(NamedTuple):
    """One look-up of a host: its addresses, for how many seconds they hold where the resolver said so, and
    what of it nobody has confirmed, in words."""

    addresses: tuple[str, ...]
    ttl_s: int | None = None
    moved: str = ""


Resolver = Callable[[Origin], Awaitable[tuple[str, ...]]]
Turn = TypeVar("Turn")


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressPolicy:
    """The list and the caps of one run's egress. Bytes, seconds, counts."""

    rpc: str
    """The node; "" for none."""
    hosts: frozenset[Origin]
    faces: tuple[tuple[Origin, re.Pattern[str]], ...] = ()
    proxy: EgressTarget | None = None
    methods: frozenset[str] = METHODS
    never: Container[bytes] = frozenset()
    """Selectors that no transaction may use; read anew for each one."""
    never_places: UrlList = NO_URLS
    """Hosts and paths that nothing asks."""
    left_out: Callable[[], UrlList] = lambda: NO_URLS
    """What a person has taken out while runs go on, read anew for each request."""
    max_log_range: int = 10_000
    max_head: int = 32 << 10
    max_body: int = 1 << 20
    max_response: int = 16 << 20
    max_total: int = 64 << 20
    max_requests: int = 2_000
    max_connections: int = 32
    head_s: float = 5.0
    idle_s: float = 30.0
    connect_s: float = 10.0
    read_s: float = 30.0
    request_s: float = 30.0
    slower: float = SLOWER
    """How many times its usual time a page of another machine's host may take."""
    resolve: Resolver | None = None
    """Instead of the machine's resolver."""
    names: Resolver | None = None
    """Instead of the names that the machine's resolver knows."""
    act_paths: tuple[EgressTarget, ...] = ()
    """Where pages may be changed: each path, and all below it."""
    mcp: tuple[EgressTarget, ...] = ()
    """Endpoints of MCP servers: a request that only reads by its body may be posted there, and a session that
    it began may be ended."""
    paid: tuple[EgressTarget, ...] = ()
    """What is paid for: each path, and all below it."""
    agents: tuple[EgressTarget, ...] = ()
    """Where agents are called that are not called through the proxy."""
    rung: Callable[[], str] | None = None
    """The dial's rung, or `stop`, read anew for each request; without it, no page may be changed."""
    over: Callable[[], tuple[str, str] | None] | None = None
    """Rule and reason once the run may do nothing more: its budget is spent, or its time is over."""
    closed: Callable[[], str] = str
    """Why the platform may not be tested at this moment; "" when it may."""
    care: HostCare = NO_HOSTS
    """How much hangs on each host; one that is listed has a pace of its own."""
    dnssec: bool = False
    """Whether the addresses of a name in a signed zone must be validated."""
    owned_only: bool = False
    """Whether a host that is another name of one out of scope is asked only where a person permitted it."""
    ranges: AddressRanges = NO_RANGES
    """Where listed hosts may be."""
    known: KnownNames | None = None
    """What their names led to before; what they lead to now may wait for a person."""
    comment: str = ""
    """What follows a request's User-Agent: who answers for it."""
    max_payments: int = 2
    """Payments that are signed for one call."""
    max_tokens: int = 4
    """Call tokens that are signed for one call: what was charged bounds what is signed."""
    impact: Level = "low"
    """What the calls of a jail may do at worst."""
    longest_body: Callable[[Level], int] = WebSection().longest_body
    share: Callable[[str, Level], float] = WebSection().share
    groups: Callable[[str], Mapping[Hashable, float]] = WebSection().groups
    """What of a host's rate calls of an impact get, and the wider groups that an address is in."""
    pace: HostPace | None = None
    """Turns at each host, shared by every jail of a process."""

    @classmethod
    def of(cls, platform: Platform, turns: SharedTurns | None = None) -> EgressPolicy:
        """The policy of a platform's profile; ConfigError when it would open the node itself. `turns` are
        those that other processes take too."""
        web = platform.web
        face = urlsplit(web.face.replace("{name}", "name"))
        hosts = {_profile_origin(url) for url in (web.site, web.proxy) if url} | set(_pairs(web.hosts))
        faces: tuple[tuple[Origin, re.Pattern[str]], ...] = ()
        if "{name}" in urlsplit(web.face).netloc:
            host = urlsplit(web.face).netloc.rpartition(":")[0] if face.port else urlsplit(web.face).netloc
            pattern = re.escape(host.lower().rstrip(".")).replace(re.escape("{name}"), _LABEL)
            faces = ((_profile_origin(face.geturl()), re.compile(pattern, re.ASCII)),)
        elif web.face:
            hosts.add(_profile_origin(face.geturl()))
        proxy = (
            EgressTarget(_profile_origin(web.proxy), urlsplit(web.proxy).path.rstrip("/"))
            if web.proxy
            else None
        )
        policy = cls(
            rpc=platform.chain.rpc,
            hosts=frozenset(hosts),
            faces=faces,
            proxy=proxy,
            act_paths=tuple(EgressTarget(_profile_origin(url), urlsplit(url).path) for url in web.acted_on),
            mcp=tuple(EgressTarget(_profile_origin(url), urlsplit(url).path) for url in platform.mcp_urls),
            paid=tuple(EgressTarget(_profile_origin(url), urlsplit(url).path) for url in platform.paid_urls),
            agents=tuple(
                EgressTarget(_profile_origin(url), urlsplit(url).path) for url in platform.agent_urls.values()
            ),
            never_places=web.never_places,
            care=platform.care,
            dnssec=web.dnssec,
            ranges=web.addresses,
            comment=platform.authorisation.comment,
            longest_body=web.longest_body,
            share=web.share,
            groups=web.groups,
            max_response=platform.limits.answer_megabytes << 20,
            connect_s=platform.limits.connect_s,
            read_s=platform.limits.read_s,
            request_s=platform.limits.request_s,
            slower=platform.limits.slower,
            pace=HostPace(
                FOREIGN_RATE,
                rate_of=partial(_rate_at, platform),
                shared=turns,
                bytes_s=web.megabits_per_second * 125_000,
            ),
        )
        if policy.rpc and _profile_origin(policy.rpc) in policy.hosts:
            raise ConfigError(
                "web: the node's own host and port are among the hosts that tools may reach",
                remedy="serve the node and the site on different ports",
            )
        return policy

    def check(self, method: str, target: EgressTarget, body: bytes | None = None) -> None:
        """Raise Denied unless this host and path may be requested with this method, and with this body, once
        it is there."""
        url = f"{target.origin.scheme}://{target.origin.authority}{target.path}"
        if entry := self.never_places.match(url):
            raise Denied("never", f"{entry} is on web.never of the profile, which no rung lifts")
        if entry := self.left_out().match(url):
            raise Denied("steering", f"{entry} was left out by a person (fleet runs steer)")
        if why := everybodys(url, target.origin.port):
            raise Denied("never", f"{why}: no profile and no rung lifts that")
        if not self.lists(target.origin):
            raise Denied("host", f"egress denied by broker: {target.origin.host}:{target.origin.port}")
        reading = method in SAFE or self._reads(method, target, body)
        rung = self.ask("" if reading else method[:16])
        if reading:
            return
        if why := self.care.bars(url):
            raise Denied("criticality", why)
        path, proxy = target.path.partition("?")[0], self.proxy
        below = proxy is not None and target.origin == proxy.origin and path.startswith(f"{proxy.path}/")
        called = method == "POST" and (target in self.agents or (below and is_plain(path)))
        if not called and not (rung and method in UNSAFE and self._acts_on(target)):
            raise Denied("method", f"{method[:16]} is not permitted there", status=403)

    def ask(self, act: str = "") -> str:
        """Raise Denied unless a request, or this act, may leave at this moment; the rung."""
        rung = self.rung() if self.rung else ""
        if rung == _STOPPED:
            raise Denied("stop", "everything is paused")
        if why := self.closed():
            raise Denied("schedule", why)
        if over := self.over() if self.over else None:
            raise Denied(*over)
        if act and self.rung and rung not in _ACTING:
            raise Denied("dial", f"{act} needs a rung that permits acts")
        return rung

    def for_calls(self, calls: int, impact: Level = "low") -> EgressPolicy:
        """The same for a jail that makes several calls, the worst of such an impact: each may ask and receive
        as much as one alone."""
        return replace(
            self,
            impact=impact,
            max_body=min(self.max_body, self.longest_body(impact)),
            max_requests=self.max_requests * calls,
            max_total=self.max_total * calls,
            max_tokens=self.max_tokens * calls,
            max_payments=self.max_payments * calls,
        )

    async def addresses(self, origin: Origin) -> Lookup:
        """Every address of a host, resolved once; Denied when one may not be dialled."""
        private, inside = self.may_be_private(origin), self.ranges.holds
        found = await addresses(origin, private=private, resolve=self.resolve, inside=inside)
        own = _is_localhost(origin.host) or all(
            ip_address(one.partition("%")[0]).is_loopback for one in found
        )
        names, ttl_s = tuple[str, ...](), None
        if self.dnssec and not own and _literal(origin.host) is None:
            from fleet.broker.dnssec import require_valid  # 70 ms that few profiles ask for

            names, ttl_s = await require_valid(origin.host, found)
        if self.ranges.networks and not (own and private) and not all(map(inside, found)):
            raise Denied("address", f"{origin.host} has an address outside of web.ranges of the profile")
        if any(map(self.never_places.has_address, found)):
            raise Denied("never", f"{origin.host} has an address that is on web.never of the profile")
        base = f"{origin.scheme}://{origin.authority}/"
        names = tuple(dict.fromkeys((*names, *await self._other_names(origin))))
        for name in names:
            alias = f"{origin.scheme}://{name}/"
            if self.never_places.match(alias) or everybodys(alias):
                raise Denied("never", f"{origin.host} is another name of {name}, which nothing asks")
            if self.owned_only and not (self.care.at(base).third_party or self._names_listed(name)):
                whose = third_party(name) or "not in scope"
                why = f"{origin.host} is another name of {name} ({whose}), and nobody permitted that"
                raise Denied("third-party", why)
        return Lookup(found, ttl_s, "" if own else self._changed(origin, (*found, *names)))

    def _changed(self, origin: Origin, found: tuple[str, ...]) -> str:
        """What a name leads to that nobody has confirmed, in words that begin with its host."""
        if self.known is None or _literal(origin.host) is not None:
            return ""
        inside = bool(self.ranges.networks)  # or it was refused
        return self.known.changed(self._paced(origin).host, found, inside=inside)

    def _names_listed(self, name: str) -> bool:
        return any(one.host == name for one in self.hosts) or any(
            shape.fullmatch(name) for _, shape in self.faces
        )

    async def _other_names(self, origin: Origin) -> tuple[str, ...]:
        """What a host is called in the end, by the aliases (CNAME) of its name."""
        if _is_localhost(origin.host) or _literal(origin.host) is not None:
            return ()
        return await (self.names or (system_names if self.resolve is None else _no_names))(origin)

    async def turn(self, target: EgressTarget, method: str) -> float:
        """Wait for a request's turn at its host, all faces being one; the seconds. Denied without one."""
        if self.pace is None:
            return 0.0
        origin, key = target.origin, self._paced(target.origin)
        if (held := self.pace.held(key)) > self.request_s / 2:
            raise self._paused(origin, held)
        await self.function_turn(target, method)
        return await self._in_time(origin, self.pace.turn(key, self.share(origin.host, self.impact)))

    async def function_turn(self, target: EgressTarget, method: str, body: bytes = b"") -> None:
        """Wait until the limit of a function that writes is over. Denied where that is long."""
        if method in SAFE:
            return
        limited = self.pace.held_by_any(self._function(target, method, body)) if self.pace else 0.0
        if limited > self.request_s / 2:
            raise self._paused(target.origin, limited)
        await asyncio.sleep(limited)

    @staticmethod
    def _paused(origin: Origin, held: float) -> Denied:
        return Denied("busy", f"{origin.host} asked for a pause: {held:.0f} s of it are left", status=429)

    async def turn_among(self, origin: Origin, address: str) -> float:
        """Wait for a turn among all hosts near this one, and among all; the seconds. Denied without one."""
        if self.pace is None:
            return 0.0
        return await self._in_time(origin, self.pace.turn_among(self._paced(origin), self.groups(address)))

    @asynccontextmanager
    async def connection(self, origin: Origin) -> AsyncIterator[None]:
        """One of the connections that a host has at once, all jails of a process together. Denied without."""
        if self.pace is None:
            yield
            return
        places = self.pace.connections(self._paced(origin))
        await self._in_time(origin, places.acquire())
        try:
            yield
        finally:
            places.release()

    async def _in_time(self, origin: Origin, turn: Awaitable[Turn]) -> Turn:
        try:
            async with asyncio.timeout(self.request_s / 2):
                return await turn
        except TimeoutError:
            why = f"no turn at {origin.host} in time: its rate is limited"
            raise Denied("busy", why, status=429) from None

    def carried(self, size: int) -> None:
        """Take in bytes that were sent or received, for the bandwidth of all jails together."""
        if self.pace is not None:
            self.pace.carried(size)

    def hold(
        self, target: EgressTarget, method: str, status: int, seconds: float, body: bytes = b""
    ) -> float:
        """Ask this host nothing for these seconds, all faces being one; the seconds for which it is held.

        A 429 to what writes is a limit of that function, as of sign-ups: the same is not sent there, and the
        host is held once it answers a reader so.
        """
        if self.pace is None or seconds <= 0:
            return seconds
        writes = status == 429 and method not in SAFE
        held = self._function(target, method, body) if writes else self._paced(target.origin)
        self.pace.hold(held, seconds)
        return 0.0 if writes else seconds

    def _function(self, target: EgressTarget, method: str, body: bytes) -> tuple[Origin, str, str]:
        """What a limit of what is written is about: a path, or of GraphQL its first field."""
        field = _FIELD.search(body[:LONGEST_OPERATION])
        name = f"#{(field[2] or field[1]).decode()}" if field else ""
        return self._paced(target.origin), method, target.path.partition("?")[0] + name

    def answered(self, target: EgressTarget, method: str, status: int, ms: float) -> float:
        """Take in how a host answered; the seconds for which it has been strained although asked less."""
        if self.pace is None:
            return 0.0
        page, query, _ = target.path.partition("?")
        same = method == "GET" and not query
        usual = Slow() if is_loopback(target.origin.host) else Slow(self.slower, AWAY_MS)
        return self.pace.answered(self._paced(target.origin), page, status, ms if same else None, usual)

    def share_of(self, origin: Origin) -> float:
        """The share of its rate with which a host is asked now: less while it is strained."""
        return 1.0 if self.pace is None else self.pace.share(self._paced(origin))

    def _paced(self, origin: Origin) -> Origin:
        if origin in self.hosts or self.care.listed.match(f"{origin.scheme}://{origin.authority}"):
            return origin
        return next((one for one, pattern in self.faces if pattern.fullmatch(origin.host)), origin)

    def lists(self, origin: Origin) -> bool:
        """Whether this exact origin is on the list, or is the face of a name."""
        return origin in self.hosts or any(
            (origin.scheme, origin.port) == (like.scheme, like.port) and pattern.fullmatch(origin.host)
            for like, pattern in self.faces
        )

    def may_be_private(self, origin: Origin) -> bool:
        """Only for hosts in the profile: an address literal, or a name under `localhost`."""
        return self.lists(origin) and (_literal(origin.host) is not None or _is_localhost(origin.host))

    def _reads(self, method: str, target: EgressTarget, body: bytes | None) -> bool:
        """Whether a request reads from an MCP server by its method and its body, or ends a session there."""
        if target not in self.mcp:
            return False
        return method == "DELETE" if method != "POST" else body is None or reads(body)

    def sells(self, target: EgressTarget) -> bool:
        """Whether what is there is paid for."""
        return self._is_below(target, self.paid)

    def _acts_on(self, target: EgressTarget) -> bool:
        return self._is_below(target, self.act_paths)

    def _is_below(self, target: EgressTarget, places: tuple[EgressTarget, ...]) -> bool:
        path = target.path.partition("?")[0]
        if not is_plain(path) or "%" in path or ";" in path:  # two servers may read those in two ways
            return False
        return any(
            target.origin == one.origin and f"{path}/".startswith(f"{one.path.rstrip('/')}/")
            for one in places
        )


def _rate_at(platform: Platform, key: Hashable) -> float:
    """Most requests a second to the host of a key of `_paced`."""
    assert isinstance(key, Origin)
    usual = platform.web.rate(key.host)
    return platform.care.at(f"{key.scheme}://{key.authority}").rate(usual)


def is_plain(path: str) -> bool:
    """Whether a path means the same to every server: it does not climb."""
    parts = path.split("/")
    return not ({".", ".."} & set(parts) or "\\" in path or _ESCAPED_DOT_OR_SLASH.search(path))


def parse_target(text: str) -> EgressTarget:
    """An absolute-form request target in the one accepted spelling; Denied otherwise."""
    scheme, mark, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    if scheme not in _PORTS or not mark or not text.isascii() or not text.isprintable():
        raise Denied("target", "expected an absolute http or https target")
    return EgressTarget(parse_authority(authority, scheme), slash + path or "/")


def parse_authority(text: str, scheme: str) -> Origin:
    """`host[:port]`, lower case, no user information, no trailing dot; Denied otherwise."""
    found = _AUTHORITY.fullmatch(text)
    if found is None or found[1].endswith(".") or ".." in found[1]:
        raise Denied("spelling", f"not a plain lower-case host and port: {text[:80]!r}")
    port = int(found[2]) if found[2] else _PORTS[scheme]
    if port > 65_535:
        raise Denied("spelling", "a port above 65535")
    return Origin(scheme, found[1], port)


def is_public(address: str) -> bool:
    """Whether an address is public: not loopback, not a neighbour, not a cloud metadata service."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        whole = ip.ipv4_mapped or (IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else None)
        if whole:  # another spelling of that very address
            return is_public(str(whole))
        inner = ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip not in _UNICAST or (inner is not None and not is_public(str(inner))):
            return False
    listed = ip in METADATA or any(ip in network for network in _NOT_HOSTS)
    return ip.is_global and not ip.is_multicast and not listed


async def addresses(
    origin: Origin,
    *,
    private: bool,
    resolve: Resolver | None = None,
    inside: Callable[[str], bool] = NO_RANGES.holds,
) -> tuple[str, ...]:
    """Every address of a host, resolved once; Denied when one is neither public nor `inside` and must be."""
    if _is_localhost(origin.host):
        found: Iterable[str] = ("127.0.0.1",)  # RFC 6761: never asked of a resolver
    elif literal := _literal(origin.host):
        found = (literal,)
    else:
        found = await (resolve or system_resolver)(origin)
    may = (is_public(one) or (inside(one) and not _is_metadata(one)) for one in found)
    if not private and not (all(may) and not any(map(is_own, found))):
        raise Denied("address", f"{origin.host} resolves to an address that is not public")
    return tuple(found)


def _is_metadata(address: str) -> bool:
    ip = ip_address(address.partition("%")[0])
    return ip in METADATA or (isinstance(ip, IPv6Address) and ip.ipv4_mapped in METADATA)


def is_own(address: str) -> bool:
    """Whether an address belongs to an interface of this machine: only those can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


async def system_resolver(origin: Origin) -> tuple[str, ...]:
    """All addresses of a host, in the system's order."""
    loop = asyncio.get_running_loop()
    try:
        infos = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    except OSError:
        raise Denied("unreachable", f"{origin.host}: {NO_NAME}", status=502) from None
    return tuple(dict.fromkeys(str(info[4][0]) for info in infos))


async def system_names(origin: Origin) -> tuple[str, ...]:
    """The last of a name's aliases, as the system's resolver says; none without one."""
    loop = asyncio.get_running_loop()
    try:
        infos = await loop.getaddrinfo(
            origin.host, origin.port, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME
        )
    except OSError:
        return ()
    found = dict.fromkeys(str(info[3]).lower().rstrip(".") for info in infos if info[3])
    return tuple(name for name in found if name != origin.host)


async def _no_names(_: Origin) -> tuple[str, ...]:
    return ()


def _literal(host: str) -> str | None:
    try:
        return str(ip_address(host.strip("[]")))
    except ValueError:
        return None


def _is_localhost(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def _profile_origin(url: str) -> Origin:
    """An origin as the operator wrote it, brought to the list's spelling."""
    parts = urlsplit(url)
    try:
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        host = host if ":" in host else host.rstrip(".").encode("idna").decode()
    except (ValueError, KeyError):
        raise ConfigError(f"web: {url!r} has no usable host and port") from None
    return Origin(parts.scheme, f"[{host}]" if ":" in host else host, port)


def _pairs(hosts: Iterable[str]) -> Iterable[Origin]:
    """`host:port` of the profile: port 443 means https, anything else http; a bare host means both."""
    for host in hosts:
        if host.rpartition(":")[2].isdigit():
            yield _profile_origin(f"{'https' if host.endswith(':443') else 'http'}://{host}")
        else:
            yield _profile_origin(f"http://{host}")
            yield _profile_origin(f"https://{host}")
