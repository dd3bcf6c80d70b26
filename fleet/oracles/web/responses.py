"""Oracles of one response's form: type against content, whole bodies, cookies, listings, versions. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from json import JSONDecodeError
from typing import Any

from fleet.findings.sighting import template
from fleet.oracles.echoes import OWN, family, gave, host, route
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.oracles.texts import parsed
from fleet.severity import Severity
from fleet.text import line

_PAGE = re.compile(r"(?is)\A\s*(?:<!--.{0,400}?-->\s*)?(?:<!doctype html|<html[\s>])")
_LISTING = re.compile(
    r"(?i)<title>\s*(?:Index of /|Directory listing for /|listing directory /)|<h1>Index of /|"
    r"<h1>Directory listing for /"
)
_VERSION = re.compile(r"(?i)\b[a-z][\w.+-]{1,40}(?:/|\s|-)v?\d{1,4}\.\d{1,4}(?:\.\d{1,5})?")
_VERSIONED = (
    "server",
    "x-powered-by",
    "x-aspnet-version",
    "x-aspnetmvc-version",
    "x-generator",
    "x-runtime-version",
)
_SESSION = re.compile(
    r"(?i)^(?:.{0,20}(?:session|sess|auth|token|jwt|login|remember|identity)(?:[-_]?(?:id|key|token))?"
    r"|sid|connect\.sid|phpsessid|jsessionid|asp\.net_sessionid)$"
)
_PUBLIC_COOKIE = re.compile(r"(?i)csrf|xsrf")
_COOKIES = re.compile(r",\s*(?=[^;,=\s]{1,80}=)")
"""Between two cookies in a joined header; a date in `Expires` has a comma too, but no name after it."""
_HARDENING = (
    "x-content-type-options",
    "x-frame-options",
    "content-security-policy",
    "strict-transport-security",
)


oracle = partial(Oracle, judges=("page",), surface="security")


def _got(path: str = "x", **result: object) -> Exchange:
    return Exchange("qa_fetch", {"url": "{site}/" + path}, {"status": 200, **result})


_CUT = '{"name": "moss", "items": ['
_SAFE = {"content_type": "text/html", "headers": {"x-frame-options": "DENY"}}


@oracle(
    id="content-type",
    says="an answer is what its content type says",
    severity=Severity.LOW,
    surface="ux",
    example=(_got(content_type="text/html", text='{"ok": true}'),),
    control=(_got(content_type="text/plain", text='{"ok": true}'),),
)
def content_type(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    kind = str(last.result.get("content_type", "")).partition(";")[0].strip().lower()
    text = str(last.result.get("text", "")).strip()
    written = OWN.search(str(last.args.get("url", "")))  # what a run publishes is its own
    if not text or written or int(last.result.get("status", 0)) in (204, 304):
        return
    body = ""
    if kind == "text/html" and isinstance(parsed(text), dict) and not gave(last.args, text):
        body = "JSON"
    elif kind.endswith("json") and _PAGE.match(text):
        body = "HTML"
    elif (
        kind.startswith("image/")
        and kind != "image/svg+xml"
        and (_PAGE.match(text) or isinstance(parsed(text), dict))
    ):
        body = "text"
    elif kind in ("text/css", "text/javascript", "application/javascript") and _PAGE.match(text):
        body = "HTML"
    if body:
        title = f"{last.asked} answers {body}, declared as {kind}"
        yield observed(title, f"content-type {family(last.args)} {body} {kind}", "content_type")


@oracle(
    id="malformed-json",
    says="JSON is whole and well-formed",
    severity=Severity.MEDIUM,
    surface="ux",
    example=(_got(content_type="application/json", text=_CUT, bytes=len(_CUT)),),
    control=(_got(content_type="application/json", text=_CUT, bytes=len(_CUT) + 900),),
)
def malformed_json(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """JSON that no reader takes; only where the result holds the whole body, unmasked."""
    last = seen[-1]
    kind = str(last.result.get("content_type", "")).partition(";")[0].strip().lower()
    text = str(last.result.get("text", ""))
    if kind not in ("application/json", "application/problem+json") or last.result.get("secrets"):
        return
    whole = len(text.encode("utf-8", "replace")) == int(last.result.get("bytes", -1))
    if not whole or not text.strip() or _PAGE.match(text) or str(last.args.get("method", "GET")) == "HEAD":
        return
    try:
        json.loads(text)
    except RecursionError:
        return
    except ValueError as error:
        at = f", at line {error.lineno}, column {error.colno}" if isinstance(error, JSONDecodeError) else ""
        title = f"{last.asked} answers what no reader parses{at}"
        yield observed(title, f"malformed-json {family(last.args)} {template(str(error))}", "text")


@oracle(
    id="directory-listing",
    says="a page never lists a folder of the server",
    severity=Severity.LOW,
    example=(_got(content_type="text/html", text='<title>Index of /x</title><a href="a">a</a>'),),
    control=(_got(content_type="text/html", text="<title>Index of names</title>"),),
)
def directory_listing(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    text = str(last.result.get("text", ""))
    if last.result.get("status") == 200 and _LISTING.search(text) and "<a " in text.lower():
        yield observed(f"{last.asked} shows an index of files", f"listing {host(last.args)}", "text")


@oracle(
    id="version-header",
    says="a header does not name the version of the server's software",
    severity=Severity.INFO,
    example=(_got(headers={"x-powered-by": "PHP/8.1.2"}),),
    control=(_got(headers={"server": "BaseHTTP/0.6 Python/3.11.2", "x-powered-by": "Express"}),),
)
def version_header(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A server's own header counts only beside an answer of the same host that hides the version."""
    last = seen[-1]
    near = host(last.args)
    beside = [at for at, each in enumerate(seen[:-1]) if "page" in each.kinds and host(each.args) == near]
    hidden = [
        at for at in beside if (hides := _headers(seen[at]).get("server")) and not _VERSION.search(hides)
    ]
    for name in _VERSIONED if hidden else _VERSIONED[1:]:
        value = str(_headers(last).get(name, ""))
        bare = name.endswith("version") and re.search(r"\d\.\d", value)
        if (bare or _VERSION.search(value)) and not gave(last.args, value):
            title = f"{last.asked}, header {name}: {line(value, 60)}"
            led = tuple(hidden[:1]) if name == "server" else ()
            yield observed(title, f"version {host(last.args)} {name} {template(value)}", "headers", led=led)


@oracle(
    id="cookie-flags",
    says="a session's cookie is kept from scripts and from other sites",
    severity=Severity.MEDIUM,
    example=(_got(headers={"set-cookie": "session=abc; Path=/"}),),
    control=(
        _got(headers={"set-cookie": "session=abc; Path=/; HttpOnly; SameSite=Lax, theme=dark; Path=/"}),
    ),
)
def cookie_flags(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    for cookie in _COOKIES.split(str(_headers(last).get("set-cookie", ""))):
        head, *flags = (part.strip() for part in cookie.split(";"))
        name, _, value = head.partition("=")
        gone = not value.strip('"') or any(flag.lower().replace(" ", "") == "max-age=0" for flag in flags)
        if gone or not flags or not _SESSION.match(name) or _PUBLIC_COOKIE.search(name):
            continue  # a header that was cut shows no flag: it is not judged
        words = {flag.partition("=")[0].lower() for flag in flags}
        lacks = [flag for flag in ("HttpOnly", "SameSite") if flag.lower() not in words]
        lacks = lacks if "HttpOnly" in lacks else []  # browsers take a missing SameSite for Lax
        if str(facts.site).startswith("https:") and "secure" not in words:
            lacks.append("Secure")
        if lacks and not (len(str(_headers(last)["set-cookie"])) >= 300):
            title = f"{last.asked} sets {line(name, 40)} without {' or '.join(lacks)}"
            severe: Severity = Severity.MEDIUM if "HttpOnly" in lacks else Severity.LOW
            key = f"cookie {line(name, 40)} {' '.join(lacks)}"
            yield observed(title, key, "headers", severity=severe, where={"cookie": name})


@oracle(
    id="header-regression",
    says="a page has the security headers that the platform's other pages have",
    severity=Severity.LOW,
    example=(_got("a", **_SAFE), _got("b", **_SAFE), _got("c", content_type="text/html", headers={})),
    control=(_got("a", **_SAFE), _got("b", **_SAFE), _got("c", **_SAFE)),
)
def header_regression(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[pages of one host ..., a page of it]: the earlier ones, at least two, have a header that it lacks."""
    last = seen[-1]
    others = seen[:-1]
    pages = [
        each.tool == "qa_fetch"
        and each.result.get("status") == 200
        and str(each.result.get("content_type", "")).startswith("text/html")
        for each in seen
    ]
    if len(others) < 2 or not all(pages) or len({host(each.args) for each in seen}) > 1:
        return
    if len({route(each.args) for each in seen}) < len(seen):
        return
    for name in _HARDENING:
        if name not in _headers(last) and all(name in _headers(each) for each in others):
            title = f"{last.asked} lacks {name}, unlike {len(others)} other pages"
            led = tuple(range(len(others)))
            key = f"hardening {family(last.args)} {name}"
            yield observed(title, key, "headers", led=led)


def _headers(call: Exchange) -> Mapping[str, Any]:
    return dict(call.result.get("headers", {}))


_HTML = "<!doctype html><html><body>x</body></html>"
