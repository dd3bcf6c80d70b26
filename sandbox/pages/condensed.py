"""A long OpenAPI or Swagger description, cut down to what requests are made and judged of. Pure.

First without prose and examples; one in JSON that is still too long has as many whole operations as fit, in
their order, each with all that it refers to. One in YAML loses lines only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

IN_YAML = re.compile(r"(?m)^[\"']?(?:openapi|swagger)[\"']?[ \t]{0,8}:[ \t]{1,8}[\"']?[0-9]")
"""How a description in YAML says that it is one."""
MAX_OPERATIONS = 150
"""Operations that are kept, or tried, at most: a run asks fewer."""
OPERATIONS = "x-operations"
"""Where a description of which operations were left out says how many it had, without DELETE."""
_METHODS = ("get", "head", "options", "post", "put", "patch", "delete")
_LEFT_OUT = frozenset(
    ("description", "summary", "externalDocs", "example", "examples", "tags", "contact", "license", "xml")
)
_NAMED = frozenset(
    ("properties", "schemas", "definitions", "responses", "parameters", "requestBodies", "headers", "paths")
)
"""Below these stand names that the author chose."""
_KEY = re.compile(r"( *)((?:- +)*)([\"']?)([\w$./<>][^\s\"':]{0,200})\3 *:(?: +(.*)| *)$")
"""A line of YAML that begins with a key: blanks, dashes, quote, name, and what follows on it."""
_BLOCK = re.compile(r"^(?:[&!]\S+ +)*[|>][-+0-9]{0,2} *(?:#.*)?$")
"""A text of several lines follows."""
_WHOLE = (
    *("openapi", "swagger", "servers", "host", "basePath", "consumes", "produces", "security"),
    "securityDefinitions",
)
_ENTRY = re.compile(
    r"(?i)regist|sign|log-?_?[io]n|auth|session|token|/(?:users|accounts|members|customers)/?$"
)
"""Paths without which nothing is asked as an account: they are kept first."""


def condensed(text: str, most: int) -> str:
    """The description in fewer than `most` characters; "" for any other text, or where nothing fits."""
    if text.lstrip()[:1] not in ("{", "<") and IN_YAML.search(text):
        shown = "\n".join(_thinned(text))
        return shown if len(shown) < most else ""
    try:
        document = json.loads(text) if text.lstrip()[:1] == "{" else None
        if not isinstance(document, dict) or not {"openapi", "swagger"} & set(document):
            return ""
        plain = _plain(document)
        shown = _written(plain)
        if len(shown) > most and isinstance(plain.get("paths"), dict):
            shown = _written(_Part(plain, most - 200).document())
    except (ValueError, RecursionError):
        return ""
    return shown if len(shown) < most else ""


def _thinned(text: str) -> Iterator[str]:
    """The lines of a text in YAML without those of prose and examples.

    By columns alone, as there is no parser here: what is misread makes the text no YAML, and it is not used.
    """
    above: list[tuple[float, bool]] = []  # the keys above: column, and whether names stand below it
    dropped = held = len(text)
    for line in text.splitlines():
        column = len(line) - len(line.lstrip(" "))
        if not line.strip() or column > dropped or (column == dropped and line[column:].startswith("- ")):
            continue
        dropped = len(text)
        key = _KEY.match(line) if column <= held else None
        if key is None:  # also within a text of several lines
            yield line
            continue
        held, at, rest = len(text), len(key[1] + key[2]), key[5] or ""
        if key[2]:
            above = [*(one for one in above if one[0] <= column), (column + 0.5, False)]
        above = [one for one in above if one[0] < at]
        among_names = bool(above) and above[-1][1]
        if key[4] in _LEFT_OUT and not among_names and _closed(rest):
            dropped = at
            yield f"{line[:at]}x-: 0"  # so that nothing is empty that was not
            continue
        above.append((at, key[4] in _NAMED and not among_names))
        if _BLOCK.match(rest):
            held = at
        yield line


def _closed(rest: str) -> bool:
    """Whether a value neither ends what began before it nor is named for others."""
    return rest[:1] != "&" and all(rest.count(one) == rest.count(other) for one, other in ("{}", "[]"))


def _plain(value: Any, *, named: bool = False) -> Any:  # noqa: ANN401  any JSON
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _plain(inner, named=key in _NAMED and not named)
        for key, inner in value.items()
        if named or not (key in _LEFT_OUT or key.startswith("x-"))
    }


def _written(value: Any) -> str:  # noqa: ANN401  any JSON
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(slots=True)
class _Part:
    """A part of a description that is put together, operation by operation; `room`: characters left."""

    whole: dict[str, Any]
    room: int
    made: dict[str, Any] = field(default_factory=dict)
    _known: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    """By reference: the size of what it names, and the references in that."""
    _kept: set[str] = field(default_factory=set)

    def document(self) -> dict[str, Any]:
        paths = self.whole["paths"]
        self.made = {key: self.whole[key] for key in _WHOLE if key in self.whole}
        parts = self.whole.get("components")
        if isinstance(parts, dict) and "securitySchemes" in parts:
            self.made["components"] = {"securitySchemes": parts["securitySchemes"]}
        self.made |= {"paths": {}, OPERATIONS: sum(method != "delete" for _, method in _operations(paths))}
        self.room -= len(_written(self.made))
        known = sorted(_operations(paths), key=lambda one: not (one[1] == "post" and _ENTRY.search(one[0])))
        for path, method in known[:MAX_OPERATIONS]:
            self._take(path, method, paths[path])
        return self.made

    def _take(self, path: str, method: str, item: dict[str, Any]) -> None:
        """Add one operation with what it refers to, if there is room for all of it."""
        piece = {key: item[key] for key in (method, "parameters") if key in item}
        size, waiting, needed = len(path) + 8 + len(_written(piece)), list(_references(piece)), set[str]()
        while waiting and size <= self.room:
            if (one := waiting.pop()) in self._kept or one in needed:
                continue
            needed.add(one)
            cost, inner = self._cost(one)
            size += cost
            waiting += inner
        if size > self.room:
            return
        self.room -= size
        self.made["paths"].setdefault(path, {}).update(piece)
        for one in needed:
            self._keep(one)

    def _cost(self, reference: str) -> tuple[int, tuple[str, ...]]:
        if reference not in self._known:
            named = _at(self.whole, reference)
            size = len(_written(named)) + len(reference) + 8 if named is not None else 0
            self._known[reference] = size, tuple(_references(named))
        return self._known[reference]

    def _keep(self, reference: str) -> None:
        self._kept.add(reference)
        named, steps = _at(self.whole, reference), _steps(reference)
        if named is None or steps[0] == "paths":  # what stands in another operation is left open
            return
        place = self.made
        for step in steps[:-1]:
            place = place.setdefault(step, {})
        place[steps[-1]] = named


def _operations(paths: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for path, item in paths.items():
        for method in _METHODS:
            if isinstance(item, dict) and isinstance(item.get(method), dict):
                yield path, method


def _references(value: Any) -> Iterator[str]:  # noqa: ANN401  any JSON
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            reference = one.get("$ref")
            if isinstance(reference, str) and reference.startswith("#/"):
                yield reference
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)


def _steps(reference: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in reference[2:].split("/")]


def _at(document: dict[str, Any], reference: str) -> Any:  # noqa: ANN401  any JSON
    found: Any = document
    for step in _steps(reference):
        found = found.get(step) if isinstance(found, dict) else None
    return found
