"""Oracles of pages that are refused: not by another spelling, and not for a password of every list. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from fleet.oracles.echoes import family, host
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.oracles.web.variations import FORM
from fleet.severity import Severity

REFUSED = frozenset({401, 403})
MISSING = "qa-no-such-page"
"""The last segment of a page that is not there: the control of a spelling."""
PASSWORDS = (
    ("admin", "admin"),
    ("admin", "password"),
    ("root", "root"),
    ("admin", "admin123"),
    ("admin", "changeme"),
    ("user", "user"),
)
"""The first of every published list of default passwords (CWE-1392)."""
BY_A_PROXY = {
    **dict.fromkeys(("x-real-ip", "x-client-ip", "client-ip", "true-client-ip"), "127.0.0.1"),
    **dict.fromkeys(("remote-user", "x-remote-user", "x-forwarded-user", "x-webauth-user"), "admin"),
    **dict.fromkeys(("x-auth-request-user", "x-authenticated-user"), "admin"),
}
"""By which a proxy says from where, and as whom, one asks (CWE-290); `x-forwarded-for` is ours."""
IN_A_FRAMEWORK = {
    "x-middleware-subrequest": ":".join(["middleware"] * 5 + ["src/middleware"] * 5 + ["pages/_middleware"])
}
"""By which a framework tells itself that its own checks are done (CVE-2025-29927)."""
QUERIES = ("raw", "raw??", "import&raw??", "url&inline")
"""By which development servers and viewers serve a file in another way, often by another check."""
_LOGS_IN = re.compile(r"(?i)type=.?password|log ?in|sign ?in")
_ENTRY = re.compile(r"(?i)/[\w.-]{0,12}(?:log[-_]?in|sign[-_]?in|logon)[\w.-]{0,12}/?(?:[?#]|\Z)")
"""Of an address, a page that logs in."""
USER = re.compile(r"(?i)user|login|e-?mail|account|name")
PASSWORD = re.compile(r"(?i)pass|pwd")
oracle = partial(Oracle, judges=("page",), surface="security")


def _get(path: str, status: int, text: str = "", **args: object) -> Exchange:
    return Exchange("qa_fetch", {"url": "{site}" + path, **args}, {"status": status, "text": text})


_WALL = (_get("/", 200, "welcome"), _get("/keys", 403))


@oracle(
    id="refusal-bypassed",
    says="what is refused at one spelling of its path is refused at all",
    severity=Severity.HIGH,
    example=(*_WALL, _get(f"//{MISSING}", 404), _get("//keys", 200, "fern: 7")),
    control=(*_WALL, _get(f"//{MISSING}", 200, "fern: 7"), _get("//keys", 200, "fern: 7")),
)
def refusal_bypassed(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A page that is refused, and served for the same path in other letters, with a query or behind a header,
    where a page that is not there is not served in that way, and the site's first page is another."""
    last = seen[-1]
    within = not IN_A_FRAMEWORK.keys().isdisjoint(last.args.get("headers", {}))
    kept = (one for one in seen[:-1] if walled(one.result) or (within and sent_on(one.args, one.result)))
    plain = next((one for one in kept if _plain(one)), None)
    text = str(last.result.get("text", "")).strip()
    if plain is None or last.result.get("status") != 200 or not text or _LOGS_IN.search(text):
        return
    page = urlsplit(str(plain.args["url"])).path
    how, control = _respelled(page, last.args), _twin(page, last, seen[:-1])
    same = [one for one in seen[:-1] if str(one.result.get("text", "")).strip() == text]
    if not how or control is None or control.result.get("status") == 200 or same:
        return
    led = (seen.index(plain), seen.index(control))
    led_to = "a log-in" if walled(plain.result) else "another page"
    sends = f" to {led_to}" if plain.result.get("status") not in REFUSED else ""
    title = f"{plain.asked} answers {plain.result['status']}{sends}, and is served {how}"
    key = f"refusal-bypassed {host(plain.args)} {how.replace(page, '…')}"
    yield observed(title, key, "status", led=led, where={"route": family(plain.args)})


def walled(result: Mapping[str, Any]) -> bool:
    """Whether a page is kept from who did not log in: refused, or a redirect to a log-in."""
    status, to = result.get("status"), str(result.get("location", ""))
    if not isinstance(status, int):
        return False
    return status in REFUSED or (status in (302, 303, 307) and bool(_ENTRY.search(to)))


def sent_on(args: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Whether a page sends one to another page, and not to another spelling of itself."""
    status, to = result.get("status"), urlsplit(str(result.get("location", ""))).path
    page = path_of(str(args.get("url", "")))
    return status in (302, 303, 307) and bool(to and page.strip("/")) and _folded(to) != _folded(page)


def _plain(call: Exchange) -> bool:
    return set(call.args) == {"url"} and call.tool == "qa_fetch"


def _respelled(page: str, args: Mapping[str, Any]) -> str:
    """How a call asks for that path in another way, in words; "" if it asks for another one, or as usual."""
    (_, _, path, query, _), headers = urlsplit(str(args.get("url", ""))), list(args.get("headers", {}))
    if set(args) == {"url", "headers"} and len(headers) == 1:
        known = headers[0] in BY_A_PROXY | IN_A_FRAMEWORK
        return f"with the header {headers[0]}" if known and path == page else ""
    if set(args) == {"url"} and path == page:
        return f"with the query {query}" if query in QUERIES else ""
    if set(args) != {"url"}:
        return ""
    return f"as {path_of(path)}" if _folded(path) == _folded(page) else ""


def path_of(url: str) -> str:
    """The path of a URL that may begin with a placeholder, which is a scheme and a host."""
    path = urlsplit(url).path
    return path[path.find("}") + 1 :]


def _folded(path: str) -> str:
    """The path as most servers read it in the end: decoded, without dots, parameters, case, extra slashes."""
    parts = [part.partition(";")[0] for part in unquote(path).lower().split("/")]
    kept: list[str] = []
    for part in parts:
        if part == "..":
            kept = kept[:-1]
        elif part not in ("", "."):
            kept.append(part.removesuffix(".json"))
    return "/".join(kept)


def _twin(page: str, last: Exchange, before: Sequence[Exchange]) -> Exchange | None:
    """The call that asks in the same way for a page that is not there."""
    return next((one for one in before if dict(one.args) == missing(page, last.args)), None)


def missing(page: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call that spells a page in some way, for one that is not there in its place; a page
    may be spelled in letters of another case, or encoded."""
    name, url = page.rstrip("/").rpartition("/")[2], str(args.get("url", ""))
    for one in (name, name.upper(), encoded_first(name)) if name else ():
        before, found, behind = url.rpartition(one)
        if found:
            return {**args, "url": before + MISSING + behind}
    return dict(args)


def encoded_first(name: str) -> str:
    """A name whose first letter is percent-encoded, which means the same (RFC 3986, 6.2.2.2)."""
    return f"%{ord(name[0]):02x}{name[1:]}" if name[:1].isascii() and name else name


def basic(user: str, password: str) -> dict[str, str]:
    """The header by which a name and a password are sent (RFC 7617)."""
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def _basic_of(args: Mapping[str, Any]) -> tuple[str, str] | None:
    scheme, _, packed = str(args.get("headers", {}).get("authorization", "")).partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, _, password = base64.b64decode(packed, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return user, password


def _form_of(args: Mapping[str, Any]) -> tuple[str, str] | None:
    """Name and password of a form that logs in."""
    if args.get("body_type") != FORM:
        return None
    fields = {name: values[0] for name, values in parse_qs(str(args.get("body", "")), True).items()}
    password = next((text for name, text in fields.items() if PASSWORD.search(name)), None)
    user = next(
        (text for name, text in fields.items() if USER.search(name) and not PASSWORD.search(name)), None
    )
    return None if password is None or user is None else (user, password)


def _enters(user: str, password: str, status: int) -> Exchange:
    return _get("/keys", status, headers=basic(user, password))


@oracle(
    id="default-password",
    says="no password of a published list logs in",
    severity=Severity.CRITICAL,
    example=(_get("/keys", 401), _enters("admin", "qa1f", 401), _enters("admin", "admin", 200)),
    control=(_get("/keys", 401), _enters("admin", "qa1f", 200), _enters("admin", "admin", 200)),
)
def default_password(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A pair of a list is served where the same name with another password is refused: by 401 where the
    answer is a page, and by another answer than the pair's where a form is sent."""
    last = seen[-1]
    for sent in (_basic_of, _form_of):
        pair = sent(last.args)
        if pair not in PASSWORDS or pair is None:
            continue
        others = [one for one in seen[:-1] if (with_ := sent(one.args)) and with_[0] == pair[0]]
        refused = [one for one in others if sent(one.args) not in PASSWORDS]
        if not refused or not all(_entered(last, one) for one in refused):
            return
        title = f"{last.asked}: {pair[0]} with the password {pair[1]} is let in"
        key = f"default-password {family(last.args)}"
        yield observed(
            title, key, "status", led=(seen.index(refused[-1]),), where={"route": family(last.args)}
        )
        return


def _entered(last: Exchange, refused: Exchange) -> bool:
    """Whether one answer lets in whom another one does not: served against refused, or sent on to another
    page with a new session."""
    status, before = (int(one.result.get("status", 0)) for one in (last, refused))
    if status == 200 and before in REFUSED:
        return not _LOGS_IN.search(str(last.result.get("text", ""))[:2_000])
    if not 300 <= status < 400:
        return False
    there, back = (str(one.result.get("location", "")).partition("?")[0] for one in (last, refused))
    cookie = "set-cookie" in {str(name).lower() for name in dict(last.result.get("headers", {}))}
    return cookie and there != back and not _LOGS_IN.search(there) and "error" not in there.lower()
