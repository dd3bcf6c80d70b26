"""The explorer of pages: it finds all of a site, asks every input in turn, and ends."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any
from urllib.parse import unquote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.config import Platform, WebSection
from fleet.config.limits import LimitsSection
from fleet.drivers.desk import Question
from fleet.drivers.explore.driver import FIRST as FIRST_TURN
from fleet.drivers.explore.port import ExplorerContext
from fleet.drivers.explore.web import attacks
from fleet.drivers.explore.web.attacks import UP
from fleet.drivers.explore.web.explorer import (
    FACTS,
    QUIET,
    REVISITS,
    Comparison,
    DeadLink,
    PageOpened,
    PageVisit,
    RouteCheck,
    WebExplorer,
)
from fleet.drivers.explore.web.frontier import FIRST, MAX_PAGES, SAMPLES, Frontier
from fleet.drivers.explore.web.inputs import DONE, EARLY
from fleet.drivers.explore.web.points import Point
from fleet.drivers.explore.web.site_map import MISSING, SiteMap
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from fleet.personas.model import Step
from tests.drivers.rookery import GROUND, PAGES, PLATFORM, SITE, Page, Rookery, served

TEXT: Page = ("text/plain", "moss")


def paths(asked: list[str]) -> set[str]:
    return {url.partition("?")[0] for url in asked}


def _of_the_root(one: Question) -> bool:
    """Whether it is one of the early questions, which no page comes before."""
    asked = [str(step.args["url"]).removeprefix("{site}/") for step in one.steps]
    return not isinstance(one, PageVisit) and all(not url or url[0] in "?%;~" for url in asked)


def test_it_reads_every_page_before_it_asks_any_input_but_the_root_s_own() -> None:
    site = Rookery()
    site.explore(calls=150)
    assert set(PAGES) <= paths(site.fetched)
    later = [type(one) for one in site.asked if not _of_the_root(one)]
    inputs = later.index(Question)
    assert set(later[:inputs]) == {PageVisit, RouteCheck, DeadLink, Comparison}
    assert inputs < 70


def test_what_is_cheap_to_ask_of_the_root_comes_before_the_site_is_read_to_its_end() -> None:
    """A null byte that breaks a server is asked for with the first calls, however many pages there are."""
    site = Rookery()
    site.explore(calls=150, most=FIRST_TURN)
    asked = [str(step.args["url"]) for one in site.asked for step in one.steps]
    assert "{site}/%00" in asked[: FIRST_TURN + 16]
    read = [at for at, one in enumerate(site.asked) if isinstance(one, PageVisit)]
    early = [at for at, one in enumerate(site.asked) if _of_the_root(one)]
    assert len([at for at in read if at > early[EARLY - 1]]) > len(PAGES) // 2


def test_it_asks_each_documented_route_beside_its_document_with_values_filled_in() -> None:
    site = Rookery()
    site.explore()
    checks = [one for one in site.asked if isinstance(one, RouteCheck)]
    asked = [tuple(step.args["url"] for step in one.steps) for one in checks]
    guide = "{site}/field-guide.md"
    assert (guide, "{site}/eggs/1") in asked
    assert {url for document, url in asked if document == guide and "tides" in url} == {
        "{site}/tides?of=0x1111111111111111111111111111111111111111&kind=high",
        "{site}/tides?of=0x1111111111111111111111111111111111111111&kind=low",
    }
    assert ("{site}/flock.js", "{site}/ring?band=1") in asked
    assert not any(step.args.get("method") == "POST" for one in site.asked for step in one.steps)
    assert "/lay" in paths(site.fetched)


def test_a_documented_act_is_asked_only_where_run_and_profile_permit_acts() -> None:
    web = PLATFORM.web.model_copy(update={"act_paths": ("{site}/lay",)})
    listed = PLATFORM.model_copy(update={"web": web})
    tools = GROUND.tools
    for platform, acts in ((listed, False), (PLATFORM, True)):
        site = Rookery(ground=ExplorerContext(platform=platform, tools=tools, acts=acts))
        site.explore(calls=2_000)
        assert not any(one.acts for one in site.asked)
    site = Rookery(ground=ExplorerContext(platform=listed, tools=tools, acts=True))
    explorer = site.explore(calls=2_000)
    sent = [step.args for one in site.asked if one.acts for step in one.steps if "method" in step.args]
    assert sent[0] == {"url": "{site}/lay", "method": "POST", "fields": {"nest": "heron", "eggs": 2}}
    assert {(one["url"], one["method"]) for one in sent} == {("{site}/lay", "POST")}
    assert {frozenset(one["fields"]) for one in sent if "fields" in one} == {frozenset(("nest", "eggs"))}
    whole = [one["body"] for one in sent if one.get("body_type") == "application/json"]
    assert whole[:3] == ['{"nest": "heron", "eggs": 2}', "{", "[]"]
    kept = json.loads(json.dumps(explorer.state()))
    assert WebExplorer(site.ground, Random("t"), kept).state() == kept


SCRIPTED = {
    "{site}/": [
        {"method": "GET", "url": "/unlinked/nests?near=skua"},
        {"method": "POST", "url": "/lay", "body": '{"nest": "skua", "of": {"eggs": 2}}'},
        {
            "method": "POST",
            "url": "/ring",
            "body": "band=7",
            "body_type": "application/x-www-form-urlencoded",
        },
        {"method": "POST", "url": "/nests/delete", "body": '{"nest": "skua"}'},
        {"method": "POST", "url": "/enter", "body": '{"name": "skua", "password": "x"}'},
        {"method": "DELETE", "url": "/lay", "body": '{"nest": "skua"}'},
        {"method": "GET", "url": "/socket.io/?transport=polling"},
    ]
}
"""What scripts of a page ask: a page that nothing names, bodies, what ends something, what is a secret."""


@pytest.mark.parametrize("acts", [False, True])
def test_what_a_page_asks_by_script_is_an_input_and_sent_only_where_acts_are_permitted(acts: bool) -> None:
    web = PLATFORM.web.model_copy(update={"act_paths": ("{site}/",)})
    platform = PLATFORM.model_copy(update={"web": web})
    ground = ExplorerContext(platform=platform, tools=GROUND.tools | {"qa_browse"}, acts=acts)
    pages = {"/": ("text/html", "<html><script src=/flock.js></script></html>"), "/unlinked/nests": TEXT}
    pages["/flock.js"] = TEXT

    def answer(path: str, _query: Mapping[str, str]) -> Page | int:
        return pages.get(path, 404)

    site = Rookery(answer, ground, scripts=SCRIPTED)
    explorer = site.explore(calls=4_000)
    opened = [one for one in site.asked if isinstance(one, PageOpened)]
    assert [one.url for one in opened] == ["{site}/"]
    assert any(url.startswith("/unlinked/nests?near=%3Cscript") for url in site.fetched)
    assert not any("socket.io/?transport" in url for url in site.fetched)
    sent = [step.args for one in site.asked for step in one.steps if step.args.get("method") == "POST"]
    assert {one["url"] for one in sent} == ({"{site}/lay", "{site}/ring"} if acts else set())
    tried = {json.dumps(one["fields"]) for one in sent if "fields" in one}
    assert ('{"of": {"eggs": 2}, "nest": "skua\'"}' in tried) is acts
    assert any("band=7%27" in one.get("body", "") for one in sent) is acts
    again = Rookery(answer, ground, scripts=SCRIPTED)
    again.explore(json.loads(json.dumps(explorer.state())))
    assert not any(isinstance(one, PageOpened) for one in again.asked)


class Walled(Rookery):
    """Its page of keys asks for a password."""

    def fetch(self, args: Mapping[str, Any]) -> dict[str, Any]:
        asks = {"www-authenticate": 'Basic realm="keys"'} if args["url"] == "{site}/keys" else {}
        return super().fetch(args) | {"headers": asks}


@pytest.mark.parametrize(
    ("act_path", "acts", "tries"),
    [("{site}/", True, True), ("{site}/other", True, False), ("{site}/", False, False)],
)
def test_default_passwords_are_tried_only_where_acts_are_permitted(
    act_path: str, acts: bool, tries: bool
) -> None:
    web = PLATFORM.web.model_copy(update={"act_paths": (act_path,)})
    platform = PLATFORM.model_copy(update={"web": web})
    pages: dict[str, Page] = {"/": ("text/html", "<html><a href=/keys>keys</a></html>")}
    ground = ExplorerContext(platform=platform, tools=GROUND.tools, acts=acts)
    site = Walled(lambda path, _query: pages.get(path, 401 if path == "/keys" else 404), ground)
    site.explore(calls=400)
    sent = [step.args for one in site.asked for step in one.steps if step.args["url"] == "{site}/keys"]
    assert len(sent) > 1
    assert any("authorization" in one.get("headers", {}) for one in sent) is tries


def test_every_input_gets_its_first_question_before_any_gets_its_second() -> None:
    site = Rookery()
    explorer = site.explore(calls=240)
    points = {
        (one.point.url.partition("?")[0], one.point.name)
        for one in explorer.map.inputs.all.values()
        if one.point
    }
    assert {
        ("{site}/wade", "reeds"),
        ("{site}/find", "call"),
        ("{site}/find", "at"),
        ("{site}/ring", "band"),
        ("{site}/tides", "of"),
        ("{site}/tides", "kind"),
        ("{site}/eggs/1", "2"),
    } <= points
    root = explorer.map.inputs.all["page {site}/"]
    assert root.depth >= EARLY
    asked = [one.depth for one in explorer.map.inputs.all.values() if one is not root]
    depths = [depth for depth in asked if depth != DONE]  # a folder has one question, or three
    assert len(asked) - len(depths) <= 2
    assert max(depths) - min(depths) <= 1


def test_a_link_that_leads_nowhere_is_asked_beside_its_page_and_a_mere_path_is_not() -> None:
    site = Rookery()
    site.explore()
    dead = [tuple(step.args["url"] for step in one.steps) for one in site.asked if isinstance(one, DeadLink)]
    assert dead == [("{site}/map", "{site}/gone")]
    assert "/flock.js.map" in site.fetched


def test_documents_and_figures_are_compared_in_one_question() -> None:
    site = Rookery()
    state = site.explore().state()
    [compared] = [one for one in site.asked if isinstance(one, Comparison)]
    assert {step.args["url"] for step in compared.steps} == {
        "{site}/field-guide.md",
        "{site}/flock.js",
        "{site}/ring?band=1",
        "{site}/hide/deep/one",
    }
    later = Rookery()
    later.explore(state)
    assert not any(isinstance(one, Comparison) for one in later.asked)


def test_a_guessed_parameter_that_a_page_shows_becomes_an_input() -> None:
    def echoing(path: str, query: Mapping[str, str]) -> Page | int:
        return ("text/html", f"in {query.get('lang', 'en')}") if path == "/wade" else served(path, query)

    explorer = Rookery(echoing).explore()
    points = {one.point.name for one in explorer.map.inputs.all.values() if one.point}
    assert "lang" in points
    assert "redirect" not in points


def test_the_version_before_a_documented_one_is_looked_at_once() -> None:
    told = {
        "openapi": "3.0.3",
        "paths": {path: {"get": {}} for path in ("/v2/eggs", "/v2/eggs/{id}", "/v0/nests")},
    }
    api = "application/json", json.dumps(told)

    def versioned(path: str, query: Mapping[str, str]) -> Page | int:
        return api if path == "/openapi.json" else served(path, query)

    site = Rookery(versioned)
    site.explore()
    assert [url for url in site.fetched if url.startswith(("/v1/", "/v-1"))] == ["/v1/eggs"]


def test_of_a_page_that_shows_whatever_is_asked_one_parameter_is_an_input() -> None:
    def logging(path: str, query: Mapping[str, str]) -> Page | int:
        return ("text/html", f"asked {dict(query)}") if path == "/wade" else served(path, query)

    explorer = Rookery(logging).explore()
    urls = {one.point.url: one.point.name for one in explorer.map.inputs.all.values() if one.point}
    assert [name for url, name in urls.items() if url.startswith("{site}/wade")] == ["reeds", "q"]


@pytest.mark.parametrize(
    ("name", "value", "payload"),
    [
        ("sort", "name", "(CASE WHEN "),
        ("orderBy", "price", "(CASE WHEN "),
        ("returnUrl", "/", "https://"),
        ("template", "plain", "../../"),
        ("q", "moss", "<script>"),
        ("host", "a", ";expr "),
        ("age", "7", "7'"),
        ("colour", "red", "<script>"),
    ],
)
def test_what_an_input_is_called_decides_what_is_asked_first(name: str, value: str, payload: str) -> None:
    point = Point(f"{{site}}/find?{name}={value}", "query", name, value)
    asked = list(attacks.questions(point, Random(7)))
    assert any(payload in unquote_plus(str(step.args["url"])) for step in asked[0].steps)
    other = attacks.questions(Point("{site}/find?zz=red", "query", "zz", "red"), Random(7))
    assert len(asked) >= len(list(other))


def test_a_page_that_changes_by_itself_has_no_guessed_parameter() -> None:
    """It is asked without them a moment before."""
    asked: list[str] = []

    def growing(path: str, query: Mapping[str, str]) -> Page | int:
        asked.append(path)
        return ("text/html", "a bird " * (len(asked) // 20)) if path == "/wade" else served(path, query)

    explorer = Rookery(growing).explore()
    names = {one.point.name for one in explorer.map.inputs.all.values() if one.point and "/wade" in one.url}
    assert names == {"reeds"}


def test_a_guessed_parameter_that_changes_a_page_is_found_one_by_one() -> None:
    def reading(path: str, query: Mapping[str, str]) -> Page | int:
        return 404 if path == "/map" and "file" in query else served(path, query)

    site = Rookery(reading)
    explorer = site.explore()
    points = {(one.point.url, one.point.name) for one in explorer.map.inputs.all.values() if one.point}
    assert ("{site}/map?file=1", "file") in points
    guessed = {name for url, name in points if url.startswith("{site}/map")}
    assert guessed == {"file"}


def test_an_answer_of_a_new_kind_makes_its_page_worth_more() -> None:
    explorer = Rookery().explore(calls=600)
    worth = explorer.map.frontier.worth
    assert worth["{site}/ring"] >= 3
    assert worth["{site}/wade"] == 0


def test_the_same_seed_asks_the_same_and_another_seed_other_values() -> None:
    one, other, third = Rookery(), Rookery(), Rookery()
    one.explore()
    other.explore()
    third.explore(seed="t")
    assert one.asked == other.asked
    assert one.asked != third.asked
    visited = [{it.url for it in site.asked if isinstance(it, PageVisit)} for site in (one, third)]
    assert visited[0] == visited[1]


def test_a_next_run_goes_on_where_this_one_ended() -> None:
    first = Rookery()
    state = json.loads(json.dumps(first.explore(calls=160).state()))
    second = Rookery()
    explorer = second.explore(state, calls=160)
    visits = [one for one in second.asked if isinstance(one, PageVisit)]
    assert len(visits) <= REVISITS
    asked_before = {str(one.steps) for one in first.asked if not isinstance(one, PageVisit)}
    assert not [one for one in second.asked if str(one.steps) in asked_before]
    assert min(one.depth for one in explorer.map.inputs.all.values()) >= 1


def test_when_all_is_asked_a_run_costs_little_and_asks_with_other_values() -> None:
    first = Rookery()
    state = first.explore(calls=20_000).state()
    assert state["round"] == 1
    assert first.calls < 6_000
    quiet = Rookery()
    after = quiet.explore(state, calls=20_000)
    assert len(quiet.asked) <= QUIET + REVISITS
    assert quiet.asked
    assert after.state()["round"] == 1


def test_the_inputs_of_a_page_that_changed_are_asked_again_at_once() -> None:
    state = Rookery().explore(calls=20_000).state()

    def changed(path: str, query: Mapping[str, str]) -> Page | int:
        return ("text/html", "a new way to wade") if path == "/wade" else served(path, query)

    site = Rookery(changed)
    site.explore(state, calls=20_000)
    asked = [url for url in site.fetched if url.startswith("/wade")]
    assert len(site.asked) > QUIET + REVISITS
    assert len(asked) > 20
    again = Rookery(changed)
    again.explore(Rookery(changed).explore(site.explore(state, calls=20_000).state()).state())
    assert len(again.asked) <= QUIET + REVISITS


@pytest.mark.parametrize("url", ["{site}/more//deep.txt", "https://moss.test/more////deep.txt"])
def test_a_page_is_of_one_kind_however_many_slashes_lead_to_it(url: str) -> None:
    plain = re.sub("(?<!:)/{2,}", "/", url)
    assert plain != url
    assert Frontier().template(url) == Frontier().template(plain) != Frontier().template(plain + "/x")


def test_endless_lists_of_pages_end_where_the_profile_says() -> None:
    platform = Platform(name="x", web=WebSection(site="http://site"), limits=LimitsSection(pages=7))
    frontier = SiteMap.of(platform, "seed", acts=False).frontier
    for page in range(20):
        frontier.found(f"{{site}}/list?page={page}")
    assert len(frontier.pages) == 7


TRAPS: Mapping[str, Any] = {
    "calendar": lambda path, at: f'<a href="/cal/{at}/11">next</a><a href="/cal/{at}/12">on</a>',
    "sessions": lambda path, at: (
        f'<a href="{path}?sid={at * 7919:016x}">on</a><a href="/s/{at:032x}/x">on</a>'
    ),
    "deeper": lambda path, at: f'<a href="{path.rstrip("/")}/down">on</a>',
    "words": lambda path, at: "".join(f'<a href="{path}/{word(at, n)}">on</a>' for n in range(20)),
    "flat": lambda path, at: "".join(f'<a href="/{word(at, n)}">on</a>' for n in range(50)),
    "parameters": lambda path, at: "".join(f'<a href="?{word(at, n)}=1">on</a>' for n in range(50)),
}


def word(at: int, number: int) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in str(at * 100 + number))


@pytest.mark.parametrize("trap", TRAPS)
def test_a_trap_ends(trap: str) -> None:
    at = 0

    def endless(path: str, query: Mapping[str, str]) -> Page | int:
        nonlocal at
        at += 1
        return "text/html", TRAPS[trap](path, at)

    site = Rookery(endless)
    explorer = site.explore(calls=400)
    visits = [one for one in site.asked[: FIRST + 200] if isinstance(one, PageVisit)]
    assert len(visits) <= FIRST + 60
    assert len(explorer.map.frontier.pages) <= MAX_PAGES
    assert not all(isinstance(one, PageVisit) for one in site.asked[-40:])
    templates = Counter(page.template for page in explorer.map.frontier.pages.values() if page.status)
    assert max(templates.values()) <= SAMPLES
    assert len(json.dumps(explorer.state())) < 1 << 20


HOSTILE = [
    "http://evil.test/",
    "//evil.test/x",
    "http://rookery.test@evil.test/",
    "http://rookery.test:81/",
    "https://rookery.test/",
    "\\\\evil.test\\x",
    "/{name}/{face:heron}{run}",
    "{proxy}.evil.test",
    "http://[::1",
    "/a\r\nb",
    "/%00",
    "?" + "&".join(f"p{at}=1" for at in range(99)),
    "../" * 50,
    "x" * 5_000,
    "javascript:alert(1)",
    "\ud800",
]


def test_it_never_leaves_the_platform_and_a_link_is_never_a_placeholder() -> None:
    site = Rookery()
    explorer = WebExplorer(GROUND, Random("s"), {})
    start = Question((Step(tool="qa_fetch", args={"url": "{site}/"}),))
    lists = {"links": HOSTILE, "paths": HOSTILE, "routes": [f"GET {one}" for one in HOSTILE]}
    forms = [{"method": "GET", "action": one, "fields": {one: one}} for one in HOSTILE]
    explorer.learn(start, [{"status": 200, "content_type": "text/html", **lists, "forms": forms}])
    for _ in range(40):
        for question in explorer.ask(48):
            assert "{run}" not in str(question.steps)
            assert "{name}" not in str(question.steps)
            explorer.learn(question, [site.fetch(step.args) for step in question.steps])
    json.dumps(explorer.state()).encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(HOSTILE),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
RESULTS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("status", "links", "paths", "routes", "forms", "text", "content_type", "headers", "sha256"), JSON
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 60), st.lists(RESULTS, max_size=3)), max_size=12))
def test_it_asks_at_most_what_it_may_whatever_it_is_told(
    turns: list[tuple[int, list[dict[str, Any]]]],
) -> None:
    explorer = WebExplorer(GROUND, Random("s"), {})
    for most, results in turns:
        questions = explorer.ask(most)
        assert sum(len(one.steps) for one in questions) <= max(most, 0)
        for question in questions:
            explorer.learn(question, results[: len(question.steps)])
    assert explorer.state()


@pytest.mark.parametrize(
    "damage", [{}, {"frontier": 1}, {"inputs": [[1]]}, {"routes": [["a"]]}, {"known": None}]
)
def test_a_state_that_it_does_not_understand_is_ignored(damage: dict[str, Any]) -> None:
    state = Rookery().explore(calls=60).state()
    fresh = WebExplorer(GROUND, Random("s"), {}).state()
    broken = WebExplorer(GROUND, Random("s"), {**state, **damage, "version": 99 if not damage else 1})
    assert broken.state() == fresh or damage == {"known": None}


def test_a_page_that_could_not_be_read_is_not_asked_again_in_this_run() -> None:
    explorer = WebExplorer(GROUND, Random("s"), {})
    asked: Counter[str] = Counter()
    for _ in range(20):
        for question in explorer.ask(48):
            asked[str(question.steps)] += 1
            explorer.learn(question, [])
    assert set(asked.values()) == {1}


def test_what_has_no_base_is_looked_for_at_site_and_proxy_before_it_is_a_documented_route() -> None:
    web = {"site": "http://a.test", "proxy": "http://b.test"}
    platform = PLATFORM.model_copy(update={"web": PLATFORM.web.model_copy(update=web)})
    explorer = WebExplorer(type(GROUND)(platform=platform, tools=GROUND.tools, acts=False), Random("s"), {})
    guide = "{site}/field-guide.md"
    checks = []
    for _ in range(30):
        for question in explorer.ask(48):
            checks += [question] if isinstance(question, RouteCheck) else []
            results = []
            for step in question.steps:
                url = step.args["url"]
                there = url in (guide, "{proxy}/tides?of=1")
                routes = ["GET /tides?of=1", "GET /tides/gone", "GET /other"] if url == guide else []
                results.append({"status": 200 if there else 404, "routes": routes, "text": url})
            explorer.learn(question, results)
    found = "{proxy}/tides?of=1"
    assert [[step.args["url"] for step in one.steps] for one in checks] == [
        [guide, found],
        [
            guide,
            found,
            "{site}/tides/gone",
            "{proxy}/tides/gone",
        ],  # nothing is known of what is beside /other
    ]


def test_the_questions_of_a_run_fit_its_documents() -> None:
    assert FACTS <= 16


def test_an_example_of_a_route_beside_it_fills_its_holes_and_is_an_input() -> None:
    web = {"site": "http://a.test", "proxy": "http://b.test"}
    platform = PLATFORM.model_copy(update={"web": PLATFORM.web.model_copy(update=web)})
    explorer = WebExplorer(type(GROUND)(platform=platform, tools=GROUND.tools, acts=False), Random("s"), {})
    guide, tree = "{site}/field-guide.md", "{site}/v3/trees/red-oak"
    read: dict[str, Any] = {
        "routes": ["GET /v3/trees/{kind}"],
        "paths": ["/v3/trees/red-oak", "/v3/oaks/elm"],
    }
    for _ in range(40):
        for question in explorer.ask(48):
            urls = [str(step.args["url"]) for step in question.steps]
            there = {guide: read, tree: {}}
            found = [
                {"status": 200 if url in there else 404, "text": url} | there.get(url, {}) for url in urls
            ]
            explorer.learn(question, found)
    assert explorer.map.known.by_parameter["kind"] == ["red-oak"]
    points = [one.point for one in explorer.map.inputs.all.values() if one.point and one.url == tree]
    assert ("path", "3", "red-oak") in [(one.kind, one.name, one.value) for one in points]


def test_a_body_has_the_fields_that_any_document_names() -> None:
    site = SiteMap.of(PLATFORM, "s")
    for fields in ({"width": "10"}, {"width": "1", "unit": '"cm"'}):
        form = {"method": "POST", "action": "/estimates", "fields": fields, "json": True}
        site.read("{site}/guide", {"status": 200, "text": "", "forms": [form]})
    assert site.body("POST", "{site}/estimates") == {"width": 10, "unit": "cm"}


def test_files_may_stand_below_a_site_whose_first_page_is_not_there() -> None:
    site = SiteMap.of(PLATFORM, "s")
    site.read("{site}/", {"status": 0, "error": "refused"})
    assert not site.inputs.all
    site.read("{site}/", {"status": 404, "text": "no such file"})
    assert [one.point for one in site.inputs.all.values()] == [Point("{site}/", "tail", "", "etc/passwd")]


def test_what_stands_below_a_site_is_asked_as_it_is_written_and_a_face_is_no_folder() -> None:
    site = Rookery()
    explorer = site.explore(calls=200)
    points = [one.point for one in explorer.map.inputs.all.values() if one.point]
    assert [one.url for one in points if one.kind == "tail"] == ["{site}/", "{site}/hide/", "{site}/static/"]
    assert {f"/{'../' * UP}etc/passwd", f"/{'%2e%2e/' * UP}etc/passwd", "//etc/passwd"} <= set(site.fetched)
    assert any(re.fullmatch(r"//qa[0-9a-f]{10}\.evil\.test/%2f\.\.", url) for url in site.fetched)


def test_a_server_that_fails_at_every_page_that_is_not_there_has_one_defect() -> None:
    """A page that fails in a way of its own is another one."""

    def failing(path: str, query: Mapping[str, str]) -> Page | int:
        page = served(path, query)
        return 500 if page == 404 else page

    site = Rookery(answer=failing)
    site.explore(calls=150)
    failed = set[tuple[str, str]]()
    for one in (each for each in site.asked if isinstance(each, PageVisit)):
        seen = [Exchange(step.tool, step.args, site.answered(step)) for step in one.steps]
        for found in judge(seen, Facts(site=SITE)):
            where = found.sighting.where
            if found.oracle == "server-error":
                failed.add((where["route"], where.get("parameter", "")))
                proof = [*(seen[at] for at in found.led), seen[-1]]  # what a repro asks again
                assert [each.sighting.where for each in judge(proof, Facts(site=SITE))] == [where]
    assert failed == {("{site}", "a page that is not there")}
    other = [
        Exchange("qa_fetch", {"url": f"{{site}}/{one}"}, {"status": 500, "text": one})
        for one in (MISSING[1:], "map")
    ]
    (found,) = judge(other, Facts(site=SITE))
    assert found.sighting.where == {"route": "{site}/map", "parameter": ""}
