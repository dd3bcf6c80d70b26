"""The explorer of pages: breadth first, few, seeded; a word first, payloads only where the word shows up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any
from urllib.parse import unquote

import pytest

from fleet.config import Platform
from fleet.drivers.desk import Question
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.web.browser import ALIKE, BATCH, LOOKS, Pages
from fleet.drivers.template import Bindings
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge

PLATFORM = Platform.model_validate(
    {
        "name": "p",
        "chain": {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20},
        "web": {
            "site": "http://plain.test:81",
            "face": "http://{name}.faces.test/",
            "proxy": "http://api.test",
        },
        "call_targets": ["claude"],
        "targets": {
            "guide": "{site}/llms.txt",
            "manual": "{site}/help",
            "page": "docs",
            "key": "Not a name",
            "elsewhere": "http://other.test/",
        },
    }
)


def explorer(seed: str = "s", state: Mapping[str, Any] = {}) -> Pages:
    return Pages(PLATFORM, Random(seed), state)


def urls(questions: Sequence[Question]) -> list[str]:
    return [step.args["url"] for one in questions for step in one.steps]


def page(*links: str, **more: Any) -> dict[str, Any]:
    return {"ok": True, "status": 200, "content_type": "text/html", "links": list(links), "forms": []} | more


def drive(one: Pages, answers: Mapping[str, dict[str, Any]], turns: int = 60) -> list[Question]:
    """Every question that it asks of a platform with these pages."""
    asked: list[Question] = []
    for _ in range(turns):
        if not (questions := one.ask(50)):
            break
        assert sum(len(question.steps) for question in questions) <= BATCH
        for question in questions:
            asked.append(question)
            missing = {"ok": False, "status": 404}
            one.learn(question, [answers.get(step.args["url"], missing) for step in question.steps])
    return asked


def test_it_begins_at_the_site_the_faces_and_the_targets_that_are_pages() -> None:
    named = ("{site}/", "{face:claude}", "{site}/llms.txt", "{site}/help", "{face:docs}")
    assert OwnUrls(PLATFORM).named() == named
    assert urls(explorer().ask(3)) == ["{site}/", "{face:claude}", "{site}/help"]


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("http://plain.test:81", "{site}/"),
        ("http://plain.test:81/a?b=c#d", "{site}/a?b=c"),
        ("http://plain.test:8181/a", ""),
        ("http://plain.test:81.evil.test/", ""),
        ("http://docs.faces.test/x?y=1", "{face:docs}x?y=1"),
        ("http://a.b.faces.test/", ""),
        ("http://other.test/", ""),
        ("javascript:alert(1)", ""),
        ("{site}/x", ""),  # a stranger's braces are not ours
        ("{face:x}", ""),
        ("http://plain.test:81/{name}", "{site}/%7Bname%7D"),
        ("http://api.test/v1", "{proxy}/v1"),
    ],
)
def test_a_url_of_the_platform_is_spelled_with_its_placeholder(url: str, form: str) -> None:
    assert OwnUrls(PLATFORM).spelled(url) == form
    if form and "://" in url:
        bindings = Bindings(
            run="r", name="", site="http://plain.test:81", proxy="http://api.test", face=PLATFORM.web.face
        )
        assert unquote(bindings.text(form)) in (url.partition("#")[0], f"{url}/")


@pytest.mark.parametrize(
    ("face", "url", "form"),
    [
        ("http://plain.test:81/of/{name}/", "http://plain.test:81/of/docs/", "{face:docs}"),
        ("http://plain.test:81/{name}", "http://plain.test:81/settings", "{site}/settings"),
    ],
)
def test_a_face_on_the_sites_own_host(face: str, url: str, form: str) -> None:
    web = PLATFORM.web.model_copy(update={"face": face})
    assert OwnUrls(PLATFORM.model_copy(update={"web": web})).spelled(url) == form


def test_links_of_this_platform_are_opened_and_no_others() -> None:
    site = "http://plain.test:81"
    links = [f"{site}/a", f"{site}/logo.png", "http://other.test/", "file:///etc/passwd", f"{site}/a#b"]
    asked = drive(explorer(), {"{site}/": page(*links), "{site}/a": page(f"{site}/b")})
    opened = [one.steps[0].args["url"] for one in asked if "script_canary" not in one.steps[0].args]
    assert opened == ["{site}/", "{face:claude}", "{site}/help", "{face:docs}", "{site}/a", "{site}/b"]


def test_few_pages_of_one_template_and_few_in_a_run() -> None:
    site = "http://plain.test:81"
    items = [f"{site}/item/{at}" for at in range(40)]
    others = [f"{site}/{chr(97 + at)}{chr(97 + at)}" for at in range(26)]
    asked = drive(explorer(), {"{site}/": page(*items, *others)})
    opened = [url for one in asked for url in urls([one]) if "script_canary" not in one.steps[0].args]
    assert len(opened) == LOOKS
    assert sum("/item/" in url for url in opened) <= ALIKE


def test_a_point_gets_payloads_only_where_the_word_shows_up() -> None:
    form = {"action": "http://plain.test:81/find", "method": "get", "fields": [["q", "moss"], ["n", ""]]}
    one = explorer()
    asked = drive(one, {"{site}/": page(forms=[form])})
    words = [question for question in asked if "script_canary" in question.steps[0].args]
    found = {
        step.args["url"].replace(step.args["script_canary"], "W") for step in (q.steps[0] for q in words)
    }
    assert {"{site}/W", "{site}/find?n=x&q=W", "{site}/find?q=moss&n=W"} <= found
    assert all(len(question.steps) == 1 for question in words)

    word = next(question for question in words if "&q=" in question.steps[0].args["url"])
    one.learn(word, [page(canary_at=["attribute", "nonsense"], canary_ran=False)])
    [attack] = one.ask(50)
    assert attack.steps[0] == word.steps[0]
    canary = word.steps[0].args["script_canary"]
    assert [step.args["script_canary"] for step in attack.steps] == [canary] * 4
    assert "onfocus%3D" + canary in attack.steps[1].args["url"]


def test_a_fragment_is_a_point_of_a_page_that_answered() -> None:
    one = explorer()
    asked = drive(one, {"{site}/": page()})
    words = [question for question in asked if "#" in question.steps[0].args["url"]]
    (word,) = words  # no other page answered
    canary = word.steps[0].args["script_canary"]
    assert word.steps[0].args["url"] == f"{{site}}/#{canary}"
    one.learn(word, [page(canary_at=["text"], canary_ran=False)])
    [attack] = one.ask(50)
    seen = [
        Exchange("qa_browse", step.args, page(canary_ran=ran, final_url="http://plain.test:81/"))
        for step, ran in zip(attack.steps, (False, True), strict=True)
    ]
    (found,) = judge(seen, Facts(site="http://plain.test:81"))
    assert (found.oracle, found.sighting.where["parameter"]) == ("script-executed", "fragment")
    assert ", fragment: a script sent there runs in a browser" in found.sighting.title
    assert judge([seen[0], replace(seen[1], result=page(canary_ran=False))], Facts()) == ()


def test_a_word_that_ran_by_itself_gets_no_payload() -> None:
    one = explorer()
    asked = drive(one, {})
    word = next(question for question in asked if "script_canary" in question.steps[0].args)
    one.learn(word, [page(canary_at=["text"], canary_ran=True)])
    assert one.ask(50) == []


def test_the_next_run_opens_what_is_new_first_and_the_same_seed_asks_the_same() -> None:
    answers = {"{site}/": page(*(f"http://plain.test:81/{name}" for name in "abcdefghijklmnopqrst"))}
    first = explorer()
    asked = urls(drive(first, answers))
    assert asked == urls(drive(explorer(), answers))
    again = explorer(state=first.state())
    opened = [url for url in urls(again.ask(50)) if url in first.pages]
    assert opened[0] not in asked
    assert "{site}/" in urls(drive(again, answers))  # and looks again at what it knows


@pytest.mark.parametrize(
    "state",
    [
        {"pages": [], "points": 7, "round": "x"},
        {"pages": {"{site}/": "x"}, "points": {"query": 0, "path 99 {site}/": 0, "header a {site}/": 0}},
    ],
)
def test_a_state_that_it_does_not_understand_is_ignored(state: Mapping[str, Any]) -> None:
    one = explorer(state=state)
    assert urls(one.ask(1)) == ["{site}/"]
    assert not {"query", "path 99 {site}/", "header a {site}/"} & one.points.keys()


def test_nonsense_from_a_page_is_nothing() -> None:
    one = explorer()
    [question] = one.ask(1)
    one.learn(question, [page(7, None, links=[None, 3], forms=[1, {"fields": [1, []], "action": None}])])  # type: ignore[arg-type]
    one.learn(question, [])
    one.learn(question, [{"status": "200"}])
    assert one.state()["pages"]["{site}/"] == 1
