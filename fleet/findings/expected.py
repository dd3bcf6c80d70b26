"""What was expected of a field and what was seen, in words: the two sides of a finding. Pure.

An expectation says what holds of a healthy answer: `result.status != 200 || result.turns < 11`. Of such a
choice the earlier parts only say when the last one counts, so that is what was expected of its field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from fleet.findings.sighting import spelled
from fleet.text import clean, counted

SHOWN = 160
"""Characters of a value beside another one."""
_FIELD = r"(?:results?(?:\[\d{1,2}\])?|[a-z])\.([a-z][a-z0-9_]{0,40})"
_VALUE = r"(true|false|null|-?\d+(?:\.\d+)?|\"[^\"]*\"|'[^']*')"
_COMPARED = re.compile(rf"{_FIELD}\s*(==|!=|<=|>=|<|>)\s*(.+)")
_WHOLE = re.compile(r"-?[0-9]{16,78}", re.ASCII)
_OTHER = re.compile(rf"(?:facts\.([a-z_]+)|{_FIELD})(?:\s*\*\s*(\d+(?:\.\d+)?))?(?:\s*\+\s*(\d+(?:\.\d+)?))?")
_LITERAL = re.compile(_VALUE)
_PLAIN = re.compile(_FIELD)
_LISTED = re.compile(rf"{_FIELD}\s+in\s+\[(.+)\]")
_HAS = re.compile(rf"{_VALUE}\s+in\s+{_FIELD}")
_EXISTS = re.compile(rf"{_FIELD}\.exists\([a-z], [a-z] == {_VALUE}\)")
_CONTAINS = re.compile(rf"{_FIELD}\.contains\({_VALUE}\)")
_SIZE = re.compile(rf"size\({_FIELD}\)\s*(==|!=|>)\s*0")
_EVERY = re.compile(r"results\.all\([a-z], (.+)\)")
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_WORDS = {"==": "", "!=": "not ", "<": "less than ", "<=": "at most ", ">": "more than ", ">=": "at least "}


def expected(expectation: str) -> dict[str, str]:
    """What a healthy answer has, by field, of an expectation in CEL; fields that it says otherwise are left
    out."""
    found: dict[str, list[str]] = {}
    for field, words in _parts(expectation.strip(), wanted=True):
        found.setdefault(field, []).append(words)
    return {field: " and ".join(dict.fromkeys(words)) for field, words in found.items()}


def seen(field: str, value: object) -> str:
    """The value of a field as people write it."""
    if value is None or value in ("", [], (), {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and _WHOLE.fullmatch(value):  # evidence has a larger integer as its digits
        value = int(value)
    if isinstance(value, int | float):
        wei = field.startswith("charged") or field.endswith("_wei")
        if wei and isinstance(value, int):
            return spelled(f"{value} wei") if value else "0 credits"
        return str(value) if isinstance(value, int) else f"{value:.10g}"
    if isinstance(value, list | tuple):
        if field == "answers" and all(isinstance(one, Mapping) and "status" in one for one in value):
            return clean("status " + ", ".join(str(one["status"]) for one in value), SHOWN)
        more = f" and {len(value) - 4} more" if len(value) > 4 else ""
        return clean(", ".join(seen("", one) for one in value[:4]) + more, SHOWN)
    if isinstance(value, Mapping):
        pairs = (f"{name}: {seen('', one)}" for name, one in list(value.items())[:4])
        more = f" and {counted(len(value) - 4, 'more field')}" if len(value) > 4 else ""
        return clean("; ".join(pairs) + more, SHOWN)
    return clean(spelled(str(value)), SHOWN)


def named(field: str) -> str:
    """A field's name in words."""
    return {"a11y": "accessibility rules broken"}.get(field, field.replace("_", " "))


def _parts(text: str, *, wanted: bool) -> list[tuple[str, str]]:
    """Fields with what is wanted of them, of an expression that must be `wanted`."""
    text = _bare(text)
    if text.startswith("!") and (inner := _bare(text[1:])) and not _split(inner, "&&", "||")[1:]:
        return _parts(inner, wanted=not wanted)
    if text.startswith("!(") and _closes(text, 1) == len(text) - 1:
        return _parts(text[2:-1], wanted=not wanted)
    both, either = ("&&", "||") if wanted else ("||", "&&")
    if len(ones := _split(text, either)) > 1:  # the parts before the last one say when it counts
        return _parts(ones[-1], wanted=wanted)
    if len(ones := _split(text, both)) > 1:
        return [found for one in ones for found in _parts(one, wanted=wanted)]
    if wanted and (every := _EVERY.fullmatch(text)):
        return _parts(every[1], wanted=True)
    return _part(text, wanted=wanted)


def _part(text: str, *, wanted: bool) -> list[tuple[str, str]]:
    if found := _COMPARED.fullmatch(text):
        words = _compared(found[1], found[2] if wanted else _OPPOSITE[found[2]], found[3].strip())
        return [(found[1], words)] if words else []
    if found := _PLAIN.fullmatch(text):
        return [(found[1], "yes" if wanted else "no")]
    if found := _LISTED.fullmatch(text):
        values = [_literal(found[1], one) for one in _LITERAL.findall(found[2])]
        return [(found[1], " or ".join(values) if wanted else "none of " + ", ".join(values))]
    if found := _HAS.fullmatch(text):
        return [(found[2], ("" if wanted else "without ") + _literal(found[2], found[1]))]
    if found := (_EXISTS.fullmatch(text) or _CONTAINS.fullmatch(text)):
        return [(found[1], ("with " if wanted else "without ") + _literal(found[1], found[2]))]
    if found := _SIZE.fullmatch(text):
        return [(found[1], "none" if (found[2] == "==") == wanted else "at least one")]
    return []


def _compared(field: str, sign: str, other: str) -> str:
    """What a comparison wants of a field; "" for one with what is not understood."""
    if other in ('""', "''"):
        return "empty" if sign == "==" else "not empty"
    if _LITERAL.fullmatch(other):
        return _WORDS[sign] + _literal(field, other)
    if found := _OTHER.fullmatch(other):
        promised, same, by, and_ = found.groups()
        if same == field and not (by or and_):
            return {"==": "the same each time", "!=": "another one each time"}.get(sign, "")
        words = f"the promised {named(promised)}" if promised else f"the {named(same)}"
        times, plus = f" × {float(by):g}" if by else "", f" + {float(and_):g}" if and_ else ""
        return f"{_WORDS[sign]}{words}{times}{plus}"
    return ""


def _literal(field: str, text: str) -> str:
    value = text[1:-1] if text[:1] in "\"'" else json.loads(text)
    return seen(field, value)


def _bare(text: str) -> str:
    """Without the brackets around the whole of it."""
    text = text.strip()
    while text.startswith("(") and _closes(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _closes(text: str, at: int) -> int:
    """Where the bracket at this position closes; -1 for nowhere."""
    depth = 0
    for index, char in _outside(text):
        if index >= at:
            depth += (char in "([") - (char in ")]")
            if depth == 0:
                return index
    return -1


def _split(text: str, *signs: str) -> list[str]:
    """The parts between these signs, brackets and texts left whole."""
    depth, begin, parts = 0, 0, []
    for index, char in _outside(text):
        depth += (char in "([") - (char in ")]")
        if depth == 0 and index >= begin and text[index : index + 2] in signs:
            parts.append(text[begin:index])
            begin = index + 2
    return [*parts, text[begin:]]


def _outside(text: str) -> list[tuple[int, str]]:
    """Each character that is in no quoted text, with its position."""
    quoted, found = "", []
    for index, char in enumerate(text):
        if quoted:
            quoted = "" if char == quoted else quoted
        elif char in "\"'":
            quoted = char
        else:
            found.append((index, char))
    return found
