"""A small site in memory, unlike any platform here, and an explorer let loose on it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from fleet.config import Platform
from fleet.drivers.desk import Question
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.port import ExplorerContext
from fleet.drivers.explore.web.explorer import WebExplorer
from fleet.personas.model import Step
from sandbox.pages.html import read
from sandbox.pages.links import find, of_markup

SITE = "http://rookery.test"
PLATFORM = Platform.model_validate(
    {
        "name": "rookery",
        "chain": {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20},
        "web": {"site": SITE, "face": SITE + "/nest/{name}/", "proxy": SITE},
        "call_targets": ["heron"],
        "targets": {"guide": "{site}/field-guide.md", "bird": "egret"},
    }
)
GROUND = ExplorerContext(platform=PLATFORM, tools=frozenset({"qa_fetch"}), acts=False)

Page = tuple[str, str]
"""Content type and body."""
Answer = Callable[[str, Mapping[str, str]], Page | int]
"""What a path answers to a query: a page, or a status without one."""

PAGES: Mapping[str, Page] = {
    "/": ("text/html", '<a href="/map">m</a><a href="wade?reeds=3">w</a><script src="/flock.js"></script>'),
    "/map": (
        "text/html",
        '<a href="/gone">g</a><form action="/find"><input name=call><input name=at value=7></form>',
    ),
    "/wade": ("text/html", "wading"),
    "/find": ("text/html", "found"),
    "/flock.js": ("text/javascript", 'fetch("/ring?band=" + n); //# sourceMappingURL=flock.js.map'),
    "/ring": ("application/json", '{"band": 1, "limit": 40}'),
    "/robots.txt": ("text/plain", "User-agent: *\nDisallow: /hide/\n"),
    "/hide/": ("text/html", '<a href="deep/one">x</a>'),
    "/hide/deep/one": ("text/html", "a limit of 40 bands"),
    "/field-guide.md": (
        "text/markdown",
        "GET /tides?of=<place>&kind=high|low\n`GET /eggs/{id}`\nA ring costs 40 reeds.\n"
        'POST /lay\n\n    {"nest": "heron", "eggs": 2}\nDELETE /lay\n',
    ),
    "/tides": ("application/json", '{"kind": "high"}'),
    "/eggs/1": ("application/json", '{"egg": 1}'),
    "/nest/heron/": ("text/html", '<a href="song">s</a><a href="/nest/stork/">n</a>'),
    "/nest/heron/song": ("text/plain", "la"),
    "/nest/egret/": ("text/html", "egret"),
    "/nest/stork/": ("text/html", "stork"),
}


def served(path: str, query: Mapping[str, str]) -> Page | int:
    """The rookery; its `call` is shown in the page, and only a number will do for `band`."""
    if path == "/find":
        return "text/html", f"nothing calls {query.get('call', '')}"
    if path == "/ring" and not query.get("band", "1").isdigit():
        return 500
    return PAGES.get(path, 404)


@dataclass(slots=True)
class Rookery:
    """Answers an explorer's questions, and remembers them."""

    answer: Answer = served
    ground: ExplorerContext = GROUND
    asked: list[Question] = field(default_factory=list)
    urls: OwnUrls = field(default_factory=lambda: OwnUrls(PLATFORM))
    scripts: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    """By page: what its scripts ask in a browser."""

    @property
    def fetched(self) -> list[str]:
        """Every URL in order, without the site's own."""
        return [
            self.urls.actual(step.args["url"]).removeprefix(SITE) for one in self.asked for step in one.steps
        ]

    @property
    def calls(self) -> int:
        return sum(len(one.steps) for one in self.asked)

    def answered(self, step: Step) -> dict[str, Any]:
        """One result."""
        if step.tool == "qa_browse":
            assert step.args["press"] is True
            calls = self.scripts.get(step.args["url"], ())
            return {"calls": [{**one, "url": SITE + one["url"]} for one in calls]}
        return self.fetch(step.args)

    def fetch(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """One result, as qa_fetch gives it."""
        url = self.urls.actual(args["url"])
        assert url.startswith((SITE + "/", SITE + "?")), url
        parts = urlsplit(url)
        page = self.answer(parts.path, dict(parse_qsl(parts.query)))
        status = page if isinstance(page, int) else 200
        kind, body = ("text/html", f"status {status}") if isinstance(page, int) else page
        refers = of_markup(read(body)[1], url) if kind == "text/html" else find(body, url)
        sha = hashlib.sha256(body.encode()).hexdigest()
        made = {"status": status, "content_type": kind, "text": body, "sha256": sha, "headers": {}}
        return made | {key: _plain(value) for key, value in asdict(refers).items()}

    def explore(
        self, state: Mapping[str, Any] | None = None, *, calls: int = 300, most: int = 48, seed: str = "s"
    ) -> WebExplorer:
        """One run with a budget of calls; the explorer after it."""
        explorer = WebExplorer(self.ground, Random(seed), state or {})
        while calls > 0:
            questions = explorer.ask(min(most, calls))
            if not questions:
                break
            for question in questions:
                self.asked.append(question)
                explorer.learn(question, [self.answered(step) for step in question.steps])
                calls -= len(question.steps)
            assert calls >= 0
        return explorer


def _plain(values: Sequence[Any]) -> list[Any]:
    return list(values)
