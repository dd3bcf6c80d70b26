"""Bounded, harmless requests to hosts that a person named; what answers is hostile.

A request goes to a named host alone, at an address that the broker's rule permits; redirects are followed on
that host. A body is read up to a limit, and each exchange has a deadline.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from ipaddress import ip_address
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urljoin, urlsplit

import anyio

from fleet.broker.egress_policy import (
    Origin,
    addresses,
    is_own,
    is_public,
    parse_target,
    system_resolver,
)
from fleet.broker.rpc_policy import Denied
from fleet.config.ranges import METADATA
from fleet.http_client import AnswerTooLarge, HttpFailure, open_client, send
from fleet.text import line
from fleet.unanswered import TIMED_OUT, unanswered
from sandbox import strict_json

if TYPE_CHECKING:
    import httpx

ANSWER_S, FIRST_S = 8.0, 30.0
"""Longest exchange, in seconds; the first of a host may wait for a server that is just beginning."""
PAGE = 1 << 20
"""Bytes of an answer."""
REQUESTS = 200
"""Requests to all hosts together."""
REDIRECTS = 4
AT_ONCE = 4
"""Requests under way at a time."""
_MOVED = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class VisitorAnswer:
    """What one request was answered with; `url` is the last one asked.

    `elsewhere` is another host that a redirect leads to, which is not asked. `whole` is false for a body that
    is longer than was read; then `body` and `headers` are empty and `status` is 0.
    """

    url: str
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    elsewhere: str = ""
    whole: bool = True

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace").removeprefix("\ufeff")

    @property
    def type(self) -> str:
        """The media type, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()[:60]

    @property
    def json(self) -> Any:  # noqa: ANN401  any JSON
        """The body as JSON; None for any other."""
        try:
            return strict_json.loads(self.body, values=5_000)
        except ValueError:
            return None


class Unanswered(Exception):
    """No answer, or a request that was not made; the text says why."""


async def is_ours(origin: Origin) -> bool:
    """Whether a host is this machine or in a private network, by every address that it has.

    Link-local addresses are not: cloud metadata services have them. Unanswered where a name does not resolve.
    """
    try:
        found = await addresses(origin, private=True, resolve=system_resolver)
    except Denied as denied:
        raise Unanswered(str(denied)) from None
    return bool(found) and all(_is_private(one) for one in found)


def _is_private(address: str) -> bool:
    ip = ip_address(address.partition("%")[0])
    if ip.is_link_local or ip.is_unspecified or ip in METADATA:
        return False
    return is_own(address) or ip.is_loopback or (ip.is_private and not is_public(address))


class Visitor:
    """Asks these origins and no other; `agent` is the User-Agent."""

    def __init__(self, origins: frozenset[Origin], agent: str) -> None:
        self._origins, self._headers = origins, {"user-agent": agent, "accept": "*/*"}
        self._stack, self._clients = AsyncExitStack(), dict[Origin, "httpx.AsyncClient"]()
        self._turns, self.asked = anyio.CapacityLimiter(AT_ONCE), 0
        self._met = set[Origin]()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def get(self, url: str, *, accept: str = "*/*", limit: int = PAGE) -> VisitorAnswer:
        """GET, with redirects on the same host followed; Unanswered without an answer."""
        for _ in range(REDIRECTS + 1):
            answer = await self.ask("GET", url, accept=accept, limit=limit)
            target = answer.headers.get("location", "")
            if answer.status not in _MOVED or not target:
                return answer
            following = urljoin(url, target[:2_000]).partition("#")[0]
            if not self._is_same(url, following):
                return VisitorAnswer(url, answer.status, answer.headers, elsewhere=line(following, 200))
            url = following
        raise Unanswered(f"more than {REDIRECTS} redirects")

    def _is_same(self, url: str, following: str) -> bool:
        """Whether a redirect stays on its host: by name, in the clear or not, at a port that was named."""
        try:
            before, after = origin_of(url), origin_of(following)
        except Unanswered:
            return False
        plain = (before.scheme, before.port, after.scheme, after.port) == ("http", 80, "https", 443)
        if before.host == after.host and plain:
            self._origins |= {after}
        return after in self._origins and before.host == after.host

    async def ask(
        self,
        method: str,
        url: str,
        content: bytes = b"",
        *,
        accept: str = "*/*",
        limit: int = PAGE,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> VisitorAnswer:
        """One request of this method, with `more` headers; Unanswered without an answer."""
        origin = origin_of(url)
        if origin not in self._origins:
            raise Unanswered(f"{origin.host} was not named")
        async with self._turns:
            if self.asked >= REQUESTS:
                raise Unanswered(f"{REQUESTS} requests were made")
            self.asked += 1
            headers = self._headers | {"accept": accept} | dict(more)
            headers |= {"content-type": "application/json"} if content else {}
            try:
                with anyio.fail_after(ANSWER_S if origin in self._met else FIRST_S):
                    client = await self._client(origin)
                    status, said, body = await send(
                        client, method, url, content, headers, limit=limit, unzip=True
                    )
            except TimeoutError:
                raise Unanswered(TIMED_OUT) from None
            except AnswerTooLarge:
                return VisitorAnswer(url, whole=False)
            except HttpFailure as failure:
                why = unanswered(failure.__cause__ or failure) or str(failure)
                raise Unanswered(line(why, 200)) from None
            finally:
                self._met.add(origin)
        return VisitorAnswer(url, status, said, body)

    async def _client(self, origin: Origin) -> httpx.AsyncClient:
        """The connections to one host, whose addresses are looked at before the first."""
        if origin not in self._clients:
            named = origin.host.strip("[]")
            literal = named.replace(".", "").isdigit() or ":" in named
            private = literal or named == "localhost" or named.endswith(".localhost")
            try:
                await addresses(origin, private=private)
            except Denied as denied:
                why = "; name it by its address" if denied.rule == "address" else ""
                raise Unanswered(f"{denied}{why}") from None
            client = open_client(f"{origin.scheme}://{origin.authority}/")
            self._clients[origin] = await self._stack.enter_async_context(client)
        return self._clients[origin]


def origin_of(url: str) -> Origin:
    """Scheme, host and port of a URL, in the broker's spelling; Unanswered for one that it refuses."""
    try:
        parts = urlsplit(url)
        return parse_target(f"{parts.scheme}://{parts.netloc.lower()}/").origin
    except (Denied, ValueError) as error:
        raise Unanswered(line(str(error), 200)) from None
