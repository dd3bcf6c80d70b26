"""One visitor of a site with forms, in a jail: its cookies, and the pages that it saw.

What leaves the jail of a page names things of ours by words: {id}, {one}, {other} and the marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urljoin, urlsplit

from sandbox import http
from sandbox.chain.rpc import denial
from sandbox.errors import Deadline
from sandbox.pages.cookies import CookieStore
from sandbox.pages.forms import PageForm, ReadPage, read_page
from sandbox.sites.accounts import AccountForm
from sandbox.spec import Mistake
from sandbox.text import clean, decode, mask

ELSEWHERE = "elsewhere.example"
"""The foreign host that a step names."""
FOLLOWED = 3
"""Most redirects that are followed after a form."""
MAX_LINKS, MAX_FORMS, MAX_FIELDS, MAX_PATH = 40, 10, 20, 160
_LONG = re.compile(r"(?=[^0-9]*[0-9])[\w+/=.:~-]{16,}", re.ASCII)
_IDENT = re.compile(r"\d{1,12}|[0-9a-f]{24}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
"""Ids that sites give: numbers, and those of MongoDB and RFC 9562."""
_PERSON = re.compile(r"(?i)user|account|member|owner|profile|author|person|uid")
"""Names of fields that hold the id of an account."""
_DROPPED = re.compile(r"[\x00-\x20]")

Part = tuple[str, str]
"""A segment of a path with the path before it, or a value with ""."""


@dataclass(slots=True)
class SiteVisitor:
    """`label` is the account whose words it uses; `before` and `kept` are its cookies from before the log-in
    and from before its last step. `known` are the parts of every URL that it met."""

    label: str
    origin: str
    deadline: Deadline
    jar: CookieStore = field(default_factory=CookieStore)
    before: CookieStore = field(default_factory=CookieStore)
    kept: CookieStore = field(default_factory=CookieStore)
    hidden: dict[str, str] = field(default_factory=dict)
    known: set[Part] = field(default_factory=set)

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> http.HttpReply:
        """One request to the site with the cookies; what its answer sets is kept."""
        if not own(url, self.origin):
            raise Mistake(f"/args/steps: {clean(url, 100)} is not on the host of the sign-up")
        path = urlsplit(url).path
        cookie = self.jar.header(path)
        sent = {**headers, **({"cookie": cookie} if cookie else {})}
        reply = http.send(http.HttpRequest(method, http.absolute(url), sent, body), self.deadline)
        if reply.by_broker:
            raise denial(reply)
        self.jar.take(reply.headers.get("set-cookie", ""), path)
        return reply

    def look(self, url: str) -> tuple[http.HttpReply, ReadPage]:
        """A page, read."""
        reply = self.send("GET", url, {"accept": "text/html,*/*"})
        return reply, self.read(reply, url)

    def read(self, reply: http.HttpReply, url: str) -> ReadPage:
        """What an answer refers to; what its hidden fields hold is remembered."""
        if "html" not in reply.content_type:
            return ReadPage()
        page = read_page(decode(reply.body), url)
        for form in page.forms:
            self.hidden |= {one.name: one.value for one in form.controls if one.kind == "hidden"}
        return page

    def follow(self, reply: http.HttpReply, url: str) -> tuple[http.HttpReply, str]:
        """Where an answer leads within the site, as a browser goes on; that answer, and its URL."""
        for _ in range(FOLLOWED):
            to = led(reply, url)
            if not 300 <= reply.status < 400 or not own(to, self.origin):
                break
            reply, url = self.send("GET", to, {}), to
        return reply, url

    def meet(self, url: str, page: ReadPage) -> None:
        """Remember the parts of the URLs of a page."""
        for met in targets(url, page):
            self.known.update(parts(met))
            self.known.update(("", value) for _, value in parts(met))


def targets(url: str, page: ReadPage) -> list[str]:
    """The URLs of a page, its own first, and those that its forms name in hidden fields as queries."""
    hidden = [
        f"{form.action.partition('?')[0]}?x={quote(one.value)}"
        for form in page.forms
        for one in form.controls
        if one.kind == "hidden" and not one.is_token
    ]
    return [url, *page.links, *(form.action for form in page.forms), *hidden]


def parts(url: str) -> Iterator[Part]:
    """The segments of a URL's path from its end, each with the path before it; then the values of its query,
    each with ""."""
    split = urlsplit(url)
    met = split.path.split("/")
    yield from ((before(met, at), unquote(met[at])) for at in reversed(range(len(met))) if met[at])
    yield from (("", value) for _, value in parse_qsl(split.query))


def before(met: Sequence[str], at: int) -> str:
    """The path before one of its segments."""
    return f"{'/'.join(met[:at])}/"


def differing(mine: list[str], theirs: list[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The ids in the one segment by which paths of two accounts differ, most often, and the paths before it;
    () for none. Two paths that both accounts were shown are two things of the site's."""
    pairs: dict[tuple[str, str], set[str]] = {}
    met_by_both = {urlsplit(url).path for url in mine} & {urlsplit(url).path for url in theirs}
    others = [urlsplit(url).path.split("/") for url in dict.fromkeys(theirs)]
    for met in (urlsplit(url).path.split("/") for url in dict.fromkeys(mine)):
        for beside in (one for one in others if len(one) == len(met)):
            if {"/".join(met), "/".join(beside)} <= met_by_both:
                continue
            unlike = [at for at, one in enumerate(met) if one != beside[at]]
            if len(unlike) == 1 and all(_IDENT.fullmatch(one[unlike[0]]) for one in (met, beside)):
                pair = met[unlike[0]], beside[unlike[0]]
                pairs.setdefault(pair, set()).add(f"{'/'.join(met[: unlike[0]])}/")
    found = max(pairs, key=lambda one: len(pairs[one]), default=())
    return found, frozenset(pairs.get(found, ()) if found else ())


def own(url: str, origin: str) -> bool:
    """Whether a URL is on the site."""
    split = urlsplit(url)
    return f"{split.scheme}://{split.netloc}" == origin


def led(reply: http.HttpReply, url: str) -> str:
    """Where an answer redirects, as a browser reads it; "" for nowhere."""
    said = _DROPPED.sub("", reply.headers.get("location", "")).replace("\\", "/")
    try:
        return urljoin(url, said).partition("#")[0] if said and 300 <= reply.status < 400 else ""
    except ValueError:
        return ""


def leads(to: str, origin: str, spelled: str) -> str:
    """The same in a word; `spelled` is its form for outside."""
    host = urlsplit(to).hostname or ""
    foreign = "away" if host == ELSEWHERE else "foreign"
    return "" if not to else spelled if own(to, origin) else foreign


@dataclass(frozen=True, slots=True)
class Spelling:
    """Spells URLs of the site for outside. `words` are what is put in place of each text of ours, `idents` of
    each id of an account, in paths only after one of the `prefixes`. `met`: parts that were there before the
    thing of `ident` was made, so that they name another one."""

    origin: str
    ident: str
    words: tuple[tuple[str, str], ...]
    idents: Mapping[str, str]
    prefixes: frozenset[str]
    met: frozenset[Part] = frozenset()

    def path(self, url: str) -> str:
        """The path and query with words of ours; "" for a foreign or long one, or one that holds a token."""
        if not own(url, self.origin):
            return ""
        split = urlsplit(url)
        met = split.path.split("/")
        places = [before(met, at) for at in range(len(met))]
        path = [
            self.idents.get(one if place in self.prefixes else "", self._part(one, place))
            for one, place in zip(met, places, strict=True)
        ]
        pairs = parse_qsl(split.query, keep_blank_values=True)
        values = [(name, self._person(name, value) or self._part(value)) for name, value in pairs]
        if any(_LONG.fullmatch(value) for _, value in values):
            return ""
        query = "&".join(f"{quote(name)}={quote(value, safe='{}-')}" for name, value in values)
        shown = ("/".join(path) or "/") + (f"?{query}" if query else "")
        return clean(shown, MAX_PATH + 1) if len(shown) <= MAX_PATH and not mask(shown)[1] else ""

    def _part(self, text: str, place: str = "") -> str:
        named = "." in text and any(ours in text for ours, _ in self.words)  # a file, by its name
        other = (place, unquote(text)) in self.met
        if self.ident and unquote(text) == self.ident and not named and not other:
            return "{id}"
        for ours, word in self.words:
            text = text.replace(ours, word)
        return text

    def _person(self, name: str, value: str) -> str:
        return self.idents.get(value, "") if _PERSON.search(name) else ""

    def links(self, page: ReadPage) -> tuple[str, ...]:
        """The links of a page."""
        found = (self.path(one.partition("#")[0]) for one in page.links)
        return tuple(dict.fromkeys(filter(None, found)))[:MAX_LINKS]

    def forms(self, page: ReadPage) -> tuple[AccountForm, ...]:
        """The forms of a page; without a hidden value."""
        return tuple(
            AccountForm(one.method, action, dict(self._kinds(one)))
            for one in page.forms
            if (action := self.path(one.action.partition("#")[0]))
        )[:MAX_FORMS]

    def _kinds(self, form: PageForm) -> Iterator[tuple[str, str]]:
        for one in form.controls[:MAX_FIELDS]:
            marked = self.ident and one.kind == "hidden" and one.value == self.ident
            named = _PERSON.search(one.name) and _IDENT.fullmatch(one.value)
            own_id = one.kind == "hidden" and bool(named)
            kind = "id" if marked else "own-id" if own_id else "token" if one.is_token else one.kind
            yield clean(one.name, 60), clean(kind, 20)
