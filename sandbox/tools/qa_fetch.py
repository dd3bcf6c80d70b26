"""One GET of a public page, once or often: status, body facts, markup faults, secrets by kind."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from sandbox import http
from sandbox.faults import Deadline, hint
from sandbox.html import Analysis, analyse
from sandbox.rpc import denial
from sandbox.spec import Context, Cost, Effect, Mistake, ToolSpec
from sandbox.text import clean, decode, mask
from sandbox.tools.base import Answer

MAX_REPEAT = 50
MAX_TEXT = 8_000
MAX_HEADERS = 40

_CHARSET = re.compile(r"charset=\"?([A-Za-z0-9_-]{1,20})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Args:
    """`origin` is sent as the Origin header; `canary` is looked for where a browser would run it."""

    url: str
    origin: str = ""
    repeat: int = 1
    canary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Answer):
    """Of the first answer; `bytes` and `sha256` are of the decoded body, the percentiles of all requests.

    `ok` is a status below 400; a redirect is reported in `location`, never followed.
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
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    max_ms: float = 0.0


def run(args: Args, ctx: Context) -> Result:
    if not 1 <= args.repeat <= MAX_REPEAT:
        raise Mistake(f"/args/repeat: expected 1 to {MAX_REPEAT}")
    if args.origin and not (args.origin.isascii() and args.origin.isprintable()):
        raise Mistake("/args/origin: expected one printable ASCII line")
    url = http.absolute(args.url)
    deadline = Deadline(ctx.deadline_s * 0.9)
    request = http.Request("GET", url, {"origin": args.origin} if args.origin else {})
    replies = [_get(request, deadline) for _ in range(args.repeat)]
    return _result(replies[0], [reply.latency_ms for reply in replies], args.canary)


def _get(request: http.Request, deadline: Deadline) -> http.Reply:
    reply = http.send(request, deadline)
    if reply.by_broker:
        raise denial(reply)
    return reply


def _result(reply: http.Reply, latencies: Sequence[float], canary: str) -> Result:
    charset = _CHARSET.search(reply.content_type.lower())
    body = decode(reply.body, charset.group(1) if charset else "utf-8")
    text, secrets = mask(body)
    page = analyse(body, canary) if _is_html(reply) else Analysis()
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
        text=clean(text, MAX_TEXT),
        canary_executable=page.canary_executable,
        a11y=page.a11y,
        secrets=secrets,
        p50_ms=percentile(latencies, 50),
        p95_ms=percentile(latencies, 95),
        max_ms=max(latencies),
    )


def percentile(values: Sequence[float], rank: float) -> float:
    """Nearest rank: a value that was measured, never one between two."""
    ordered = sorted(values)
    return ordered[max(math.ceil(rank / 100 * len(ordered)), 1) - 1]


def _is_html(reply: http.Reply) -> bool:
    kind = reply.content_type.partition(";")[0].strip().lower()
    return kind in ("text/html", "application/xhtml+xml") or (
        not kind and reply.body[:256].lstrip()[:1] == b"<"
    )


def _headers(raw: dict[str, str]) -> dict[str, str]:
    """A bounded, masked copy: a header can hold a secret as well as a body can."""
    kept = list(raw.items())[:MAX_HEADERS]
    return {clean(name, 60): clean(mask(value)[0], 300) for name, value in kept}


SPEC = ToolSpec(
    "qa_fetch", Args, Result, Effect.LOOK, Cost(calls=1), "GET a public page of the platform", run
)
