"""The generator: the same seed, the same platform; every switch shows its effect, and nothing but its own."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from bench.findings.blueprint import Blueprint
from bench.findings.classes.functions import functions
from bench.findings.rules import Posted
from bench.findings.site.routes import JSON, REDIRECT, documented
from bench.findings.switches import Switch, drawers, drawn, grouped
from tests.bench.asking import asking, titled
from tests.bench.questions import QUESTIONS

SEEDS = (1, 2, 3)
ALIKE: set[tuple[str, str]] = set()
"""Rules that another class's evidence satisfies as well, since it shows both."""
CHAIN = frozenset({"chain-owner", "chain-stranger", "chain-limit", "chain-view"})


def switch(seed: int, klass: str) -> Switch:
    return next(one for one in drawn(Blueprint.drawn(seed)) if one.klass == klass)


def described(seed: int) -> list[object]:
    plan = Blueprint.drawn(seed)
    return [plan, [one.words for one in drawn(plan)], documented(plan), functions(plan)]


def test_a_seed_always_gives_the_same_platform_and_another_seed_another() -> None:
    assert described(1) == described(1)
    assert len({str(described(seed)) for seed in range(20)}) == 20


def test_a_seed_has_one_switch_of_every_class_and_places_vary() -> None:
    made = [drawn(Blueprint.drawn(seed)) for seed in range(30)]
    assert all([one.klass for one in switches] == list(drawers()) for switches in made)
    assert set(QUESTIONS) | CHAIN == set(drawers())
    where = {
        klass: {(s.place, s.kind) for row in made for s in row if s.klass == klass} for klass in drawers()
    }
    fixed = {"cookie-flags", "directory-listing", "turns-loop"}  # only their constants vary
    assert {klass for klass, places in where.items() if len(places) == 1} == fixed


def test_groups_hold_every_switch_once_and_never_two_on_one_ground() -> None:
    for seed in range(30):
        switches = drawn(Blueprint.drawn(seed))
        groups = grouped(switches, 3, seed)
        assert Counter(one.klass for group in groups for one in group) == Counter(
            one.klass for one in switches
        )
        assert max(map(len, groups)) - min(map(len, groups)) <= 6
        for group in groups:
            grounds = Counter(ground for one in group for ground in one.ground)
            assert set(grounds.values()) <= {1}, (seed, grounds)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_clean_twin_serves_every_documented_route_as_documented(seed: int) -> None:
    with asking(seed) as ask:
        for one in documented(ask.plan):
            got = ask.get(one.example)
            wanted = (302, "") if one.kind == REDIRECT else (200, one.kind)
            assert (got.status, got.result["content_type"].partition(";")[0]) == wanted, one.example
            assert got.result["a11y"] == (), one.example
            assert got.result["secrets"] == (), one.example
            wrong = ask.http.post(one.example)
            assert wrong.status_code == 405, one.example
        for role in ("llms", "guide", "map"):
            got = ask.get(ask.plan.paths[role])
            assert (got.status, got.result["secrets"]) == (200, ()), role
        assert ask.get("/nothing-here").status == 404
        unknown = ask.get(next(one for one in documented(ask.plan) if one.kind == JSON).path + "/x")
        assert unknown.status == 404


@pytest.mark.parametrize("seed", SEEDS)
def test_every_link_of_the_clean_twin_leads_somewhere(seed: int) -> None:
    with asking(seed) as ask:
        seen, waiting = set(), ["/"]
        while waiting:
            path = waiting.pop()
            if path in seen:
                continue
            seen.add(path)
            got = ask.get(path)
            assert got.status < 400, path
            waiting += re.findall(r'(?:href|src|action)="(/[^"]*)"', got.text)
        assert len(seen) > 12


@pytest.fixture(scope="module", params=(1, 2))
def shown(request: pytest.FixtureRequest) -> tuple[int, dict[str, Posted]]:
    """What a direct question to each switch of a seed shows, by class."""
    seed, items = request.param, {}
    for klass, question in QUESTIONS.items():
        one = switch(seed, klass)
        with asking(seed, one) as ask:
            items[klass] = question(ask, one)
    return seed, items


def test_every_switch_shows_its_effect(shown: tuple[int, dict[str, Posted]]) -> None:
    seed, items = shown
    rules = {klass: switch(seed, klass).rule for klass in items}
    hidden = {klass: item for klass, item in items.items() if not rules[klass].shows(item)}
    assert hidden == {}
    assert [klass for klass, item in items.items() if not rules[klass].titled(item)] == []
    untrue = [klass for klass in items if rules[klass].titled(titled("all is well", *items[klass].calls))]
    assert untrue == []


def test_a_rule_does_not_take_what_another_class_shows(shown: tuple[int, dict[str, Posted]]) -> None:
    seed, items = shown
    taken = {
        (klass, other)
        for klass in items
        for other, item in items.items()
        if klass != other and switch(seed, klass).rule.shows(item)
    }
    assert taken - ALIKE == set()


def test_the_same_questions_to_the_clean_twin_show_nothing() -> None:
    with asking(1) as ask:
        for klass in QUESTIONS.keys() - {
            "sql-injection",
            "dead-link",
        }:  # a page that no page links to is not dead
            one = switch(1, klass)
            assert not one.rule.shows(QUESTIONS[klass](ask, one)), klass
