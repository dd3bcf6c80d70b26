"""The pages of a platform that are known: which to read next, and what each answered. Pure.

Pages are grouped by template (numbers, hashes, names and values of parameters folded), and both the pages of
a template and the children of a folder are bounded: a trap of endless links costs no more than a large site.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from fleet.drivers.explore.pages import HASH, NUMBER, body_template, short_hash
from fleet.oracles.web.access import path_of

MAX_PAGES = 600
"""Pages known, those not yet read included, where a profile states no other number."""
SAMPLES = 3
"""Pages read of one template: the first at once, the others when every input was asked once."""
CHILDREN = 30
"""Templates read below one folder; the first NEAR of them at once."""
NEAR = 10
FIRST = 150
"""Pages read before any input is asked."""
MAX_DEPTH = 8
MAX_KINDS = 12
LIVELY = 2
"""Changes after which a page counts as one that always changes."""

_SLASHES = re.compile(r"/{2,}")
_TOKEN = re.compile(r"(?=[^/]*[0-9])[A-Za-z0-9_-]{16,}")
_FACT = re.compile(
    r"(?<![a-z])(price|cost|fee|limit|max\w*|min\w*|most|cap|expir\w+|lifetime|valid|seconds?|minutes?|hours?"
    r"|chain|address|contract|version|rate|credits?|wei|bytes|characters)s?(?![a-z])[^\n]{0,40}?\d",
    re.I,
)
"""A measure that a text states: another page may contradict it."""
_ASSET = re.compile(
    r"\.(?:png|jpe?g|gif|ico|svg|webp|css|woff2?|ttf|mp4|wasm|pdf|zip|gz|tgz|bz2|xz|zst|7z|rar|tar)$", re.I
)


_STATIC = re.compile(r"\.(?:m?js|map)$", re.I)


def static(url: str) -> bool:
    """Whether a URL names a file that servers send as it is: an image, a style, a script and the like."""
    path = url.partition("?")[0]
    return bool(_ASSET.search(path) or _STATIC.search(path))


@dataclass(slots=True)
class Page:
    """A page in a repro's form; `found_on` is the page with the link to it. `status` 0: not read yet;
    -1: it could not be read in this run.

    `kind` is its content type, `body` a hash of its text with what varies folded, `facts` the number of
    statements that another page may contradict.
    """

    url: str
    template: str
    found_on: str = ""
    status: int = 0
    kind: str = ""
    body: str = ""
    facts: int = 0
    changes: int = 0
    sha: str = ""
    start: bool = False

    @property
    def asset(self) -> bool:
        """Whether it is an image, a style, an archive or the like: such a page has no inputs."""
        return bool(_ASSET.search(self.url.partition("?")[0])) or self.kind.startswith(("image/", "font/"))


@dataclass(slots=True)
class Frontier:
    """`pages` by URL, in the order in which they were found."""

    pages: dict[str, Page] = field(default_factory=dict)
    kinds: dict[str, set[str]] = field(default_factory=dict)
    """What the inputs of a template's pages answered so far, hashed."""
    worth: Counter[str] = field(default_factory=Counter)
    """By template: how often its answers were of a new kind."""
    names: set[str] = field(default_factory=set)
    most: int = MAX_PAGES

    def found(self, url: str, found_on: str = "", *, start: bool = False) -> None:
        """Learn of a page; one beyond every bound is not kept. `start`: it is read whatever is beside it."""
        if url and url not in self.pages and len(self.pages) < self.most:
            self.pages[url] = Page(url, self.template(url), found_on)
        if start and url in self.pages:
            self.pages[url].start = True

    def template(self, url: str) -> str:
        """The URL with what varies between pages of one kind folded."""
        path, _, query = url.partition("?")
        scheme, mark, rest = path.rpartition("://")
        parts = [self._segment(part) for part in (scheme + mark + _SLASHES.sub("/", rest)).split("/")]
        names = sorted({pair.partition("=")[0] for pair in query.split("&") if pair})
        return "/".join(parts) + ("?" + "&".join(names) if names else "")

    def _segment(self, part: str) -> str:
        text = unquote(part)
        if text.startswith("{face:"):
            return "{face}" + self._segment(text.partition("}")[2])
        if text in self.names:
            return "@"
        return NUMBER.sub("0", _TOKEN.sub("#", HASH.sub("#", text)))[:60]

    def next(self, *, near: bool, pending: Iterable[str] = ()) -> Iterator[Page]:
        """Pages to read now, of the least read templates and folders first; `near`: only those of the first
        rank."""
        read: Counter[str] = Counter()
        below: dict[str, set[str]] = {}
        for page in [one for one in self.pages.values() if one.status] + [self.pages[one] for one in pending]:
            read[page.template] += 1
            if not page.start and page.status < 400:
                below.setdefault(_folder(page.template), set()).add(page.template)
        waiting = [one for one in self.pages.values() if not one.status and one.url not in set(pending)]
        for page in sorted(waiting, key=lambda one: one.url.count("/")):
            beside = below.setdefault(_folder(page.template), set())
            room, samples = (NEAR, 1) if near and not page.start else (CHILDREN, SAMPLES)
            if near and not page.start and read.total() >= FIRST:
                return
            if page.url.count("/") > MAX_DEPTH or read[page.template] >= samples:
                continue
            if not page.start and page.template not in beside and len(beside) >= room:
                continue
            beside.update(() if page.start else (page.template,))
            read[page.template] += 1
            yield page

    def answered(self, url: str, result: Mapping[str, Any]) -> bool:
        """Record what a page answered; whether that changed, on a page that rarely changes."""
        page = self.pages.get(url)
        status = result.get("status")
        if page is None or not isinstance(status, int) or not 0 < status < 1_000:
            return False
        before = (page.status, page.kind, page.body)
        page.status, page.kind = status, _type(result)
        asked = [path_of(url)]
        asked += [f"{asked[0]}?{url.partition('?')[2]}"] if "?" in url else []
        page.body = body_template(result, (*asked, *map(unquote, asked)))
        routes = result.get("routes")
        stated = {found.lower() for found in _FACT.findall(str(result.get("text", "")))}
        page.facts = len(stated) + (3 if isinstance(routes, list | tuple) and routes else 0)
        page.sha = str(result.get("sha256", ""))[:16]
        changed = before[0] > 0 and before != (page.status, page.kind, page.body)
        page.changes += changed
        return changed and page.changes <= LIVELY

    def novel(self, url: str, result: Mapping[str, Any], given: Iterable[str]) -> bool:
        """Whether a page with our values answered in a way not seen before; `given` are those values."""
        template = self.template(url.partition("?")[0])
        seen = self.kinds.setdefault(template, set())
        status = result.get("status", 0)
        kind = short_hash(f"{status} {_type(result)} {body_template(result, given)}")
        if kind in seen or len(seen) >= MAX_KINDS:
            return False
        seen.add(kind)
        if len(seen) > 1:
            self.worth[template] += 3 if isinstance(status, int) and status >= 500 else 1
        return len(seen) > 1

    def as_data(self) -> dict[str, Any]:
        """As JSON."""
        pages = [
            [one.url, one.found_on, one.status, one.kind, one.body, one.facts, one.changes, one.sha]
            for one in self.pages.values()
        ]
        kinds = {template: sorted(kinds) for template, kinds in sorted(self.kinds.items())[:MAX_PAGES]}
        return {"pages": pages, "kinds": kinds, "worth": dict(sorted(self.worth.items()))}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take what `as_data` gave. Raises ValueError, TypeError or KeyError for anything else."""
        for url, found_on, status, kind, body, facts, changes, sha in data["pages"]:
            self.found(str(url), str(found_on))
            if page := self.pages.get(str(url)):
                page.status, page.facts, page.changes = max(int(status), 0), int(facts), int(changes)
                page.kind, page.body, page.sha = str(kind), str(body), str(sha)
        self.kinds = {str(one): set(map(str, kinds)) for one, kinds in data["kinds"].items()}
        self.worth = Counter({str(one): int(times) for one, times in data["worth"].items()})


def _type(result: Mapping[str, Any]) -> str:
    return str(result.get("content_type", "")).partition(";")[0].strip().lower()[:60]


def _folder(template: str) -> str:
    path = template.partition("?")[0].rstrip("/")
    return path.rpartition("/")[0]
