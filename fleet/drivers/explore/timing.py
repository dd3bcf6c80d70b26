"""The explorer of time: a quick look at every page, a measurement of what stands out and of a few in turn.

A quick look is a few requests, one after the other: it decides what to measure, not what is slow. A
measurement runs on a schedule beside a control, and the oracles judge it (oracles/web/timing.py). Each run
measures a few pages, first those that were not measured for longest, so that all of them have their turn.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

from fleet.drivers.desk import Left, Question, led_by
from fleet.drivers.explore.documents.routes import Examples, filled, strings_of
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.port import Explorer, ExplorerContext, Results
from fleet.drivers.explore.state_changes import may_act
from fleet.oracles.model import Exchange
from fleet.oracles.statistics import ranks
from fleet.oracles.web.timing import CALM, CALM_MS, FAR_MS, KIN, TIMES_MS, same_kind, unsettled
from fleet.personas.model import Step

FETCH = "qa_fetch"
TOOLS = (FETCH,)
QUICK = 20
"""Requests of a quick look."""
LOOKS, MEASURED, STANDING_OUT = 32, 6, 4
"""Most in one run: pages looked at, pages measured in turn, and pages measured because they stand out."""
RATE, LONG, SHORT = 10.0, 50, 20
"""A measurement: slots a second, slots of the page in question, and of other pages of its kind."""
PAGES = 200
"""Most pages that are remembered."""
NAMED = 60
"""Most pages taken from one answer."""
LONGEST = 200
"""Characters of a page's URL."""
OUT = 3.0
"""Factor above the other pages at which a page stands out; far below what an oracle requires."""

_ENDLESS = re.compile(r"stream|events?\b|\bws\b", re.I)
"""Words of routes that may not end."""


@dataclass(slots=True)
class _Measured:
    """A quick look at a page: milliseconds."""

    p50: float
    p95: float
    most: float

    @property
    def calm(self) -> bool:
        return self.p95 <= CALM * self.p50 + CALM_MS


@dataclass(slots=True)
class PageTimer:
    """`measured` holds, by page, the run in which it was last measured; 0: not yet."""

    urls: OwnUrls
    known: Examples
    run: int = 1
    control: str = ""
    measured: dict[str, int] = field(default_factory=dict)
    _looks: dict[str, _Measured] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    _repeated: set[str] = field(default_factory=set)
    _plan: list[Question] | None = None

    def ask(self, most: int) -> Sequence[Question]:
        """Quick looks until every page that is due has had one, then one measurement at a time."""
        if ranks.missing():
            return ()
        waiting = [page for page in self._due() if page not in self._asked]
        if waiting := waiting[: max(0, min(most, LOOKS - len(self._asked)))]:
            self._asked.update(waiting)
            looks = [Question((_fetch(page, repeat=QUICK),)) for page in waiting]
            return led_by("a page that others refer to, which is due", *looks)
        if self._plan is None:
            self._plan = list(self._planned())
        while self._plan and len(self._plan[0].steps) > most:
            self._plan.pop(0)
        return [self._plan.pop(0)] if self._plan else ()

    def learn(self, question: Question, results: Results) -> None:
        """Learn the pages that an answer names, and how fast its page was."""
        for step, result in zip(question.steps, results, strict=False):
            page, status = str(step.args["url"]), result.get("status")
            if not isinstance(status, int) or status >= 300:
                self.measured.pop(page, None)
                continue
            if step.args.get("rate"):
                if not unsettled(Exchange(step.tool, step.args, result)):
                    self.measured[page] = self.run
                elif (
                    page not in self._repeated and self._plan is not None
                ):  # else its turn is in the next run
                    self._repeated.add(page)
                    self._plan.append(question)
                continue
            figures = [result.get(name) for name in ("p50_ms", "p95_ms", "max_ms")]
            if all(isinstance(one, int | float) and one > 0 for one in figures):
                self._looks[page] = _Measured(*(float(one) for one in figures if one is not None))
            for found in islice(self._pages_of(page, result), NAMED):
                if len(self.measured) < PAGES:
                    self.measured.setdefault(found, 0)

    def left(self) -> Sequence[Left]:
        """Everything, where samples cannot be judged."""
        return [Left("latency of pages", why)] if (why := ranks.missing()) else ()

    def state(self) -> Mapping[str, Any]:
        return {"run": self.run, "control": self.control, "measured": self.measured}

    def _pages_of(self, page: str, result: Mapping[str, Any]) -> Iterator[str]:
        """Pages of the platform that an answer names, and that GET only reads."""
        links = [*strings_of(result.get("links")), *strings_of(result.get("paths"))]
        links += strings_of([result.get("location")])
        for route in strings_of(result.get("routes")):
            method, _, target = route.partition(" ")
            links += [way.link for way in filled(target, self.known, 1)] if method == "GET" else []
        yield from filter(harmless, (self.urls.spelled(link, page) for link in links if link))

    def _due(self) -> list[str]:
        return sorted(self.measured, key=lambda page: self.measured[page])  # stable: as they were found

    def _planned(self) -> Iterator[Question]:
        """The measurements of this run: what stands out, then what was not measured for longest."""
        calm = [page for page, look in self._looks.items() if look.calm]
        if len(self._looks) < 2 or not calm:
            return
        if self.control not in calm or self.control in self._standing_out():
            self.control = min(calm, key=lambda page: (self._looks[page].p95, page))
        out = [page for page in self._standing_out() if page != self.control][:STANDING_OUT]
        for page in out:  # after others of its kind; alone beside the control where there are too few
            slow = self._standing_out()
            others = [one for one in self._looks if one not in (page, self.control, *slow)]
            others.sort(key=lambda one: not same_kind(one, page))
            kin = [one for one in (*others[: KIN - 1], self.control) if same_kind(one, page)]
            steps = [_fetch(page, control=self.control, rate=RATE, repeat=LONG)]
            if len(others) >= KIN - 1 and kin:
                steps.insert(0, _fetch(others[0], control=others[1], rate=RATE, repeat=SHORT))
            yield Question(tuple(steps), led=f"page {page}, whose quick looks stood out")
        rest = [page for page in self._due() if page in self._looks and page not in (*out, self.control)]
        for page in rest[:MEASURED]:
            measured = _fetch(page, control=self.control, rate=RATE, repeat=LONG)
            yield Question((measured,), led=f"page {page}, which was not measured for longest")

    def _standing_out(self) -> list[str]:
        """The pages whose quick look shows a delay, of all requests or of some; the worst first."""
        usual = statistics.median(look.p50 for look in self._looks.values())
        found = [
            page
            for page, look in self._looks.items()
            if look.p50 > OUT * usual + FAR_MS / 2 or look.most > OUT * max(look.p50, usual) + TIMES_MS
        ]
        return sorted(found, key=lambda page: -self._looks[page].p95)


def make(context: ExplorerContext, _chance: Random, state: Mapping[str, Any]) -> Explorer:
    """The explorer, from the pages that the profile names and those that it found in earlier runs."""
    platform = context.platform
    urls = OwnUrls(platform)
    kept = state.get("measured")
    known = kept if isinstance(kept, Mapping) else {}
    runs = {page: at for page, at in known.items() if isinstance(at, int) and harmless(page)}
    measured = {page: runs.get(page, 0) for page in (*urls.named(), *runs) if harmless(page)}
    run, control = state.get("run"), state.get("control")
    return PageTimer(
        urls,
        Examples.of(platform),
        run=run + 1 if isinstance(run, int) else 1,
        control=control if isinstance(control, str) else "",
        measured=dict(list(measured.items())[:PAGES]),
    )


def harmless(page: object) -> bool:
    """Whether a page may be asked for repeatedly: it is spelled as ours are, ends, and names no act."""
    if not isinstance(page, str) or len(page) > LONGEST or not page.isprintable():
        return False
    base = re.match(r"\{(?:site|proxy|face:[a-z0-9-]{1,63})\}", page)
    if base is None or re.search(r"[{}<>* ]", page[base.end() :]) or _ENDLESS.search(page):
        return False
    return not may_act(page[base.end() :])


def _fetch(page: str, **more: object) -> Step:
    return Step(tool=FETCH, args={"url": page, **more})
