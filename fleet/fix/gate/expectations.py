"""A probe's expectation as a regression test can state it: simple comparisons of one answer. Pure.

An expectation is CEL. What a test of a repository can say of an answer is a list of groups, all of which
hold; of each group one statement does: a field, an operator and a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

Statement = tuple[str, str, object]
"""A field of FIELDS, one of `== != < <= > >= in not-in has lacks`, and a value."""
FIELDS = frozenset({"status", "ok", "text", "content_type", "allow_origin", "location"})
"""What the shipped template reads from an answer."""
_OPPOSITE = {"==": "!=", "<": ">=", ">": "<=", "in": "not-in", "has": "lacks"}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}
_VALUE = r"""("(?:[^"\\]|\\.)*"|'[^'\\]*'|-?\d+(?:\.\d+)?|true|false|\[[^\[\]]*\])"""
_COMPARED = re.compile(rf"result\.(\w+)\s*(==|!=|<=|>=|<|>|in)\s*{_VALUE}\Z")
_HELD = re.compile(rf"{_VALUE}\s+in\s+result\.(\w+)\Z")
_CONTAINS = re.compile(rf"result\.(\w+)\.contains\(\s*{_VALUE}\s*\)\Z")
_TRUTH = re.compile(r"result\.(ok)\Z")


def stated(expectation: str) -> tuple[tuple[Statement, ...], ...] | None:
    """The groups of an expectation; None for one that says more than this form can."""
    parts = list(_split(expectation.strip(), "&&"))
    groups = []
    for part in parts:
        inner = _bare(part)
        alone = inner == part
        options = list(_split(inner, "||"))
        if len(options) > 1 and alone and len(parts) > 1:
            return None  # `a && b || c` is grouped otherwise
        group = [_statement(one) for one in options]
        if not group or None in group:
            return None
        groups.append(tuple(one for one in group if one is not None))
    return tuple(groups)


def _statement(text: str) -> Statement | None:
    text, negated = text.strip(), False
    while text.startswith("!") and not text.startswith("!="):
        text, negated = text[1:].strip(), not negated
    text = _bare(text)
    found: Statement | None = None
    try:
        if hit := _COMPARED.match(text):
            found = (hit[1], hit[2], _value(hit[3]))
        elif hit := _HELD.match(text):
            found = (hit[2], "has", _value(hit[1]))
        elif hit := _CONTAINS.match(text):
            found = (hit[1], "has", _value(hit[2]))
        elif hit := _TRUTH.match(text):
            found = (hit[1], "==", True)
    except ValueError:
        return None
    if found is None or found[0] not in FIELDS or not _fits(found):
        return None
    return (found[0], _OPPOSITE[found[1]], found[2]) if negated else found


def _fits(statement: Statement) -> bool:
    """Whether a field and a value are of one type: everything else is for CEL to judge."""
    field, sign, value = statement
    if sign == "in":
        return isinstance(value, list) and bool(value) and all(_fits((field, "==", one)) for one in value)
    if field == "status":
        return type(value) in (int, float) and sign not in ("has", "lacks")
    if field == "ok":
        return type(value) is bool and sign in ("==", "!=")
    return isinstance(value, str) and sign in ("==", "!=", "has", "lacks")


def _value(text: str) -> object:
    return json.loads(re.sub(r"'([^'\\\"]*)'", r'"\1"', text))


def _split(text: str, sign: str) -> Iterator[str]:
    """The parts between a sign that stands outside of quotes, brackets and parentheses."""
    depth, quote, start, at = 0, "", 0, 0
    while at < len(text):
        char = text[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif not depth and text.startswith(sign, at):
            yield text[start:at].strip()
            at += len(sign) - 1
            start = at + 1
        at += 1
    yield text[start:].strip()


def _bare(text: str) -> str:
    """Without parentheses around the whole of it."""
    while text.startswith("(") and text.endswith(")") and _closes_last(text):
        text = text[1:-1].strip()
    return text


def _closes_last(text: str) -> bool:
    depth, quote = 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[at - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        else:
            depth += (char == "(") - (char == ")")
            if depth == 0:
                return at == len(text) - 1
    return False
