"""Values for the arguments of an MCP tool: at the edge, outside of its schema, and attacks. Pure.

Each comes with a rank: the lower, the sooner it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Ranked = tuple[int, Any]
CHOICES = 6
"""Listed values of one argument that are asked."""
TOGETHER = 4
"""Attacks beside one control: each call is an act."""
_PROGRAM = re.compile(
    r"(?i)^(?:command|cmd|script|code|shell|expression|expr|formula|program|sql|statement)s?$"
)
"""An argument that is meant to be run or computed."""
_FILE = re.compile(r"(?i)file|path|dir|folder|document|doc|name|uri|url|page|template|key|id$")
_ADDRESS = re.compile(r"(?i)ur[il]|href|link|src|hook|feed|host|endpoint|image|source|address|site|domain")
_RANGES = tuple(
    (re.compile(rf"(?i)(?:^|_){first}"), re.compile(rf"(?i)(?:^|_){last}"))
    for first, last in (
        *(("from", "to(?:_|$)"), ("start", "end"), ("since", "until")),
        *(("after", "before"), ("min", "max")),
    )
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_PATTERN = re.compile(r"(?i)pattern|regexp?\b|regex")
_TEXT = re.compile(r"(?i)text|string|input|content|subject|body|line|value|data")
_EXPR = "expr 1009 \\* 2003"
_PASSWD = "etc/passwd"


def commands(value: str) -> tuple[str, ...]:
    """A value with a command behind it; its output is a product that nobody sent."""
    return (
        f"{value}; {_EXPR}",
        f"{value} $({_EXPR})",
        f"{value}'; {_EXPR}; echo '",
        f'{value}"; {_EXPR}; echo "',
        f"{value} | {_EXPR}",
        f"{value}\n{_EXPR}",
        f"{value}' \"$({_EXPR})\" '",
        f"{value} `{_EXPR}`",
    )


def expressions(value: str) -> tuple[str, ...]:
    """A value with an expression of a language of templates."""
    sums = ("{{1009*2003}}", "${1009*2003}", "<%= 1009*2003 %>", "#{1009*2003}")
    return tuple(value + one for one in sums)


def climbs(value: str) -> tuple[str, ...]:
    """Ways from a folder to a file that every machine has."""
    return (
        f"{'../' * 9}{_PASSWD}",
        f"/{_PASSWD}",
        f"{'..%2f' * 9}etc%2fpasswd",
        f"file:///{_PASSWD}",
        f"{value}/{'../' * 9}{_PASSWD}",
        f"{'....//' * 9}{_PASSWD}",
    )


def conditions(value: str) -> tuple[tuple[str, ...], ...]:
    """A value with a true and a false condition, each twice."""
    forms = ("{}' OR '1'='{}", "{}' AND '1'='{}", "{} OR 1009={}", "{}%' OR '1'='{}", "{}') OR ('1'='{}")
    pairs = [
        (
            form.format(value, "1009" if "1009" in form else "1"),
            form.format(value, "2003" if "1009" in form else "2"),
        )
        for form in forms
    ]
    return tuple((true, false, true, false) for true, false in pairs)


def attacks(
    name: str, value: str, heard: tuple[str, tuple[str, ...]]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Attacks on one text: the values to send after one control, the likeliest first. `heard`: an address of
    the fleet's listener, and commands that ask for others; empty where there is none."""
    address, asking = heard
    if address:
        yield 1 if _ADDRESS.search(name) else 3, (address,)
    if not _PROGRAM.match(name):
        yield from _together(2, tuple(value + one for one in asking))
    if not _PROGRAM.match(name):
        yield from _together(1, commands(value))
        yield from _together(1, expressions(value))
    yield from _together(1 if _FILE.search(name) else 3, climbs(value))
    yield from ((1 + at, pair) for at, pair in enumerate(conditions(value)))


def _together(rank: int, values: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Values that share a control."""
    for at in range(0, len(values), TOGETHER):
        yield rank + at // TOGETHER, values[at : at + TOGETHER]


def edges(said: Mapping[str, Any], usual: object) -> Iterator[Ranked]:
    """Values at the edge of what a schema permits, and each of a few that it lists."""
    listed = said.get("enum")
    choices = listed[:CHOICES] if isinstance(listed, list) else []
    choices += [True, False] if said.get("type") == "boolean" else []
    yield from ((2, one) for one in choices if one != usual)
    if isinstance(usual, str) and not {"enum", "const", "format", "pattern"} & set(said):
        longest, least = said.get("maxLength"), said.get("minLength")
        most = longest if isinstance(longest, int) else 12_000
        if not (isinstance(least, int) and least > 0):
            yield 2, ""
        yield 2, "a" * min(most, 12_000)
        yield 3, "\u00e9\U0001d54c\U0001f600 \u4e16\u754c"[:most]
        yield 4, "a\x00b"[:most]
        yield 4, f"{usual[:1]}{'%s%n' * 8}"[:most]
    elif type(usual) in (int, float):
        bounds = [said.get(word) for word in ("minimum", "maximum")]
        yield from ((3, one) for one in bounds if type(one) in (int, float))
        yield from ((3, one) for one, bound in zip((0, 2**31), bounds, strict=True) if bound is None)


def reversed_ranges(usual: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Of arguments that say from where to where: the first, and both with that one beyond the other."""
    for first, last in _RANGES:
        begin = next((one for one in usual if first.search(one)), "")
        end = next((one for one in usual if last.search(one)), "")
        value = usual.get(begin)
        if begin and end and isinstance(value, str) and _DATE.match(value):
            yield begin, {begin: f"9998{value[4:]}", end: usual[end]}
        elif begin and end and type(value) is int:
            yield begin, {begin: value + 1_000, end: usual[end]}


def backtracking(known: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """A pattern and a text for which matching by backtracking takes about half a minute, and no longer; empty
    where a tool takes no pattern and text."""
    texts = [name for name, said in known.items() if said.get("type") == "string" and "enum" not in said]
    pattern = next((name for name in texts if _PATTERN.search(name)), "")
    others = [name for name in texts if _TEXT.search(name) and name != pattern]
    return {pattern: "(a+)+$", others[0]: "a" * 28 + "!"} if pattern and others else {}


def wrong(good: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Ranked]:
    """Arguments outside of a schema, each in one place, and none that a lax reader may convert."""
    listed = schema.get("properties")
    known = listed if isinstance(listed, Mapping) else {}
    for at, name in enumerate(good):
        yield 2 + at, {key: one for key, one in good.items() if key != name}
    for at, (name, said) in enumerate(known.items()):
        if not isinstance(said, Mapping):
            continue
        if said.get("type") in ("string", "number", "integer", "boolean"):
            yield 2 + at, {**good, name: {"qa": 1}}
        if said.get("type") == "object" and isinstance(inner := good.get(name), Mapping):
            yield from ((rank, {**good, name: value}) for rank, value in wrong(inner, said))
        if isinstance(said.get("enum"), list):
            yield 2 + at, {**good, name: "qa-none-of-these"}
        for word, step in (("maximum", 1), ("minimum", -1)):
            if isinstance(bound := said.get(word), int | float):
                yield 3 + at, {**good, name: bound + step}
