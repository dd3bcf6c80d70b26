"""Shared by all request handlers: settings, the chain, the switches, and the little state there is."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.templating import Jinja2Templates

from fleet.clock import Clock, SystemClock
from fleet.devnet.platform.chain import ChainPort

CREDIT = 10**18
"""Wei in one credit."""

TEMPLATES = Jinja2Templates(Path(__file__).parent / "templates")
"""Autoescape is on for .html; the documents are Markdown and hold nothing a visitor wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings; the defaults are the platform's published terms."""

    public_url: str = "http://127.0.0.1"
    price_wei: int = CREDIT // 100
    """One message, 0.01 credits (platform-facts 1.7)."""
    freshness_s: int = 300
    """A call token is good for this long either side of its time."""
    calls_per_minute: int = 600
    """Per address; generous, a fleet of testers shares few addresses."""
    max_body: int = 16 << 20
    auth_scope: str = "localharness-proxy"
    route: str = "gemini"
    metering: bool = True
    """False when no meter key is configured: calls answer 503 instead of being free."""


class RateLimiter:
    """At most `limit` per address in any minute; keeps addresses that called in the last minute only."""

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit, self._clock = limit, clock
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()

    def retry_after(self, address: str) -> int:
        """0 when the call may go on, which counts it; else the seconds to wait."""
        now = self._clock.monotonic()
        while self._seen and next(iter(self._seen.values()))[-1] <= now - 60:
            self._seen.popitem(last=False)
        calls = self._seen.get(address, deque())
        while calls and calls[0] <= now - 60:
            calls.popleft()
        if len(calls) >= self._limit:
            return max(1, int(calls[0] + 60 - now))
        calls.append(now)
        self._seen[address] = calls
        self._seen.move_to_end(address)
        return 0


class Greetings:
    """Names that callers asked agents to use; bounded, oldest dropped first."""

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._kept: OrderedDict[tuple[str, str], str] = OrderedDict()

    def put(self, agent: str, caller: str, text: str) -> None:
        self._kept[agent, caller] = text
        self._kept.move_to_end((agent, caller))
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)

    def get(self, agent: str, caller: str) -> str:
        return self._kept.get((agent, caller), "")


@dataclass(kw_only=True)
class Site:
    """One running platform."""

    chain: ChainPort
    defects: frozenset[str]
    settings: Settings
    clock: Clock = field(default_factory=SystemClock)
    limiter: RateLimiter = field(init=False)
    greetings: Greetings = field(default_factory=Greetings)
    face_hits: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.limiter = RateLimiter(self.settings.calls_per_minute, self.clock)

    def allows_origin(self, origin: str) -> bool:
        """Exact scheme and hostname; any port, since a developer's page may be served from any."""
        if "origin-prefix" in self.defects:
            return origin.startswith("http://localhost")
        try:
            parts = urlsplit(origin)
            hostname = parts.hostname
        except ValueError:
            return False
        own = urlsplit(self.settings.public_url).hostname
        plain = f"{parts.scheme}://{parts.netloc}" == origin and "@" not in parts.netloc
        return plain and parts.scheme == "http" and hostname in {"localhost", "127.0.0.1", own}


def site_of(request: Request) -> Site:
    """The platform that serves this request."""
    site: Site = request.app.state.site
    return site
