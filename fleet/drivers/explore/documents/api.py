"""The explorer of an API that describes itself: requests that fit its description, and that do not.

A description is OpenAPI or Swagger 2.0, in JSON or YAML, or a document that writes down calls with examples
(`oracles/documents`). It is looked for at well-known places and among what the first pages refer to. Each run
asks each operation once more, with other values: the operations asked least first. A question is the
description, then calls of one operation, so that the oracles can compare them; a call that is an act has a
question of its own.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from random import Random
from typing import Any
from urllib.parse import urlsplit

from fleet.drivers.desk import ACCOUNTS, Left, Question, led_by
from fleet.drivers.explore.account import api_rows
from fleet.drivers.explore.account.api_members import invited, membership
from fleet.drivers.explore.account.api_questions import first, then
from fleet.drivers.explore.account.ways import NO_SIGN_UP, ApiPlaces, known_start, role_of
from fleet.drivers.explore.documents import graphql
from fleet.drivers.explore.documents.api_cases import ApiRequest, lacking, requests
from fleet.drivers.explore.documents.api_description import ApiDescription, read_description
from fleet.drivers.explore.documents.learned import graphql_places, learned
from fleet.drivers.explore.documents.lengths import lengthened
from fleet.drivers.explore.origins import origins
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.port import ExplorerContext, Results
from fleet.oracles.account.tokens import attempts
from fleet.oracles.documents.api_document import api_document, is_description
from fleet.oracles.documents.graphql import PROBES, as_openapi, names_type, speaks_graphql
from fleet.oracles.documents.graphql_guesses import GuessedSchema
from fleet.oracles.documents.openapi import operations, server
from fleet.personas.model import Step
from sandbox.spec import SAFE
from sandbox.tools.qa_fetch import LONGEST

FETCH = "qa_fetch"
BROWSE = "qa_browse"
TOOLS = (FETCH,)
VERSION = 1
PAGES = ("/", "/llms.txt", "/docs", "/api", "/api/docs", "/swagger", "/redoc")
DESCRIPTIONS = (
    *("/openapi.json", "/swagger.json", "/v3/api-docs", "/api/openapi.json", "/api/v1/openapi.json"),
    *("/docs/openapi.json", "/api-docs", "/.well-known/openapi.json", "/openapi", "/openapi.yaml"),
    *("/swagger.yaml", "/openapi.yml", "/api/openapi.yaml", "/v1/openapi.json", "/v2/openapi.json"),
    *("/api/v2/openapi.json", "/api/v1/swagger.json", "/v1/swagger.json"),
)
UNREAD = ("too_large", "garbage")
"""How a fetch ends when something is there and cannot be read."""
TOGETHER, ASKED = 8, 12
"""Calls of one question, and questions of one turn: each fetches the description again."""
OPERATIONS = 16
"""Operations of one run."""
FURTHER = 40
"""Pages of one run that others lead to."""
MOST = 8
"""Descriptions that are remembered."""
OPENED = 6
"""Pages that are opened in a browser where no description leads to accounts: seconds each."""
_FILE = re.compile(r"(?i)\.(?!html?$)\w{1,5}$")
_LINK = re.compile(r"(?i)(?:openapi|swagger|api-docs?)[\w./-]*$|\.ya?ml$")
ABOUT_API = re.compile(
    r"(?i)(?:^|[/=])(?:api|developers?|docs?|guide|handbook|help|integrations?|manual|limits|auth|security"
    r"|reference)(?:[/.-]|$)"
)
"""Pages that may lead to a description, or say how many attempts to log in there are."""
_LOG = logging.getLogger("fleet.explore")


@dataclass(frozen=True, slots=True)
class DescriptionLookup(Question):
    """A place where a description may be, or a page that may link to one."""

    url: str = ""

    @property
    def why(self) -> str:
        return "a place where a description of the API may be"


@dataclass(frozen=True, slots=True)
class ScriptCalls(Question):
    """A page in a browser, its form filled and its buttons pressed: what its scripts would ask."""

    url: str = ""

    @property
    def why(self) -> str:
        return "a page whose scripts may call an API"


class ApiExplorer:
    """Implements Explorer. `rounds`: how often each operation was asked, by description and operation."""

    def __init__(self, context: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> None:
        self._urls, self._acts, self._chance = OwnUrls(context.platform), context.acts, chance
        self._accounts = context.acts and api_rows.TOOL in context.tools
        self._rows: list[api_rows.AccountRows] = []
        self._waiting: list[api_rows.AccountRows] = []
        self._borrowing: dict[str, tuple[Mapping[str, Any], Step, ApiPlaces]] = {}
        """Descriptions that name no sign-up, by URL: that of another one on their host may be theirs, too."""
        self._stating: list[Step] = []
        """What shows a document that states how many attempts to log in there are."""
        known = state if state.get("version") == VERSION else {}
        rounds = known.get("rounds")
        self.rounds = (
            {str(key): times for key, times in rounds.items() if type(times) is int}
            if isinstance(rounds, dict)
            else {}
        )
        self._places = [str(one) for one in known.get("places", ()) if isinstance(one, str)][:MOST]
        self.found: dict[str, tuple[ApiDescription, str]] = {}
        """Descriptions by URL, each with the base of its operations."""
        self._lookups: list[str] | None = None
        self._seen: set[str] = set()
        self._next: list[Question] = []
        self._later: list[Question] = []
        """What is asked after the rows of accounts."""
        self._flows: list[Iterator[Question]] = []
        """What accounts are asked, as far as it was not made yet."""
        self._met: list[api_rows.AccountRows] = []
        """Those that are asked this."""
        self._listens = context.platform.web.listens
        self._left, self._further = OPERATIONS, FURTHER
        self._done: set[str] = set()
        self._without: dict[str, str] = {}
        """Why nothing is asked as an account, by the URL of a description."""
        self._quiet: dict[str, str] = {}
        """The same of descriptions that name nothing for which credentials are needed."""
        starts = known.get("starts")
        self._starts: dict[str, Any] = dict(starts) if isinstance(starts, dict) else {}
        """By which arguments accounts were made in the end, by the URL of a description."""
        self._known = known_start(context.platform)
        self._endpoints: list[str] = []
        """Where a GraphQL API may be."""
        self._guesses: dict[str, GuessedSchema] = {}
        """Of GraphQL APIs that do not tell their schemas, by URL."""
        self._by_get: set[str] = set()
        """GraphQL APIs that answer queries by GET."""
        self._unread: dict[str, str] = {}
        """Why a description that was found could not be read, by its URL."""
        self._opens = OPENED if self._accounts and BROWSE in context.tools else 0
        self._linked: dict[str, str] = {}
        """Pages of the site that may have a form for accounts, or ask an API, by URL: the word for it."""
        self._opened: dict[str, list[Mapping[str, Any]]] = {}
        """What the scripts of pages asked, by page; `_awaited` are those that are being opened."""
        self._awaited: set[str] = set()

    def ask(self, most: int) -> Sequence[Question]:
        if self._lookups is None:
            if why := lacking():
                _LOG.info("the explorer of APIs asks nothing: %s", why)
            places = [place + path for place in self._urls.places for path in (*DESCRIPTIONS, *PAGES)]
            self._endpoints += [place + path for place in self._urls.places for path in graphql.PLACES]
            self._lookups = [] if why else list(dict.fromkeys([*self._places, *self._urls.named(), *places]))
        if most > 0 and self._endpoints:
            asked_at, self._endpoints = self._endpoints[:most], self._endpoints[most:]
            return [graphql.lookup(url) for url in asked_at]
        if looked := self._lookups[:most]:
            del self._lookups[:most]
            self._seen.update(looked)
            return [DescriptionLookup((_document(url),), url) for url in looked]
        self._next += (rows.first() for rows in self._waiting)  # once in a run, by each description
        self._waiting = []
        if not (self._next or self._rows) and self._opens:
            self._next += self._openings()
        while not self._next and self._flows:
            flow = self._flows.pop(0)
            self._next += islice(flow, ASKED)  # a few: the next know what was refused
            if self._next:
                self._flows.append(flow)  # by turns: a role, or what may be set, waits for no other
        if not self._next:
            self._next, self._later = self._later, []
        while not self._next and self._left > 0 and (chosen := self._operation()):
            self._left -= 1
            self._next += self._questions(*chosen)
        asked: list[Question] = []
        while self._next and len(asked) < ASKED and len(self._next[0].steps) <= most:
            most -= len(self._next[0].steps)
            one = self._next.pop(0)
            asked += led_by(f"operations that {one.steps[0].args.get('url', '')} describes", one)
        return asked

    def learn(self, question: Question, results: Results) -> None:
        if isinstance(question, api_rows.AccountTry) and question.rows and results:
            self._tried(question.rows, results[-1])
        if question.steps[-1].tool == api_rows.TOOL and results:
            self._answered(question.steps[-1].args, results[-1])
        source = str(question.steps[0].args.get("url", ""))
        if source in self._quiet and any(one.get("status") == 401 for one in results):
            self._without[source] = self._quiet.pop(source)  # a visitor is refused, whatever it says
        if isinstance(question, api_rows.OwnRecord) and results:
            answers = _list(results[-1].get("answers"))
            facts = answers[0].get("facts", {}) if answers else {}
            self._next[:0] = [one for rows in self._rows for one in rows.raised(question, facts)]
        if isinstance(question, graphql.GraphqlLookup) and results:
            self._met_graphql(question, results[-1])
        if isinstance(question, graphql.GraphqlGuess) and question.guess and results:
            self._guesses[question.url].learn(question.guess, str(results[-1].get("text", "")))
            self._guess(question.url, question.steps[-1])
        if isinstance(question, ScriptCalls):
            self._asked_by_scripts(question.url, results[0] if results else {})
        if not isinstance(question, DescriptionLookup) or not results:
            return
        self._read(question, results[0])

    def _read(self, question: DescriptionLookup, result: Mapping[str, Any]) -> None:
        """Learn from a page: a description, or where one may be."""
        if result.get("error_class") in UNREAD and question.url.endswith((*DESCRIPTIONS, ".json", ".yaml")):
            self._unread[question.url] = str(result.get("error", ""))
        if (status := result.get("status")) != 200:
            if isinstance(status, int) and 300 <= status < 400:
                self._look_at([str(result.get("location", ""))], question.url)
            return
        text = str(result.get("text", ""))
        self._stating += [_document(question.url)] * bool(attempts(text))
        place = urlsplit(self._urls.actual(question.url))
        read = read_description(text, f"{place.scheme}://{place.netloc}")
        if isinstance(read, ApiDescription) and read.operations:
            self._learn(question.url, read)
        elif isinstance(read, str) and is_description(text):
            self._unread[question.url] = read
        if not isinstance(api_document(text), str):
            return
        if "html" in str(result.get("content_type", "")):
            self._may_ask(question.url, _list(result.get("links")))
        said = [str(one) for one in (*_list(result.get("links")), *_list(result.get("paths")))]
        self._look_at([one for one in said if _leads(one)], question.url)

    def _look_at(self, links: Sequence[str], page: str) -> None:
        """Look for a description there too, as far as they are on a host of the platform."""
        for link in links:
            url = self._urls.spelled(link, page) if link else ""
            if url and url not in self._seen and self._further > 0 and self._lookups is not None:
                self._further -= 1
                self._seen.add(url)
                self._lookups.append(url)

    def _may_ask(self, page: str, links: Sequence[Any]) -> None:
        """Remember a page and those that it links to, which may have scripts that ask an API."""
        for link in (self._urls.actual(page), *links):
            url = self._urls.spelled(str(link), page)
            path = urlsplit(url).path
            if url and "?" not in url and len(self._linked) < FURTHER and not _FILE.search(path):
                self._linked.setdefault(url, role_of(path))

    def _pages(self, actual: str) -> list[str]:
        """The paths of the pages that are known on the host of a URL."""
        host = urlsplit(actual).netloc
        found = [urlsplit(self._urls.actual(url)) for url in self._linked]
        return [one.path for one in found if one.netloc == host and one.path != "/"]

    def _openings(self) -> Iterator[Question]:
        """Pages with a form for accounts by their names first; then others."""
        ranks = {"join": 0, "enter": 1, "": 2}
        pages = sorted(self._linked, key=lambda url: ranks[self._linked[url]])[: self._opens]
        self._opens, self._awaited = 0, set(pages)
        for url in pages:
            yield ScriptCalls((Step(tool=BROWSE, args={"url": url, "press": True}),), url=url)

    def _asked_by_scripts(self, url: str, result: Mapping[str, Any]) -> None:
        """Once all pages were opened, what they asked is a description: its sign-up, and the rest."""
        self._awaited.discard(url)
        calls = [one for one in _list(result.get("calls")) if isinstance(one, Mapping)]
        own = [one for one in calls if self._urls.spelled(str(one.get("url", "")), url)]
        self._opened[urlsplit(self._urls.actual(url)).path] = own
        if self._awaited:
            return
        spelled = [self._urls.spelled(one, url) for one in graphql_places(self._opened)]
        known = {one for place in self._urls.places for one in (place + path for path in graphql.PLACES)}
        self._next += (graphql.lookup(one, posts=True) for one in spelled if one and one not in known)
        if read := learned(self._opened):
            actual = "{0.scheme}://{0.netloc}".format(urlsplit(self._urls.actual(url)))
            places = ApiPlaces(
                lambda path: self._urls.spelled(actual + path, faces=False),
                self._path,
                self._urls.may_act,
                self._listens,
                partial(self._pages, actual),
            )
            self._enter(url, read, _document(url), places, needed=False)

    def state(self) -> Mapping[str, Any]:
        places = list(self.found)[:MOST]
        starts = {url: self._starts[url] for url in places if url in self._starts}
        return {"version": VERSION, "rounds": self.rounds, "places": places, "starts": starts}

    def left(self) -> Sequence[Left]:
        """Descriptions that were found and not read, or not in full."""
        if why := lacking():
            return [Left("descriptions of APIs", why)]
        unread = [
            Left(f"description {url}", f"found and not read: {why}") for url, why in self._unread.items()
        ]
        partly = [
            Left(f"description {url}", f"{len(read.operations)} of {read.count} operations are asked", "left")
            for url, (read, _) in self.found.items()
            if len(read.operations) < read.count
        ]
        closed = [
            Left(f"{ACCOUNTS} by {url}", f"no account could be made, because {why}")
            for url, why in self._without.items()
        ]
        return [*unread[:MOST], *closed, *partly]

    def _learn(self, url: str, read: ApiDescription) -> None:
        """Keep a description; its operations are below its first server if that is ours, else beside it."""
        if len(self.found) >= MOST or any(one.document == read.document for one, _ in self.found.values()):
            return
        below = self._urls.spelled(server(read.whole)[1] or "/", url).rstrip("/")
        self.found[url] = (read, below)
        actual = self._urls.actual(below).rstrip("/") if below else ""
        self._later += lengthened(read.whole, lambda asked: self._spelled(asked, actual) if below else "")
        reads = (one.path for one in operations(read.whole) if one.method == "GET" and "{" not in one.path)
        if below and (page := self._spelled(f"GET {next(reads, '')}", actual)):
            self._next += islice(origins(page, self._urls.origins, self._chance), 1)
        if self._accounts and below:
            places = ApiPlaces(
                lambda path: self._urls.spelled(actual + path, faces=False),
                self._path,
                self._urls.may_act,
                self._listens,
                partial(self._pages, actual),
            )
            needed = any(one.secured or one.states(401) for one in operations(read.whole))
            self._enter(url, read.whole, _document(url), places, needed=needed)

    def _path(self, spelled: str) -> str:
        """The path of a URL on its host; a field of GraphQL stands behind `#`."""
        page, mark, name = spelled.partition("#")
        return f"{urlsplit(self._urls.actual(page)).path}{mark}{name}"

    def _spelled(self, asked: str, actual: str) -> str:
        """The URL of `METHOD path` below a base; "" where it may not be asked."""
        method, _, path = asked.partition(" ")
        url = self._urls.spelled(actual + path, faces=False)
        return url if method in SAFE or (self._acts and self._urls.may_act(url)) else ""

    def _met_graphql(self, asked: graphql.GraphqlLookup, result: Mapping[str, Any]) -> None:
        """Ask a GraphQL API for its schema; then its fields, as those of any other API."""
        text, url = str(result.get("text", "")), asked.url
        acts = self._acts and self._urls.may_act(url)
        posts = "method" in asked.steps[-1].args
        if not asked.schema:
            if speaks_graphql(text):
                self._next += graphql.first(url, acts=acts)
            elif acts and not posts and (result.get("status") != 404 or url.endswith("/graphql")):
                self._next.append(graphql.lookup(url, posts=True))
            self._by_get |= {url} if names_type(text) and not posts else set()
            return
        read = api_document(text)  # a POST may tell what GET hides
        if not isinstance(read, str):
            self._enter_graphql(url, read, asked.steps[-1])
        elif speaks_graphql(text) and url not in self._guesses and (posts if acts else url in self._by_get):
            self._guesses[url] = GuessedSchema(mutations=acts)
            self._guess(url)

    def _guess(self, url: str, last: Step | None = None) -> None:
        """Ask what there is for names; then go on as with a schema that is published."""
        guesses = self._guesses[url]
        if guess := guesses.next():
            self._next.insert(0, graphql.guessing(url, guess, reads=url in self._by_get))
        elif last is not None and (schema := guesses.schema()):
            self._enter_graphql(url, as_openapi(schema), last)

    def _enter_graphql(self, url: str, read: Mapping[str, Any], source: Step) -> None:
        """Ask for the fields of a schema as two accounts, and what bounds a request."""
        if url in self.found:
            return
        acts = self._acts and self._urls.may_act(url)
        self.found[url] = (ApiDescription(dict(read), (), dict(read), 0), "")
        actual = urlsplit(self._urls.actual(url)).path
        places = ApiPlaces(
            lambda path: f"{url}#{path.lstrip('/')}",
            lambda spelled: f"{actual}#{spelled.partition('#')[2]}",
            lambda spelled: self._urls.may_act(spelled.partition("#")[0]),
            self._listens,
            partial(self._pages, "{0.scheme}://{0.netloc}".format(urlsplit(self._urls.actual(url)))),
        )
        self._next += graphql.bounds(url, read.get(PROBES, {})) if acts else ()
        self._stating += [source] * bool(attempts(json.dumps(read, ensure_ascii=False)))
        if self._accounts:
            self._enter(url, read, source, places, needed=True)

    def _enter(
        self, url: str, read: Mapping[str, Any], source: Step, places: ApiPlaces, *, needed: bool
    ) -> None:
        """Ask as two accounts, or know why not; `needed`: the API has something for accounts alone."""
        rows = api_rows.AccountRows.of(read, source, places, self._known)
        if rows == NO_SIGN_UP:
            self._borrowing[url] = (read, source, places)
            for lender in self._rows:
                self._lend(lender)
        if isinstance(rows, api_rows.AccountRows):
            self._waiting.append(rows.again(self._starts.get(url)))
        elif needed:
            self._without[url] = rows
        else:
            self._quiet[url] = rows

    def _tried(self, rows: api_rows.AccountRows, result: Mapping[str, Any]) -> None:
        """Go on with what the accounts are asked; where none could be made, by the next way."""
        known, why = rows.after(result)
        if known is None:
            other = rows.next_way()
            if result.get("ok"):  # what the tool says itself, the desk reports
                self._without[str(rows.source.args["url"])] = why
            self._next[:0] = [other.first()] if other else []
            return
        self._without.pop(str(rows.source.args["url"]), None)
        self._starts[str(rows.source.args["url"])] = known.start
        self._rows.append(known)
        self._lend(known)
        self._next += known.questions()
        self._meet(known)
        self._later += (one for shown in self._stating[:1] for one in known.attempts(shown))

    def _meet(self, rows: api_rows.AccountRows) -> None:
        """Ask as these accounts what there is to ask, as one whom the other invites, and as those of the
        other roles: what is grave as all of them, before the rest."""
        every = [rows, *rows.other_roles()]
        self._met += every
        members = invited(rows)
        self._flows += [membership(members)] if members else []
        self._flows += [*map(first, every), *map(then, every)]

    def _answered(self, args: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Remember what accounts were served, and what those of one start were forbidden to make."""
        for step, got in zip(args["steps"], _list(result.get("answers")), strict=False):
            asked, status = api_rows.bare_request(step[1], step[2]), got.get("status", 0)
            for rows in self._met if step[0] == "one" else ():
                if rows.start.get("fields") == args.get("fields"):
                    rows.served.update([asked] * (200 <= status < 300))
                    rows.refused.update([asked] * ((step[1], status) == ("POST", 403)))

    def _lend(self, lender: api_rows.AccountRows) -> None:
        """Ask what stands on the host of these accounts, and names no sign-up, as them."""
        host = urlsplit(self._urls.actual(str(lender.source.args["url"]))).netloc
        for url in [one for one in self._borrowing if urlsplit(self._urls.actual(one)).netloc == host]:
            self._waiting.append(lender.lent(*self._borrowing.pop(url)))

    def _operation(self) -> tuple[str, str] | None:
        """The URL of a description, and the operation in it that was asked least."""
        waiting = [
            (self.rounds.get(f"{url} {operation}", 0), url, operation)
            for url, (read, _) in self.found.items()
            for operation in read.operations
            if f"{url} {operation}" not in self._done
        ]
        return min(waiting)[1:] if waiting else None

    def _questions(self, url: str, operation: str) -> Iterator[Question]:
        key, (read, below) = f"{url} {operation}", self.found[url]
        turn = self.rounds.get(key, 0)
        self._done.add(key)
        self.rounds[key] = turn + 1
        chance = Random(f"{self._chance.getrandbits(64)} {turn}")
        asked = requests(read.document, operation, chance.getrandbits(32))
        steps = [step for one in asked if (step := self._step(one, below))]
        acts = operation.partition(" ")[0] not in SAFE
        size = 1 if acts else TOGETHER - 1
        for at in range(0, len(steps), size):
            asks = (_document(url), *steps[at : at + size])
            yield Question(asks, led=f"{operation} that {url} describes")

    def _step(self, one: ApiRequest, below: str) -> Step | None:
        url = (
            self._urls.spelled(self._urls.actual(below).rstrip("/") + one.path, faces=False) if below else ""
        )
        if not url or (one.method not in SAFE and not (self._acts and self._urls.may_act(url))):
            return None
        return Step(tool=FETCH, args={"url": url, **one.args})


make = ApiExplorer


def _document(url: str) -> Step:
    return Step(tool=FETCH, args={"url": url, "longest": LONGEST})


def _leads(link: str) -> bool:
    """Whether a link may lead to a description, or to a page that names one, be it by a redirect."""
    parts = urlsplit(link)
    return bool(_LINK.search(parts.path) or ABOUT_API.search(parts.path) or ABOUT_API.search(parts.query))


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
