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
