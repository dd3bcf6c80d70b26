"""The explorer of pages in a browser: opens what the profile and the pages name, then asks where a word goes.

A page takes seconds, so each run opens a few: breadth first, new ones before known ones, few of one template.
A point (a parameter of a URL or of a form, the last segment of a path) is first asked with a bare word; only
where the word shows up, it is asked with payloads for that place. Results are untrusted: nothing in them is
asked but URLs of this platform.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, get_args
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from fleet.config import Platform
from fleet.drivers.desk import Question
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.port import ExplorerContext, Results
from fleet.drivers.explore.web.points import Kind, Point
from fleet.findings.sighting import template
from fleet.personas.model import Step

BROWSE = "qa_browse"
TOOLS = (BROWSE,)
LOOKS, WORDS, BATCH = 16, 24, 8
"""Pages and points of one run, and calls of one turn: seconds each."""
ALIKE = 3
"""Pages of one template."""
FRAGMENTS = 8
"""Pages whose fragment is a point."""
KNOWN = 400
"""Most pages, and most points, that are remembered."""
LONGEST = 300

_BREAK_OUT = "'\"></title></textarea></style></script><img src onerror={c}(name)>"
PAYLOADS: Mapping[str, tuple[str, ...]] = {
    "text": (_BREAK_OUT,),
    "attribute": (
        '" autofocus tabindex=0 onfocus={c}(name) a="',
        "' autofocus tabindex=0 onfocus={c}(name) a='",
        _BREAK_OUT,
    ),
    "url": ("javascript:{c}(name)", _BREAK_OUT),
    "script": ('";{c}(name);//', "';{c}(name);//", "{c}(name)", _BREAK_OUT),
}
"""By the place of the bare word; `{c}` is the canary. They run one function and change nothing."""

_NO_PAGE = re.compile(
    r"\.(?:txt|md|json|xml|js|mjs|map|css|png|jpe?g|gif|svg|ico|webp|woff2?|ttf|pdf|zip|gz|wasm|csv)$",
    re.IGNORECASE,
)
_FACE = re.compile(r"\{face:[^}]*\}")


def make(context: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> Pages:
    """See port.py."""
    return Pages(context.platform, chance, state)


class Pages:
    """Implements Explorer. `pages` and `points` hold the number of the run that last asked each, or 0."""

    def __init__(self, platform: Platform, chance: Random, state: Mapping[str, Any]) -> None:
        self._urls, self._chance = OwnUrls(platform), chance
        self._round = _number(state.get("round")) + 1
        self.pages = dict(_pairs(state.get("pages")))
        self.points = {key: last for key, last in _pairs(state.get("points")) if _point(key)}
        self._next: list[Question] = []
        self._asked: dict[str, Point] = {}
        self._looks, self._words = LOOKS, WORDS
        for url in self._urls.named():
            self._add_page(url)

    def ask(self, most: int) -> Sequence[Question]:
        questions: list[Question] = []
        room = min(most, BATCH)
        while room > 0:
            one = self._next.pop(0) if self._next else self._next_page() or self._next_point()
            if one is None or len(one.steps) > room:
                self._next[:0] = [one] if one else []
                break
            questions.append(one)
            room -= len(one.steps)
        return questions

    def learn(self, question: Question, results: Results) -> None:
        if not results or len(results) < len(question.steps):
            return
        args, result = question.steps[-1].args, results[-1]
        canary = args.get("script_canary")
        if not canary:
            return self._learn(str(args["url"]), result)
        if len(question.steps) == 1 and (point := self._asked.get(str(args["url"]))):
            places = [place for place in PAYLOADS if place in _list(result.get("canary_at"))]
            payloads = dict.fromkeys(one for place in places for one in PAYLOADS[place])
            steps = [_with(point, text.replace("{c}", canary), canary) for text in payloads]
            if steps and result.get("canary_ran") is not True:
                met = f"{point.kind} {point.name} of {point.url}, which the page's scripts show"
                self._next.append(Question((question.steps[0], *steps), led=met))

    def state(self) -> Mapping[str, Any]:
        return {"round": self._round, "pages": self.pages, "points": self.points}

    def _next_page(self) -> Question | None:
        """The next page: one never opened before one opened long ago."""
        waiting = [(last, at, url) for at, (url, last) in enumerate(self.pages.items()) if last < self._round]
        if not waiting or not self._looks:
            return None
        _, _, url = min(waiting)
        self.pages[url], self._looks = self._round, self._looks - 1
        return Question((Step(tool=BROWSE, args={"url": url}),), led="a page that no browser opened lately")

    def _next_point(self) -> Question | None:
        waiting = [
            (last, at, key) for at, (key, last) in enumerate(self.points.items()) if last < self._round
        ]
        if not waiting or not self._words:
            return None
        _, _, key = min(waiting)
        self.points[key], self._words = self._round, self._words - 1
        point, canary = _point(key), "qacanary" + hashlib.sha256(key.encode()).hexdigest()[:8]
        if point is None:
            return None
        step = _with(point, canary, canary)
        self._asked[step.args["url"]] = point
        return Question((step,), led=f"{point.kind} {point.name} of {point.url}: does a script show it")

    def _learn(self, url: str, result: Mapping[str, Any]) -> None:
        """Links and points of a page that answered."""
        if not 200 <= _number(result.get("status")) < 300 or "html" not in str(
            result.get("content_type", "")
        ):
            return
        found = [one for link in _list(result.get("links")) if (one := self._urls.spelled(str(link)))]
        self._chance.shuffle(found)
        for one in found:
            self._add_page(one)
        for form in _list(result.get("forms")):
            if isinstance(form, dict) and form.get("method") in ("get", ""):
                action = self._urls.spelled(str(form.get("action", "")))
                pairs = [(str(one[0]), str(one[1])) for one in _list(form.get("fields")) if _list(one)[1:]]
                if action and pairs:
                    query = urlencode([(name, value or "x") for name, value in pairs])
                    self._add_points(f"{action.partition('?')[0]}?{query}"[:LONGEST])
        self._add_points(url)
        if "?" not in url and sum(key.startswith("fragment ") for key in self.points) < FRAGMENTS:
            self.points.setdefault(f"fragment - {url}", 0)  # what no server sees, its scripts may write

    def _add_page(self, url: str) -> None:
        path = urlsplit(url).path
        alike = sum(_kind(one) == _kind(url) for one in self.pages)
        full = len(self.pages) >= KNOWN or len(url) > LONGEST
        if url not in self.pages and not full and alike < ALIKE and not _NO_PAGE.search(path):
            self.pages[url] = 0
            self._add_points(url)

    def _add_points(self, url: str) -> None:
        """Every parameter of the URL; and the last segment of its path, once a template."""
        base, _, query = url.partition("?")
        keys = [f"query {quote(name, safe='')} {url}" for name, _ in parse_qsl(query)]
        segments = base.split("/")
        if len(segments) > 1 and not query:
            keys.append(f"path {len(segments) - 1} {base}")
        most = ALIKE if "{face:" in url else 1  # names may show apps of their own
        for key in keys:
            alike = sum(_alike(one) == _alike(key) for one in self.points)
            if key not in self.points and alike < most and len(self.points) < KNOWN:
                self.points[key] = 0


def _with(point: Point, value: str, canary: str) -> Step:
    return Step(tool=BROWSE, args={"url": point.step(value).args["url"], "script_canary": canary})


def _kind(url: str) -> str:
    """A page's template: every name has the same face, every number the same page."""
    base, _, query = _FACE.sub("{face}", url).partition("?")
    return f"{template(base)}?{'&'.join(sorted(name for name, _ in parse_qsl(query)))}"


def _alike(key: str) -> str:
    kind, name, url = key.split(" ", 2)
    base = url.partition("?")[0]
    if kind == "path":  # the page of any other word is the same page
        base = base.rpartition("/")[0]
    return f"{kind} {name} {_kind(base)}"


def _point(key: str) -> Point | None:
    """A point from its key, which a notebook may hold: `kind name url`."""
    kind, _, rest = key.partition(" ")
    name, _, url = rest.partition(" ")
    if kind not in get_args(Kind)[:3] or not url or not name:
        return None
    if kind == "fragment":
        return Point(url, "fragment", name, "x")
    kinds: Any = kind
    if kind == "path":
        segments = urlsplit(url).path.split("/")
        if not name.isdigit() or not 0 < int(name) < len(segments):
            return None
        return Point(url, kinds, name, segments[int(name)])
    return Point(url, kinds, unquote(name), dict(parse_qsl(urlsplit(url).query)).get(name, "x"))


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _pairs(value: object) -> list[tuple[str, int]]:
    given = value if isinstance(value, dict) else {}
    return [(str(key), _number(last)) for key, last in list(given.items())[:KNOWN]]


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
