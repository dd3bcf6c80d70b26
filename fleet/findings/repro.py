"""Repros: typed tool calls with literal arguments, parsed and never evaluated.

    qa_compile(source="enum E{}")
    qa_publish(name="{name}", source="fn frame(t: i32) {}"); qa_fetch(url="{face:{name}}")

    qa_compile(source="fn f(){" + "("*5300 + "1" + ")"*5300 + "}")

Argument values are JSON, read by the JSON parser; names are plain identifiers; nothing else is accepted, but
that a string which is an argument may be a sum of strings, each with how often it stands there. The canonical
form sorts arguments, escapes all but printable ASCII, and repeats where that is much shorter (repetition.py),
so that a repro has one spelling, fits on one line and is shown unchanged by any terminal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleet.findings.repetition import Part, parts

MAX_CHARS = 262_144
"""Of the text, and of all that its repetitions and sums make."""
MAX_TIMES = 1_000_000
MAX_PARTS = 64
"""Strings in one sum."""
MAX_CALLS = 16
MAX_ARGS = 16
MAX_DEPTH = 8

_CALL = re.compile(r"[ \t]*([a-z][a-z0-9_]{0,47})\(", re.ASCII)
_NAME = re.compile(r"[ \t]*([a-z_][a-z0-9_]{0,47})[ \t]*=[ \t]*", re.ASCII)
_NEXT = re.compile(r"[ \t]*([,)])", re.ASCII)
_EMPTY = re.compile(r"[ \t]*\)", re.ASCII)
_TIMES = re.compile(r"\*([1-9][0-9]{0,6})(?![0-9])", re.ASCII)
_PLUS = re.compile(r"[ \t]*\+[ \t]*", re.ASCII)
_USUAL = re.compile(r'([a-z][a-z0-9_]{0,47})\(([a-z_][a-z0-9_]{0,47})="([^"\\\x00-\x1f]*)"\)', re.ASCII)
"""One call with one plain text: most repros of a log, in a quarter of the time."""
_SEPARATOR = re.compile(r"[ \t]*(;|\Z)[ \t]*", re.ASCII)


class ReproError(ValueError):
    """The text is not a repro; the message gives place and reason, and never repeats the text."""


@dataclass(frozen=True, slots=True)
class ReproCall:
    """One tool call; strings in `args` may hold placeholders such as `{site}`, which stay unresolved."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Reading:
    """The text of a repro, and how many characters its sums may still make."""

    text: str
    left: int


def parse_repro(text: str, most: int = MAX_CHARS) -> tuple[ReproCall, ...]:
    """The calls of a `repro:` line; raises ReproError for anything else.

    `most` bounds the text, and what its repetitions make, in characters; it is checked before they are made.
    """
    if len(text) > most:
        raise ReproError(f"longer than {most} characters")
    if usual := _USUAL.fullmatch(text):
        return (ReproCall(usual[1], {usual[2]: usual[3]}),)
    calls: list[ReproCall] = []
    reading, at = _Reading(text, most), 0
    while True:
        call, at = _call(reading, at)
        calls.append(call)
        separator = _SEPARATOR.match(text, at)
        if separator is None:
            raise ReproError(f"expected ';' or the end at character {at}")
        at = separator.end()
        if not separator[1]:
            return tuple(calls)
        if len(calls) == MAX_CALLS:
            raise ReproError(f"more than {MAX_CALLS} calls")


def write_repro(calls: Iterable[ReproCall], most: int = MAX_CHARS) -> str:
    """The canonical one-line, printable-ASCII form; raises ReproError for what could not be parsed again."""
    text = _write(calls, _write_argument)
    parse_repro(text, most)
    return text


def spell(calls: Iterable[ReproCall]) -> str:
    """Every argument in full, and no check that it parses again: for keys and searches, not for the log."""
    return _write(calls, _write_value)


def _write(calls: Iterable[ReproCall], write: Callable[[Any], str]) -> str:
    written = (
        (call.tool, ", ".join(f"{name}={write(call.args[name])}" for name in sorted(call.args)))
        for call in calls
    )
    return "; ".join(f"{tool}({args})" for tool, args in written)


def _write_argument(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_CHARS:  # a longer one does not parse again anyway
        return _write_value(value)
    return " + ".join(
        json.dumps(part.unit) + (f"*{part.times}" if part.times > 1 else "") for part in parts(value)
    )


def _write_value(value: object) -> str:
    try:
        return _WRITER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ReproError(f"not a literal: {type(error).__name__}") from None


def _call(reading: _Reading, at: int) -> tuple[ReproCall, int]:
    text = reading.text
    head = _CALL.match(text, at)
    if head is None:
        raise ReproError(f"expected a tool call at character {at}")
    at = head.end()
    args: dict[str, Any] = {}
    if end := _EMPTY.match(text, at):
        return ReproCall(head[1], args), end.end()
    while True:
        name = _NAME.match(text, at)
        if name is None:
            raise ReproError(f"expected name=value at character {at}")
        if name[1] in args or len(args) == MAX_ARGS:
            raise ReproError(f"duplicate or excess argument at character {at}")
        args[name[1]], at = _argument(reading, name.end())
        following = _NEXT.match(text, at)
        if following is None:
            raise ReproError(f"expected ',' or ')' at character {at}")
        at = following.end()
        if following[1] == ")":
            return ReproCall(head[1], args), at


def _argument(reading: _Reading, at: int) -> tuple[Any, int]:
    """A literal, or a sum of strings; counted before anything is repeated."""
    start = at
    value, at = _value(reading.text, at)
    if not isinstance(value, str):
        return value, at
    found: list[Part] = []
    while True:
        times = _TIMES.match(reading.text, at)
        found.append(Part(value, int(times[1]) if times else 1))
        at = times.end() if times else at
        plus = _PLUS.match(reading.text, at)
        if plus is None:
            break
        if len(found) == MAX_PARTS or not reading.text.startswith('"', plus.end()):
            raise ReproError(f"expected at most {MAX_PARTS} strings in the sum at character {start}")
        value, at = _value(reading.text, plus.end())
    if max(part.times for part in found) > MAX_TIMES:
        raise ReproError(f"more than {MAX_TIMES} times at character {start}")
    if len(found) > 1 or found[0].times > 1:
        reading.left -= sum(len(part.unit) * part.times for part in found)
        if reading.left < 0:
            raise ReproError(f"too long when written out at character {start}")
    return "".join(part.unit * part.times for part in found), at


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        value, end = _LITERALS.raw_decode(text, at)
    except ReproError:
        raise
    except (ValueError, RecursionError) as error:  # also numbers with more digits than int() accepts
        raise ReproError(f"not a JSON literal at character {at}: {type(error).__name__}") from None
    _check_depth(value, MAX_DEPTH)
    return value, end


def _check_depth(value: object, left: int) -> None:
    if left == 0:
        raise ReproError(f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _check_depth(inner, left - 1)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ReproError("duplicate key in an object")
    return made


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ReproError("a number out of range")
    return number


def _no_constant(text: str) -> float:
    raise ReproError(f"{text} is not a literal here")


_WRITER = json.JSONEncoder(sort_keys=True, allow_nan=False, separators=(",", ":"))
_LITERALS = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant)
