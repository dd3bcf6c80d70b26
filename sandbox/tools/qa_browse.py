"""Opens a page in a real browser: what it loads, says and throws, and whether a canary ran as script."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from sandbox import http
from sandbox.browser.traffic import KEPT, Request, Traffic
from sandbox.browser.visit import Visit, visited
from sandbox.errors import Deadline
from sandbox.spec import Context, Cost, Effect, Impact, Mistake, OneOf, Points, ToolSpec
from sandbox.text import clean, mask
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

WIDTHS = (320, 1920)
_CANARY = re.compile(r"[A-Za-z][A-Za-z0-9]{7,39}")


@dataclass(frozen=True, slots=True)
class Args:
    url: str
    """Page to open."""
    script_canary: str = ""
    """A function that exists in this page only: `canary('')`, or an alert of exactly this word, proves
    that script ran. Such a page's violations are not looked for."""
    width: int = 1280
    """[CSS px] Width of the window, 320 to 1920."""
    press: bool = False
    """Whether its fields are filled and its buttons pressed, for what its scripts would ask: none of that is
    sent, and nothing else of the page is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`ok` means a status below 400."""

    status: int = 0
    """HTTP status of the answer that became the page."""
    final_url: str = ""
    """URL of the page after redirects."""
    content_type: str = ""
    """Its Content-Type."""
    title: str = ""
    """Its title."""
    fragment: bool = False
    """Whether it is a part of a document, or of what another page opens: rules about whole documents mean
    nothing."""
    canary_ran: bool = False
    """Whether the canary ran as script."""
    canary_by: Annotated[str, OneOf(("", "binding", "dialog"))] = ""
    """How it ran."""
    canary_at: tuple[Annotated[str, OneOf(("text", "attribute", "url", "script"))], ...] = ()
    """Where the bare canary stands."""
    console: tuple[dict[str, Any], ...] = ()
    """Messages of the console."""
    exceptions: tuple[dict[str, Any], ...] = ()
    """Exceptions that no script caught."""
    failed: tuple[dict[str, Any], ...] = ()
    """Requests that the platform did not answer well."""
    refused: tuple[dict[str, Any], ...] = ()
    """Requests that the broker or we stopped: they say nothing of the platform."""
    violations: tuple[dict[str, Any], ...] = ()
    """Violated axe-core rules for WCAG A and AA."""
    focusable: int = 0
    """Elements that the keyboard should reach."""
    reached: int = 0
    """Elements that the Tab key reached."""
    trap: str = ""
    """The element that the Tab key could not leave."""
    links: tuple[str, ...] = ()
    """URLs that a visitor follows."""
    forms: tuple[dict[str, Any], ...] = ()
    """Forms of the page."""
    requests: int = 0
    """Requests that the page made."""
    calls: tuple[dict[str, Any], ...] = ()
    """What its scripts and forms asked, or would have: method, url, body, body_type."""
    screenshot: str = ""
    """PNG in base64, kept in the run's evidence."""
    sha256: str = ""
    """Hash of the screenshot, hex."""
    screenshot_bytes: int = 0
    """[bytes] Size of the screenshot."""
    start_ms: float = 0.0
    """[ms] Time until the browser was ready."""
    unjudged: tuple[str, ...] = field(default=())
    """Parts of the result without a meaning."""


def run(args: Args, ctx: Context) -> Result:
    if args.script_canary and not _CANARY.fullmatch(args.script_canary):
        raise Mistake("/args/script_canary: expected a word of 8 to 40 letters and digits")
    if not WIDTHS[0] <= args.width <= WIDTHS[1]:
        raise Mistake(f"/args/width: expected {WIDTHS[0]} to {WIDTHS[1]}")
    url, deadline, started = http.absolute(args.url), Deadline(ctx.deadline_s * 0.9), time.monotonic()
    fragment = quote(urlsplit(args.url).fragment, safe="%!$&'()*+,;=:@/?-._~")  # its scripts may read it
    url += f"#{fragment}" * bool(fragment)
    traffic, visit = Traffic(deadline), Visit(args.script_canary, presses=args.press)
    began = visited(url, visit, traffic, args.width, deadline)
    return _result(visit, traffic, (began - started) * 1000, (time.monotonic() - began) * 1000)


def _result(visit: Visit, traffic: Traffic, start_ms: float, took_ms: float) -> Result:
    document, done = traffic.document, list(traffic.done)
    stopped = traffic.refused_document
    cause, _, why = stopped.partition(": ")
    cause = "busy" if cause == "timeout" else cause  # a browser's time says nothing of a platform
    error = why if stopped else f"HTTP {document.status}" if document.status >= 400 else ""
    links = visit.facts.get("links")
    forms = visit.facts.get("forms")
    places = visit.facts.get("at")
    return Result(
        ok=not error and bool(document.status),
        latency_ms=round(took_ms, 3),
        error=error,
        error_class=cause if stopped else "http" if error else "",
        status=0 if stopped else document.status,
        final_url=visit.final_url or document.url,
        content_type=clean(document.content_type, 100),
        title=clean(mask(str(visit.facts.get("title", "")))[0], 200),
        fragment=not document.whole,
        canary_ran=bool(visit.ran_by),
        canary_by=visit.ran_by,
        canary_at=tuple(clean(str(one), 20) for one in places[:4]) if isinstance(places, list) else (),
        console=tuple(visit.console),
        exceptions=tuple(visit.exceptions),
        failed=tuple(_row(one) for one in done if not one.ours and (one.status >= 400 or one.error))[:KEPT],
        refused=tuple(_row(one) for one in done if one.ours)[:KEPT],
        violations=tuple(visit.violations),
        focusable=int(visit.facts.get("focusable", 0)),
        reached=visit.reached,
        trap=visit.trap,
        links=tuple(clean(str(one), 300) for one in links[:80]) if isinstance(links, list) else (),
        forms=tuple(_form(one) for one in forms[:10]) if isinstance(forms, list) else (),
        requests=len(done),
        calls=_calls(done),
        screenshot=base64.b64encode(visit.picture).decode(),
        sha256=hashlib.sha256(visit.picture).hexdigest() if visit.picture else "",
        screenshot_bytes=len(visit.picture),
        start_ms=round(start_ms, 3),
        unjudged=tuple(dict.fromkeys(visit.unjudged)),
    )


def _calls(done: Iterable[Request]) -> tuple[dict[str, Any], ...]:
    """Each once, without the secrets that a script may send."""
    found = {(one.method, one.url, one.body): one for one in done if one.is_call}
    return tuple(
        {"method": one.method, "url": one.url, "body": mask(one.body)[0], "body_type": one.body_type}
        for one in list(found.values())[:KEPT]
    )


def _row(one: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
    return {"url": one.url, "kind": one.kind, "method": one.method, "status": one.status, "error": one.error}


def _form(form: Mapping[str, Any]) -> dict[str, Any]:
    fields = [[clean(str(word), 300) for word in pair[:2]] for pair in form["fields"][:20]]
    return {
        "action": clean(str(form["action"]), 300),
        "method": clean(str(form["method"]), 10),
        "fields": fields,
    }


SPEC = ToolSpec(
    "qa_browse",
    Args,
    Result,
    Effect.LOOK,
    Cost(calls=1),
    "open a public page of the platform in a real browser",
    run,
    needs=("browser",),
    group="browser",
    impacts={
        "": Impact(8, 8, 8, "a page with what its scripts ask for"),
        "file": Impact(4, 8, 8, "a file that is not for visitors", "what was read is known"),
        "attack": Impact(5, 7, 7, "a page with what no visitor writes: markup, or a program"),
    },
    points_at={"url": Points.PAGE},
    asks=("a browser at {url}", " with the canary {script_canary}", " {press:with its buttons pressed}"),
    ends_in="status",
    judged_as=("view",),
    resources="browser",
    wall_s=45.0,
    attaches="screenshot",
    example={"url": "{site}/"},
    expects="result.status != 200 || size(result.violations) == 0",
    public=PUBLIC
    | {"url", "script_canary", "width", "status", "final_url", "content_type", "title", "fragment"}
    | {"canary_ran", "canary_by", "canary_at", "console", "exceptions", "failed", "refused"}
    | {"press", "calls", "violations", "focusable", "reached", "trap", "links", "forms", "requests", "sha256"}
    | {"screenshot_bytes", "start_ms", "unjudged"},
    volatile=VOLATILE | {"start_ms", "screenshot", "sha256", "screenshot_bytes", "requests", "calls"},
)
