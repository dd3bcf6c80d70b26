"""Routes as the platform's documents write them, and the values that fill their parameters. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from urllib.parse import parse_qsl, quote, unquote

from fleet.config import Platform
from fleet.gate.scope import is_label

MAX_VALUES = 12
"""Examples kept for one parameter, and of each kind."""
MAX_PARAMETERS = 200
MAX_VALUE = 80

_HOLE = re.compile(r"<([^<>/&?]{1,40})>|\{([^{}/&?]{1,40})\}|(?<=/):([A-Za-z_]\w{0,30})|(\.\.\.|…)")
_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]{0,19}")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{40}\b")
_PREFIX = re.compile(r"^\$?\{?\w{1,20}\}?(?=/)")
_ADDRESS_LIKE = re.compile(r"addr|wallet|owner|account|caller|^of$|^from$|^to$|holder|0x", re.I)
_NAME_LIKE = re.compile(r"name|agent|user|handle|label|slug|target|who|profile|member", re.I)
_TEXT_LIKE = re.compile(r"^q$|query|search|text|message|term|word|filter|title|note|comment", re.I)
_NUMBER_LIKE = re.compile(r"\bnumber|\binteger|\bcount\b|\bhow many|\bbytes\b|\bdigits?\b", re.I)
_NUMBERED = re.compile(r"/\d{1,9}(?=/|$)")
NOBODYS = "987654321"
"""The number of a thing that no platform has."""
_FALLBACK = ("1", "2", "10")


@dataclass(slots=True)
class Examples:
    """Values seen on the platform: by parameter, its names, its addresses."""

    names: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    by_parameter: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, platform: Platform) -> Examples:
        """Those of the profile."""
        known = cls(addresses=[*filter(None, [platform.chain.diamond])])
        for name in (*platform.call_targets, *platform.targets.values()):
            known.name(name)
        return known

    def name(self, name: str) -> None:
        """Learn a name of the platform."""
        if is_label(name) and name not in self.names and len(self.names) < MAX_VALUES:
            self.names.append(name)

    def parameter(self, name: str, value: str) -> None:
        """Learn a value that the platform itself writes for a parameter."""
        if not value or len(value) > MAX_VALUE or not value.isprintable() or _hole(value):
            return
        if name in self.by_parameter or len(self.by_parameter) < MAX_PARAMETERS:
            kept = self.by_parameter.setdefault(name, [])
            if value not in kept and len(kept) < MAX_VALUES:
                kept.append(value)

    def fits(self, template: str, path: str) -> None:
        """Learn the values that a path has in the places of a route's holes, where it is that route."""
        mine, other = (one.partition("?")[0].strip("/").split("/") for one in (template, path))
        pairs = list(zip(mine, other, strict=False)) if len(mine) == len(other) else []
        if pairs and not _hole(mine[0]) and all(_hole(a) != (a == b) and not _hole(b) for a, b in pairs):
            for at, (hole, value) in enumerate(pairs):
                if _hole(hole):
                    self.parameter(_word(_said(hole), mine[at - 1]), unquote(value))

    def edges(self, name: str, least: int, most: int) -> None:
        """Learn the range of a parameter, as a refusal states it: its edges are the next values to try."""
        kept = self.by_parameter.get(name, [])
        fresh = [one for one in map(str, (most, least)) if one not in kept]
        if name in self.by_parameter or len(self.by_parameter) < MAX_PARAMETERS:
            self.by_parameter[name] = [*kept[:1], *fresh, *kept[1:]][:MAX_VALUES]

    def learn(self, url: str, text: str = "") -> None:
        """Learn the parameters of a URL that the platform wrote, and the addresses of a text."""
        for name, value in parse_qsl(url.partition("?")[2])[:20]:
            self.parameter(name, value)
        for address in islice(_ADDRESS.findall(text), MAX_VALUES):
            if address not in self.addresses and len(self.addresses) < MAX_VALUES:
                self.addresses.append(address)

    def choices(self, name: str, said: str = "") -> list[str]:
        """Values for a parameter, the likeliest first; `said` is how a document describes it."""
        kinds = f"{said} {name}" if said else name
        found = list(self.by_parameter.get(name, ()))
        if _NUMBER_LIKE.search(said):
            found += _FALLBACK
        elif _ADDRESS_LIKE.search(said) or (_ADDRESS_LIKE.search(name) and not _NAME_LIKE.search(kinds)):
            found += self.addresses
        elif _NAME_LIKE.search(kinds):
            found += self.names
        elif _TEXT_LIKE.search(kinds):
            found += ["help", *self.names]
        return list(dict.fromkeys(found)) or list(_FALLBACK)

    def as_data(self) -> dict[str, object]:
        """As JSON."""
        return {"names": self.names, "addresses": self.addresses, "by_parameter": self.by_parameter}

    def restore(self, data: object) -> None:
        """Take what `as_data` gave; ignore anything else."""
        if not isinstance(data, Mapping):
            return
        for name in strings_of(data.get("names")):
            self.name(name)
        self.learn("", " ".join(strings_of(data.get("addresses"))))
        given = data.get("by_parameter")
        for name, values in given.items() if isinstance(given, Mapping) else ():
            for value in strings_of(values):
                self.parameter(str(name), value)


@dataclass(frozen=True, slots=True)
class FilledRoute:
    """A route with values: its URL as a link, and where they went: kind of input, name, value.

    The name of a path's segment is its number from the end of the path, "-1" for the last one.
    """

    link: str
    inputs: tuple[tuple[str, str, str], ...]


def filled(target: str, known: Examples, most: int = 3) -> Iterator[FilledRoute]:
    """The route with up to `most` different fillings; its own literals are values, too."""
    target = _PREFIX.sub("", target) if not target.startswith(("http://", "https://")) else target
    path, _, query = target.replace("[", "").replace("]", "").partition("?")
    seen: set[str] = set()
    for turn in range(most):
        one = _filled(path, query, known, turn)
        if one.link not in seen:
            seen.add(one.link)
            yield one


def _filled(path: str, query: str, known: Examples, turn: int) -> FilledRoute:
    inputs: list[tuple[str, str, str]] = []
    parts = path.split("/")
    for at, part in enumerate(parts):
        if not _hole(part) or ("://" in path and at < 3):
            continue
        hole, said = _HOLE.search("/" + part), _said(part)
        value = _turned(known.choices(_word(said, parts[at - 1]), said), turn)
        parts[at] = _HOLE.sub(quote(value, safe=""), "/" + part)[1:] if hole else quote(value, safe="")
        inputs.append(("path", str(at - len(parts)), unquote(parts[at])))
    pairs = []
    for pair in filter(None, query.split("&")):
        name, _, said = pair.partition("=")
        value = unquote(said) if said and not _hole(said) and "|" not in said else ""
        if not value:
            choices = said.split("|") if "|" in said else known.choices(name, said.strip("<>{}:"))
            value = _turned([one for one in choices if not _hole(one)] or known.choices(name), turn)
        inputs.append(("query", name, value))
        pairs.append(f"{quote(name, safe='')}={quote(value, safe='')}")
    return FilledRoute("/".join(parts) + ("?" + "&".join(pairs) if pairs else ""), tuple(inputs))


def absent_beside(url: str, good: Iterable[str]) -> tuple[str, ...]:
    """For a route below a numbered thing: a page of that thing that is there, the same of a thing that does
    not exist, and a page below the thing that does not exist; () where no page of the thing is known."""
    number = [*_NUMBERED.finditer(url)][-1:]
    thing = url[: number[0].end()] if number else ""
    if not thing or "?" in url or url == thing:
        return ()
    there = next((one for one in good if one == thing or one.startswith(f"{thing}/")), "")
    other = f"{thing[: number[0].start() + 1]}{NOBODYS}{there[len(thing) :]}"
    return (there, other, f"{thing}/qa-nothing-here") if there else ()


def holes(link: str) -> bool:
    """Whether a link is a template, with something to fill in."""
    path, _, query = link.partition("?")
    values = [pair.partition("=")[2] for pair in query.split("&") if pair]
    return any(_HOLE.search(part) for part in (*path.split("/"), *values, path))


def _hole(text: str) -> bool:
    return bool(_HOLE.search(text) or _HOLE.search("/" + text) or _CAPITALS.fullmatch(text))


def _said(part: str) -> str:
    """What a placeholder is called in a path."""
    hole = _HOLE.search("/" + part)
    return next(filter(None, hole.groups())) if hole else part


def _word(said: str, before: str) -> str:
    """What a path's placeholder is called: its own word, or the segment before it if that says nothing."""
    return said if len(said) > 2 else before


def _turned(choices: list[str], turn: int) -> str:
    return choices[turn % len(choices)]


def strings_of(value: object) -> Iterable[str]:
    """The strings of a list in untrusted JSON."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
