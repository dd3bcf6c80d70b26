"""Repros: typed tool calls with literal arguments, parsed and never evaluated.

    qa_compile(source="enum E{}")
    qa_publish(name="{name}", source="fn frame(t: i32) {}"); qa_fetch(url="{face:{name}}")

Argument values are JSON, read by the JSON parser; names are plain identifiers; nothing else is accepted.
The canonical form sorts arguments and escapes all but printable ASCII, so that a repro has one
spelling, fits on one line and is shown unchanged by any terminal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_CHARS = 262_144
MAX_CALLS = 16
MAX_ARGS = 16
MAX_DEPTH = 8

_CALL = re.compile(r"[ \t]*([a-z][a-z0-9_]{0,47})\(", re.ASCII)
_NAME = re.compile(r"[ \t]*([a-z_][a-z0-9_]{0,47})[ \t]*=[ \t]*", re.ASCII)
_NEXT = re.compile(r"[ \t]*([,)])", re.ASCII)
_EMPTY = re.compile(r"[ \t]*\)", re.ASCII)
_SEPARATOR = re.compile(r"[ \t]*(;|\Z)[ \t]*", re.ASCII)


class ReproError(ValueError):
    """The text is not a repro; the message gives place and reason, and never repeats the text."""


@dataclass(frozen=True, slots=True)
class ReproCall:
    """One tool call; strings in `args` may hold placeholders such as `{site}`, which stay unresolved."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)


def parse_repro(text: str) -> tuple[ReproCall, ...]:
    """The calls of a `repro:` line; raises ReproError for anything else."""
    if len(text) > MAX_CHARS:
        raise ReproError(f"longer than {MAX_CHARS} characters")
    calls: list[ReproCall] = []
    at = 0
    while True:
        call, at = _call(text, at)
        calls.append(call)
        separator = _SEPARATOR.match(text, at)
        if separator is None:
            raise ReproError(f"expected ';' or the end at character {at}")
        at = separator.end()
        if not separator[1]:
            return tuple(calls)
        if len(calls) == MAX_CALLS:
            raise ReproError(f"more than {MAX_CALLS} calls")


def write_repro(calls: Iterable[ReproCall]) -> str:
    """The canonical one-line, printable-ASCII form; raises ReproError for what could not be parsed again."""
    text = spell(calls)
    parse_repro(text)
    return text


def spell(calls: Iterable[ReproCall]) -> str:
    """The canonical form without the check that it parses again: for keys, not for the log."""
    return "; ".join(f"{call.tool}({_write_args(call.args)})" for call in calls)


def _write_args(args: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_write_value(args[name])}" for name in sorted(args))


def _write_value(value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ReproError(f"not a literal: {type(error).__name__}") from None


def _call(text: str, at: int) -> tuple[ReproCall, int]:
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
        args[name[1]], at = _value(text, name.end())
        following = _NEXT.match(text, at)
        if following is None:
            raise ReproError(f"expected ',' or ')' at character {at}")
        at = following.end()
        if following[1] == ")":
            return ReproCall(head[1], args), at


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        value, end = _LITERALS.raw_decode(text, at)
    except ReproError:
        raise
    except (ValueError, RecursionError) as error:  # also numbers with more digits than int() accepts
        raise ReproError(f"not a JSON literal at character {at}: {type(error).__name__}") from None
    _check_depth(value, MAX_DEPTH)
    return value, end


def _check_depth(value: Any, left: int) -> None:
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


_LITERALS = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant)
