"""The inputs of a platform's pages, asked in turn: each its first question before any its second. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from random import Random
from typing import Any, get_args
from urllib.parse import quote, unquote_plus

from fleet.drivers.desk import Question
from fleet.drivers.explore.documents.routes import Examples
from fleet.drivers.explore.origins import origins as foreign_origins
from fleet.drivers.explore.web import attacks
from fleet.drivers.explore.web.points import Kind, Point, encoded
from fleet.oracles.web.access import path_of
from fleet.oracles.web.variations import FORM
from fleet.personas.model import Step
from fleet.personas.needs import step_needs
from sandbox import strict_json
from sandbox.tools import TOOLS

TOOL = "qa_fetch"
MAX_INPUTS = 400
MAX_PLAIN = 80
"""Pages whose own questions are asked."""
GUESSED = (
    *("q", "name", "id", "page", "lang", "redirect", "next", "url", "file"),
    *(
        "path",
        "location",
        "target",
        "host",
        "src",
        "view",
        "template",
        "layout",
        "callback",
        "cmd",
        "text",
        "sort",
        "user",
    ),
)
"""Parameters that a page may read without a link or a document that says so."""
EARLY = 7
"""Questions of a page itself up to its odd paths: what needs no input, and breaks many servers."""
HEADERS = ("x-forwarded-host", "referer", "accept-language", "user-agent")
UNKNOWN = "qa-unknown-name"
"""A name that no platform has."""
_TAKES = frozenset(one.name for one in fields(TOOLS[TOOL].args))
DONE = 1_000_000
"""Depth of an input whose questions are all asked in this round."""


@dataclass(frozen=True, slots=True)
class Guess(Question):
    """Every guessed parameter or header of a page at once, each with its own word: which does it show, or
    which makes it another page than a moment before?"""

    url: str = ""
    words: tuple[tuple[str, str], ...] = ()

    @property
    def why(self) -> str:
        return "names that pages like it may take"


@dataclass(frozen=True, slots=True)
class BodyField(Point):
    """A field of a JSON body, beside the `others` that a document writes there, as JSON."""

    others: tuple[tuple[str, str], ...] = ()

    def step(self, value: str, **more: object) -> Step:
        return Point.step(self, value, **more, fields={name: parsed(text, "") for name, text in self.others})


@dataclass(frozen=True, slots=True)
class FormField(Point):
    """A field of a form that is sent by POST, beside the `others`, as a browser encodes them."""

    others: tuple[tuple[str, str], ...] = ()

    def step(self, value: str, **more: object) -> Step:
        pairs = (*self.others, (self.name, value))
        body = "&".join(f"{quote(name, safe='')}={encoded(text)}" for name, text in pairs)
        return Point.step(self, value, **more, body=body, body_type=FORM)


@dataclass(slots=True)
class Input:
    """One input, or (without a point) a page itself. `depth` questions of it were asked in this round.

    `good`: the page answers to its benign value; `fresh`: its page changed, so it is asked again at once.
    """

    url: str
    template: str
    point: Point | None = None
    depth: int = 0
    good: bool = True
    fresh: bool = False
    left: Iterator[Question] | None = None


@dataclass(slots=True)
class Inputs:
    """`seed` and `round` decide the values; `known` the words that stand for others."""

    known: Examples
    origins: tuple[str, ...]
    seed: str
    listens: bool = False
    """Whether the platform reaches a listener of the fleet."""
    round: int = 0
    all: dict[str, Input] = field(default_factory=dict)

    def page(self, url: str, template: str) -> None:
        """Learn of a page that answers."""
        if sum(one.point is None for one in self.all.values()) < MAX_PLAIN:
            self._add(f"page {template}", Input(url, template))

    def point(self, point: Point, template: str, *, good: bool = True) -> None:
        """Learn of an input; one with a better benign value takes the place of the first."""
        key = f"{point.method} {point.kind} {template} {point.name}"
        before = self.all.get(key)
        if before is not None and good and not before.good:
            before.point, before.url, before.good, before.depth, before.left = point, point.url, True, 0, None
        self._add(key, Input(point.url, template, point, good=good))

    def _add(self, key: str, one: Input) -> None:
        if key not in self.all and len(self.all) < MAX_INPUTS:
            one.fresh = self.round > 0
            self.all[key] = one

    def drop(self, url: str) -> None:
        """Forget the parameters that a link or a script gave a URL that leads nowhere, and the parts of a
        path that a script puts together."""
        for key, one in list(self.all.items()):
            if one.point and one.url == url and one.point.kind == ("query" if one.good else "path"):
                del self.all[key]

    def again(self, template: str) -> None:
        """Ask all inputs of a template again: its page changed."""
        for one in self.all.values():
            if one.template == template:
                one.depth, one.left, one.fresh = 0, None, True

    def depth(self, *, fresh: bool = False) -> int:
        """How often the least asked input was asked; DONE when all are."""
        return min((one.depth for one in self.all.values() if one.fresh or not fresh), default=DONE)

    def next(self, most: int, worth: Mapping[str, int], *, fresh: bool = False) -> Question | None:
        """The next question with at most this many calls: of the least asked input, the worthiest first."""
        ready = [one for one in self.all.values() if one.depth < DONE and (one.fresh or not fresh)]
        for one in sorted(ready, key=lambda one: (one.depth, -worth.get(one.template, 0), one.point is None)):
            if question := self._of(one, most):
                return question
        return None

    def early(self, urls: Collection[str], most: int) -> Iterator[Question]:
        """The cheap questions of these pages themselves; in the first round, before any other input's."""
        for one in self.all.values() if not self.round else ():
            while one.point is None and one.url in urls and one.depth < EARLY and most > 0:
                if (question := self._of(one, most)) is None:
                    break
                most -= len(question.steps)
                yield question

    def _of(self, one: Input, most: int) -> Question | None:
        """The next question of an input, if it has one with at most this many calls."""
        if one.left is None:
            chance = Random(f"{self.seed}/{self.round}/{one.url}/{one.point}")
            asked = (
                self._of_point(one.point, chance) if one.point else _of_page(one.url, self.origins, chance)
            )
            sent = (each for each in asked if self._can_be_sent(each))
            one.left = islice(sent, one.depth, None)
        question = next(one.left, None)
        if question is None:
            one.depth = DONE
            return None
        one.depth += 1
        if len(question.steps) <= most:
            piece = f"{one.point.kind} {one.point.name} of" if one.point else "page"
            return replace(question, led=f"{piece} {one.template}: {question.led or 'what it takes'}")
        one.left, one.depth = None, one.depth - 1  # for a later batch with more room
        return None

    def _can_be_sent(self, question: Question) -> bool:
        needs = "listener" in (need for one in question.steps for need in step_needs(one.tool, one.args))
        return (self.listens or not needs) and all(set(one.args) <= _TAKES for one in question.steps)

    def begin_round(self) -> None:
        """All inputs from the first question again, with other values."""
        self.round += 1
        for one in self.all.values():
            one.depth, one.left, one.fresh = 0, None, False

    def _of_point(self, point: Point, chance: Random) -> Iterator[Question]:
        """Without it, attacks on it, and other values that the platform knows, or does not."""
        if point.kind == "tail":
            yield from attacks.below(point, chance, root=point.url.count("/") == 1)
            return
        if point.kind == "body":
            yield from attacks.bodies(point)
            return
        if point.kind == "query":
            path, _, query = point.url.partition("?")
            pairs = [(pair, unquote_plus(pair.partition("=")[0])) for pair in query.split("&") if pair]
            kept = "&".join(pair for pair, name in pairs if name != point.name)
            yield Question((Step(tool=TOOL, args={"url": f"{path}?{kept}" if kept else path}),))
        yield from attacks.questions(point, chance)
        others = [one for one in self.known.choices(point.name) if one != point.value][: 2 + self.round]
        yield Question(tuple(point.step(value) for value in (point.value, *others, UNKNOWN)))

    def as_data(self) -> list[list[Any]]:
        """As JSON."""
        rows: list[list[Any]] = []
        for one in self.all.values():
            rows.append([one.url, one.template, one.depth, one.good, one.fresh])
            if point := one.point:
                others = point.others if isinstance(point, BodyField | FormField) else ()
                pairs = [list(pair) for pair in others]
                rows[-1] += [point.kind, point.name, point.value, point.method, pairs]
        return rows

    def restore(self, data: Iterable[Any]) -> None:
        """Take what `as_data` gave. Raises ValueError, TypeError or KeyError for anything else."""
        for url, template, depth, good, fresh, *rest in data:
            if rest:
                kind, name, value, method = map(str, rest[:4])
                if kind not in get_args(Kind):
                    raise ValueError(f"{kind!r} is not a kind of input")
                given: tuple[str, Any, str, str, str] = (str(url), kind, name, value, method)
                others = tuple((str(a), str(b)) for a, b in rest[4])
                made = (
                    FormField(*given, others)
                    if kind == "form"
                    else BodyField(*given, others)
                    if others
                    else Point(*given)
                )
                self.point(made, str(template), good=bool(good))
            else:
                self.page(str(url), str(template))
            last = self.all[next(reversed(self.all))]
            last.depth, last.fresh = int(depth), bool(fresh)


def parsed(text: str, otherwise: str) -> object:
    """The value of a JSON text, or another one for what is not JSON."""
    try:
        return strict_json.loads(text.encode())
    except (ValueError, RecursionError):
        return otherwise


def _of_page(url: str, origins: tuple[str, ...], chance: Random) -> Iterator[Question]:
    """Questions to a page itself: unmentioned parameters and methods, odd paths, origins, headers."""
    plain = Step(tool=TOOL, args={"url": url})
    yield guess(url, [name for name in GUESSED if f"{name}=" not in url], chance)
    other = (Step(tool=TOOL, args={"url": url, "method": method}) for method in ("HEAD", "OPTIONS"))
    yield Question((plain, *other))
    path, _, query = url.partition("?")
    for tail in ("%00", "%2e%2e%2f", "%", ";x=1", "~"):
        odd = path + "/" * path.endswith("}") + tail + ("?" + query if query else "")
        yield Question((Step(tool=TOOL, args={"url": odd}),))
    yield attacks.options(url, chance)
    yield from foreign_origins(url, origins, chance)
    if path_of(url) == "/":  # what reads headers is mostly before all pages
        yield from attacks.headers(url)
        yield from attacks.hosts(url, chance)
        yield attacks.upgrades(url)
    words = tuple((name, f"qa{chance.getrandbits(32):08x}{at}.test") for at, name in enumerate(HEADERS))
    yield Guess((Step(tool=TOOL, args={"url": url, "headers": dict(words)}),), url, words)


def guess(url: str, names: Iterable[str], chance: Random) -> Guess:
    """A page, and the same with parameters that it may read."""
    words = tuple((name, f"qa{chance.getrandbits(32):08x}{at}") for at, name in enumerate(names))
    joined = "&".join(f"{name}={word}" for name, word in words)
    mark = "&" if "?" in url else "?"
    steps = tuple(Step(tool=TOOL, args={"url": one}) for one in (url, f"{url}{mark}{joined}"))
    return Guess(steps, url, words)
