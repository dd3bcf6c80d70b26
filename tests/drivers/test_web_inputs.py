"""Which places of a page are inputs, and how a value goes there: forms of anybody, named segments."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.config import Platform
from fleet.drivers.explore.web.inputs import FormField
from fleet.drivers.explore.web.points import Point
from fleet.drivers.explore.web.site_map import SiteMap
from fleet.oracles.model import Exchange
from fleet.oracles.web.variations import FORM, varied

SITE = Platform.model_validate(
    {"name": "x", "web": {"site": "http://moss.example", "act_paths": ["{site}/open"]}}
)


def _inputs(action: str, *, acts: bool = True, method: str = "POST", **fields: str) -> set[tuple[str, str]]:
    """Kind and name of what is learned from a page with this form."""
    site = SiteMap.of(SITE, "a", acts=acts)
    form = {"method": method, "action": action, "fields": fields, "json": False}
    page: dict[str, Any] = {"status": 200, "content_type": "text/html", "text": "<h1>moss</h1>"}
    site.read("{site}/start", page | {"forms": [form]})
    points = [one.point for one in site.inputs.all.values()]
    return {(one.kind, one.name) for one in points if one is not None and one.kind == "form"}


BOTH = {("form", "title"), ("form", "text")}


def test_a_form_that_anybody_may_send_has_inputs() -> None:
    assert _inputs("/open/notes", title="", text="fern") == BOTH
    assert _inputs("/open/enter", title="", text="", password="") == BOTH


@pytest.mark.parametrize(
    ("action", "acts", "more"),
    [
        ("/open/notes", False, {}),
        ("/other/notes", True, {}),
        ("/open/logout", True, {}),
        ("/open/delete", True, {}),
        ("/open/notes", True, {"csrf_token": ""}),
        ("/open/notes", True, {"at": "Zm9vYmFyMTIzNDU2Nzg5"}),
        ("http://elsewhere.example/open", True, {}),
    ],
)
def test_no_other_form_is_sent(action: str, acts: bool, more: dict[str, str]) -> None:
    assert _inputs(action, acts=acts, title="", text="", **more) == set()


def test_a_form_is_sent_as_a_browser_does_and_its_fields_vary() -> None:
    point = FormField("{site}/open/notes", "form", "text", "fern", "POST", (("title", "a b"),))
    steps = [point.step("fern"), point.step("fern' & {site}/x")]
    assert steps[1].args == {
        "url": "{site}/open/notes",
        "method": "POST",
        "body": "title=a%20b&text=fern%27%20%26%20{site}%2Fx",
        "body_type": FORM,
    }
    found = varied([Exchange(one.tool, one.args, {}) for one in steps])
    assert found is not None
    assert (found.place, found.values) == (("field", "text"), ("fern", "fern' & {site}/x"))


def test_what_stands_behind_the_sign_of_a_segment_is_its_value() -> None:
    point = Point("{site}/file=moss", "path", "1", "moss")
    steps = [point.step("moss"), point.step("/etc/passwd")]
    assert steps[1].args["url"] == "{site}/file=%2Fetc%2Fpasswd"
    found = varied([Exchange(one.tool, one.args, {}) for one in steps])
    assert found is not None
    assert found.values == ("moss", "/etc/passwd")


def test_a_segment_with_a_name_is_an_input_once_a_page_or_script_names_it() -> None:
    site = SiteMap.of(SITE, "a")
    page = {"status": 200, "content_type": "text/javascript", "text": "x", "paths": ["/file="]}
    site.read("{site}/app.js", page)
    points = [one.point for one in site.inputs.all.values()]
    assert ("path", "1", "moss") in {(one.kind, one.name, one.value) for one in points if one}


@pytest.mark.parametrize(("method", "kinds"), [("POST", {"body"}), ("GET", set())])
def test_a_form_that_only_takes_a_file_has_a_body(method: str, kinds: set[str]) -> None:
    site = SiteMap.of(SITE, "a", acts=True)
    form = {"method": method, "action": "/open/picture", "fields": {}, "json": False}
    site.read("{site}/start", {"status": 200, "content_type": "text/html", "text": "x", "forms": [form]})
    points = [one.point for one in site.inputs.all.values() if one.point and "picture" in one.point.url]
    assert {one.kind for one in points} == kinds


@pytest.mark.parametrize(
    ("told", "folders"),
    [
        ({"paths": ["/peer", "/boats/7", "/peer/x"]}, {"{site}/peer/", "{site}/boats/"}),
        ({"paths": ["/app.js", "/file=", "//elsewhere.example/x", "/"]}, set()),
        ({"links": ["/peer", "/boats/7"]}, set()),
    ],
)
def test_below_the_first_segment_that_a_script_names_may_be_a_folder(
    told: dict[str, Any], folders: set[str]
) -> None:
    site = SiteMap.of(SITE, "a")
    read(site, "/moss", **told)
    assert {url for kind, _, url in named(site) if kind == "tail"} == folders | {"{site}/"}


ABSENT = {"status": 404, "content_type": "text/plain", "text": "Cannot GET /qa-no-such-page"}


def test_a_path_that_a_script_puts_together_and_that_leads_nowhere_has_no_inputs() -> None:
    site = SiteMap.of(SITE, "a")
    site.read("{site}/qa-no-such-page", ABSENT)
    script = {"paths": ["/css/{value}", "boats/{value}"], "content_type": "text/javascript"}
    read(site, "/app.js", **script)
    (gone,) = [url for kind, _, url in named(site) if kind == "path" and "/css/" in url]
    (there,) = [url for kind, _, url in named(site) if kind == "path" and "/boats/" in url]
    site.read(gone, ABSENT | {"text": "Cannot GET /css/1"})
    read(site, there.removeprefix("{site}"), status=404, text="no such boat")
    read(site, "/app.js", **script)
    assert {url for kind, _, url in named(site) if kind == "path"} == {there}


@pytest.mark.parametrize(
    ("text", "name"), [("Cannot GET /static/qa-no-such-page", "maybe"), ("no such file", "")]
)
def test_below_a_usual_folder_little_is_asked_unless_it_says_itself_what_is_missing(
    text: str, name: str
) -> None:
    site = SiteMap.of(SITE, "a")
    site.read("{site}/qa-no-such-page", ABSENT)
    site.read("{site}/static/qa-no-such-page", ABSENT | {"text": text})
    assert [tail for _, tail, url in named(site) if url == "{site}/static/"] == [name]


def test_a_page_that_is_not_there_and_repeats_its_query_has_no_inputs() -> None:
    site = SiteMap.of(SITE, "a")
    for path in ("/qa-no-such-page", "/socket.io/?EIO=4&transport=polling"):
        read(site, path, status=404, text=f"no route GET:{path}")
    assert {kind for kind, _, _ in named(site)} == {"tail"}


def read(site: SiteMap, path: str, **result: object) -> None:
    site.read("{site}" + path, {"status": 200, "content_type": "text/plain", "text": "fern", **result})


def named(site: SiteMap) -> set[tuple[str, str, str]]:
    return {
        (one.point.kind, one.point.name, one.url) for one in site.inputs.all.values() if one.point is not None
    }


def test_what_leads_nowhere_has_no_parameters() -> None:
    """Also where a page that is not there repeats its own path."""
    site = SiteMap.of(SITE, "a")
    site.read("{site}/qa-no-such-page", ABSENT)
    read(site, "/", content_type="text/html", links=["/shop?item=3", "/gone?item=3"])
    assert {("query", "item", f"{{site}}/{one}?item=3") for one in ("shop", "gone")} <= named(site)
    read(site, "/shop?item=3")
    read(site, "/gone?item=3", status=404, text="Cannot GET /gone")
    read(site, "/", content_type="text/html", links=["/shop?item=3", "/gone?item=3"])
    assert {one[2] for one in named(site) if one[0] == "query"} == {"{site}/shop?item=3"}


@pytest.mark.parametrize("file", ["app.js", "a/app.mjs", "app.js.map", "moss.css", "moss.woff2", "moss.svg"])
def test_a_file_that_servers_send_as_it_is_has_no_inputs_but_its_folder(file: str) -> None:
    site = SiteMap.of(SITE, "a")
    read(site, "/", content_type="text/html", links=[f"/files/{file}?v=3"])
    read(site, f"/files/{file}?v=3", content_type="text/javascript")
    folder = f"/files/{file}".rpartition("/")[0]
    assert {one for one in named(site) if "/files/" in one[2]} == {("tail", "", f"{{site}}{folder}/")}
    assert not [one for one in site.inputs.all.values() if one.point is None and "/files/" in one.url]


@pytest.mark.parametrize("answer", [(404, "no file moss"), (403, "Cannot GET /static/qa-no-such-page")])
def test_a_folder_that_answers_in_its_own_way_is_looked_below(answer: tuple[int, str]) -> None:
    site = SiteMap.of(SITE, "a")
    site.read("{site}/qa-no-such-page", ABSENT)
    read(site, "/static/qa-no-such-page", status=answer[0], text=answer[1])
    read(site, "/assets/qa-no-such-page", status=404, text="Cannot GET /assets/qa-no-such-page")
    assert {one[2] for one in named(site)} == {"{site}/static/", "{site}/"}


def test_each_question_of_an_input_says_which_and_what_it_tests() -> None:
    site = SiteMap.of(SITE, "a", acts=False)
    site.inputs.point(Point("{site}/find?q=moss", "query", "q", "moss"), "/find")
    led = [one.why for _ in range(30) if (one := site.inputs.next(99, {}))]
    assert led[0] == "query q of /find: what it takes"
    assert {f"query q of /find: {attack}" for attack in ("script", "quote", "condition", "climb")} <= {*led}
