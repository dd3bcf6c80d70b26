"""The explorer of a platform's pages: it reads them all, then asks each of their inputs, breadth first.

First the hosts' own pages, and what is cheap to ask of them; then each page, each route beside its document,
in a browser what pages with scripts ask their server, dead links beside their page, all documents together
(so that facts can be compared), then input by input.
"""

from __future__ import annotations

import hashlib
import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from random import Random
from typing import Any
from urllib.parse import parse_qsl

from fleet.drivers.desk import Question, led_by
from fleet.drivers.explore.documents.routes import absent_beside, filled
from fleet.drivers.explore.port import ExplorerContext, Results
from fleet.drivers.explore.web import attacks
from fleet.drivers.explore.web.browser import BROWSE
from fleet.drivers.explore.web.frontier import MAX_PAGES, Page
from fleet.drivers.explore.web.inputs import DONE, TOOL, Guess, guess
from fleet.drivers.explore.web.site_map import COMMON, MISSING, DocumentedRoute, Places, SiteMap
from fleet.oracles.documents.refusals import REFUSED, ranges
from fleet.oracles.web.access import path_of
from fleet.personas.model import Step
from sandbox.spec import SAFE

TOOLS = (TOOL,)
VERSION = 1
FACTS = 12
"""Documents compared in one question."""
QUIET = 24
"""Questions asked again in a run on a platform where everything was asked and nothing changed."""
REVISITS = 24
"""Pages looked at again at the beginning of a run."""
FURTHER = 20
"""Pages of known templates or crowded folders read each time that all inputs were asked once more."""
OPENED = 4
"""Pages with scripts that a run opens in a browser, for what they ask their server: seconds each."""
LOCKED = 4
"""Refused pages of one run that are asked for in other spellings."""
HUNG = 2
"""Folders of one run in which a file that is not there has no answer, and that are asked all the same."""
FILLINGS = 3
"""Fillings asked of a documented route: the first at once, the others after each input was asked once."""
WRITES = frozenset({"POST", "PUT", "PATCH"})
"""Methods that are sent where the profile permits acts; DELETE never is."""
_LOG = logging.getLogger("fleet.explore")


@dataclass(frozen=True, slots=True)
class PageVisit(Question):
    """One page, read for what it refers to."""

    url: str = ""

    @property
    def why(self) -> str:
        return "a page that another one refers to, or at a usual place"


@dataclass(frozen=True, slots=True)
class PageOpened(Question):
    """One page in a browser, its buttons pressed."""

    url: str = ""

    @property
    def why(self) -> str:
        return "a page whose scripts may ask what no link names"


@dataclass(frozen=True, slots=True)
class RouteCheck(Question):
    """A document, then a route that it writes down, with the places of the route's values."""

    url: str = ""
    places: Places = ()

    @property
    def why(self) -> str:
        return f"a route that {self.steps[0].args['url']} writes down"


@dataclass(frozen=True, slots=True)
class DeadLink(Question):
    """A page, then what it links to, which was not there."""

    url: str = ""

    @property
    def why(self) -> str:
        return f"a link of {self.steps[0].args['url']} to what was not there"


@dataclass(frozen=True, slots=True)
class Comparison(Question):
    """All documents; the digest of what they were when last seen."""

    digest: str = ""

    @property
    def why(self) -> str:
        return "documents that changed since they were compared"


class WebExplorer:
    """Its state is the map of the site, how far each input was asked, and which documents were compared."""

    def __init__(self, context: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> None:
        seed = f"{chance.getrandbits(64):016x}"
        self.map, self._compared = SiteMap.of(context.platform, seed, acts=context.acts), ""
        try:
            if state.get("version") == VERSION:
                self.map.restore(state)
                self._compared = str(state["compared"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            _LOG.warning("the web explorer begins again: its state cannot be read: %r", error)
            self.map, self._compared = SiteMap.of(context.platform, seed, acts=context.acts), ""
        self._next: deque[Question] = deque(self._remembered(chance))
        """Questions that an answer led to, and those for which a batch had no room."""
        self._flying: set[str] = set()
        """Pages asked for, and not answered yet."""
        self._maybe: dict[str, str] = {}
        """URLs that are a route of a document if they are there: it has no base, and the platform two."""
        self._ways: dict[str, tuple[list[str], Places]] = {}
        self._gone: dict[str, str] = {}
        self._there: dict[str, list[str]] = {}
        """All URLs of such a route and its values; the document of one not there; those that are there."""
        self._routes: dict[str, tuple[object, str]] = {}
        """What the documented routes of this run answered, with their documents."""
        self._acts, self._chance, self._comparing = context.acts, chance, ""
        self._allowance, self._level = QUIET, 0
        self._locks, self._hangs = LOCKED, HUNG
        self._opens = OPENED if BROWSE in context.tools else 0
        urls = self.map.urls
        common = (place + path for place in urls.places for path in COMMON)
        faces, hosts = map(urls.face, self.map.known.names), tuple(map(urls.spelled, urls.hosts))
        self._roots = frozenset(("{site}/", *hosts))
        for url in (*urls.named(), *faces, *common, *hosts):
            self.map.frontier.found(url, start=True)

    def _remembered(self, chance: Random) -> Iterator[Question]:
        """Pages to look at again, one of each template, those that state facts first; dead links."""
        first: dict[str, Page] = {}
        for page in self.map.frontier.pages.values():
            if page.status and not page.asset:
                first.setdefault(page.template, page)
            if page.found_on and _dead(page):
                yield DeadLink((_page(page.found_on), _page(page.url)), page.url)
        pages = sorted(first.values(), key=lambda one: (-min(one.facts, 1), chance.random()))
        yield from (_visit(page.url) for page in pages[:REVISITS])

    def ask(self, most: int) -> Sequence[Question]:
        """The next questions of the first kind that has any; of the inputs, as many as there is room for."""
        early = partial(self.map.inputs.early, self._roots, most)
        sources = (self._led, early, self._reads, self._checks, self._refused, self._opening)
        for source in (*sources, self._nowhere, self._facts):
            if chosen := self._fit(source(), most):
                return chosen
        return self._fit(self._deeper(most), most)

    def _fit(self, questions: Iterator[Question], most: int) -> list[Question]:
        chosen: list[Question] = []
        for question in questions if most > 0 else ():
            if len(question.steps) > most:
                self._next.append(question)
                break
            chosen.append(question)
            most -= len(question.steps)
            if most <= 0:
                break
        return chosen

    def _led(self) -> Iterator[Question]:
        for _ in range(len(self._next)):
            yield self._next.popleft()

    def _reads(self, *, near: bool = True) -> Iterator[Question]:
        for page in self.map.frontier.next(near=near, pending=tuple(self._flying)):
            self._flying.add(page.url)
            absent = self.map.broken(page)  # what fails as that does is one defect
            yield PageVisit((*map(_page, filter(None, [absent])), _page(page.url)), page.url)
            if page.url.endswith(MISSING):
                return  # what it answers is known before all others are asked

    def _checks(self, turn: int = 0) -> Iterator[Question]:
        """Each documented route that is due, with one of its fillings; it then counts as asked."""
        for route in list(self.map.routes.values()):
            key = f"{route.key} acted" if self._acts and route.method in WRITES else route.key
            if self.map.asked.get(key, 0) == turn:
                self.map.asked[key] = turn + 1
                yield from self._checks_of(route, turn)

    def _checks_of(self, route: DocumentedRoute, turn: int) -> Iterator[Question]:
        urls, ways = self.map.urls, list(filled(route.target, self.map.known, FILLINGS))
        if turn >= len(ways):
            return
        link, document = ways[turn].link, route.document
        bases = [document, *(() if "://" in link else (f"{place}/" for place in urls.places))]
        found = list(dict.fromkeys(filter(None, (urls.spelled(link, base, faces=False) for base in bases))))
        for url in found:
            args: dict[str, Any] = {} if route.method == "GET" else {"method": route.method}
            if route.method in WRITES:
                args["fields"] = self.map.body(route.method, url)
            acts = route.method in WRITES and self._acts and urls.may_act(url)
            if len(found) > 1 or not (acts or route.method in SAFE):
                self._maybe.setdefault(url, document if route.method == "GET" else "")
                self._ways[url] = found, ways[turn].inputs
                self.map.frontier.found(url)
                if (page := self.map.frontier.pages.get(url)) and page.status:
                    self._settled(page)  # it was read before
            else:
                step = Step(tool=TOOL, args={"url": url, **args})
                yield RouteCheck((_page(document), step), url, ways[turn].inputs)

    def _refused(self) -> Iterator[Question]:
        """Refused pages in other spellings, and default passwords, each once."""
        if self._flying:
            return
        for url, asks in list(self.map.locked.items()):
            if self.map.asked.setdefault(f"refused {url}", 0) or self._locks <= 0:
                continue
            self.map.asked[f"refused {url}"], self._locks = 1, self._locks - 1
            first = f"{url[: -len(path_of(url))]}/"
            self._next.extend(led_by(f"page {url}, which was refused", *attacks.respelled(url, first)))
            if asks and self._acts and self.map.urls.may_act(url):
                asking = attacks.passwords(url, self._chance)
                self._next.extend(led_by(f"page {url}, which asks for a password", asking))
        for url in list(self.map.sent_on)[:LOCKED]:
            if not self.map.asked.setdefault(f"sent on {url}", 0):
                self.map.asked[f"sent on {url}"] = 1
                inside = attacks.as_the_framework(url, f"{url[: -len(path_of(url))]}/")
                self._next.extend(led_by(f"page {url}, which sends a visitor on", inside))
        for url, form in list(self.map.entries.items()):
            if not self.map.asked.setdefault(f"log-in {url}", 0):
                self.map.asked[f"log-in {url}"] = 1
                entering = attacks.log_ins(url, form.user, form.password, form.others, self._chance)
                self._next.extend(led_by(f"the form of {url}, which asks for a password", entering))
        yield from self._led()

    def _opening(self) -> Iterator[Question]:
        """Pages whose scripts may ask what no link and no document names, one of each template."""
        for page in [] if self._flying else list(self.map.frontier.pages.values()):
            if self._opens and page.url in self.map.scripted and page.template not in self.map.opened:
                self.map.opened.add(page.template)
                self._opens -= 1
                step = Step(tool=BROWSE, args={"url": page.url, "press": True})
                yield PageOpened((step,), page.url)

    def _nowhere(self) -> Iterator[Question]:
        """A document, a route of it that is there, and one beside that which is at none of its places; or a
        route below a thing, beside pages that are there and that are not."""
        for url, document in [] if self._flying else list(self._gone.items()):
            del self._gone[url]
            folder = url.partition("?")[0].split("/")[:2]
            beside = [
                one for one in self._there.get(document, ()) if one.split("?")[0].split("/")[:2] == folder
            ]
            others = [one for one in self._ways[url][0] if one != url]
            if beside and all(self.map.frontier.pages[one].status in (404, 410) for one in others):
                yield RouteCheck(tuple(map(_page, (document, beside[0], *others, url))), url)
        good = [url for url, (status, _) in self._routes.items() if status == 200]
        for url, (status, document) in [] if self._flying else list(self._routes.items()):
            if status == 404 and (pages := absent_beside(url, good)):
                del self._routes[url]
                yield RouteCheck(tuple(map(_page, (document, *pages, url))), url)

    def _facts(self) -> Iterator[Question]:
        """All documents in one question, if one of them changed since they were last compared."""
        told = [one for one in self.map.frontier.pages.values() if one.status == 200 and one.facts > 0]
        told.sort(key=lambda one: ("?" in one.url or "{face:" in one.url, -one.facts, one.url))
        chosen = list({one.sha: one for one in reversed(told)}.values())[::-1][:FACTS]
        digest = hashlib.sha256(" ".join(f"{one.url} {one.sha}" for one in chosen).encode()).hexdigest()
        if len(chosen) > 1 and not self._flying and not self._comparing and digest != self._compared:
            self._comparing = digest
            yield Comparison(tuple(_page(one.url) for one in chosen), digest)

    def _deeper(self, most: int) -> Iterator[Question]:
        """Inputs in turn; after each was asked once, further pages and fillings of routes."""
        while most > 0:
            if (level := self.map.inputs.depth()) > self._level:
                self._level = level
                pages = islice(self._reads(near=False), MAX_PAGES if level == DONE else FURTHER)
                fillings = (one for turn in range(1, FILLINGS) for one in self._checks(turn))
                self._next.extend([*pages, *fillings])
                if self._next:
                    yield from self._led()
                    return
            if level == DONE and self._allowance == QUIET:
                self.map.inputs.begin_round()
            question = None
            if self.map.inputs.round:  # after the first round few in a run, but all of what changed
                question = self.map.inputs.next(most, self.map.frontier.worth, fresh=True)
                self._allowance -= question is None
            if question is None and self._allowance >= 0:
                question = self.map.inputs.next(most, self.map.frontier.worth)
            if question is None and self.map.inputs.depth() > level:
                continue
            if question is None:
                return
            most -= len(question.steps)
            yield question

    def learn(self, question: Question, results: Results) -> None:
        """Learn what the pages refer to, and which inputs answer in a new way."""
        pages = self.map.frontier.pages
        if isinstance(question, PageOpened):
            self.map.called(question.url, results[0] if results else {})
            return
        self._hung(question, results)
        for step, result in zip(question.steps, results, strict=False):
            url = str(step.args.get("url", ""))
            if result.get("status") in REFUSED:
                for name, least, most in ranges(str(result.get("text", ""))):
                    self.map.known.edges(name, least, most)
            if set(step.args) == {"url"} and (url in pages or isinstance(question, RouteCheck)):
                self.map.read(url, result)
            else:
                given = [value for _, value in parse_qsl(url.partition("?")[2])]
                self.map.frontier.novel(url, result, given)
        match question:
            case PageVisit(url=url):
                page = pages[url]
                self._flying.discard(url)
                page.status = page.status or -1
                if page.found_on and _dead(page):
                    self._next.append(DeadLink((_page(page.found_on), _page(url)), url))
                self._settled(page)
            case RouteCheck() if len(results) == len(question.steps):
                self._checked(question, results[-1].get("status"))
            case DeadLink(url=url):
                pages[url].found_on = ""
            case Comparison(digest=digest):
                self._compared = digest
            case Guess() if len(results) == len(question.steps):
                again = self.map.guessed(question, results)
                self._next.extend(guess(question.url, (name,), self._chance) for name in again)

    def _hung(self, question: Question, results: Results) -> None:
        hung = bool(results) and results[0].get("error_class") == "timeout"
        alone = led_by(question.why, *attacks.beside_first(question)) if hung and self._hangs else []
        self._hangs -= bool(alone)
        self._next.extend(alone)

    def _checked(self, check: RouteCheck, status: object) -> None:
        args = check.steps[-1].args
        if (method := args.get("method", "GET")) in WRITES:
            self.map.body_fields(method, check.url, args["fields"])
        else:
            self.map.points(check.url, check.places, good=isinstance(status, int) and 0 < status < 400)
            if set(args) == {"url"} and len(check.steps) == 2:
                self._routes.setdefault(check.url, (status, str(check.steps[0].args["url"])))

    def _settled(self, page: Page) -> None:
        document = self._maybe.pop(page.url, "")
        if document and page.status in (404, 410):
            self._gone[page.url] = document
        elif document and page.status != -1:
            self._there.setdefault(document, []).append(page.url)
            steps = (_page(document), _page(page.url))
            self._next.append(RouteCheck(steps, page.url, self._ways[page.url][1]))

    def state(self) -> Mapping[str, Any]:
        """Everything known, as JSON."""
        return {"version": VERSION, "compared": self._compared, **self.map.as_data()}


make = WebExplorer


def _page(url: str) -> Step:
    return Step(tool=TOOL, args={"url": url})


def _visit(url: str) -> PageVisit:
    return PageVisit((_page(url),), url)


def _dead(page: Page) -> bool:
    return page.status in (404, 410) or page.status >= 500
