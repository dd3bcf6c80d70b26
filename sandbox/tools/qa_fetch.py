"""Requests a page, once or repeatedly: status, body facts, markup faults, secrets by kind, latency.

With `control`, each request is followed by one to another page or host, and the page's latency is measured
relative to it: a slow machine or network is slow for both.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox import http
from sandbox.errors import Deadline, hint
from sandbox.html import Analysis, read
from sandbox.latency import Measured, check, measure, percentile
from sandbox.links import References, find, of_markup
from sandbox.markup import Form
from sandbox.page_request import effect_of, page_request
from sandbox.spec import UNSAFE, Context, Cost, Effect, Mistake, Points, ToolSpec
from sandbox.text import clean, decode, mask
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

MAX_TEXT = 8_000
LONGEST = 65_536
"""Most characters of a text that is asked for in full, such as a description of an API."""
MAX_HEADERS = 40

_CHARSET = re.compile(r"charset=\"?([A-Za-z0-9_-]{1,20})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Args:
    """`origin` is sent as the Origin header; `canary` is searched for where a browser would run it.

    `control` is another URL of the platform; `repeat` then counts pairs. `rate`: requests, or pairs, a second
    on a schedule, with each latency counted from the intended start; 0 for one after the other. `fields` is
    sent as one JSON object, `body` as it is; a call with another `method` than GET, HEAD and OPTIONS is an
    act, and asks once. `longest`: characters of the answer's text.
    """

    url: str
    origin: str = ""
    repeat: int = 1
    canary: str = ""
    control: str = ""
    rate: float = 0.0
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    body: str = ""
    body_type: str = "text/plain"
    longest: int = MAX_TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """Facts of the first answer; `bytes` and `sha256` are of the decoded body.

    The percentiles cover `samples` requests, fewer than `repeat` if the call ran out of time. `ratio` is the
    median ratio of the page's latency to that of the control right after it; 0 without a control.
    `ok` means a status below 400; a redirect is reported in `location`, never followed.
    """

    status: int = 0
    content_type: str = ""
    bytes: int = 0
    sha256: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    allow_origin: str = ""
    location: str = ""
    text: str = ""
    canary_executable: bool = False
    a11y: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """URLs that a visitor of the page follows or loads, absolute or relative to it; other hosts last."""
    paths: tuple[str, ...] = ()
    """URLs and paths that stand in its text or scripts, or in robots.txt: they may lead nowhere."""
    forms: tuple[Form, ...] = ()
    routes: tuple[str, ...] = ()
    """`METHOD path?name=<value>` as a document, a script or an OpenAPI description writes it."""
    unjudged: tuple[str, ...] = ()
    """Fields without a meaning, because the page was too costly to judge."""
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    max_ms: float = 0.0
    samples: int = 0
    control_p50_ms: float = 0.0
    control_p95_ms: float = 0.0
    ratio: float = 0.0
    samples_ms: tuple[float, ...] = ()
    """Each latency of a schedule, in the order of its slots; `control_ms`: the control's, slot by slot."""
    control_ms: tuple[float, ...] = ()


def run(args: Args, ctx: Context) -> Result:
    check(args.repeat, args.rate)
    if not 1 <= args.longest <= LONGEST:
        raise Mistake(f"/args/longest: expected 1 to {LONGEST}")
    if args.origin and not (args.origin.isascii() and args.origin.isprintable()):
        raise Mistake("/args/origin: expected one printable ASCII line")
    page = _page(args)
    control = http.HttpRequest("GET", http.absolute(args.control, "/args/control")) if args.control else None
    deadline = Deadline(ctx.deadline_s * 0.9)
    samples = measure(page, control, args.repeat, deadline, args.rate)
    return _result(samples, args, page.target)


def _page(args: Args) -> http.HttpRequest:
    page = page_request(
        args.method,
        http.absolute(args.url),
        headers=args.headers,
        fields=args.fields,
        body=args.body,
        body_type=args.body_type,
    )
    if page.method in UNSAFE and (args.repeat > 1 or args.control or args.rate):
        raise Mistake("/args/repeat: an act is asked once, and without a control")
    if args.origin and "origin" in page.headers:
        raise Mistake("/args/origin: given twice, in headers as well")
    return replace(page, headers=page.headers | {"origin": args.origin}) if args.origin else page


def _result(measured: Measured, args: Args, url: str) -> Result:
    reply, latencies, controls = measured.first, measured.latencies, measured.controls
    quotients = [one / max(other, 0.001) for one, other in zip(latencies, controls, strict=False)]
    charset = _CHARSET.search(reply.content_type.lower())
    body = decode(reply.body, charset.group(1) if charset else "utf-8")
    text, secrets = mask(body)
    page, refers = _read(reply, body, args.canary, url)
    failed = reply.status >= 400
    return Result(
        ok=not failed,
        latency_ms=percentile(latencies, 50),
        error=f"HTTP {reply.status}" if failed else "",
        error_class="http" if failed else "",
        hint=hint(reply.status) if failed else "",
        status=reply.status,
        content_type=clean(reply.content_type, 100),
        bytes=len(reply.body),
        sha256=hashlib.sha256(reply.body).hexdigest(),
        headers=_headers(reply.headers),
        allow_origin=clean(reply.headers.get("access-control-allow-origin", ""), 200),
        location=clean(reply.headers.get("location", "")),
        text=clean(text, args.longest),
        canary_executable=page.canary_executable,
        a11y=page.a11y,
        secrets=secrets,
        links=refers.links,
        paths=refers.paths,
        forms=refers.forms,
        routes=refers.routes,
        unjudged=()
        if page.judged
        else (
            "a11y",
            "canary_executable",
            "links",
            "paths",
            "forms",
            "routes",
        ),
        p50_ms=percentile(latencies, 50),
        p95_ms=percentile(latencies, 95),
        max_ms=max(latencies),
        samples=len(latencies),
        control_p50_ms=percentile(controls, 50) if controls else 0.0,
        control_p95_ms=percentile(controls, 95) if controls else 0.0,
        ratio=round(percentile(quotients, 50), 3) if quotients else 0.0,
        samples_ms=tuple(latencies) if args.rate else (),
        control_ms=tuple(controls) if args.rate else (),
    )


def _read(reply: http.HttpReply, body: str, canary: str, url: str) -> tuple[Analysis, References]:
    """Markup faults of a page, and what it refers to; the latter of any text."""
    if _is_html(reply):
        page, refers = read(body, canary)
        return page, of_markup(refers, url)
    kind = reply.content_type.lower()
    textual = not kind or any(word in kind for word in ("text/", "json", "xml", "script", "yaml"))
    prose = not kind or "plain" in kind or "markdown" in kind
    return Analysis(), find(body, url, prose=prose) if textual else References()


def _is_html(reply: http.HttpReply) -> bool:
    kind = reply.content_type.partition(";")[0].strip().lower()
    return kind in ("text/html", "application/xhtml+xml") or (
        not kind and reply.body[:256].lstrip()[:1] == b"<"
    )


def _headers(raw: dict[str, str]) -> dict[str, str]:
    """A bounded, masked copy: headers can hold secrets too."""
    kept = list(raw.items())[:MAX_HEADERS]
    return {clean(name, 60): clean(mask(value)[0], 300) for name, value in kept}


SPEC = ToolSpec(
    "qa_fetch",
    Args,
    Result,
    Effect.LOOK,
    Cost(calls=1),
    "GET a public page of the platform",
    run,
    group="web",
    effect_by=effect_of,
    acts_at="url",
    batches=True,
    points_at={"url": Points.PAGE, "control": Points.PAGE_OR_NONE},
    asks=("{method} {url}", " from the origin {origin}"),
    ends_in="status",
    judged_as=("page",),
    public=PUBLIC
    | {"url", "origin", "repeat", "canary", "control", "status", "content_type", "bytes", "sha256", "headers"}
    | {"method", "fields", "body", "body_type", "longest"}
    | {
        "allow_origin",
        "location",
        "text",
        "canary_executable",
        "a11y",
        "secrets",
        "links",
        "paths",
        "forms",
        "routes",
        "unjudged",
        "p50_ms",
        "p95_ms",
    }
    | {"max_ms", "samples", "control_p50_ms", "control_p95_ms", "ratio", "rate", "samples_ms", "control_ms"},
    volatile=VOLATILE
    | {"headers", "p50_ms", "p95_ms", "max_ms", "samples", "control_p50_ms", "control_p95_ms", "ratio"}
    | {"samples_ms", "control_ms"},
)
