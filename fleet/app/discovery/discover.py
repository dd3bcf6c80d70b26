"""What there is at some addresses: pages, descriptions of APIs, agents, a node, a contract.

`discover` asks only what a visitor may: GET, and JSON-RPC that reads where a node or an MCP server shows. An
answer is believed only where its content is what the place promises: a site may answer 200 to everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urljoin, urlsplit

import anyio

from fleet.app.discovery.agents import (
    MODELS,
    FoundAgent,
    agents_at,
    mcp_services,
    registrations,
)
from fleet.app.discovery.json_rpc import (
    FoundContract,
    FoundNode,
    chain_of,
    contract_at,
    may_be_node,
    mcp_server,
)
from fleet.app.discovery.visitor import Unanswered, Visitor, VisitorAnswer, origin_of
from fleet.broker.egress_policy import Origin
from fleet.drivers.explore.documents.api import ABOUT_API, DESCRIPTIONS
from fleet.drivers.explore.documents.api_description import ApiDescription, read_description
from fleet.drivers.explore.web.site_map import MISSING
from fleet.errors import UsageError
from fleet.oracles.documents.api_document import api_document, is_description
from fleet.oracles.documents.openapi import operations, security_schemes
from fleet.text import counted, line
from fleet.unanswered import TIMED_OUT
from sandbox.pages.condensed import condensed
from sandbox.tools.qa_fetch import LONGEST
from sandbox.tools.qa_registry import REGISTRATION_PAGE

SECONDS = 60.0
"""For all hosts together, and again for an address."""
DESCRIPTION = 4 << 20
"""Bytes of a description of an API."""
LINKED = 8
"""Descriptions that pages link to, of one site; and pages about its API that the first one links to."""
FURTHER = (
    *("/api/swagger.json", "/api/schema/", "/api/v3/openapi.json", "/apispec_1.json", "/api-json"),
    *("/static/openapi.json", "/openapi/v1.json", "/swagger/v1/swagger.json", "/swagger/doc.json"),
    *("/documentation/json", "/docs-json", "/schema/openapi.json", "/openapi/json", "/swagger/json"),
    *("/q/openapi", "/doc", "/apispec.json", "/__api__"),
)
"""Where frameworks put their descriptions, besides the places that the explorer of APIs looks at itself."""
ABOUT = ("/docs", "/redoc", "/swagger", "/apidocs", "/swagger-ui.html", "/.well-known/api-catalog")
"""Pages that name a description."""
ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_LINKED = re.compile(
    r"[\"'(=<]\s{0,2}([^\s\"'()<>=]{0,180}(?:openapi|swagger|api-docs|apispec|/schema)[^\s\"'()<>]{0,60})",
    re.IGNORECASE,
)
_HREF = re.compile(r"<a\b[^>]{0,400}?\bhref\s{0,2}=\s{0,2}[\"']?([^\s\"'<>]{1,200})", re.IGNORECASE)
_ASSET = re.compile(r"\.(?:js|css|png|ico|svg|map|html?)(?:\?|$)", re.IGNORECASE)
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document at a place that a site has it; `role` is its role among the targets of a profile."""

    role: str
    url: str
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSite:
    """A host that answers as a site; `how` says what to. `start` is another path of it that was named."""

    origin: str
    how: str
    start: str = ""
    documents: tuple[FoundDocument, ...] = ()
    agents: tuple[FoundAgent, ...] = ()
    ways_in: tuple[str, ...] = ()
    """How requests show who asks, as its description has it."""
    notes: tuple[str, ...] = ()
    """What was found and is not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Everything found. `silent`: what was named and did not answer, with the reason."""

    sites: tuple[FoundSite, ...] = ()
    node: FoundNode | None = None
    contract: FoundContract | None = None
    silent: tuple[tuple[str, str], ...] = ()
    requests: int = 0


@dataclass(frozen=True, slots=True)
class NamedTargets:
    """What a person named: URLs, each in the ways it may be meant, the likeliest first; an address."""

    urls: tuple[tuple[str, ...], ...] = ()
    address: str = ""

    @classmethod
    def of(cls, words: Iterable[str]) -> NamedTargets:
        """Read a command line: `https://host/path`, `host`, `host:port` or `0x…`; UsageError for others."""
        urls, found = list[tuple[str, ...]](), list[str]()
        for word in words:
            if ADDRESS.fullmatch(word):
                found.append(word)
                continue
            ways = (word,) if "://" in word else tuple(f"{one}://{word}" for one in _schemes(word))
            try:
                urls.append(tuple(_plain(one) for one in ways))
            except (Unanswered, UnicodeError, ValueError) as error:
                raise UsageError(
                    f"{line(word, 100)!r} is no URL, host:port or address: {line(str(error), 100)}",
                    remedy="write https://HOST[:PORT]/PATH, HOST:PORT, or an address and the URL of its node",
                ) from None
        if len(found) > 1 or (found and not urls):
            raise UsageError(
                "one address at a time, with the URL of its chain's node",
                remedy=f"fleet look {found[0]} https://RPC-URL",
            )
        return cls(tuple(urls), found[0] if found else "")

    @property
    def name(self) -> str:
        """A name for the profile: of the contract, else of the first host."""
        word = self.address[:10] or urlsplit(self.urls[0][0]).netloc
        return re.sub(r"[^a-z0-9_.-]+", "-", word.lower()).strip("-._")[:64] or "platform"

    @property
    def origins(self) -> frozenset[Origin]:
        """Every host and port that may be asked."""
        return frozenset(origin_of(url) for ways in self.urls for url in ways)


def _schemes(word: str) -> tuple[str, ...]:
    """The likelier scheme of a host without one first."""
    host, _, port = word.partition("/")[0].rpartition(":")
    near = (host or port).startswith(("127.", "10.", "192.168.", "localhost", "[::1]"))
    if port in ("443", "8443") or not (near or port.isdigit()):
        return ("https", "http")
    return ("http", "https")


def _plain(url: str) -> str:
    """A URL of http or https, its host in ASCII, without a fragment."""
    parts = urlsplit(url)
    host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
    plain = f"{parts.scheme.lower()}://{host.lower()}{parts.path or '/'}"
    origin_of(plain)
    return plain + (f"?{parts.query}" if parts.query else "")


async def discover(
    named: NamedTargets, agent: str, report: Progress = lambda _: None, *, seconds: float = SECONDS
) -> Discovery:
    """Ask everything that was named; `report` is called with a line for each thing found."""
    found = _Findings(named, report)
    async with Visitor(named.origins, agent) as visitor:
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as tasks:
                for ways in named.urls:
                    tasks.start_soon(found.place, visitor, ways)
        with anyio.move_on_after(seconds):
            await found.address(visitor)
        return found.discovery(visitor.asked)


class _Findings:
    """What was found so far, by the URLs that were named."""

    def __init__(self, named: NamedTargets, report: Progress) -> None:
        self._named, self._report = named, report
        self._sites: dict[tuple[str, ...], FoundSite] = {}
        self._silent: dict[tuple[str, ...], str] = {}
        self._nodes: dict[tuple[str, ...], FoundNode] = {}
        self._contract: FoundContract | None = None

    def discovery(self, requests: int) -> Discovery:
        """In the order of the command line; what ran out of time is silent."""
        late = [ways for ways in self._named.urls if ways not in {*self._sites, *self._silent, *self._nodes}]
        silent = self._silent | dict.fromkeys(late, TIMED_OUT)
        return Discovery(
            sites=tuple(self._sites[ways] for ways in dict.fromkeys(self._named.urls) if ways in self._sites),
            node=next(iter(self._nodes.values()), None),
            contract=self._contract,
            silent=tuple((ways[0], why) for ways, why in silent.items()),
            requests=requests,
        )

    async def place(self, visitor: Visitor, ways: tuple[str, ...]) -> None:
        """One URL that was named: a node, or a site."""
        why = ""
        for url in ways:
            try:
                first = await visitor.get(url)
            except Unanswered as error:
                why = why or str(error)
                continue
            asks_node = bool(self._named.address) or may_be_node(first)
            if asks_node and (node := await chain_of(visitor, url)):
                self._nodes[ways] = node
                self._report(f"{url}: {node.how}")
                return
            site = FoundSite(origin=_origin(first.url), how=_seen(url, first), start=_start(url))
            if first.elsewhere:
                note = f"{url} redirects to {first.elsewhere}: another host, asked only if it is named too"
                site = replace(site, notes=(note,))
            self._report(f"{url}: {site.how}")
            self._sites[ways] = site
            self._sites[ways] = await _documents(visitor, site, first, self._report)
            return
        self._silent[ways] = why

    async def address(self, visitor: Visitor) -> None:
        """The contract at the address that was named."""
        for node in [*self._nodes.values()][:1] if self._named.address else ():
            self._contract = await contract_at(visitor, node.rpc, self._named.address)
            if self._contract:
                self._report(f"{self._named.address}: {self._contract.how}")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _start(url: str) -> str:
    parts = urlsplit(url)
    return "" if parts.path in ("", "/") and not parts.query else url[len(_origin(url)) :]


def _seen(url: str, answer: VisitorAnswer) -> str:
    """What a page was answered with, in words."""
    if not answer.whole:
        return f"GET {url} answered with more than is read"
    server = line(answer.headers.get("server", ""), 40)
    said = [f"GET {line(url, 120)} answered {answer.status}", answer.type, server and f"server {server}"]
    return ", ".join(filter(None, said))


# What a site has ----------------------------------------------------------------------------------


async def _documents(visitor: Visitor, site: FoundSite, first: VisitorAnswer, report: Progress) -> FoundSite:
    """The site with the documents that it has, and what they say."""
    pages: dict[str, VisitorAnswer] = {first.url: first}
    folder = site.start.partition("?")[0].rpartition("/")[0]
    places = {below + one for below in ("", folder) for one in (*DESCRIPTIONS, *FURTHER)}

    async def fetched(path: str) -> None:
        url = site.origin + path
        try:
            limit = DESCRIPTION if path in places else LONGEST * 8
            pages[url] = await visitor.get(url, accept="application/json, */*;q=0.8", limit=limit)
        except Unanswered:
            return

    about = [one for one in _links([first], site.origin, _HREF) if ABOUT_API.search(one)]
    await _all(fetched, ["/", MISSING, MODELS, *READERS, *ABOUT, *about[:LINKED]])
    await _all(fetched, sorted(one for one in places if site.origin + one not in pages))
    linked = [one for one in _links(pages.values(), site.origin, _LINKED) if site.origin + one not in pages]
    await _all(fetched, linked[:LINKED])
    missing = pages.get(site.origin + MISSING)
    absent = missing.body if missing and missing.status == 200 else None
    documents, notes, ways_in = list[FoundDocument](), list(site.notes), tuple[str, ...]()
    agents = list[FoundAgent]()
    for url, answer in pages.items():
        path = url[len(site.origin) :]
        if answer.status != 200 or not answer.body or answer.body == absent or path == MISSING:
            continue
        met, elsewhere = agents_at(path, answer, site.origin)
        agents, notes = [*agents, *met], [*notes, *elsewhere]
        if reader := READERS.get(path):
            role, how = reader[0], reader[1](answer)
            documents += [FoundDocument(role, url, how)] * bool(how)
        elif is_description(text := _described(answer)):
            read = await anyio.to_thread.run_sync(read_description, text, site.origin)
            if isinstance(read, ApiDescription) and read.operations:
                documents.append(FoundDocument("description", url, _of_description(text, read)))
                ways_in = ways_in or tuple(
                    dict.fromkeys(one.carried or "bearer" for one in security_schemes(read.whole))
                )
            else:
                notes.append(
                    f"{url}: a description of an API that cannot be read: {line(str(read), 100)}"[:300]
                )
    documents = list({(one.role, one.how): one for one in reversed(documents)}.values())[::-1]
    said = pages.get(site.origin + REGISTRATION_PAGE)
    named = [site.origin + (site.start or "/"), *(mcp_services(said, site.origin) if said else ())]
    for url in dict.fromkeys((*named, *(f"{site.origin}{path}" for path in ("/mcp", "/mcp/")))):
        if how := await mcp_server(visitor, url, absent):
            documents.append(FoundDocument("mcp", url, how))
            break
    for one in documents:
        report(f"{one.url}: {one.how}")
    met = list({(one.wire, one.url, one.model): one for one in reversed(agents)}.values())[::-1]
    for agent in met:
        report(f"{agent.url}: an agent {agent.name!r}, {agent.how}")
    return replace(site, documents=tuple(documents), notes=tuple(notes), agents=tuple(met), ways_in=ways_in)


async def _all(work: Callable[[str], Coroutine[Any, Any, None]], paths: Sequence[str]) -> None:
    async with anyio.create_task_group() as tasks:
        for path in dict.fromkeys(paths):
            tasks.start_soon(work, path)


def _links(pages: Collection[VisitorAnswer], origin: str, form: re.Pattern[str]) -> list[str]:
    """Paths of this host that pages name in such a form, without scripts, styles and pictures."""
    found = list[str]()
    for page in pages:
        for match in form.finditer(page.text[: LONGEST * 4]):
            try:
                url = urljoin(page.url, match[1]).partition("#")[0]
            except ValueError:
                continue
            if url.startswith(f"{origin}/") and not _ASSET.search(url):
                found.append(url[len(origin) :])
    return list(dict.fromkeys(found))


def _described(answer: VisitorAnswer) -> str:
    """The text of an answer, as long ones are read: without prose and examples."""
    text = answer.text
    return text if len(text) < LONGEST else condensed(text, LONGEST)


def _of_description(text: str, read: ApiDescription) -> str:
    document = api_document(text)
    info = document.get("info") if not isinstance(document, str) else None
    title = line(str(info.get("title", "")), 60) if isinstance(info, dict) else ""
    reads = sum(one.method in ("GET", "HEAD") for one in operations(read.whole))
    version = line(str(read.whole.get("openapi", "")), 12)
    called = f" {title!r}" if title else ""
    return f"OpenAPI {version}{called}: {counted(read.count, 'operation')}, {reads} that read"


def _guide(answer: VisitorAnswer) -> str:
    text = answer.text.lstrip()
    plain = text and text[:1] not in "<{" and "html" not in answer.type
    return f"a guide for agents, {counted(len(text.splitlines()), 'line')}" if plain else ""


def _robots(answer: VisitorAnswer) -> str:
    closed = len(re.findall(r"(?im)^disallow:[ \t]{0,4}/", answer.text))
    is_one = re.search(r"(?im)^user-agent[ \t]{0,4}:", answer.text)
    return f"robots.txt, {counted(closed, 'path')} disallowed" if is_one else ""


def _sitemap(answer: VisitorAnswer) -> str:
    is_one = re.search(r"<(?:\w{1,20}:)?(?:urlset|sitemapindex)\b", answer.text[:4_000])
    return f"a sitemap of {counted(answer.text.count('<loc>'), 'page')}" if is_one else ""


def _security(answer: VisitorAnswer) -> str:
    contact = re.search(r"(?im)^contact:[ \t]{0,4}(\S{3,200})", answer.text)
    return (
        f"whom to write to about findings: {line(contact[1], 120)}"
        if contact and "<" not in answer.text[:1]
        else ""
    )


def _agent_card(answer: VisitorAnswer) -> str:
    card = answer.json
    is_one = isinstance(card, dict) and isinstance(card.get("name"), str)
    if not is_one or not {"skills", "url", "supportedInterfaces", "capabilities"} & set(card):
        return ""
    skills = card.get("skills")
    count = len(skills) if isinstance(skills, list) else 0
    return f"the card of an agent {line(card['name'], 60)!r}, {counted(count, 'skill')}"


def _registration(answer: VisitorAnswer) -> str:
    named = registrations(answer)
    return (
        f"a registration of ERC-8004: {', '.join(named)}; [erc8004] would have it looked at" if named else ""
    )


READERS: dict[str, tuple[str, Callable[[VisitorAnswer], str]]] = {
    "/llms.txt": ("guide", _guide),
    "/skill.md": ("manual", _guide),
    "/robots.txt": ("robots", _robots),
    "/sitemap.xml": ("sitemap", _sitemap),
    "/.well-known/security.txt": ("security", _security),
    "/.well-known/agent-card.json": ("agent-card", _agent_card),
    "/.well-known/agent.json": ("agent-card", _agent_card),
    REGISTRATION_PAGE: ("registration", _registration),
}
"""Documents at fixed places: role, and what is found there, "" where the content is another."""
