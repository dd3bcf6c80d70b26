"""Calls of one page that differ in one input only: the shape of a metamorphic question. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, unquote_plus, urlsplit

from fleet.oracles.echoes import family, host
from fleet.oracles.model import Exchange

_UNSENT = frozenset({"canary", "repeat", "control", "alive"})
"""Arguments that no platform sees."""

FORM = "application/x-www-form-urlencoded"
_CLIMBS = re.compile(r"(?i)//|\.\.|%(?:25)?(?:2e|2f|5c)")
"""What the path of a link does not have: an empty segment, dots that go up, separators that are encoded."""

NONE = "qa-none/passwd"
"""What is below no folder: the control of a path of the machine that is asked for as it is."""
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Variation:
    """The input in which calls differ, and its value in each."""

    place: Place
    values: tuple[str, ...]

    @property
    def named(self) -> str:
        """The input in a few words."""
        kind, name = self.place
        words = {"path": f"segment {name} of the path", "tail": "the rest of the path"}
        return words.get(kind, f"{kind} {name}".strip())

    def parts(self, call: Exchange) -> Mapping[str, str]:
        """The page and the input as parts of a place; of a tail the host: it reads paths in one way."""
        if self.place[0] == "tail":
            return {"route": host(call.args), "parameter": "tail"}
        method, _, page = where(call, self.place).partition(" ")
        asked = page if method in ("GET", "HEAD") else f"{method} {page}"
        return {"route": asked, "parameter": " ".join(self.place).strip()}

    def shown(self, call: Exchange) -> str:
        """The page and the input in a title: a part of a path stands in the page as `{value}` already."""
        page = where(call, self.place)
        return page if self.place[0] in ("path", "tail") else f"{page}, {self.named}"

    def spot(self, call: Exchange) -> str:
        """The page and the input as a part of a signature; of a tail the host: it reads paths in one way."""
        if self.place[0] == "tail":
            return f"{call.args.get('method', 'GET')} {host(call.args)} tail"
        return f"{where(call, self.place)} {' '.join(self.place)}"


def varied(calls: Sequence[Exchange]) -> Variation | None:
    """The one input in which these calls of qa_fetch differ; None if they differ elsewhere, or not at all."""
    if any(call.tool != "qa_fetch" for call in calls):
        return None
    given = [inputs(call.args) for call in calls]
    places = list(dict.fromkeys(place for one in given for place in one))
    other = [place for place in places if len({one.get(place, "") for one in given}) > 1]
    if len(other) != 1:
        return None
    return Variation(other[0], tuple(one.get(other[0], "") for one in given))


def below(calls: Sequence[Exchange]) -> Variation | None:
    """What stands below one folder in these calls of qa_fetch, if the last one has there what no link has."""
    urls = [urlsplit(str(call.args.get("url", ""))) for call in calls]
    unsent = _UNSENT | {"url"}
    others = [{name: value for name, value in call.args.items() if name not in unsent} for call in calls]
    if any(call.tool != "qa_fetch" for call in calls) or any(one != others[0] for one in others):
        return None
    if any(one._replace(path="") != urls[0]._replace(path="") for one in urls):
        return None
    paths = [one.path.split("/") for one in urls]
    at = next(
        (at for at, parts in enumerate(zip(*paths, strict=False)) if len(set(parts)) > 1), len(paths[0])
    )
    tails = ["/" + "/".join(path[at:]) for path in paths]
    if not _CLIMBS.search(tails[-1]) or _CLIMBS.search(tails[0]):
        return None
    folder = family({"url": urls[0]._replace(path="/".join(paths[0][:at])).geturl()})
    return Variation(("tail", folder), tuple(map(unquote, tails)))


def anew(calls: Sequence[Exchange]) -> Variation | None:
    """What stands below one folder, asked as if the path of the machine began there."""
    urls = [str(call.args.get("url", "")) for call in calls]
    folder = urls[0].removesuffix(NONE)
    plain = all(
        set(call.args) == {"url"} and url.startswith(folder) for call, url in zip(calls, urls, strict=True)
    )
    if not plain or folder == urls[0]:
        return None
    return Variation(("tail", folder.rstrip("/")), tuple(f"/{url.removeprefix(folder)}" for url in urls))


def as_module(calls: Sequence[Exchange]) -> Variation | None:
    """A path of the machine that a development server serves as a module for its query alone."""
    first, last = (str(calls[at].args.get("url", "")) for at in (0, -1))
    path, query, _ = last.partition("?")
    if not query or path != first or any(set(call.args) != {"url"} for call in (calls[0], calls[-1])):
        return None
    before, modules, below_root = path.partition("/@fs/")
    return Variation(("tail", f"{before}/@fs"), ("", f"/{below_root}")) if modules else None


def where(call: Exchange, place: Place) -> str:
    """The method and the page of a call, without the input that varies."""
    method = str(call.args.get("method", "GET"))
    if place[0] == "tail":
        return f"{method} {place[1]}/{{value}}"
    if place[0] != "path":
        return f"{method} {family(call.args)}"
    scheme, netloc, path, _, _ = urlsplit(str(call.args.get("url", "")))
    parts = path.split("/")
    parts[int(place[1])] = "{value}"
    return f"{method} " + family({"url": (f"{scheme}://{netloc}" if scheme else "") + "/".join(parts)})


def neutral(text: str, value: str) -> str:
    """The text without a value that was sent, in every spelling in which a page may repeat it."""
    if not value:
        return text
    spellings = {
        value,
        value.strip(),
        escape(value),
        escape(value, quote=False),
        escape(value).replace("&#x27;", "&#39;"),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value),
        quote(value, safe=""),
        quote_plus(value),
    }
    for spelling in sorted(spellings - {""}, key=lambda one: (-len(one), one)):
        text = text.replace(spelling, "{value}")
    return text


def inputs(args: Mapping[str, Any]) -> dict[Place, str]:
    """Every input of a call with its value, decoded."""
    scheme, netloc, path, query, _ = urlsplit(str(args.get("url", "")))
    found: dict[Place, str] = {("host", ""): f"{scheme}://{netloc}"}
    for at, part in enumerate(path.split("/")):
        name, named, text = unquote(part).partition("=")
        found |= {("path", f"{at}"): text, ("name", f"{at}"): name} if named else {("path", f"{at}"): name}
    for pair in query.split("&"):
        name, _, text = pair.partition("=")
        found["parameter", unquote_plus(name)] = unquote_plus(text)
    form = args.get("body_type") == FORM
    found |= (
        {("field", name): text for name, text in parse_qsl(str(args.get("body", "")), True)} if form else {}
    )
    for name, value in args.items():
        if name == "url" or name in _UNSENT or (form and name == "body"):
            continue
        kind = {"headers": "header", "fields": "field"}.get(name)
        if kind and isinstance(value, Mapping):
            found |= {(kind, str(key)): str(text) for key, text in value.items()}
        else:
            found["argument", name] = str(value)
    return found
