"""What a page refers to: found in every kind of text, bounded, and never slow or broken by hostile ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.browser.traffic import is_whole
from sandbox.pages.html import read
from sandbox.pages.links import MAX_LINK, SHARE, find, of_markup
from sandbox.pages.markup import Form
from tests.sandbox.doubles import bench, http_answer

GUIDE = """# Tern
POST http://h/v2/talk?alt=sse

    {"to": "reed", "words": "help"}

GET http://h/nest/<name>/ is a nest. `GET /q?size=N&kind=a|b`, and (GET /z/{id}). Also GET|HEAD /m.
| `/tab/:id` | GET | a row |
See [Names](names.html), /status and https://other.example/x. Older: /old?of=<address>
curl -X DELETE "http://h/del/1"
curl http://h/sent -d 'x'
"""


def test_a_guide() -> None:
    found = find(GUIDE, "http://h/guide.txt")
    assert found.routes == (
        "POST http://h/v2/talk?alt=sse",
        "GET http://h/nest/<name>/",
        "GET /q?size=N&kind=a|b",
        "GET /z/{id}",
        "GET /m",
        "HEAD /m",
        "DELETE http://h/del/1",
        "GET /tab/:id",
        "POST http://h/sent",
    )
    assert found.forms == (
        Form("POST", "http://h/v2/talk?alt=sse", {"to": '"reed"', "words": '"help"'}, json=True),
    )
    assert found.links == ("names.html",)
    assert found.paths == ("/tab/:id", "/status", "/old?of=<address>", "https://other.example/x")


@pytest.mark.parametrize(
    ("text", "links", "paths"),
    [
        ("User-agent: *\nDisallow: /secret/\nSitemap: http://h/s.xml\n", (), {"/secret/", "http://h/s.xml"}),
        ("<urlset><url><loc> http://h/a </loc></url></urlset>", ("http://h/a",), set()),
        ('{"next": "/page/2", "icon": "http://h/i.png", "is": "a/b"}', (), {"/page/2", "http://h/i.png"}),
        ("a[0](b);\n//# sourceMappingURL=a.js.map", (), {"a.js.map"}),
        ("a(`${t.base}/edit?configuration=${e.name}`)", (), {"/edit?configuration={name}"}),
        (
            "open(`./logs/${x}/${y[0]}?raw=1`);b(`component/${e}`)",
            (),
            {"./logs/{x}/{y}?raw=1", "component/{e}"},
        ),
        (
            " " * 300_000 + 'f("component/".concat(e,"/").concat(t));g("./edit?of="+x)',
            (),
            {"component/{value}", "./edit?of={value}", "./edit?of=", "/"},
        ),
        ("a(`${e}/${t}`,`x ${e}/y`,`/moss`,`/a b/${e}`)", (), {"/moss"}),
        ('a.replace(/"/g,A="&quot;").replace(/</g,"-->");b("/><br>","/<")', (), set()),
        ('a=/["/i.test(b)||/"/g.exec(c);d("/i.tests")', (), {"/i.tests"}),
        ("import a from './c.f3.js';x('/file=',\"/a,b\")", (), {"./c.f3.js", "/file=", "/a,b"}),
        ("and/or 1/2 [x](javascript:a.b) [y](mailto:a@b.c) [z](#here.x)", (), set()),
    ],
)
def test_links_by_kind_of_text(text: str, links: tuple[str, ...], paths: set[str]) -> None:
    found = find(text)
    assert (found.links, set(found.paths)) == (links, paths)


def test_a_script() -> None:
    script = """fetch("/api/a?n=" + n); fetch(`/api/b/${encodeURIComponent(name)}`, {method: "PUT"});
    axios.post('/api/c', {}); map.get("name")"""
    assert find(script).routes == ("GET /api/a?n=", "PUT /api/b/{name}", "POST /api/c")


def test_an_openapi_description() -> None:
    spec = """{"openapi": "3.0.0", "paths": {"/a/{id}": {"parameters": [{"name": "id", "in": "path"}],
    "get": {"parameters": [{"name": "k", "in": "query", "schema": {"enum": ["x", "y"]}},
    {"name": "n", "in": "query", "example": 3}, {"name": "z", "in": "query"}]}, "post": {}, "x-o": 1}}}"""
    assert find(spec).routes == ("GET /a/{id}?k=x|y&n=3&z=<z>", "POST /a/{id}")
    assert find('{"paths": ' + '{"a":' * 900).routes == ()


def test_a_description_with_a_server_and_bodies() -> None:
    schema = {"type": "object", "required": ["text"], "properties": {"text": {"$ref": "#/parts/text"}}}
    body = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    spec = {
        "openapi": "3.1.0",
        "servers": [{"url": "/api/v2/"}],
        "parts": {"text": {"type": "string", "default": "fern"}},
        "paths": {
            "/labels": {"post": body},
            "/mine": {"post": body | {"security": [{"bearer": []}]}},
            "/join": {"post": json.loads(json.dumps(body).replace('"text"', '"password"', 2))},
            "/labels/{id}": {"get": {}},
        },
    }
    found = find(json.dumps(spec))
    assert found.routes == (
        "POST /api/v2/labels",
        "POST /api/v2/mine",
        "POST /api/v2/join",
        "GET /api/v2/labels/{id}",
    )
    assert found.forms == (Form("POST", "/api/v2/labels", {"text": '"fern"'}, True),)
    elsewhere = find(json.dumps(spec | {"servers": [{"url": "https://{region}.example/v1"}]}))
    assert elsewhere.routes[0] == "POST /labels"


def test_a_page() -> None:
    page = read("""<base href="/sub/"><link href=a.css><a href="b?x=1#f">x</a><script src="/s.js"></script>
    <img src=i.png><iframe src=f></iframe><a href="//other.example/">o</a>
    <form action="/s"><input name=q><select name=t><option value=li><option value=da></select>
    <select name=c><option>red<option>blue</select>
    <input type=hidden name=h value=v><input type=submit name=go></form>
    <form method=post action=p><textarea name=w></textarea></form>
    <table><tr><td>GET</td><td>/rows/&lt;name&gt;</td></tr></table><script>fetch('/api/j')</script>""")[1]
    found = of_markup(page, "http://h/")
    links = ("/sub/a.css", "/sub/b?x=1", "/s.js", "/sub/i.png", "/sub/f", "//other.example/")
    assert found.links == links
    assert found.forms == (
        Form("GET", "/s", {"q": "", "t": "li", "c": "red", "h": "v"}),
        Form("POST", "/sub/p", {"w": ""}),
    )
    assert found.routes == ("GET /rows/<name>", "GET /api/j")


PIECES = (
    "GET /",
    "](",
    "http://",
    "<a href=",
    '"/',
    "curl ",
    "fetch(",
    '{"paths":',
    "POST /x\n {",
    "${",
    "\0",
)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=9), max_size=40).map("".join))
def test_whatever_the_text_it_is_bounded_and_clean(text: str) -> None:
    for found in (find(text), of_markup(read(text)[1], "http://h/")):
        for said in (*found.links, *found.paths, *found.routes):
            assert 0 < len(said) <= MAX_LINK
            assert "\0" not in said


@pytest.mark.parametrize("piece", PIECES)
def test_a_flood_is_cut_to_its_share(piece: str) -> None:
    found = find("".join(f"{piece}{at} " for at in range(30_000)))
    assert sum(map(len, found.links)) <= SHARE["links"]
    assert sum(map(len, found.paths)) <= SHARE["paths"]
    assert sum(map(len, found.routes)) <= SHARE["routes"]
    assert sum(len(str(form)) for form in found.forms) <= SHARE["forms"]


def test_a_link_that_holds_a_secret_or_is_too_long_is_left_out() -> None:
    key = "private_key=0x" + "ab" * 32
    assert find(f'"/a?{key}" "/{"x" * 250}" "/b"').paths == ("/b",)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("text/html", (["/b"], ["/c"], ["GET /api/x?name=<name>"], [])),
        ("text/plain", ([], ["/b", "/c"], ["GET /api/x?name=&lt;name&gt"], [])),
        ("image/png", ([], [], [], [])),
    ],
)
async def test_a_fetch_reports_them(kind: str, found: tuple[list[str], ...]) -> None:
    body = b'<a href="/b">b</a> GET /api/x?name=&lt;name&gt; "/c"'
    async with bench(lambda _: http_answer(200, body, f"content-type: {kind}")) as it:
        result = await it.run("qa_fetch", {"url": it.site.url})
    assert tuple(result[kind] for kind in ("links", "paths", "routes", "forms")) == found


def test_a_placeholder_of_several_words_is_part_of_its_route() -> None:
    said = "- `GET /data/records?text=<words>&count=<a number from 1 to 80>` lists them; GET /a <b> is other"
    found = find(said, "http://h/llms.txt", prose=True)
    assert found.routes == ("GET /data/records?text=<words>&count=<a number from 1 to 80>", "GET /a")


def test_a_page_that_another_one_opens_is_no_whole_document() -> None:
    page = b"<!doctype html><HTML><script>%s</script></HTML>"
    assert not is_whole(page % b"var a = window.opener.granted;")
    assert is_whole(page % b"if (window.opener) close()")
    assert not is_whole(b"<p>only a piece</p>")
