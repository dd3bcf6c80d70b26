"""What an explorer knows of a platform's pages, learned from their answers alone. Pure.

Every answer is untrusted: links are resolved within the platform, lists are bounded, and what does not have
the expected form is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from fleet.config import Platform
from fleet.drivers.explore.documents.routes import Examples, filled, holes, strings_of
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.pages import body_template
from fleet.drivers.explore.port import Results
from fleet.drivers.explore.state_changes import ends_or_spends
from fleet.drivers.explore.web import attacks
from fleet.drivers.explore.web.frontier import Frontier, Page, static
from fleet.drivers.explore.web.inputs import HEADERS, BodyField, FormField, Guess, Inputs, parsed
from fleet.drivers.explore.web.points import Kind, Point
from fleet.oracles.web import access
from fleet.oracles.web.access import PASSWORD, USER, path_of, sent_on, walled
from fleet.oracles.web.variations import FORM

MISSING = f"/{access.MISSING}"
"""A page that no platform has: what a site answers for every page that is not there."""
FOLDERS = ("/static", "/assets", "/public", "/files", "/media", "/uploads")
"""Where servers have files that nothing links to: looked below if a missing file there is answered in another
way than a missing page; below the first a little in any case."""
COMMON = (
    *("/", MISSING, "/robots.txt", "/sitemap.xml", "/llms.txt", "/skill.md", "/openapi.json"),
    *("/.well-known/security.txt", "/.well-known/ai-plugin.json", "/.well-known/openid-configuration"),
    *("/swagger.json", "/status", "/health", "/api", "/api/status", "/docs", "/settings", "/login"),
    *("/admin", "/debug", "/metrics", "/.env", "/.git/config", "/.git/HEAD", "/.svn/wc.db", "/.htpasswd"),
    *("/debug/vars", "/actuator/env", "/backup.sql", "/dump.sql"),
    *(f"/{name}.io/?EIO=4&transport=polling" for name in ("socket", "engine")),  # open connections by HTTP
    *(folder + MISSING for folder in FOLDERS),
)
"""Places where platforms have pages that nothing links to."""
MAX_ROUTES = 200
MAX_FOLDERS = 20
MAX_OLDER = 12
_TOKEN = re.compile(r"(?=[^0-9]*[0-9])[\w+/=.:~-]{16,}")
_SESSION = re.compile(r"(?i)csrf|xsrf|nonce|authenticity|viewstate|\btoken")
_SECRET = re.compile(r"(?i)pass|pwd|secret|pin\b")
_TRANSPORT = re.compile(r"/socket\.io/|/sockjs|/signalr/|hot-update|/@vite/|/_stcore/")
"""What libraries of open connections and development servers ask all the time: no input of the page's own."""
_RELATIVE = re.compile(r"[a-z][a-z0-9_-]*/")
_VERSION = re.compile(r"/v(\d{1,2})(?=/)")
MAX_CALLS = 60
"""Calls taken from one page's scripts."""
MAX_PARAMETERS = 12
"""Parameters taken from one URL or form."""

Places = tuple[tuple[str, str, str], ...]
"""Inputs of a URL: kind, name (for a path the segment's number from the end), benign value."""


@dataclass(frozen=True, slots=True)
class DocumentedRoute:
    """A route as a document writes it, and the document. `asked` in the state: how many of its fillings."""

    method: str
    target: str
    document: str

    @property
    def key(self) -> str:
        return f"{self.method} {self.target}"


@dataclass(frozen=True, slots=True)
class LogInForm:
    """A form that asks for a name and a password: the names of these fields, and the other fields."""

    user: str
    password: str
    others: Mapping[str, str]


@dataclass(slots=True)
class SiteMap:
    """Pages, inputs and routes of one platform; `asked` is the number of fillings asked, by route.

    `bodies` are documented JSON bodies by method and URL: the fields with their values as JSON. `folders` are
    those with a known file.
    """

    urls: OwnUrls
    known: Examples
    frontier: Frontier
    inputs: Inputs
    routes: dict[str, DocumentedRoute]
    asked: dict[str, int]
    bodies: dict[str, dict[str, str]] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    acts: bool = False
    """Whether forms may be sent."""
    scripted: set[str] = field(default_factory=set)
    """Pages with scripts."""
    opened: set[str] = field(default_factory=set)
    """Templates of pages that were opened in a browser."""
    locked: dict[str, bool] = field(default_factory=dict)
    """Pages that are refused, and whether they ask for a password."""
    sent_on: dict[str, None] = field(default_factory=dict)
    """Pages that send one to another page."""
    entries: dict[str, LogInForm] = field(default_factory=dict)
    """Forms without a token of a session that log in, by where they are sent."""
    older: set[str] = field(default_factory=set)
    """Documented paths as the version before would have them (OWASP API9:2023)."""

    @classmethod
    def of(cls, platform: Platform, seed: str, *, acts: bool = False) -> Self:
        """That of a platform of which only the profile is known."""
        urls, known = OwnUrls(platform), Examples.of(platform)
        frontier = Frontier(names=set(known.names), most=platform.limits.pages)
        return cls(
            urls, known, frontier, Inputs(known, urls.origins, seed, platform.web.listens), {}, {}, acts=acts
        )

    def path(self, url: str) -> str:
        """The template of a page without its query: what its inputs belong to."""
        return self.frontier.template(url.partition("?")[0])

    def read(self, url: str, result: Mapping[str, Any]) -> None:
        """Learn from a page's answer what it refers to."""
        self.frontier.found(url)
        if self.frontier.answered(url, result):
            self.inputs.again(self.path(url))
        page = self.frontier.pages.get(url)
        if page is None or page.status <= 0:
            return
        self._locked(page, result)
        absent = self._nowhere(url)
        if self._missing(page) and path_of(url).removesuffix(MISSING) in FOLDERS[: 1 if absent else None]:
            self._below(url.removesuffix(MISSING[1:]), attacks.GUESSED * absent)
        if absent:
            self.inputs.drop(url)
            return
        if page.status < 400:
            self._folder(url.partition("?")[0])
        if not page.asset:
            self.known.learn("", str(result.get("text", ""))[:8_000])
        for link in strings_of(result.get("links")):
            self._link(link, page, followed=True)
        if page.asset:  # a compressed sitemap is one, and has links
            return
        for path in strings_of(result.get("paths")):
            self._link(path, page, followed=False)
        self._document(url, result)
        forms = result.get("forms")
        for form in forms[:20] if isinstance(forms, list) else ():
            self._form(form, url)
        self._answers(page, result)

    def _answers(self, page: Page, result: Mapping[str, Any]) -> None:
        """A page that is there has inputs that nothing names; so has what stands below its folder."""
        url, absent = page.url, self._absent(page)
        if page.status < 400 and not absent and not static(url):
            self.inputs.page(url, self.path(url))
            links = (link.partition("?")[0] for link in strings_of(result.get("links")))
            html = page.kind.startswith("text/html") or not page.kind  # without a type a browser looks itself
            if html and any(link.endswith((".js", ".mjs")) for link in links):
                self.scripted.add(url)
        for place in self.urls.places:  # files may be there though the first page is not
            if url.startswith(f"{place}/"):
                self._below(f"{place}/")

    def _absent(self, page: Page) -> bool:
        """Whether it answers as a page that is not there."""
        missing = self._missing(page)
        return missing is not None and (missing.status, missing.body) == (page.status, page.body)

    def _missing(self, page: Page) -> Page | None:
        """The page of its host that is not there, once it was read."""
        missing = self.frontier.pages.get(page.url.partition("}")[0] + "}" + MISSING)
        return missing if missing is not None and missing.status > 0 else None

    def broken(self, page: Page) -> str:
        """The page of its host that is not there, where the server fails at it; "" where it does not."""
        missing = self._missing(page)
        return missing.url if missing is not None and missing is not page and missing.status >= 500 else ""

    def _nowhere(self, url: str) -> bool:
        """Whether a URL was asked and leads nowhere: it has no inputs, and says nothing new. A host's first
        page does, whatever it is, and so does the page that is not there."""
        page = self.frontier.pages.get(url)
        told = page is not None and page.status > 0 and path_of(url) not in ("", "/", MISSING)
        return told and page is not None and self._absent(page)

    def _locked(self, page: Page, result: Mapping[str, Any]) -> None:
        """A page that is refused, or that leads to a log-in or to another page."""
        if walled(result) and "?" not in page.url and not page.asset:
            asks = str(dict(result.get("headers", {})).get("www-authenticate", ""))
            self.locked.setdefault(page.url, asks.lower().startswith("basic"))
        elif sent_on({"url": page.url}, result) and "?" not in page.url:
            self.sent_on[page.url] = None

    def _document(self, url: str, result: Mapping[str, Any]) -> None:
        """The routes that a page writes down, and the values of them that it names."""
        for route in strings_of(result.get("routes")):
            method, _, target = route.partition(" ")
            if method and target and len(self.routes) < MAX_ROUTES:
                one = DocumentedRoute(method, target, url)
                self.routes.setdefault(one.key, one)
                self.known.learn(target)
                self._older(target, url)
                for path in strings_of(result.get("paths")):
                    self.known.fits(target, path)

    def _older(self, target: str, document: str) -> None:
        """The version before, which no document names: it may be there still, and without the new checks."""
        path = target.partition("?")[0]
        if (version := _VERSION.search(path)) and int(version[1]) > 0 and not holes(path):
            older = f"{path[: version.start(1)]}{int(version[1]) - 1}{path[version.end(1) :]}"
            if len(self.older) < MAX_OLDER and (url := self.urls.spelled(older, document)):
                self.older.add(url)
                self.frontier.found(url, start=True)

    def _link(self, link: str, page: Page, *, followed: bool) -> None:
        base = page.url
        if not followed and static(base) and not static(link):  # a script's requests are those of its page
            base = f"{base[: -len(path_of(base))]}/"
        if not followed and holes(link):  # a route without a method: a page may be there
            relative = "./" * bool(_RELATIVE.match(link))  # its first word names no base
            for way in filled(relative + link, self.known, 1):
                url = self.urls.spelled(way.link, base, faces=False)
                self.frontier.found(url)
                if not self._nowhere(url):
                    self.points(url, way.inputs, good=False)
            return
        if not (url := self.urls.spelled(link, base)):
            return
        self.frontier.found(url, page.url if followed else "")
        if url not in self.frontier.pages:
            return
        self.known.learn(url)
        if not followed:
            self._first_folder(url)
        if url.startswith("{face:"):
            self.known.name(url[6:].partition("}")[0])
        parts = urlsplit(url).path.split("/")
        named = ((at - len(parts), part.partition("=")[2]) for at, part in enumerate(parts) if "=" in part)
        self.points(url, tuple(("path", str(at), unquote(value) or "moss") for at, value in named), good=True)
        pairs = parse_qsl(url.partition("?")[2], keep_blank_values=True)
        if not self._nowhere(url):
            self.points(url, tuple(("query", name, value) for name, value in pairs), good=True)

    def _folder(self, url: str) -> None:
        """A file in a folder: the folder is a page as well, and the first file's name is an input."""
        folder, _, file = url.rpartition("/")
        if "." not in file or "/" not in folder or folder in self.folders or len(self.folders) >= MAX_FOLDERS:
            return
        self.folders.add(folder)
        self.frontier.found(f"{folder}/")
        self._below(f"{folder}/")
        if not static(url):
            self.points(url, (("path", "-1", file),), good=True)

    def _first_folder(self, url: str) -> None:
        """The first segment of a path that a script or a text names may be a folder, or the place of a whole
        application, though no page there is known."""
        path = path_of(url)
        first, _, _ = path.lstrip("/").partition("/")
        place = f"{url.partition('?')[0].removesuffix(path)}/{first}"
        if (
            re.fullmatch(r"[\w-]{1,40}", first)
            and place not in self.folders
            and len(self.folders) < MAX_FOLDERS
        ):
            self.folders.add(place)
            self._below(f"{place}/", attacks.GUESSED)

    def _below(self, folder: str, name: str = "") -> None:
        """What stands below a folder is an input."""
        self.inputs.point(Point(folder, "tail", name, "etc/passwd"), self.path(folder))

    def _form(self, form: object, page: str) -> None:
        """Learn of a form that reads: its page with the values that stand there, each field an input; and of
        a documented body."""
        fields = form.get("fields") if isinstance(form, Mapping) else None
        if not isinstance(form, Mapping) or not isinstance(fields, Mapping):
            return
        if not fields and (form.get("method") != "POST" or form.get("json")):
            return
        target = str(form.get("action", "")) or page.partition("?")[0]
        if form.get("method") != "GET":
            url = self.urls.spelled(target, page, faces=False)
            if url and form.get("json") is True and len(self.bodies) < MAX_ROUTES:
                body = {str(name)[:60]: str(said) for name, said in list(fields.items())[:MAX_PARAMETERS]}
                key = f"{form.get('method')} {url}"
                self.bodies[key] = body | self.bodies.get(key, {})  # documents may name other fields
            elif url and form.get("method") == "POST" and not form.get("json"):
                self._posted(url, {str(name)[:60]: str(value)[:60] for name, value in fields.items()})
            return
        given = {str(name)[:60]: str(value)[:60] for name, value in list(fields.items())[:MAX_PARAMETERS]}
        values = {name: value or self.known.choices(name)[0] for name, value in given.items()}
        if action := self.urls.spelled(target, page).partition("?")[0]:
            url = (
                f"{action}?{'&'.join(f'{_quoted(name)}={_quoted(value)}' for name, value in values.items())}"
            )
            self.frontier.found(url)
            self.points(url, tuple(("query", name, value) for name, value in values.items()), good=False)

    def called(self, page: str, result: Mapping[str, Any]) -> None:
        """Learn what a page's scripts ask, or would at the press of a button: pages, and bodies."""
        calls = result.get("calls")
        for call in calls[:MAX_CALLS] if isinstance(calls, list | tuple) else ():
            method, target, body = (str(call.get(name, "")) for name in ("method", "url", "body"))
            url = self.urls.spelled(target, page, faces=False)
            if not url or _TRANSPORT.search(url):
                continue
            if method == "GET":
                self.frontier.found(url, start=True)
                pairs = parse_qsl(url.partition("?")[2], keep_blank_values=True)
                self.points(url, tuple(("query", name, value) for name, value in pairs), good=True)
            elif method in ("POST", "PUT", "PATCH") and isinstance(given := parsed(body, ""), Mapping):
                if self._may_send(url) and not any(map(_SECRET.search, given)):
                    self.body_fields(method, url, dict(list(given.items())[:MAX_PARAMETERS]))
            elif method == "POST" and str(call.get("body_type", "")).startswith(FORM):
                self._posted(url, dict(parse_qsl(body, keep_blank_values=True)[:MAX_PARAMETERS]))

    def _posted(self, url: str, given: Mapping[str, str]) -> None:
        """A form that anybody may send: each field an input, but for what is a secret. One with a token of a
        session is for an account's rows."""
        users = [name for name in given if USER.search(name) and not _SECRET.search(name)]
        secrets = [name for name in given if PASSWORD.search(name)]
        tokens = any(_TOKEN.fullmatch(value) or _SESSION.search(name) for name, value in given.items())
        if tokens or not self._may_send(url):
            return
        if len(users) == len(secrets) == 1:
            others = {name: value for name, value in given.items() if name not in (*users, *secrets)}
            self.entries.setdefault(url, LogInForm(users[0], secrets[0], others))
        values = {
            name: value or self.known.choices(name)[0] for name, value in list(given.items())[:MAX_PARAMETERS]
        }
        self._body(url, "POST", FORM, urlencode(values))
        for name, value in values.items():
            beside = tuple((one, text) for one, text in values.items() if one != name)
            if not _SECRET.search(name):
                self.inputs.point(FormField(url, "form", name, value, "POST", beside), self.path(url))

    def _body(self, url: str, method: str, kind: str, text: str) -> None:
        """A body as a whole, once for each method and page."""
        self.inputs.point(Point(url, "body", kind, text, method), self.path(url))

    def _may_send(self, url: str) -> bool:
        return self.acts and self.urls.may_act(url) and not ends_or_spends(urlsplit(url).path)

    def points(self, url: str, places: Places, *, good: bool) -> None:
        """Learn the inputs of a URL; `good`: it answers to these values."""
        template = self.path(url)
        segments = len(urlsplit(url).path.split("/"))  # as a point counts them
        if static(url):  # a query only names its version
            places = tuple(one for one in places if one[0] == "path")
        for kind, name, value in places[:MAX_PARAMETERS] if url else ():
            made: Kind = "path" if kind == "path" else "query"
            at = str(segments + int(name)) if made == "path" else name
            if made == "query" or 0 < int(at) < segments:
                self.inputs.point(Point(url, made, at, value), template, good=good)

    def body(self, method: str, url: str) -> dict[str, Any]:
        """The documented body of a route; what it leaves open is filled in."""
        said = self.bodies.get(f"{method} {url}", {})
        return {name: parsed(text, self.known.choices(name)[0]) for name, text in said.items()}

    def body_fields(self, method: str, url: str, body: Mapping[str, Any]) -> None:
        """Learn the fields of a body as inputs."""
        whole = {name: value for name, value in body.items() if not _SECRET.search(name)}
        self._body(url, method, "application/json", json.dumps(whole))
        for name, value in body.items():
            others = tuple((one, json.dumps(beside)) for one, beside in body.items() if one != name)
            plain = value if isinstance(value, str) else json.dumps(value)
            self.inputs.point(BodyField(url, "field", name, plain, method, others), self.path(url))

    def guessed(self, guess: Guess, results: Results) -> tuple[str, ...]:
        """Keep the guessed parameters and headers whose words the page shows, and the only one of a guess
        that changes the page; return the parameters to guess again one by one."""
        before, result = results[0], results[-1]
        text = " ".join(str(result.get(part, "")) for part in ("text", "location", "headers"))
        shown = [name for name, word in guess.words if word in text]
        names = [name for name, _ in guess.words if name not in HEADERS]
        page = self.frontier.pages.get(guess.url)
        words = [word for _, word in guess.words]
        said = [(one.get("status"), body_template(one, words)) for one in (before, result)]
        differs = page is not None and not page.changes and said[0] != said[1]
        if not shown and differs and len(names) > 1:
            return tuple(names)
        if set(names) <= set(shown):  # it shows whatever is asked, as a log does: one name stands for all
            shown = [*names[:1], *(name for name in shown if name in HEADERS)]
        mark = "&" if "?" in guess.url else "?"
        for name in shown or (names if differs else ()):
            if name in HEADERS:
                self.inputs.point(Point(guess.url, "header", name, "en"), self.path(guess.url))
            else:
                value = self.known.choices(name)[0]
                self.points(f"{guess.url}{mark}{name}={_quoted(value)}", (("query", name, value),), good=True)
        return ()

    def as_data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "seed": self.inputs.seed,
            "round": self.inputs.round,
            "frontier": self.frontier.as_data(),
            "inputs": self.inputs.as_data(),
            "routes": [[one.method, one.target, one.document] for one in self.routes.values()],
            "asked": self.asked,
            "known": self.known.as_data(),
            "opened": sorted(self.opened),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take what `as_data` gave. Raises ValueError, TypeError, KeyError or AttributeError for anything
        else."""
        self.known.restore(data["known"])
        self.frontier.restore(data["frontier"])
        self.inputs.restore(data["inputs"])
        self.inputs.seed, self.inputs.round = str(data["seed"]), int(data["round"])
        for method, target, document in data["routes"][:MAX_ROUTES]:
            one = DocumentedRoute(str(method), str(target), str(document))
            self.routes[one.key] = one
        self.opened = {str(one) for one in data.get("opened", ())}
        self.asked = {str(key): int(times) for key, times in data["asked"].items()}


def _quoted(text: str) -> str:
    return quote(text, safe="")
