"""Pages in a real browser in a real jail: what they load, say, throw and run."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest

from sandbox.text import mask
from tests.sandbox.browsing import CANARY, HTML, WHOLE, Stand, needs_browser, standing
from tests.sandbox.doubles import http_answer

pytestmark = [pytest.mark.anyio, pytest.mark.jail, needs_browser]

FAULTY = """<html><head><title>x</title><link rel=stylesheet href=/gone.css></head><body>
<img src=/there.png><input name=q><a href=/next#part>next</a><a href="http://elsewhere.example/">away</a>
<form action=/find><label>word <input name=word value=moss></label><button>go</button></form>
<script>console.error("first", 2); console.warn("second"); console.log("not kept");
  setTimeout(() => { null.third }, 5);
  fetch("http://foreign.example/x").catch(() => 0);
  fetch("/write", {method: "POST", body: "x"}).catch(() => 0);</script></body></html>"""
PAGES: dict[str, str | bytes] = {
    "/clean": WHOLE.format('<h1>clean</h1><p><a href="/next">next</a></p>'),
    "/faulty": FAULTY,
    "/there.png": http_answer(200, b"x", "content-type: image/png"),
    "/raw": WHOLE.format("<h1>for</h1><p>{q}</p>"),
    "/script": WHOLE.format('<script>var words = "{q}";</script>'),
    "/guarded": http_answer(
        200,
        WHOLE.format(f"<p><script>{CANARY}(name)</script></p>").encode(),
        HTML,
        "content-security-policy: script-src 'none'",
    ),
    "/away": http_answer(302, b"", "location: http://169.254.169.254/latest"),
    "/later": WHOLE.format('<h1>stays</h1><script>location = "http://169.254.169.254/"</script>'),
    "/round": http_answer(302, b"", "location: /clean"),
    "/signed-in": http_answer(
        200,
        WHOLE.format("<h1>in</h1><script>console.warn(document.cookie)</script>").encode(),
        HTML,
        "set-cookie: one=1; Path=/; Expires=Wed, 21 Oct 2099 07:28:00 GMT",
        "set-cookie: two=2",
    ),
    "/data": http_answer(200, b'{"a": 1}', "content-type: application/json"),
    "/fragment": "<p>only a piece</p>",
    "/broken": http_answer(500, WHOLE.format("<img src=/clean>").encode(), HTML),
    "/mute": http_answer(200, WHOLE.format("<h1>x</h1>").encode(), HTML, "x-qa-once: forged"),
    "/trap": WHOLE.format(
        "<h1>t</h1><button>a</button><button onkeydown='event.preventDefault()'>b</button><button>c</button>"
    ),
    "/forged": WHOLE.format(
        "<img src=/there.png><script>window.axe = {run: () => ({violations: []})};"
        "Document.prototype.querySelectorAll = () => [];</script>"
    ),
}
LINK = f'<a href="javascript:{CANARY}(name)">x</a>'


@pytest.fixture(scope="module")
async def stand(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stand]:
    async with standing(tmp_path_factory.mktemp("spool"), PAGES) as made:
        yield made


def rules(result: dict[str, Any]) -> set[str]:
    return {one["id"] for one in result["violations"]}


async def test_a_clean_page_shows_nothing(stand: Stand) -> None:
    seen = await stand.look("/clean")
    told = ("ok", "status", "title", "fragment", "canary_ran", "error_class", "unjudged")
    assert [seen[key] for key in told] == [True, 200, "a page", False, False, "", []], seen
    empty = ("console", "exceptions", "failed", "refused", "violations")
    assert {key: seen[key] for key in empty} == {key: [] for key in empty}
    assert (seen["focusable"], seen["reached"], seen["trap"]) == (1, 1, "")
    picture = base64.b64decode(seen["screenshot"])
    assert picture.startswith(b"\x89PNG")
    assert (hashlib.sha256(picture).hexdigest(), len(picture)) == (seen["sha256"], seen["screenshot_bytes"])


async def test_what_a_faulty_page_says_throws_and_misses(stand: Stand) -> None:
    seen = await stand.look("/faulty")
    assert [(one["kind"], one["text"]) for one in seen["console"]] == [
        ("error", "first 2"),
        ("warning", "second"),
    ]
    assert [one["text"] for one in seen["exceptions"]] == [
        "TypeError: Cannot read properties of null (reading 'third')"
    ]
    site = stand.server.url
    assert [(one["url"], one["kind"], one["status"]) for one in seen["failed"]] == [
        (f"{site}/gone.css", "Stylesheet", 404)
    ]
    assert {(one["url"], one["error"].partition(":")[0]) for one in seen["refused"]} == {
        ("http://foreign.example/x", "refused"),
        (f"{site}/write", "refused"),
    }
    assert rules(seen) == {"html-has-lang", "image-alt", "label"}
    assert seen["links"] == [f"{site}/next#part", "http://elsewhere.example/"]
    assert seen["forms"] == [{"action": f"{site}/find", "method": "get", "fields": [["word", "moss"]]}]
    assert not [got for got in stand.server.got if got.method == "POST"]


@pytest.mark.parametrize(
    ("path", "value", "by"),
    [
        ("/raw", CANARY, ""),
        ("/raw", f"<script>{CANARY}(name)</script>", "binding"),
        ("/raw", f"<img src=/there.png onerror=alert('{CANARY}')>", "dialog"),
        ("/raw", LINK, "binding"),  # followed by keyboard, as a visitor would
        ("/raw", f"&lt;script&gt;{CANARY}(name)&lt;/script&gt;", ""),
        ("/script", f'";{CANARY}(name);"', "binding"),
        ("/script", CANARY, ""),
        ("/guarded", "", ""),
    ],
)
async def test_a_canary_ran_or_did_not(stand: Stand, path: str, value: str, by: str) -> None:
    seen = await stand.look(stand.query(path, value), script_canary=CANARY)
    assert (seen["canary_ran"], seen["canary_by"]) == (bool(by), by), seen


async def test_a_pages_scripts_see_its_fragment(stand: Stand) -> None:
    written = "<p id=at></p><script>at.innerHTML = decodeURIComponent(location.hash.slice(1))</script>"
    stand.pages["/topic"] = WHOLE.format(written)
    attack = quote(f"<img src onerror={CANARY}(name)>", safe="")
    seen = [await stand.look(f"/topic#{one}", script_canary=CANARY) for one in (CANARY, attack)]
    assert [(one["status"], one["canary_ran"]) for one in seen] == [(200, False), (200, True)]
    assert seen[0]["canary_at"] == ["text"]


async def test_a_redirect_elsewhere_is_refused_and_said(stand: Stand) -> None:
    seen = await stand.look("/away")
    assert (seen["ok"], seen["status"], seen["error_class"]) == (False, 0, "refused")
    assert "169.254.169.254" in seen["error"]
    later = await stand.look("/later")
    assert (later["ok"], later["status"]) == (True, 200)
    assert later["final_url"].endswith("/later")
    assert [one["url"] for one in later["refused"]] == ["http://169.254.169.254/"]


async def test_a_redirect_within_the_platform_is_followed(stand: Stand) -> None:
    seen = await stand.look("/round")
    assert (seen["ok"], seen["final_url"]) == (True, f"{stand.server.url}/clean")


@pytest.mark.parametrize(
    ("path", "status", "fragment", "found"),
    [("/data", 200, True, set()), ("/fragment", 200, True, {"html-has-lang", "document-title"})],
)
async def test_what_is_not_a_whole_document_is_said_to_be_a_fragment(
    stand: Stand, path: str, status: int, fragment: bool, found: set[str]
) -> None:
    seen = await stand.look(path)
    assert (seen["status"], seen["fragment"], rules(seen)) == (status, fragment, found)


async def test_cookies_are_kept_and_sent(stand: Stand) -> None:
    seen = await stand.look("/signed-in")
    assert [one["text"] for one in seen["console"]] == ["one=1; two=2"]


async def test_an_error_page_is_not_ok(stand: Stand) -> None:
    seen = await stand.look("/broken")
    assert (seen["ok"], seen["status"], seen["error_class"]) == (False, 500, "http")


async def test_a_platform_cannot_forge_a_refusal_and_a_page_cannot_forge_the_rules(stand: Stand) -> None:
    assert (await stand.look("/mute"))["status"] == 200
    assert "image-alt" in rules(await stand.look("/forged"))


async def test_a_keyboard_trap_is_seen(stand: Stand) -> None:
    seen = await stand.look("/trap")
    assert (seen["focusable"], seen["reached"], seen["trap"]) == (3, 2, "button")


@pytest.mark.parametrize(
    "args", [{"script_canary": "no good"}, {"script_canary": "short"}, {"width": 10}], ids=str
)
async def test_bad_arguments_are_named(stand: Stand, args: dict[str, Any]) -> None:
    seen = await stand.look("/clean", **args)
    assert seen["error_class"] == "bad_request"
    assert next(iter(args)) in seen["error"]


SHOP = """<!doctype html><html lang=en><head><title>shop</title></head><body>
<input id=q><button id=find>find</button><button id=buy>buy</button><a href="/clean">elsewhere</a>
<form method=post action=/send><input name=to value=moss><button>send</button></form>
<script>
fetch('/shelf?page=1');
document.getElementById('find').onclick = () => fetch('/find?q=' + document.getElementById('q').value);
document.getElementById('buy').onclick = async () => {
  await fetch('/basket', {method: 'POST', headers: {'content-type': 'application/json'},
    body: JSON.stringify({fern: 2, note: 'ghp_' + 'Ab1'.repeat(12)})});
  throw new Error('nothing came');
};
</script></body></html>"""


async def test_pressed_buttons_show_what_scripts_would_ask_and_nothing_of_it_is_sent(stand: Stand) -> None:
    stand.pages |= {"/shop": SHOP, "/shelf": "moss", "/find": "moss", "/basket": "moss", "/send": "moss"}
    before = len(stand.server.got)
    seen = await stand.look("/shop", press=True)
    assert "Ab1Ab1" not in json.dumps(seen["calls"])
    calls = {(one["method"], one["url"].removeprefix(stand.server.url), one["body"]) for one in seen["calls"]}
    assert calls == {
        ("GET", "/shelf?page=1", ""),
        ("GET", "/find?q=moss", ""),
        ("POST", "/basket", mask(f'{{"fern":2,"note":"ghp_{"Ab1" * 12}"}}')[0]),
        ("POST", "/send", "to=moss"),
    }
    assert {one["body_type"] for one in seen["calls"] if one["method"] == "POST"} == {
        "application/json",
        "application/x-www-form-urlencoded",
    }
    asked = {got.path.partition("?")[0] for got in stand.server.got[before:]} - {"/favicon.ico"}
    assert asked == {"/shop", "/shelf"}
    assert (seen["exceptions"], seen["failed"], seen["status"], seen["title"]) == ([], [], 200, "shop")
    assert {"violations", "keyboard"} <= set(seen["unjudged"])
