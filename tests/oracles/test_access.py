"""What is refused and served in another spelling, and passwords of a list."""

from __future__ import annotations

from random import Random

import pytest

from fleet.config import Platform
from fleet.drivers.explore.web import attacks
from fleet.drivers.explore.web.site_map import SiteMap
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from fleet.oracles.web.access import IN_A_FRAMEWORK, MISSING, basic, missing
from fleet.oracles.web.variations import FORM
from fleet.personas.model import Step

FACTS = Facts()
((_NAME, _SAID),) = IN_A_FRAMEWORK.items()
WITHIN = f"{_NAME}: {_SAID}"


def answered(
    steps: tuple[Step, ...], served: dict[str, tuple[int, str]], to: str | None = None
) -> list[Exchange]:
    """Calls with the answers of a server: 403 for `/keys`, or a redirect `to` another page, 404 for all else
    but what it serves by URL or header."""
    told = []
    for step in steps:
        url, sent = str(step.args["url"]), dict(step.args.get("headers", {}))
        named = next((f"{name}: {value} {url}" for name, value in sent.items()), url)
        plain = {"{site}/": (200, "welcome"), "{site}/keys": (403, "no")}.get(url, (404, "no such page"))
        status, text = served.get(named, plain)
        result = {"status": status, "text": text}
        if to is not None and status == 403:
            result = {"status": 302, "text": "", "location": to}
        told.append(Exchange("qa_fetch", step.args, result))
    return told


def kinds(calls: list[Exchange]) -> list[str]:
    return [one.oracle for at in range(1, len(calls) + 1) for one in judge(calls[:at], FACTS)]


@pytest.mark.parametrize(
    ("served", "said"),
    [
        ("{site}//keys", "is served as //keys"),
        ("{site}/KEYS", "is served as /KEYS"),
        ("{site}/%6beys", "is served as /%6beys"),
        ("{site}/keys/", "is served as /keys/"),
        ("{site}/qa/../keys", "is served as /qa/../keys"),
        ("{site}/keys.json", "is served as /keys.json"),
        ("{site}/keys?import&raw??", "is served with the query import&raw??"),
        ("x-real-ip: 127.0.0.1 {site}/keys", "is served with the header x-real-ip"),
        ("x-remote-user: admin {site}/keys", "is served with the header x-remote-user"),
        (f"{WITHIN} {{site}}/keys", "is served with the header x-middleware-subrequest"),
    ],
)
def test_a_refused_page_that_is_served_in_another_spelling_is_seen(served: str, said: str) -> None:
    found = []
    for question in attacks.respelled("{site}/keys", "{site}/"):
        calls = answered(question.steps, {served: (200, "fern: 7")})
        found += [
            one
            for at in range(1, len(calls) + 1)
            for one in judge(calls[:at], FACTS)
            if one.oracle == "refusal-bypassed"
        ]
    assert len(found) == 1
    assert said in found[0].sighting.title


@pytest.mark.parametrize(
    ("page", "control"),
    [
        ((200, "welcome"), (404, "")),
        ((200, "fern: 7"), (200, "fern: 7")),
        ((200, "fern: 7"), (200, "another")),
        ((200, '<form><input type="password">'), (404, "")),
        ((200, "please log in"), (404, "")),
        ((302, ""), (404, "")),
        ((403, "no"), (404, "")),
    ],
)
def test_what_is_served_to_everybody_is_no_bypass(page: tuple[int, str], control: tuple[int, str]) -> None:
    served = {"{site}//keys": page, f"{{site}}//{MISSING}": control}
    for question in attacks.respelled("{site}/keys", "{site}/"):
        assert "refusal-bypassed" not in kinds(answered(question.steps, served))


@pytest.mark.parametrize(
    ("to", "wall"),
    [
        ("/login?next=/keys", True),
        ("/users/sign_in", True),
        ("/auth/logon.html", True),
        ("/home", False),
        ("/keys/", False),
        ("/blogin-stories/4", False),
        ("", False),
    ],
)
def test_a_page_that_leads_to_a_log_in_is_refused(to: str, wall: bool) -> None:
    found = []
    for question in attacks.respelled("{site}/keys", "{site}/"):
        calls = answered(question.steps, {"{site}//keys": (200, "fern: 7")}, to)
        found += [
            one.sighting.title
            for at in range(1, len(calls) + 1)
            for one in judge(calls[:at], FACTS)
            if one.oracle == "refusal-bypassed"
        ]
    assert ["302 to a log-in, and is served as //keys" in one for one in found] == [True] * wall


@pytest.mark.parametrize(
    ("to", "twin", "said"),
    [
        (
            "/home",
            404,
            ["GET {site}/keys answers 302 to another page, and is served with the header " + _NAME],
        ),
        ("/home", 200, []),
        ("/keys/", 404, []),
        ("/Keys?a=1", 404, []),
    ],
)
def test_a_page_that_sends_one_elsewhere_is_not_served_to_who_says_what_its_framework_says(
    to: str, twin: int, said: list[str]
) -> None:
    question = attacks.as_the_framework("{site}/keys", "{site}/")
    served = {f"{WITHIN} {{site}}/keys": (200, "fern: 7"), f"{WITHIN} {{site}}/{MISSING}": (twin, "x")}
    calls = answered(question.steps, served, to)
    found = [one for at in range(1, 5) for one in judge(calls[:at], FACTS)]
    assert [one.sighting.title for one in found if one.oracle == "refusal-bypassed"] == said
    site = SiteMap.of(Platform.model_validate({"name": "x", "web": {"site": "http://moss.example"}}), "a")
    site.read("{site}/keys", calls[1].result)
    assert list(site.sent_on) == ["{site}/keys"] * (to == "/home")


def test_each_spelling_has_its_control_before_it() -> None:
    for question in attacks.respelled("{site}/a/keys", "{site}/"):
        steps = question.steps
        assert [dict(one.args) for one in steps[:2]] == [{"url": "{site}/"}, {"url": "{site}/a/keys"}]
        for control, asked in zip(steps[2::2], steps[3::2], strict=True):
            assert dict(control.args) == missing("{site}/a/keys", asked.args)
            assert MISSING in str(control.args)
    assert not list(attacks.respelled("{site}/", "{site}/"))


def basic_server(right: tuple[str, str] | None, anybody: bool = False) -> list[Exchange]:
    """Answers of a page that asks for a password."""
    question = attacks.passwords("{site}/keys", Random("a"))
    told = []
    for step in question.steps:
        sent = step.args.get("headers")
        status = 200 if sent and (anybody or (right and sent == basic(*right))) else 401
        told.append(Exchange("qa_fetch", step.args, {"status": status, "text": "fern: 7"}))
    return told


def test_a_default_password_is_seen_beside_a_wrong_one() -> None:
    assert kinds(basic_server(("admin", "password"))) == ["default-password"]
    assert kinds(basic_server(None)) == []
    assert kinds(basic_server(None, anybody=True)) == []


@pytest.mark.parametrize(
    ("right", "wrong", "cookie", "expected"),
    [
        ((302, "/desk"), (302, "/enter?error=1"), True, True),
        ((302, "/desk"), (200, ""), True, True),
        ((302, "/desk"), (200, ""), False, False),
        ((302, "/login"), (200, ""), True, False),
        ((302, "/desk"), (302, "/desk"), True, False),
        ((200, ""), (200, ""), True, False),
        ((200, ""), (401, ""), True, True),
    ],
)
def test_a_form_lets_in_by_another_answer(
    right: tuple[int, str], wrong: tuple[int, str], cookie: bool, expected: bool
) -> None:
    question = attacks.log_ins("{site}/enter", "user", "password", {"next": ""}, Random("a"))
    calls = []
    for step in question.steps:
        assert step.args["body_type"] == FORM
        status, to = right if "password=admin&" in f"{step.args['body']}&" else wrong
        headers = {"set-cookie": "id=a"} if cookie else {}
        calls.append(Exchange("qa_fetch", step.args, {"status": status, "location": to, "headers": headers}))
    assert ("default-password" in kinds(calls)) is expected
