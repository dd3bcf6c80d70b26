"""The worklist with every hostile text, as Markdown and as HTML, in a real browser (faults B3.6)."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from sandbox.browser.devtools import DevTools
from sandbox.errors import Failure
from tests.sandbox.browsing import needs_browser
from tests.triage import hostile
from tests.triage.live_outputs import FORMATS, reader
from tests.triage.test_hostile_entries import decided
from tests.triage.triage_log import FLEET

pytestmark = needs_browser

KINDS = [name for name in ("to_markdown", "to_html") if name in FORMATS]
STARTS = 3
SEEN = """JSON.stringify({
  ran: typeof globalThis.CANARY !== 'undefined',
  names: [...new Set([...document.querySelectorAll('*')].map(e => e.localName))],
  acts: [...document.querySelectorAll('*')].flatMap(e => [...e.attributes].map(a => a.name))
    .filter(n => n.startsWith('on') || ['href', 'src', 'action', 'formaction', 'srcdoc'].includes(n)),
  links: document.links.length + document.images.length + document.forms.length + document.scripts.length,
  text: document.body.innerText.length,
  title: document.title,
})""".replace("CANARY", hostile.CANARY)


class Visited:
    """What a page did: requests to the loopback proxy besides its own, dialogs, and exceptions."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.events: list[str] = []
        self.loaded = False

    def happens(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self.loaded = True
        if method in ("Page.javascriptDialogOpening", "Runtime.exceptionThrown", "Page.windowOpen"):
            self.events.append(method)


@contextmanager
def proxy(visited: Visited) -> Iterator[str]:
    """Answers what the browser asks for, whatever the host: every request of a page ends here."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = visited.pages.get(urlsplit(self.path).path)
            if page is None:
                visited.requests.append(f"{self.command} {self.path}")
            self.send_response(200 if page is not None else 404)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page or b"")

        do_POST = do_CONNECT = do_HEAD = do_OPTIONS = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def started(visited: Visited) -> DevTools:
    """A browser that answers. One that a busy machine starts too slowly says nothing: it is started again."""
    for left in reversed(range(STARTS)):
        tools = DevTools(visited.happens)
        try:
            tools.ready()
            break
        except Failure:
            tools.close()
            if not left:
                raise
    return tools


def looked_at(
    page: bytes,
    monkeypatch: pytest.MonkeyPatch,
    seen: str = SEEN,
    width: int = 0,
    dark: bool = False,
    *,
    waits: bool = False,
) -> tuple[Visited, dict[str, Any]]:
    """What the page did in a browser, and what is `seen` in it; `width` in pixels. `waits`: `seen` is a
    promise of the text."""
    visited = Visited()
    visited.pages["/page"] = page
    with proxy(visited) as url:
        monkeypatch.setenv("QA_BROKER", url)
        with closing(started(visited)) as tools:
            target = str(tools.ask("Target.createTarget", url="about:blank", within=10)["targetId"])
            attached = tools.ask("Target.attachToTarget", targetId=target, flatten=True, within=10)
            session = str(attached["sessionId"])
            for method in ("Page.enable", "Runtime.enable"):
                tools.ask(method, session, within=10)
            if width:
                size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
                tools.ask("Emulation.setDeviceMetricsOverride", session, **size, within=10)
                scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
                tools.ask("Emulation.setEmulatedMedia", session, features=scheme, within=10)
            visited.loaded = False  # that of about:blank does not count
            tools.post("Page.navigate", session, url="http://127.0.0.1/page")
            tools.listen(20, lambda: visited.loaded or bool(visited.events))
            tools.listen(0.5)
            if "Page.javascriptDialogOpening" in visited.events:  # it blocks every question
                return visited, {}
            asked = f"{seen}.then(JSON.parse)" if waits else f"JSON.parse({seen})"
            found = tools.ask(
                "Runtime.evaluate",
                session,
                expression=asked,
                returnByValue=True,
                awaitPromise=waits,
                within=30,
            )
    visited.requests = [one for one in visited.requests if not one.endswith("/favicon.ico")]
    return visited, found["result"].get("value", {})


def rendered(kind: str, texts: Mapping[str, str]) -> bytes:
    """The list with each text once as a stranger's entry and once as a finding of ours, as a page."""
    head = "qa/v1 source=qa-ux sev=high surface=ux run=r1 fp={:012x} was=000000000000 rate=3/3"
    made = [
        (
            FLEET,
            f'{head.format(number)}\n{" ".join(text.splitlines()) or "x"}\nrepro: qa_fetch(url="{{site}}")',
        )
        for number, text in enumerate(texts.values(), 1)
    ]
    theirs = [(hostile.STRANGERS[place], text) for place, text in enumerate(texts.values())]
    written = FORMATS[kind](decided(hostile.mirrored(*made, *theirs)))
    return page_of(written) if kind == "to_markdown" else written


def page_of(markdown: bytes) -> bytes:
    body = reader().render(markdown.decode())
    return f"<!DOCTYPE html><html><head><title>w</title></head><body>{body}</body></html>".encode()


@pytest.mark.parametrize("kind", KINDS)
def test_a_browser_runs_loads_and_links_nothing_of_an_entry(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    visited, seen = looked_at(rendered(kind, hostile.texts()), monkeypatch)
    _, plain = looked_at(rendered(kind, dict.fromkeys(hostile.texts(), "a plain note")), monkeypatch)
    assert (visited.requests, visited.events, visited.loaded) == ([], [], True)
    assert seen["ran"] is False
    own = 1 if kind == "to_html" else 0  # the script that filters and sorts
    assert (seen["links"], seen["acts"], seen["title"]) == (own, plain["acts"], plain["title"])
    assert set(seen["names"]) <= {*plain["names"], "h2", "code"}
    assert seen["text"] > 5_000


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        (f"<script>{hostile.CANARY}=1</script>", "ran"),
        (f"<img src=http://{hostile.HOST}/a.png>", "requests"),
        ("<script>alert(1)</script>", "events"),
        ("[x](javascript:1)", "links"),
        ("see evil.com", "links"),
    ],
)
def test_the_look_sees_what_a_page_without_escapes_does(
    text: str, sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    visited, seen = looked_at(page_of(f"# list\n\n{text}\n".encode()), monkeypatch)
    found = {"requests": visited.requests, "events": visited.events, **seen}
    assert found[sign]
