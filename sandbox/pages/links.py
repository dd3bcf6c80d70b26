"""Where a page or a document leads: links, forms and routes, as its author wrote them. Pure.

Everything is found by patterns of bounded length, in a bounded part of the text: the page is hostile. The
patterns are compiled at their first use, as most jails never need them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import unescape
from itertools import islice
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

from sandbox.pages.described_routes import METHODS, described
from sandbox.pages.markup import MAX_FIELDS, Form, MarkupReader
from sandbox.text import clean, mask

MAX_READ = 1_000_000
"""Characters of a text that are searched: a script of an application has hundreds of thousands."""
MAX_LINK = 200
"""A longer link, route or action is left out: cut, it would lead elsewhere."""
SHARE = {"links": 4_000, "paths": 2_000, "routes": 4_000, "forms": 2_000}
"""Most characters of each kind together, so that the page's own text still fits into a reply."""

T = TypeVar("T")
_PATH = r"/(?:<[^<>\n\"'`\\/]{1,40}>|[^\s\"'`\\]){0,200}"
_BASE = r"(?:https?://[^\s/\"'`<>]{1,100}|\{[A-Za-z_]{1,20}\}|\$\{?[A-Za-z_]{1,20}\}?)?"
_ROUTE = rf"\b((?:{METHODS})(?:\s?[,/|]\s?(?:{METHODS})){{0,4}})[ \t`*_:|\"']{{1,6}}({_BASE}{_PATH})"
_ROUTE_FIRST = rf"(?:^|[\s`|(])({_PATH})[ \t`*|(:]{{1,6}}({METHODS})\b"
_CURL = rf"\bcurl\b([^\n]{{0,160}}?)[\s\"']({_BASE}/[^\s\"'\\]{{0,200}})([^\n]{{0,200}})"
_CALL = (
    r"\b(fetch|get|post|put|patch|delete)\(\s{0,4}(?:[\"']([^\"'\s]{1,200})[\"']|`([^`\s]{1,200})`)"
    rf"(?:[^)]{{0,120}}?method:\s{{0,4}}[\"']({METHODS}))?"
)
_BODY = r"\s{0,20}[^\n{]{0,60}\n?\s{0,12}(\{[^\n]{2,1000}\})"
_KEYS = r"[{,]\s{0,8}\"([A-Za-z_][\w.-]{0,40})\"\s{0,4}:"
_MARKDOWN = r"\[[^\]\n]{1,200}\]\(<?([^)\s>]{0,200}[./][^)\s>]{0,200})"
_SITEMAP = r"<(?:\w{1,20}:)?loc>\s{0,20}(?:<!\[CDATA\[\s{0,20})?([^<\s\]]{1,200})"
_PATHS = (
    r"(?im)^(?:dis)?allow:[ \t]{0,4}(/[^\s#*$]{0,200})",
    r"(?im)^sitemap:[ \t]{0,4}(\S{1,200})",
    r"sourceMappingURL=([^\s*\"']{1,200})",
    r"[\"'`]((?:\.{0,2}/|https?://)[^\"'`\s\\]{0,200})[\"'`]",
    r"(https?://(?:[^\s\"'`\\^|()\[\]<]|<(?=[A-Za-z_])){1,200})",
    r"(?:^|[\s(:=,])((?:/[A-Za-z0-9._~<>{}:-]{1,60}){1,8}/?(?:\?[^\s\"'`)]{0,100})?)",
)
_TEMPLATE = (
    r"`(?:\$\{[^{}`]{1,60}\}(?=/))?"
    r"((?:\.{0,2}/|[a-z][\w-]{1,30}/)(?:[\w./?=&:~-]|\$\{[^{}`]{1,60}\}){1,200})`"
)
"""A path that a script puts together, with or without a base before it: one with holes."""
_JOINED = (
    r"[\"']((?:\.{0,2}/|[a-z][\w-]{1,30}/)[\w./?=&:~-]{0,100}[/=]|[a-z][\w-]{1,30}/)[\"']\s?(?:\+|\.concat\()"
)
"""The same by a text that something is added to."""
MAX_JOINED = 12
_HOLE = r"\$\{[^}]{0,80}?([A-Za-z_]{1,30})[\W\d]{0,6}\}"
_NAMED = r"<[A-Za-z_][^<>]{0,40}>|\{[A-Za-z_][^{}]{0,40}\}"
_NO_PATH = r"^/[dgimsuvy]{0,7}(?:[,;)]|\.(?:test|exec)\b)|[<>{}|^]"
"""The end of a regular expression, or a piece of markup, between the quotes of two texts of a script."""
_OPENS = {")": "(", "]": "[", "}": "{", ">": "<"}


@dataclass(frozen=True, slots=True)
class References:
    """What a page refers to, each kind at most SHARE characters together.

    `links` are what a visitor follows; `paths` merely stand in a text, a script or robots.txt, so they may
    lead nowhere; `routes` are `METHOD path`.
    """

    links: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    forms: tuple[Form, ...] = ()
    routes: tuple[str, ...] = ()


def of_markup(page: MarkupReader, url: str) -> References:
    """What a page refers to: by its elements, and by its words and scripts."""
    said = find("".join(page.words), url, prose=False)
    links = [_based(page.base, one) for one in page.links]
    forms = [Form(one.method, _based(page.base, one.action), one.fields) for one in page.forms]
    return _bounded(url, links, said.paths, [*forms, *said.forms], said.routes)


def find(text: str, url: str = "", *, prose: bool = True) -> References:
    """What a text refers to: a sitemap, robots.txt, a script, JSON, OpenAPI, or (`prose`) Markdown."""
    spec, forms = described(text)
    text = text[:MAX_READ]
    routes = list(spec)
    for match in re.finditer(_ROUTE, text):
        for method in re.findall(METHODS, match[1]):
            routes.append(f"{method} {_trimmed(match[2])}")
        if method != "GET" and (body := re.compile(_BODY).match(text, match.end())):
            forms.append(Form(method, _trimmed(match[2]), _fields(body[1]), True))
    known = {one.partition(" ")[2] for one in routes}
    for match in re.finditer(_ROUTE_FIRST, text, re.MULTILINE):
        if (path := _trimmed(match[1])) not in known:
            routes.append(f"{match[2]} {path}")
    routes.extend(_called(text))
    for each in (_ROUTE, _CURL, _CALL):
        text = re.sub(each, " ", text)
    paths = [] if spec else list(_paths(text))
    links = [*(re.findall(_MARKDOWN, text) if prose else ()), *map(unescape, re.findall(_SITEMAP, text))]
    return _bounded(url, links, map(_trimmed, paths), forms, routes)


def _paths(text: str) -> Iterator[str]:
    """What stands in a text, and what a script puts together, with `{name}` for each hole."""
    made = (re.sub(_HOLE, r"{\1}", hit[1]) for hit in re.finditer(_TEMPLATE, text) if "${" in hit[1])
    yield from (one for one in made if re.search(r"[a-z]", re.sub(_NAMED, "", one)) and _is_path(one))
    joined = (f"{hit[1]}{{value}}" for hit in re.finditer(_JOINED, text))
    yield from islice(filter(_is_path, joined), MAX_JOINED)
    for each in _PATHS:
        found = (hit[1] for hit in re.finditer(each, text, re.MULTILINE))
        yield from (one for one in found if "${" not in one and _is_path(one))


def _is_path(text: str) -> bool:
    return not re.search(_NO_PATH, re.sub(_NAMED, "x", text.partition("?")[0]))


def _fields(body: str) -> dict[str, str]:
    """The fields of a JSON body, each value as JSON; where it is not JSON, their names alone."""
    try:
        known = json.loads(body)
    except (ValueError, RecursionError):
        known = dict.fromkeys(re.findall(_KEYS, body))
    return {
        name: "" if value is None else json.dumps(value) for name, value in list(known.items())[:MAX_FIELDS]
    }


def _called(text: str) -> Iterator[str]:
    """Routes that a script or a command line calls."""
    for match in re.finditer(_CURL, text):
        options = match[1] + match[3]
        said = re.search(rf"(?:-X|--request)[ =]?[\"']?({METHODS})\b", options)
        sends = re.search(r"\s(?:-d|--data\S{0,12}|-F|--json)\b", options)
        yield f"{said[1] if said else 'POST' if sends else 'GET'} {_trimmed(match[2])}"
    for match in re.finditer(_CALL, text):
        target = re.sub(_HOLE, r"{\1}", match[2] or match[3])
        verb = match[1].upper()
        if target.startswith(("/", "./", "http://", "https://")):
            yield f"{match[4] or ('GET' if verb == 'FETCH' else verb)} {target}"


def _trimmed(target: str) -> str:
    """Without the punctuation of the sentence around it, and brackets that it did not open."""
    while target:
        last = target[-1]
        opened = _OPENS.get(last, "")
        if last not in ".,;:!*_|" and not (opened and target.count(last) > target.count(opened)):
            break
        target = target[:-1]
    return target


def _based(base: str, target: str) -> str:
    try:
        return urljoin(base, target) if base else target
    except ValueError:
        return target


def _bounded(
    url: str, links: Iterable[str], paths: Iterable[str], forms: Iterable[Form], routes: Iterable[str]
) -> References:
    """Each once, cleaned, at most its share; what leads to other hosts last."""
    own = urlsplit(url).netloc
    led = dict.fromkeys(filter(_leads, (_clean(link.partition("#")[0]) for link in links)))
    hints = dict.fromkeys(filter(_leads, (_clean(path.partition("#")[0]) for path in paths)))
    hints = {one: None for one in hints if one not in led}
    shown = [
        Form(one.method, _clean(one.action), {_clean(k): _clean(v) for k, v in one.fields.items()}, one.json)
        for one in forms
        if len(one.action) <= MAX_LINK
    ]
    return References(
        tuple(_within(SHARE["links"], sorted(led, key=lambda one: _foreign(one, own)))),
        tuple(_within(SHARE["paths"], sorted(hints, key=lambda one: _foreign(one, own)))),
        tuple(_within(SHARE["forms"], shown)),
        tuple(_within(SHARE["routes"], dict.fromkeys(filter(None, map(_clean, routes))))),
    )


def _within(share: int, found: Iterable[T]) -> Iterator[T]:
    """The first of them that take at most this many characters together."""
    for one in found:
        share -= len(str(one))
        if share < 0:
            return
        yield one


def _clean(text: str) -> str:
    """One line without controls; "" for one that is too long, or holds a secret."""
    shown = clean(text.strip(), MAX_LINK + 16)
    return shown if len(shown) <= MAX_LINK and not mask(shown)[1] else ""


def _leads(link: str) -> bool:
    scheme, colon, _ = link.partition(":")
    return 0 < len(link) <= MAX_LINK and (not colon or "/" in scheme or scheme.lower() in ("http", "https"))


def _foreign(link: str, own: str) -> bool:
    try:
        return urlsplit(link).netloc not in ("", own)
    except ValueError:
        return True
