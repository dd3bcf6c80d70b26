"""The form of a response, foreign documents included: what is surely wrong, and what only looks odd."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.drivers.explore.documents.routes import absent_beside
from fleet.oracles import table
from fleet.oracles.echoes import family
from fleet.oracles.model import Exchange, Facts

SITE = Facts(site="https://moss.example.org", proxy="https://moss.example.org")


def got(path: str = "x", method: str = "GET", **result: Any) -> Exchange:
    args = {"url": "{site}/" + path} | ({"method": method} if method != "GET" else {})
    return Exchange("qa_fetch", args, {"status": 200, "content_type": "text/plain", "text": "moss", **result})


def said(*seen: Exchange) -> list[str]:
    return [one.oracle for one in table.judge(seen, SITE)]


PAGE = "<!doctype html><html lang='en'><title>x</title><body>moss</body></html>"


@pytest.mark.parametrize(
    ("kind", "text", "oracle"),
    [
        ("text/html", '{"ok": true}', "content-type"),
        ("application/json", PAGE, "content-type"),
        ("text/javascript", PAGE, "content-type"),
        ("image/png", '{"ok": true}', "content-type"),
        ("application/json", '{"items": [1, 2', "malformed-json"),
        ("application/json", "{'ok': True}", "malformed-json"),
        ("application/problem+json", '{"ok": true}}', "malformed-json"),
        ("text/html", PAGE, ""),
        ("text/html", "{not json}", ""),
        ("text/html", "[1]", ""),
        ("text/plain", '{"ok": true}', ""),
        ("text/plain", PAGE, ""),
        ("application/json", '"moss"', ""),
        ("application/json", "", ""),
        ("application/x-ndjson", '{"a":1}\n{"a":2}', ""),
        ("application/ld+json", '{"a":1}', ""),
        ("image/svg+xml", "<svg/>", ""),
    ],
)
def test_type_and_content(kind: str, text: str, oracle: str) -> None:
    assert said(got(content_type=kind, text=text, bytes=len(text))) == [oracle] * bool(oracle)


def test_a_cut_or_masked_text_is_not_judged() -> None:
    text = '{"items": [1, 2'
    assert said(got(content_type="application/json", text=text, bytes=9_000)) == []
    assert said(got(content_type="application/json", text=text, bytes=len(text), secrets=["bearer"])) == []


@pytest.mark.parametrize(
    ("cookie", "oracle"),
    [
        ("session=a1b2; Path=/", "cookie-flags"),
        ("connect.sid=a1b2; Path=/; SameSite=Lax; Secure", "cookie-flags"),
        ("auth_token=a1b2; HttpOnly; SameSite=Lax", "cookie-flags"),  # https without Secure
        ("theme=dark; Path=/, PHPSESSID=a1b2; Path=/", "cookie-flags"),
        ("session=a1b2; Path=/; HttpOnly; Secure", ""),
        ("session=a1b2; Expires=Wed, 21 Oct 2026 07:28:00 GMT; HttpOnly; Secure; SameSite=Lax", ""),
        ("session=; Path=/; Max-Age=0", ""),
        ("theme=dark; Path=/", ""),
        ("csrftoken=a1b2; Path=/", ""),
        ("session=a1b2", ""),
    ],
)
def test_cookies(cookie: str, oracle: str) -> None:
    assert said(got(headers={"set-cookie": cookie})) == [oracle] * bool(oracle)


def test_versions() -> None:
    python = {"server": "BaseHTTP/0.6 Python/3.11.2"}
    assert said(got(headers={"x-powered-by": "PHP/8.1.2"})) == ["version-header"]
    assert said(got(headers=python)) == []
    assert said(got("a", headers={"server": "moss"}), got(headers=python)) == ["version-header"]
    assert said(got("a", headers=python), got(headers=python)) == []
    assert said(got(headers={"x-powered-by": "Express", "server": "cloudflare"})) == []


def test_a_header_that_the_other_pages_have() -> None:
    safe: dict[str, Any] = {
        "content_type": "text/html",
        "headers": {"content-security-policy": "default-src 'self'"},
    }
    bare: dict[str, Any] = {"content_type": "text/html", "headers": {"date": "x"}}
    assert said(got("a", **safe), got("b", **safe), got("c", **bare)) == ["header-regression"]
    assert said(got("a", **safe), got("c", **bare)) == []
    assert said(got("a", **safe), got("b", **bare), got("c", **bare)) == []
    assert said(got("a", **safe), got("b", **safe), got("c", headers={})) == []  # a text, not a page


def test_listings() -> None:
    listed = '<html><title>Index of /files</title><h1>Index of /files</h1><a href="a.txt">a.txt</a>'
    assert said(got(content_type="text/html", text=listed)) == ["directory-listing"]
    assert said(got(content_type="text/html", text="<title>Index of agents</title><a href='/a'>a</a>")) == []
    shown = [table.judge((got(path, content_type="text/html", text=listed),), SITE)[0] for path in ("", "a/")]
    assert {one.sighting.signature for one in shown} == {"listing {site}"}  # one setting of its server


GUIDE = """# Moss
- `GET /api/moss` lists all
- `GET /api/persona?name=<name>` tells who it is
- `POST /api/notes/{id}` adds a note
- GET https://moss.example.org/feed.xml
- `DELETE /api/old` is no longer served
- GET /api/nothing answers 405
- GET /api/card?line=<a text> draws a card, e.g. /api/card?line=Hello, unlike /api/other?line=x
- `GET /api/shells/{id}` gives one, e.g. /api/shells/7 or /api/shells/conch
- Try: GET /api/coves/1001
"""


@pytest.mark.parametrize(
    ("method", "path", "status", "oracle"),
    [
        ("GET", "api/moss", 405, "documented-route"),
        ("GET", "api/moss", 404, "documented-route"),
        ("GET", "api/persona?name=fern", 405, "documented-route"),
        ("GET", "api/persona?name=fern", 404, ""),  # fern may not exist
        ("POST", "api/notes/7", 405, "documented-route"),
        ("POST", "api/notes/7", 501, "documented-route"),
        ("POST", "api/notes/7", 404, ""),
        ("GET", "feed.xml", 404, "documented-route"),
        ("GET", "api/card?line=Hello", 404, "documented-route"),  # its own example
        ("GET", "api/card?line=x", 404, ""),
        ("GET", "api/other?line=x", 404, ""),
        ("GET", "api/shells/7", 404, ""),  # an example of a thing, which need not be here
        ("GET", "api/shells/conch", 404, ""),
        ("GET", "api/shells/7", 405, "documented-route"),
        ("GET", "api/coves/1001", 404, ""),
        ("PUT", "api/moss", 405, ""),
        ("GET", "api/moss/7", 405, ""),
        ("DELETE", "api/old", 405, ""),
        ("GET", "api/nothing", 405, ""),
        ("GET", "api/moss", 401, ""),
        ("GET", "api/moss", 503, ""),
    ],
)
def test_documented_routes(method: str, path: str, status: int, oracle: str) -> None:
    guide = got("guide.md", text=GUIDE)
    seen = (guide, got("other"), got(path, method, status=status))
    found = table.judge(seen, SITE)
    assert [one.oracle for one in found] == [oracle] * bool(oracle)
    assert [one.led for one in found] == [(0,)] * bool(oracle)


def test_a_path_without_a_host_may_be_the_proxys() -> None:
    seen = (got("guide.md", text=GUIDE), got("api/moss", status=404))
    apart = Facts(site="https://moss.example.org", proxy="https://proxy.example.org")
    assert table.judge(seen, apart) == ()


def test_a_description_of_the_api() -> None:
    answer = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Moss"}}}}
    document = {
        "openapi": "3.1.0",
        "paths": {"/api/moss/{id}": {"get": {"responses": {"200": answer}}}},
        "components": {"schemas": {"Moss": {"type": "object", "required": ["id", "name"]}}},
    }
    guide = got("openapi.json", content_type="application/json", text=json.dumps(document))

    def asked(text: str, kind: str = "application/json", status: int = 200) -> list[str]:
        return said(guide, got("api/moss/7", content_type=kind, text=text, status=status))

    assert asked('{"id": 7}') == ["described-answer"]
    assert asked("moss", "text/plain") == ["described-answer"]
    assert asked('{"id": 7, "name": "x"}') == []
    assert asked('{"error": "no such moss"}', status=404) == []
    assert asked('{"error": "method not allowed"}', status=405) == ["documented-route"]


def test_one_defect_of_a_route_is_one_whatever_its_ids() -> None:
    def signature(url: str) -> str:
        call = Exchange("qa_fetch", {"url": url}, {"status": 500, "text": "KeyError: 'x'"})
        (one,) = table.judge((call,), SITE)
        return one.sighting.signature

    same = ("{site}/notes/7/x", "{site}/notes/%27/x", "{site}/notes/qa0123456789/x?y=1", "{site}/notes/81/x")
    assert len({signature(url) for url in same}) == 2
    assert signature("{face:docs}a?q=1") == signature("{face:claude}a")
    assert signature("{site}/a") != signature("{site}/b")


@pytest.mark.parametrize("segment", ["1", "1~", "1%00", "1;x=1", "77"])
def test_a_number_and_what_was_put_behind_it_is_one_place(segment: str) -> None:
    assert family({"url": f"{{site}}/docks/{segment}"}) == "{site}/docks/{n}"


@pytest.mark.parametrize("path", ["%00", "a.js%00", "dir/x.txt%00/", "a%00/b"])
def test_a_null_byte_behind_a_name_is_one_place_of_a_server(path: str) -> None:
    assert family({"url": f"{{site}}/{path}"}) == "{site}/{nul}"


@pytest.mark.parametrize("path", ["%", "a.js%", "dir/x%2/", "a%zz/%27", "/%ff", "%E0%A4%A", "a/%c3/b"])
def test_bytes_that_are_no_text_are_one_place_of_a_server(path: str) -> None:
    assert family({"url": f"{{site}}/{path}"}) == "{site}/{percent}"
    assert family({"url": f"{{site}}/{path}".replace("%", "%25")}) != "{site}/{percent}"
    assert family({"url": "{site}/a/%c3%a9"}) == "{site}/a/{value}"


@pytest.mark.parametrize(
    ("servers", "asked", "count"),
    [
        (None, "{site}/api/buoys", 1),
        ([{"url": "https://moss.example.org/api"}], "{site}/api/api/buoys", 1),
        ([{"url": "https://moss.example.org"}], "{site}/api/buoys", 1),
        ([{"url": "https://other.example.org"}], "{site}/api/buoys", 0),  # the production's, on a copy
        ([{"url": "http://[broken"}], "{site}/api/buoys", 1),
    ],
)
def test_a_route_of_a_description_is_on_the_host_that_it_names_or_on_its_own(
    servers: Any, asked: str, count: int
) -> None:
    document: dict[str, Any] = {"openapi": "3.1.0", "paths": {"/api/buoys": {"get": {}}}}
    text = json.dumps(document | ({"servers": servers} if servers else {}))
    seen = (got("openapi.json", text=text), Exchange("qa_fetch", {"url": asked}, {"status": 404}))
    two = Facts(site="https://moss.example.org", proxy="https://proxy.example.org")
    assert [one.oracle for one in table.judge(seen, two)].count("documented-route") == count


@pytest.mark.parametrize(
    ("operation", "status", "count"),
    [
        ({"responses": {"200": {}}}, 404, 1),
        ({"responses": {"200": {}, "404": {}}}, 404, 0),  # nothing is on sale now
        ({"responses": {"4XX": {}}}, 405, 0),
        ({"responses": {"501": {}}}, 501, 0),
        ({"responses": {"501": {}}}, 405, 1),
        ({"security": [{"key": []}]}, 404, 0),  # hidden from those without a key
        ({"security": [{"key": []}]}, 405, 1),
        ({"security": []}, 404, 1),
    ],
)
def test_a_refusal_that_a_description_states(operation: dict[str, Any], status: int, count: int) -> None:
    text = json.dumps({"openapi": "3.1.0", "paths": {"/api/buoys": {"get": operation}}})
    seen = (got("openapi.json", text=text), got("api/buoys", status=status))
    assert [one.oracle for one in table.judge(seen, SITE)].count("documented-route") == count


@pytest.mark.parametrize(
    ("beside", "here", "there", "count"),
    [
        ("api/fern", 200, 404, 1),
        ("api/fern", 200, 401, 0),  # it is there
        ("api/fern", 404, 404, 0),  # the document's paths are below another base
        ("moss", 200, 404, 0),  # what is beside it is no route of the document
    ],
)
def test_a_route_without_a_host_that_is_at_none_of_its_places(
    beside: str, here: int, there: int, count: int
) -> None:
    guide = got("guide.md", text="`GET /api/moss?size=3` and `GET /api/fern` and `GET /api/<name>`")
    other = Exchange("qa_fetch", {"url": "{proxy}/api/moss?size=3"}, {"status": there})
    seen = (guide, got(beside, status=here), other, got("api/moss?size=3", status=404))
    two = Facts(site="https://moss.example.org", proxy="https://proxy.example.org")
    found = [one for one in table.judge(seen, two) if one.oracle == "documented-route"]
    assert [one.led for one in found] == [(0, 1, 2)] * count


@pytest.mark.parametrize(
    ("other", "route", "there", "count"),
    [
        ('{"title": "no such kiln"}', '{"title": "no such route"}', 200, 1),
        ('{"title": "no such kiln"}', '{"title": "this kiln has no plan"}', 200, 0),  # the route is there
        ('{"title": "no such route"}', '{"title": "no such route"}', 200, 0),  # it may be a thing's refusal
        ('{"title": "no such kiln"}', '{"title": "no such route"}', 404, 0),  # nothing is there
    ],
)
def test_a_route_below_a_thing_that_is_there(other: str, route: str, there: int, count: int) -> None:
    guide = got("guide.md", text="| `GET /api/kilns/1/log` |\n| `GET /api/kilns/1/plan` |")
    seen = (
        guide,
        got("api/kilns/1/log", status=there, text="moss"),
        got("api/kilns/987654321/log", status=404, text=other),
        got("api/kilns/1/qa-nothing-here", status=404, text='{"title": "no such route"}'),
        got("api/kilns/1/plan", status=404, text=route),
    )
    assert [one.oracle for one in table.judge(seen, SITE)].count("documented-route") == count
    for locked in (False, True):
        said = {"responses": {"404": {}}, "security": [{"key": []}] * locked}
        paths = {"/api/kilns/{id}/plan": {"get": said}}
        described = got("openapi.json", text=json.dumps({"openapi": "3.1.0", "paths": paths}))
        found = [one.oracle for one in table.judge((described, *seen[1:]), SITE)]
        assert found.count("documented-route") == (0 if locked else count)
    assert absent_beside("{site}/api/kilns/1/plan", ["{site}/api/kilns/1/log"]) == tuple(
        str(one.args["url"]) for one in seen[1:4]
    )
    assert absent_beside("{site}/api/plan", ["{site}/api/log"]) == ()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".git/config", "[core]\n\trepositoryformatversion = 0\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        ("app/.env", "# of production\n\nexport SMTP_URL=smtp://a\nPORT=80\n"),
        (".htpasswd", "ada:$apr1$x8Q1$k2mZ0b1uYtS7\n"),
        ("backup.sql", "-- dump of 3 May\n\nCREATE TABLE members (id int);\n"),
    ],
)
def test_a_file_that_was_left_is_known_by_its_name_and_its_format(path: str, text: str) -> None:
    assert said(got(path, content_type="text/plain", text=text)) == ["leftover-file"]
    for other in ("guide", "downloads/schema.sql"):  # what a page offers is meant for visitors
        assert said(got(other, content_type="text/plain", text=text)) == []
    for page in (f"<html><title>Moss</title><pre>{text}</pre>", f"404\n{text}", "", "how to write one"):
        assert "leftover-file" not in said(got(path, text=page)), page
