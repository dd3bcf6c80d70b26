"""Requests a page, once or repeatedly: status, body facts, markup faults, secrets by kind, latency.

With `control`, each request is followed by one to another page or host, and the page's latency is measured
relative to it: a slow machine or network is slow for both. With `alive`, it tells whether the request ends
the server.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any
from urllib.parse import urlsplit

from sandbox import http, strict_json
from sandbox.content_coding import opened
from sandbox.errors import Deadline, hint
from sandbox.pages.condensed import condensed
from sandbox.pages.endings import Ended, LockedOut, watched
from sandbox.pages.html import RULES, Analysis, read
from sandbox.pages.latency import Measured, check, measure, percentile
from sandbox.pages.links import References, find, of_markup
from sandbox.pages.markup import Form
from sandbox.pages.page_request import effect_of, page_request
from sandbox.secrets.fields import private_fields
from sandbox.spec import (
    ABSENT,
    UNSAFE,
    Context,
    Cost,
    Effect,
    Impact,
    LowerCase,
    Mistake,
    OneOf,
    Points,
    ToolSpec,
)
from sandbox.text import KINDS, clean, decode, mask
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

MAX_TEXT = 8_000
LONGEST = 65_536
"""Most characters of a text that is asked for in full, such as a description of an API."""
MAX_HEADERS = 200
"""Headers that are kept; with more, the field is unjudged: what seems absent may be among the others."""

MAX_READ = 1 << 20
"""Bytes of a sitemap that are looked at."""
_SITEMAP = re.compile(rb"<(?:\w{1,20}:)?(?:urlset|sitemapindex)\b")
OF_MARKUP = ("a11y", "canary_executable", "links", "paths", "forms", "routes")
"""Fields that only a page's markup decides."""

_BOM = "\ufeff"
_CHARSET = re.compile(r"charset=\"?([A-Za-z0-9_-]{1,20})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Args:
    """Without `control` and `rate`, requests go one after the other."""

    url: str
    """Page to ask for."""
    origin: str = ""
    """Sent as the Origin header."""
    repeat: int = 1
    """Requests, or pairs with `control`."""
    canary: str = ""
    """Word that is searched for where a browser would run it."""
    control: str = ""
    """Another URL of the platform, asked right after each request."""
    alive: str = ""
    """Another URL of its server, asked before, and after a request without an answer, until it is back."""
    rate: float = 0.0
    """[1/s] Requests on a schedule; 0: one after the other."""
    method: str = "GET"
    """HTTP method; other than GET, HEAD and OPTIONS it is an act."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers to send."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Sent as one JSON object."""
    body: str = ""
    """Sent as it is."""
    body_type: str = "text/plain"
    """Content-Type of `body`."""
    longest: int = MAX_TEXT
    """[characters] Most of the answer's text that is kept; above 8000, a longer OpenAPI description is
    condensed to what fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`ok` means a status below 400."""

    status: int = 0
    """HTTP status of the first answer."""
    content_type: str = ""
    """Its Content-Type."""
    bytes: int = 0
    """[bytes] Size of the decoded body."""
    sha256: str = ""
    """Hash of the decoded body, hex."""
    headers: Annotated[dict[str, str], LowerCase("names of headers")] = field(default_factory=dict)
    """Its headers by lower-case name; an absent one is absent: `headers.get("etag", "")`."""
    allow_origin: str = ""
    """Its Access-Control-Allow-Origin."""
    location: str = ""
    """Where it redirects; never followed."""
    text: str = ""
    """Text of the body."""
    canary_executable: bool = False
    """Whether the canary stands where a browser would run it."""
    a11y: tuple[Annotated[str, OneOf(RULES)], ...] = ()
    """Violated rules of accessibility."""
    secrets: tuple[Annotated[str, OneOf(KINDS)], ...] = ()
    """Kinds of secrets in the body."""
    private: tuple[str, ...] = ()
    """Names of fields of JSON that hold what nobody else should read, but for what was sent."""
    links: tuple[str, ...] = ()
    """URLs that a visitor of the page follows or loads, absolute or relative to it; other hosts last."""
    paths: tuple[str, ...] = ()
    """URLs and paths that stand in its text or scripts, or in robots.txt: they may lead nowhere."""
    forms: tuple[Form, ...] = ()
    """Forms of the page."""
    routes: tuple[str, ...] = ()
    """`METHOD path?name=<value>` as a document, a script or an OpenAPI description writes it."""
    unjudged: tuple[str, ...] = ()
    """Fields without a meaning, because the page was too costly to judge, or has too many of them."""
    p50_ms: float = 0.0
    """[ms] Median latency."""
    p95_ms: float = 0.0
    """[ms] 95th percentile of the latency."""
    max_ms: float = 0.0
    """[ms] Longest latency."""
    samples: int = 0
    """Requests that were measured; fewer than `repeat` if time ran out."""
    control_p50_ms: float = 0.0
    """[ms] Median latency of the control."""
    control_p95_ms: float = 0.0
    """[ms] 95th percentile of the control."""
    ratio: float | None = field(default=None, metadata=ABSENT)
    """Median ratio of the page's latency to that of the control right after it; absent without one."""
    samples_ms: tuple[float, ...] = ()
    """[ms] Each latency of a schedule, in the order of its slots."""
    control_ms: tuple[float, ...] = ()
    """[ms] The control's latencies, slot by slot."""
    ended: bool = False
    """Whether the request had no answer, and `alive` none right after it, for others as well, but later."""
    locked_out: bool = False
    """Whether we had no answer to `alive` for a while, and nothing shows that others had none."""
    silent_ms: float = 0.0
    """[ms] How long `alive` had none."""
    heard: tuple[str, ...] = ()
    """Words of `{listener}` in what was sent that the platform asked for meanwhile."""


def run(args: Args, ctx: Context) -> Result:
    check(args.repeat, args.rate)
    if not 1 <= args.longest <= LONGEST:
        raise Mistake(f"/args/longest: expected 1 to {LONGEST}")
    if args.origin and not (args.origin.isascii() and args.origin.isprintable()):
        raise Mistake("/args/origin: expected one printable ASCII line")
    page = _page(args)
    control, alive = _beside(args.control, "/args/control"), _beside(args.alive, "/args/alive")
    if alive and (args.repeat > 1 or control or args.rate):
        raise Mistake("/args/alive: a page that may end its server is asked once, and without a control")
    if alive and urlsplit(alive.target)[:2] != urlsplit(page.target)[:2]:
        raise Mistake("/args/alive: not on the page's own server")
    deadline = Deadline(ctx.deadline_s * 0.9)
    if alive is None:
        return _result(measure(page, control, args.repeat, deadline, args.rate), args, page.target)
    seen = watched(page, alive, deadline)
    if isinstance(seen, Ended):
        error = "no answer, and none to other requests for a while"
        return Result(ok=False, error=error, error_class="http", ended=True, silent_ms=seen.silent_ms)
    if isinstance(seen, LockedOut):
        return _locked_out(seen)
    return _result(seen, args, page.target)


def _locked_out(seen: LockedOut) -> Result:
    """`busy`: it says nothing about the page, and is asked again later."""
    alone = "there is no other way to ask: it may have ended, see its log"
    who = "another caller had one" if seen.seen else alone
    error = f"locked out: no answer to us for {seen.silent_ms / 1000:.1f} s; {who} ({seen.what})"
    return Result(ok=False, error=error, error_class="busy", locked_out=True, silent_ms=seen.silent_ms)


def _beside(url: str, pointer: str) -> http.HttpRequest | None:
    return http.HttpRequest("GET", http.absolute(url, pointer)) if url else None


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
    # the text of a sitemap that is a gzip file, or is called one; b"" for any other answer
    start = b"" if _is_html(reply) else opened(reply.body, MAX_READ).removeprefix(b"\xef\xbb\xbf").lstrip()
    sitemap = start if start[:1] == b"<" and _SITEMAP.search(start[:2_000]) else b""
    body = decode(sitemap or reply.body, charset.group(1) if charset else "utf-8").removeprefix(_BOM)
    text, secrets = mask(body)
    if MAX_TEXT < args.longest < len(text):
        text = mask(condensed(body, args.longest))[0] or text
    page, refers = (
        (Analysis(), find(body, url, prose=False)) if sitemap else _read(reply, body, args.canary, url)
    )
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
        private=private_fields(_json(reply), frozenset(_strings([args.fields, args.body]))),
        links=refers.links,
        paths=refers.paths,
        forms=refers.forms,
        routes=refers.routes,
        unjudged=(*(() if page.judged else OF_MARKUP), *(("headers",) * (len(reply.headers) > MAX_HEADERS))),
        p50_ms=percentile(latencies, 50),
        p95_ms=percentile(latencies, 95),
        max_ms=max(latencies),
        samples=len(latencies),
        control_p50_ms=percentile(controls, 50) if controls else 0.0,
        control_p95_ms=percentile(controls, 95) if controls else 0.0,
        ratio=round(percentile(quotients, 50), 3) if quotients else None,
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


def _json(reply: http.HttpReply) -> object:
    """The JSON of an answer; None for any other."""
    if "json" not in reply.content_type.lower():
        return None
    try:
        return strict_json.loads(reply.body)
    except (ValueError, RecursionError):
        return None


def _strings(value: object, left: int = 8) -> Iterator[str]:
    """The texts of what was sent."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if left:
            yield from _strings(inner, left - 1)


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
    impacts={
        "GET": Impact(8, 9, 8, "what a visitor reads; the page may count it"),
        "file": Impact(
            4, 9, 8, "a file that is not for visitors: settings, keys, copies, logs", "what was read is known"
        ),
        "attack": Impact(
            5, 7, 5, "what no visitor writes: markup, quotes, commands, paths that climb, log-ins"
        ),
        "HEAD": Impact(9, 9, 8, "as GET, without the body"),
        "OPTIONS": Impact(9, 9, 8, "what a page permits"),
        "POST": Impact(7, 6, 7, "a form or a new record", "deleted where the answer names what was made"),
        "PUT": Impact(7, 5, 7, "a record is written over", "not undone"),
        "PATCH": Impact(7, 5, 7, "a record is changed", "not undone"),
        "DELETE": Impact(8, 3, 7, "a record is removed", "not undone"),
    },
    points_at={"url": Points.PAGE, "control": Points.PAGE_OR_NONE, "alive": Points.PAGE_OR_NONE},
    asks=("{method} {url}", " from the origin {origin}"),
    ends_in="status",
    judged_as=("page",),
    in_build="service",
    example={"url": "{site}/"},
    expects="result.status == 200 && result.headers.get('x-frame-options', '') != ''",
    public=PUBLIC
    | {"url", "origin", "repeat", "canary", "control", "status", "content_type", "bytes", "sha256"}
    | {"headers", "method", "fields", "body", "body_type", "longest", "allow_origin", "location"}
    | {
        "text",
        "canary_executable",
        "a11y",
        "secrets",
        "private",
        "links",
        "paths",
        "forms",
        "routes",
        "unjudged",
    }
    | {"p50_ms", "p95_ms", "max_ms", "samples", "control_p50_ms", "control_p95_ms", "ratio", "rate"}
    | {"samples_ms", "control_ms", "alive", "ended", "locked_out", "silent_ms", "heard"},
    volatile=VOLATILE
    | {"headers", "p50_ms", "p95_ms", "max_ms", "samples", "control_p50_ms", "control_p95_ms", "ratio"}
    | {"samples_ms", "control_ms", "silent_ms"},
)
