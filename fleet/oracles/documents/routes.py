"""Oracle of documented routes: what a document of the platform writes down as a call answers as one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from fleet.oracles.documents.openapi import operations, server
from fleet.oracles.echoes import host, route
from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.oracles.texts import parsed
from fleet.oracles.web.pages import ELSEWHERE
from fleet.severity import Severity
from fleet.text import line

_CALL = re.compile(
    r"(?<![\w/])(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)[ \t]{1,4}`?(https?://[^\s`\"'<>/]{1,200})?"
    r"(/(?:[^\s`\"'()|,;<>]|<[\w-]{1,40}>){0,300})"
)
_PATH = re.compile(r"(?<![\w/.:<])/[^\s`\"'()|,;<>]{1,300}")
_RETRACTED = re.compile(
    r"(?i)\b(?:removed|deprecated|no longer|retired|refused|unsupported|disabled|coming soon"
    r"|not (?:yet|allowed|supported|offered|available|served|implemented)|planned|instead of|used to|never"
    r"|fails?)\b"
    r"|(?<!\bto )(?<!\bmost )(?<!\bthan )(?<!\bof )(?<!\bmax )(?<!\band )(?<![\w.–-])(?:40[345]|50[01])\b"
)
"""Words that take a call back, or a status that it answers: no bound of a range."""
_THING = re.compile(r"(?i)/(?:\d+|0x[0-9a-f]+|[0-9a-f]{16,}|[0-9a-f]{8}-[0-9a-f-]{27})(?=/|$)")
"""Where a path names one thing of many: an example's need not exist."""
LOCKED = "LOCKED"
"""Among the refusals of an operation: it needs a key."""
_HOLE = re.compile(r"^(?:<[^>]*>|\{[^}]*\}|:[a-zA-Z]\w*|\[[^\]]*\]|\.\.\.|…|[A-Z_]{3,})$")


@dataclass(frozen=True, slots=True)
class DocumentedCall:
    """A method and a path as a document writes them; `exact` without anything to fill in.

    `beside`: it is on the host of its document, as the operations of a description are that names no other.
    `may`: refusals that the document itself gives it as answers, in the spelling of a description.
    """

    method: str
    host: str
    path: str
    query: str
    beside: bool = False
    may: frozenset[str] = frozenset()

    @property
    def exact(self) -> bool:
        return not re.search(r"[<>{}\[\]…]|\.\.\.|/:|=$|=&|[A-Z_]{3,}", f"{self.path}?{self.query}")

    def takes(self, method: str, path: str) -> bool:
        """Whether a call of this method and path is the documented one."""
        mine, other = self.path.strip("/").split("/"), path.strip("/").split("/")
        same = len(mine) == len(other) and all(
            bool(_HOLE.match(one)) or one == another for one, another in zip(mine, other, strict=True)
        )
        return method == self.method and same


def documented(text: str) -> tuple[DocumentedCall, ...]:
    """The calls that a document writes down, but for those that it takes back on the same line."""
    document = parsed(text)
    if isinstance(document, dict) and isinstance(document.get("paths"), dict):
        host, below = server(document)
        return tuple(
            DocumentedCall(
                one.method,
                host,
                below + one.path,
                "",
                beside=not host,
                may=one.statuses
                | ({"404", LOCKED} if one.secured else set()),  # it may hide what needs a key
            )
            for one in operations(document)
            if not one.deprecated
        )
    found = []
    for said in text.splitlines():
        if not _RETRACTED.search(said):
            for call in _CALL.finditer(said):
                found.append(_call(call[1], call[2], call[3]))
                found += _examples(found[-1], said[call.end() :])
    return tuple(found)


def _examples(of: DocumentedCall, rest: str) -> Iterator[DocumentedCall]:
    """The same call as the rest of its line writes it with values in its query.

    What a path names in an example need not be there.
    """
    for hit in _PATH.finditer(rest) if not of.exact else ():
        one = _call(of.method, of.host, hit[0])
        if one.exact and one.method == of.method and one.path == of.path:
            yield one


def _call(method: str, host: str | None, target: str) -> DocumentedCall:
    path, _, query = target.rstrip(".:*_!").partition("?")
    return DocumentedCall(method, host or "", path, query.partition("#")[0])


def _asked(text: str, status: int) -> tuple[Exchange, ...]:
    return (
        Exchange("qa_fetch", {"url": "{site}/guide"}, {"status": 200, "text": text}),
        Exchange("qa_fetch", {"url": "{site}/api/moss"}, {"status": status, "content_type": "text/plain"}),
    )


@oracle(
    id="documented-route",
    says="a route that a document writes down answers",
    severity=Severity.LOW,
    surface="ux",
    judges=("page",),
    yields_to=("trace", "server-error"),
    example=_asked("- `GET /api/moss` lists the mosses", 405),
    control=_asked("- `POST /api/moss` adds a moss", 405),
)
def documented_route(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    """[a document ..., the call of a route that it writes down]; for a route without a host, between the two
    what answers beside it, and the same route at the platform's other place."""
    last = seen[-1]
    status, method = last.result.get("status", 0), str(last.args.get("method", "GET"))
    if not isinstance(status, int) or not (
        status in (404, 405) or status == 501 or (status >= 500 and status not in ELSEWHERE)
    ):
        return
    parts = urlsplit(str(last.args.get("url", "")).replace("{site}", "http://site", 1))
    path, query = unquote(parts.path), unquote(parts.query)
    for at, source in enumerate(seen[:-1]):
        if source.result.get("status") != 200 or source.tool != "qa_fetch" or not same_host(source, last):
            continue
        for call in documented(str(source.result.get("text", ""))):
            nowhere = () if _here(call, last, facts) else _nowhere(call, seen, at)
            if not call.takes(method, path) or not (nowhere or _here(call, last, facts)):
                continue
            plain = call.exact and method == "GET" and (call.path, call.query) == (path, query)
            stated = (status < 500 or status == 501) and call.may & {str(status), f"{status // 100}XX"}
            thing = method == "GET" and LOCKED not in call.may and _THING.search(path)
            absent = _absent_route(seen, at) if thing else ()
            if absent or (not stated and (status != 404 or (plain and not _THING.search(path)))):
                said = line(f"{call.method} {call.path}", 90)
                title = f"{said} of {route(source.args)} answers {status}"
                key = f"documented {call.method} {call.path} {status}"
                where = (
                    None
                    if call.exact
                    else {"route": f"{call.method} {host(last.args)}{call.path}".removeprefix("GET ")}
                )
                yield observed(title, key, "status", led=(at, *nowhere, *absent), where=where)
                return


def _nowhere(call: DocumentedCall, seen: Sequence[Exchange], at: int) -> tuple[int, ...]:
    """Where the same route is not found at another host, and another one of the document, in the same folder
    of this host, is; () unless both are there."""
    last, text = seen[-1], str(seen[at].result.get("text", ""))
    if call.host or last.result.get("status") not in (404, 410):
        return ()
    calls = [one for one in documented(text) if one.method == "GET" and not one.host]
    found: dict[bool, int] = {}
    beside = call.path.strip("/").partition("/")[0]
    for where, one in enumerate(seen[:-1]):
        parts, status = urlsplit(_below(one)), one.result.get("status")
        here, same = same_host(one, last), _below(one) == _below(last)
        folder, _, below = parts.path.strip("/").partition("/")
        named = any(each.takes("GET", parts.path) for each in calls)
        if where > at and same and not here and status in (404, 410):
            found[False] = where
        elif where > at and here and named and status == 200 and below and folder == beside:
            found[True] = where
    return tuple(sorted(found.values())) if len(found) == 2 else ()


def _absent_route(seen: Sequence[Exchange], at: int) -> tuple[int, ...]:
    """[.. the thing or a page below it, the same of a thing that is not there, a page below the thing that
    does not exist, the route]: the thing is there, and the route is refused as that page is, not as a thing.
    """
    if len(seen) - at != 5:
        return ()
    there, other, nothing, last = seen[-4:]
    paths = [_below(one).rstrip("?") for one in (there, other, nothing, last)]
    thing = paths[2].rpartition("/")[0]
    below = paths[0] == thing or paths[0].startswith(f"{thing}/")
    beside = paths[3].startswith(f"{thing}/") and _THING.sub("", paths[0]) == _THING.sub("", paths[1])
    known = [one for one in documented(str(seen[at].result.get("text", ""))) if one.takes("GET", paths[2])]
    if known or not (below and beside) or paths[0] == paths[1]:
        return ()
    bodies = [
        str(one.result.get("text", "")).replace(path.rpartition("/")[2], "")
        for one, path in zip((other, nothing, last), paths[1:], strict=True)
    ]
    refused = all(one.result.get("status") == 404 for one in (other, nothing, last))
    distinct = bodies[1] == bodies[2] != bodies[0]
    hosts = all(same_host(one, last) for one in (there, other, nothing))
    found = there.result.get("status") == 200 and refused and distinct and hosts
    return tuple(range(at + 1, len(seen) - 1)) if found else ()


def _below(one: Exchange) -> str:
    """A URL's path and query, on whatever host."""
    parts = urlsplit(re.sub(r"^\{\w+\}", "http://x", str(one.args.get("url", ""))))
    return unquote(f"{parts.path}?{parts.query}")


def _host(call: Exchange) -> str:
    url = str(call.args.get("url", ""))
    return url.partition("}")[0] if url.startswith("{") else urlsplit(url).netloc


def same_host(one: Exchange, other: Exchange) -> bool:
    """Whether two calls went to one host."""
    return _host(one) == _host(other)


def _here(call: DocumentedCall, last: Exchange, facts: Facts) -> bool:
    """Whether the documented path is on the host that was called; one without a host may be the proxy's."""
    site, proxy = (urlsplit(url).netloc for url in (facts.site, facts.proxy))
    if call.beside:
        return True
    if call.host:
        return urlsplit(call.host).netloc == (site if _host(last) == "{site" else _host(last))
    return not proxy or proxy == site
