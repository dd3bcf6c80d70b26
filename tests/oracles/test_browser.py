"""What the fleet says of a page in a browser, and what it leaves unsaid: all that is our own doing."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.oracles import table
from fleet.oracles.model import Exchange, Facts

CANARY = "qacanary1"
AT = {"url": "http://site:1/x", "line": 3}
GONE = {"url": "http://site:1/a/style.css", "kind": "Stylesheet", "status": 404}
THROWN = {"text": "TypeError: x is null", **AT}
SAID = {"kind": "error", "text": "cannot draw", **AT}
ALT = {"id": "image-alt", "impact": "critical", "nodes": 2, "target": "img"}
LANG = {"id": "html-has-lang", "impact": "serious", "nodes": 1, "target": "html"}


def view(url: str = "{site}/x", canary: str = "", **result: Any) -> Exchange:
    page = {
        "status": 200,
        "final_url": "http://site:1/x",
        "fragment": False,
        "error_class": "",
        "unjudged": [],
    }
    return Exchange("qa_browse", {"url": url, "script_canary": canary}, page | result)


def ids(*seen: Exchange) -> list[str]:
    return [one.oracle for one in table.judge(seen, Facts())]


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ({}, []),
        ({"violations": [ALT]}, ["accessibility"]),
        ({"violations": [ALT, LANG]}, ["accessibility", "accessibility"]),
        ({"violations": [ALT, LANG], "fragment": True}, ["accessibility"]),
        ({"violations": [ALT | {"impact": "moderate"}]}, []),
        ({"violations": [ALT | {"id": "color-contrast"}]}, []),  # of fonts and layout
        ({"violations": [ALT], "unjudged": ["load"]}, []),
        ({"violations": [ALT], "status": 404}, []),
        ({"violations": [ALT], "refused": [{"kind": "Script"}]}, []),
        ({"violations": [ALT], "refused": [{"kind": "Font"}]}, ["accessibility"]),
        ({"exceptions": [THROWN]}, ["page-exception"]),
        ({"exceptions": [THROWN | {"url": "http://site:2/x"}]}, []),
        ({"exceptions": [THROWN | {"text": "TypeError: Failed to fetch"}]}, []),
        ({"exceptions": [THROWN], "refused": [{"kind": "XHR"}]}, []),
        ({"exceptions": [THROWN], "console": [SAID], "fragment": True}, []),  # a part of another page
        ({"console": [SAID], "fragment": True}, []),
        ({"console": [SAID | {"text": "failed to connect to websocket"}]}, []),  # the broker has none
        ({"console": [SAID]}, ["console-error"]),
        ({"console": [SAID | {"kind": "warning"}]}, []),
        ({"console": [SAID | {"kind": "log"}]}, []),
        ({"console": [SAID], "exceptions": [THROWN]}, ["page-exception"]),
        ({"failed": [GONE]}, ["missing-resource"]),
        ({"failed": [GONE], "console": [SAID]}, ["missing-resource"]),
        ({"failed": [GONE | {"url": "http://site:1/favicon.ico", "kind": "Image"}]}, []),
        ({"failed": [GONE | {"url": "http://cdn:1/style.css"}]}, []),
        ({"failed": [GONE | {"status": 401}]}, []),
        ({"failed": [GONE | {"kind": "XHR"}]}, []),  # a page may ask whether something is there
        ({"failed": [GONE | {"kind": "XHR", "status": 500}]}, ["missing-resource"]),
        ({"failed": [GONE | {"kind": "XHR", "status": 503}]}, []),
        ({"failed": [GONE | {"status": 0, "error": "unreachable"}]}, []),
    ],
)
def test_one_page(result: dict[str, Any], found: list[str]) -> None:
    assert ids(view(**result)) == found


def test_a_page_asked_with_a_word_or_minted_by_a_run_is_ours() -> None:
    faults: dict[str, Any] = {"violations": [ALT], "exceptions": [THROWN], "failed": [GONE]}
    assert ids(view("{site}/x?q=w", CANARY, **faults)) == []
    assert ids(view("{face:{name}}", **faults)) == []


BENIGN = view("{site}/x?q=qacanary1&p=1", CANARY, canary_ran=False)
ATTACK = "{site}/x?p=1&q=%22%3Cb%3Eqacanary1%28name%29"


@pytest.mark.parametrize(
    ("twin", "attack", "ran", "found"),
    [
        (BENIGN, ATTACK, True, ["script-executed"]),
        (BENIGN, ATTACK, False, []),
        (BENIGN, "{site}/y?p=1&q=qacanary1(name)", True, []),  # another page: two places differ
        (BENIGN, "{site}/x?p=2&q=qacanary1(name)", True, []),
        (BENIGN, "{site}/x?p=1&q=other(name)", True, []),
        (view(BENIGN.args["url"], CANARY, canary_ran=True), ATTACK, True, []),  # it runs any word
        (view(BENIGN.args["url"], "", canary_ran=False), ATTACK, True, []),
        (
            view("{site}/no/qacanary1", CANARY, canary_ran=False),
            "{site}/no/%3Cqacanary1%28%29",
            True,
            ["script-executed"],
        ),
    ],
)
def test_script_that_ran_is_a_finding_only_beside_a_word_that_did_not(
    twin: Exchange, attack: str, ran: bool, found: list[str]
) -> None:
    last = view(attack, CANARY, canary_ran=ran)
    assert ids(twin, last) == found
    assert ids(last) == []


def test_a_finding_names_page_and_place_and_rests_on_its_twin() -> None:
    other = view("{site}/z")
    [one] = table.judge((other, BENIGN, view(ATTACK, CANARY, canary_ran=True)), Facts())
    assert one.sighting.title == "{site}/x, parameter q: a script sent there runs in a browser"
    assert (one.sighting.signature, one.led, one.severity) == (
        "script {site}/x its parameter q",
        (1,),
        "high",
    )
    path = view("{site}/no/qacanary1", CANARY, canary_ran=False)
    [one] = table.judge((path, view("{site}/no/%3Cqacanary1", CANARY, canary_ran=True)), Facts())
    assert one.sighting.title == "{site}/no/…, part 2 of its path: a script sent there runs in a browser"


def test_one_defect_of_a_template_is_one_finding() -> None:
    def keys(url: str, *, fragment: bool = False) -> list[str]:
        found = table.judge((view(url, violations=[ALT, LANG], fragment=fragment),), Facts())
        return [one.sighting.signature for one in found]

    assert (
        keys("{face:docs}") == keys("{face:claude}") == ["axe {face} image-alt", "axe {face} html-has-lang"]
    )
    assert keys("{site}/item/1") == keys("{site}/") == ["axe {site} image-alt", "axe {site} html-has-lang"]
    assert keys("{site}/part", fragment=True) == ["axe {site} image-alt"]
    assert keys("http://other:1/c")[0] == "axe http://other:1 image-alt"
    [one] = table.judge((view("{site}/a", violations=[LANG]),), Facts())
    assert one.sighting.title == "{site}/a breaks the rule html-has-lang at 1 element"
    [one] = table.judge((view("{site}/a", failed=[GONE]),), Facts())
    assert one.sighting.signature == "missing {site} /a/style.css 404"
