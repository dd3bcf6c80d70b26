"""The explorer of time on a modelled platform: what it asks, and what the oracles say of the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from fleet.config import Platform
from fleet.drivers.desk import Left, Question
from fleet.drivers.explore import timing
from fleet.drivers.explore.port import Explorer, ExplorerContext, Reporter
from fleet.drivers.explore.table import chosen
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.statistics import ranks
from fleet.oracles.table import judge
from fleet.personas.model import Step
from sandbox.pages.links import find

pytest.importorskip("scipy", reason="the extra `stats` is not installed")
PLATFORM = Platform.model_validate(
    {
        "name": "p",
        "chain": {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20},
        "web": {"site": "http://h:1", "proxy": "http://h:1", "face": "http://h:1/of/{name}/"},
        "targets": {"guide": "{site}/guide.txt", "page": "fern"},
    }
)
GROUND = ExplorerContext(platform=PLATFORM, tools=frozenset({"qa_fetch"}), acts=False)
GUIDE = "GET /api/moss\nGET /api/peat\nGET /api/bark\nGET /notes\nPOST /api/act\nhttp://h:1/of/birch/"
Slow = Callable[[str, int], float]
"""Milliseconds of a page's n-th request."""


class Modelled:
    """A platform that answers a question at once, with the latencies that it would have."""

    def __init__(self, slow: Slow) -> None:
        self.slow, self.chance = slow, Random(1)
        self.asked: list[Mapping[str, Any]] = []
        self.hits: dict[str, int] = {}

    def page(self, url: str) -> float:
        self.hits[url] = self.hits.get(url, 0) + 1
        return 4 + self.chance.random() + self.slow(url, self.hits[url])

    def __call__(self, args: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(args)
        own = [self.page(args["url"]) for _ in range(args["repeat"])]
        beside = [self.page(args["control"]) for _ in own] if "control" in args else []
        ordered = sorted(own)
        names = find(GUIDE, "http://h:1/guide.txt", prose=True) if args["url"].endswith("guide.txt") else None
        return {
            "ok": True,
            "status": 200,
            "links": list(names.links) if names else [],
            "paths": list(names.paths) if names else [],
            "routes": list(names.routes) if names else [],
            "p50_ms": ordered[len(own) // 2],
            "p95_ms": ordered[int(len(own) * 0.95) - 1],
            "max_ms": ordered[-1],
            "samples_ms": own if args.get("rate") else [],
            "control_ms": beside if args.get("rate") else [],
        }


def explored(
    explorer: Explorer, site: Modelled, room: int = 200
) -> tuple[set[tuple[str, str]], list[Question]]:
    """What the oracles say of a run's answers, by oracle and page; and its questions."""
    said, posed = set(), []
    while questions := explorer.ask(min(room, 48)):
        for question in questions:
            posed.append(question)
            room -= len(question.steps)
            results = [site(step.args) for step in question.steps]
            seen = [
                Exchange(step.tool, step.args, one) for step, one in zip(question.steps, results, strict=True)
            ]
            for end in range(1, len(seen) + 1):
                said |= {(one.oracle, str(seen[end - 1].args["url"])) for one in judge(seen[:end], Facts())}
            explorer.learn(question, results)
    return said, posed


def made(state: Mapping[str, Any] | None = None) -> Explorer:
    return timing.make(GROUND, Random(1), state or {})


def measured(questions: Sequence[Question]) -> list[str]:
    return [one.steps[-1].args["url"] for one in questions if one.steps[-1].args.get("rate")]


PAGES = {
    "{site}/",
    "{site}/guide.txt",
    "{face:fern}",
    "{face:birch}",
    "{site}/api/moss",
    "{site}/api/peat",
    "{site}/api/bark",
    "{site}/notes",
}


def test_it_is_one_of_the_explorers() -> None:
    assert list(chosen(["timing"], frozenset({"qa_fetch"}))) == ["timing"]
    assert list(chosen(["timing"], frozenset({"qa_call"}))) == []


def test_where_nothing_can_be_judged_nothing_is_asked_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an installation without the extra `stats`."""
    explorer = made()
    assert isinstance(explorer, Reporter)
    assert list(explorer.left()) == []
    monkeypatch.setattr(ranks, "missing", lambda: "not installed: scipy")
    assert list(explorer.ask(48)) == []
    assert list(explorer.left()) == [Left("latency of pages", "not installed: scipy")]


def test_it_looks_at_every_page_and_finds_nothing_on_a_healthy_platform() -> None:
    said, posed = explored(made(), site := Modelled(lambda url, hit: 0))
    assert said == set()
    assert {args["url"] for args in site.asked} == PAGES
    assert len(measured(posed)) == timing.MEASURED


@pytest.mark.parametrize("page", ["{site}/api/peat", "{face:birch}", "{face:fern}"])
def test_a_slow_page_is_found_beside_its_kind(page: str) -> None:
    said, _ = explored(made(), Modelled(lambda url, hit: 300 * (url == page)))
    assert said == {("slow-page", page)}


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_slow_share_of_requests_is_found_on_any_page(page: str) -> None:
    said, _ = explored(made(), Modelled(lambda url, hit: 400 * (url == page and hit % 5 == 0)))
    assert said == {("slow-share", page)}


@pytest.mark.parametrize(
    "slow",
    [
        lambda url, hit: 400,
        lambda url, hit: 400 * (hit % 5 == 0),
        lambda url, hit: 90 * ("api" in url),
        lambda url, hit: 300 * ("api" in url),
        lambda url, hit: 300 * (10 <= hit < 17),
    ],
    ids=["slow everywhere", "stalls everywhere", "a little slower", "a slow kind", "one pause"],
)
def test_what_is_no_page_s_own_fault_is_not_reported(slow: Slow) -> None:
    assert explored(made(), Modelled(slow))[0] == set()


def test_what_a_restless_control_hides_is_asked_once_more_and_first_in_the_next_run() -> None:
    posed = explored(made(), Modelled(lambda url, hit: 0))[1]
    calm, control = measured(posed), posed[-1].steps[-1].args["control"]
    # the quick look is over when the control becomes restless
    restless = Modelled(lambda url, hit: 100 * (url == control and hit > timing.QUICK and hit % 7 == 0))
    explorer = made()
    asked = measured(explored(explorer, restless)[1])
    assert sorted(asked) == sorted(2 * calm)
    assert all(explorer.state()["measured"][page] == 0 for page in calm)


def test_pages_have_their_turn_in_later_runs() -> None:
    site, seen = Modelled(lambda url, hit: 0), list[str]()
    state: dict[str, Any] = {}
    for _ in range(2):
        explorer = made(state)
        seen += measured(explored(explorer, site)[1])
        state = dict(explorer.state())
    assert set(seen) | {state["control"]} == PAGES
    assert state["run"] == 2


def test_a_state_that_it_does_not_understand_is_ignored() -> None:
    state = {
        "run": "x",
        "control": 7,
        "measured": {"http://evil/": 1, "{site}/notes": "y", "{site}/api/moss": 3},
    }
    explored(explorer := made(state), site := Modelled(lambda url, hit: 0))
    assert {args["url"] for args in site.asked} == PAGES
    assert explorer.state()["run"] == 1


def test_it_asks_no_more_than_there_is_room_for() -> None:
    _, posed = explored(made(), Modelled(lambda url, hit: 300 * (url == "{site}/api/peat")), room=9)
    assert sum(len(one.steps) for one in posed) <= 9


def test_without_the_libraries_it_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "missing", lambda: "not installed: scipy")
    assert made().ask(48) == ()


@pytest.mark.parametrize(
    "page",
    [
        "{site}/" + "x" * timing.LONGEST,
        "{site}/a\n",
        "{name}/x",
        "http://h/x",
        "{site}/{run}",
        7,
        "{site}/a b",
        "{site}/logout",
        "{site}/api/delete?id=1",
        "{site}/v1/events",
    ],
)
def test_what_is_not_asked_for(page: object) -> None:
    assert not timing.harmless(page)


def test_an_answer_names_a_bounded_number_of_pages() -> None:
    one = timing.make(GROUND, Random(1), {})
    question = Question((Step(tool="qa_fetch", args={"url": "{site}/", "repeat": 2}),))
    before = len(one.state()["measured"])
    links = [f"/page{number}" for number in range(10 * timing.NAMED)]
    one.learn(question, [{"status": 200, "links": links, "paths": 7, "routes": {"a": 1}, "location": None}])
    assert len(one.state()["measured"]) == before + timing.NAMED
