"""Oracles of a page in a browser: what a healthy page never runs, lacks, throws or misses. Pure.

What the broker or the guest refused is our own doing: a page that missed a script or a request for that says
nothing of itself. A page that was asked with a canary, or that a run minted, is ours as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from fleet.findings.sighting import template
from fleet.oracles.echoes import OWN, gave, route
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.oracles.web.pages import ELSEWHERE
from fleet.oracles.web.variations import Place, Variation
from fleet.severity import Severity
from fleet.text import counted, line

GRAVE = ("critical", "serious")
RENDERED = frozenset({"color-contrast", "target-size", "link-in-text-block", "scrollable-region-focusable"})
"""Rules that depend on fonts, layout and what lies over what: reported by the tool, not judged."""
OF_DOCUMENTS = frozenset({"html-has-lang", "html-lang-valid", "html-xml-lang-mismatch", "document-title"})
"""Rules that mean nothing of a fragment, which the browser completed."""
LOADED = {
    "Stylesheet": Severity.MEDIUM,
    "Script": Severity.MEDIUM,
    "Image": Severity.LOW,
    "Font": Severity.LOW,
    "Media": Severity.LOW,
}
"""What a page's markup loads, and how much its absence matters."""

_CODE = frozenset({"Script", "XHR", "Fetch", "WebSocket", "EventSource", "Other"})
_GONE = (404, 410)
_ASKED_FOR_ANYWAY = re.compile(r"/favicon\.ico$|/apple-touch-icon[^/]*$|\.map$|/\.well-known/")
_OURS = re.compile(
    r"Failed to fetch|Load failed|NetworkError|AbortError|NotAllowedError|NotSupportedError|SecurityError"
    r"|ServiceWorker|WebSocket|Error: (?:net::|timeout)",
    re.IGNORECASE,
)
"""What a refused request, or a browser without screen, user, network and open connections, causes."""
_FACE = re.compile(r"\{face:[^}]*\}")


def _page(args: Mapping[str, Any]) -> str:
    """The page's template: every name has the same face, every number the same page."""
    return template(_FACE.sub("{face}", route(args)))


def _origin(args: Mapping[str, Any]) -> str:
    """The page's site: a placeholder, or scheme and host."""
    place = _FACE.sub("{face}", route(args))
    return place.partition("/")[0] if place.startswith("{") else "/".join(place.split("/")[:3])


def _settled(last: Exchange) -> bool:
    """Whether the page was seen whole, as a visitor would, and nothing in it is ours."""
    result = last.result
    status = result.get("status")
    mended = any(one.get("kind") in _CODE for one in result.get("refused", ()))
    return (
        isinstance(status, int)
        and 200 <= status < 300
        and not result.get("error_class")
        and not {"load", "facts"} & set(result.get("unjudged", ()))
        and not last.args.get("script_canary")
        and not OWN.search(str(last.args.get("url", "")))
        and not mended
    )


def _own(url: object, last: Exchange) -> bool:
    """Whether a URL has the page's own origin."""
    try:
        one, page = urlsplit(str(url)), urlsplit(str(last.result.get("final_url", "")))
    except ValueError:
        return False
    return bool(one.netloc) and (one.scheme, one.netloc) == (page.scheme, page.netloc)


oracle = partial(Oracle, judges=("view",), surface="ux")


def _view(url: str = "{site}/x", canary: str = "", **result: object) -> Exchange:
    args = {"url": url, **({"script_canary": canary} if canary else {})}
    page = {"status": 200, "final_url": "http://site/x", "fragment": False, "unjudged": ()}
    return Exchange("qa_browse", args, page | result)


_AT = {"url": "http://site/x", "line": 1}
_BENIGN = _view("{site}/x?q=qacanary1", "qacanary1", canary_ran=False)
_ATTACK = "{site}/x?q=%3Cscript%3Eqacanary1(name)%3C%2Fscript%3E"
_ELSEWHERE = ({"url": "http://cdn/x.js", "kind": "Script"},)


@oracle(
    id="script-executed",
    says="what a URL's parameter holds never runs as script in the page",
    severity=Severity.HIGH,
    surface="security",
    example=(_BENIGN, _view(_ATTACK, "qacanary1", canary_ran=True)),
    control=(_BENIGN, _view(_ATTACK, "qacanary1", canary_ran=False)),
)
def script_executed(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A canary that ran, when the same page with the bare word in the same place did not run it."""
    last = seen[-1]
    canary = str(last.args.get("script_canary", ""))
    if not canary or last.result.get("canary_ran") is not True or OWN.search(str(last.args.get("url", ""))):
        return
    for at, twin in enumerate(seen[:-1]):
        benign = twin.tool == last.tool and twin.args.get("script_canary") == canary
        if not benign or twin.result.get("canary_ran") is not False:
            continue
        if point := _differs(str(twin.args["url"]), str(last.args["url"]), canary):
            kind, name = point
            words = {"path": f"part {name} of its path", "fragment": "its fragment"}
            place = words.get(kind, f"its parameter {name}")
            page = route(twin.args).replace(canary, "…")
            title = f"{page}, {line(place.removeprefix('its '), 80)}: a script sent there runs in a browser"
            key = f"script {_page({'url': page})} {place}"
            where = Variation(point, ()).parts(twin)
            yield observed(title, key, "canary_ran", led=(at,), where=where)
            return


def _differs(twin: str, attack: str, canary: str) -> Place | None:
    """The one place with the bare word in one URL and more than it in the other; None for anything else."""
    one, other = _places(twin), _places(attack)
    changed = [place for place in one if one[place] != other.get(place)]
    if one.keys() != other.keys() or len(changed) != 1:
        return None
    place = changed[0]
    return place if one[place] == canary and canary in other[place] else None


def _places(url: str) -> dict[Place, str]:
    """What a URL holds, by place."""
    scheme, netloc, path, query, fragment = urlsplit(url)
    found = {("path", str(at)): unquote(part) for at, part in enumerate(path.split("/"))}
    found |= {("fragment", ""): unquote(fragment)} if fragment else {}
    found["host", ""] = f"{scheme}://{netloc}"
    return found | {("parameter", name): text for name, text in parse_qsl(query, keep_blank_values=True)}


@oracle(
    id="accessibility",
    says="a page breaks none of axe-core's critical and serious rules for WCAG 2.1 A and AA",
    severity=Severity.MEDIUM,
    forgeable=True,
    example=(_view(violations=({"id": "image-alt", "impact": "critical", "nodes": 1},)),),
    control=(_view(violations=({"id": "image-alt", "impact": "minor", "nodes": 1},)),),
)
def accessibility(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if not _settled(last) or "violations" in last.result.get("unjudged", ()):
        return
    skipped = RENDERED | (OF_DOCUMENTS if last.result.get("fragment", True) else frozenset())
    grave = [one for one in last.result.get("violations", ()) if one.get("impact") in GRAVE]
    for one in grave:
        if (rule := line(str(one.get("id", "")), 40)) not in skipped:
            elements = counted(int(one.get("nodes", 0)), "element")
            title = f"{route(last.args)} breaks the rule {rule} at {elements}"
            # one template breaks it on many pages: a rule is one finding of a site
            yield observed(title, f"axe {_origin(last.args)} {rule}", "violations", where={"rule": rule})


@oracle(
    id="page-exception",
    says="a page's own scripts throw nothing that they do not catch",
    severity=Severity.MEDIUM,
    forgeable=True,
    example=(_view(exceptions=({"text": "TypeError: x is null", **_AT},)),),
    control=(_view(exceptions=({"text": "TypeError: x is null", **_AT},), refused=_ELSEWHERE),),
)
def page_exception(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Not of a fragment: its scripts may need the page that it is a part of."""
    last = seen[-1]
    if not _settled(last) or last.result.get("fragment"):
        return
    for one in last.result.get("exceptions", ()):
        text = str(one.get("text", ""))
        if text and _own(one.get("url"), last) and not _OURS.search(text) and not gave(last.args, text):
            title = f"{route(last.args)} throws {line(text, 100)}"
            key = f"exception {_page(last.args)} {template(text)}"
            yield observed(title, key, "exceptions", where={"script": _script(one, text)})


@oracle(
    id="console-error",
    says="a page's own scripts write no error to the console",
    severity=Severity.LOW,
    forgeable=True,
    example=(_view(console=({"kind": "error", "text": "no list", **_AT},)),),
    control=(_view(console=({"kind": "warning", "text": "no list", **_AT},)),),
)
def console_error(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Errors that a page's own script writes to the console; not its words on what fails anyway, and not of
    a fragment."""
    last = seen[-1]
    if (
        not _settled(last)
        or last.result.get("fragment")
        or last.result.get("failed")
        or last.result.get("exceptions")
    ):
        return
    for one in last.result.get("console", ()):
        text = str(one.get("text", ""))
        own = one.get("kind") == "error" and _own(one.get("url"), last)
        if text and own and not _OURS.search(text) and not gave(last.args, text):
            title = f'{route(last.args)} logs the error "{line(text, 100)}"'
            key = f"console {_page(last.args)} {template(text)}"
            yield observed(title, key, "console", where={"script": _script(one, text)})


def _script(one: Mapping[str, Any], text: str) -> str:
    """The file of a script and what it says: on whatever pages it runs, it fails in one way."""
    return f"{template(urlsplit(str(one.get('url', ''))).path)} {template(text)}"


@oracle(
    id="missing-resource",
    says="what a page loads from its own platform is there",
    severity=Severity.MEDIUM,
    forgeable=True,
    example=(_view(failed=({"url": "http://site/a.css", "kind": "Stylesheet", "status": 404},)),),
    control=(_view(failed=({"url": "http://site/favicon.ico", "kind": "Image", "status": 404},)),),
)
def missing_resource(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if not _settled(last):
        return
    for one in last.result.get("failed", ()):
        kind, status = str(one.get("kind", "")), one.get("status", 0)
        path = urlsplit(str(one.get("url", ""))).path
        if not _own(one.get("url"), last) or _ASKED_FOR_ANYWAY.search(path) or gave(last.args, path):
            continue
        gone = kind in LOADED and status in _GONE
        if gone or (isinstance(status, int) and status >= 500 and status not in ELSEWHERE and kind in _CODE):
            severity = LOADED.get(kind, Severity.MEDIUM)
            what = f"{route(last.args)} loads {line(path, 80)}, which answers {status}"
            key = f"missing {_origin(last.args)} {template(path)} {status}"
            where = {"link": f"{_origin(last.args)} {template(path)}"}
            yield observed(what, key, "failed", severity=severity, where=where)
