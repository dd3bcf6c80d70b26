"""Bodies that fit an API's description: of a sign-up or log-in, and of a thing that an account makes. Pure.

The description is a stranger's: a part without the expected form gives no value.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleet.oracles.documents.json_schema import resolved
from fleet.oracles.documents.openapi import Operation, fields_of
from sandbox.sites.idents import snake
from sandbox.sites.likeness import MAX_PATTERN
from sandbox.sites.refusals import guessed

DEPTH = 4
"""Levels of a body that are filled in."""
HANDLE = 12
"""Characters of a handle: what takes fewer is given a shorter word."""
PHRASE = re.compile(
    r"(?i)^\w{0,20}(?:pass(?:word|phrase|wd|code|wort|key)|keyphrase|pwd)\w{0,20}$|^(?:\w{0,20}_)?pass$|^(?:pin|secret)$"
)
MAIL = re.compile(r"(?i)e?-?mail")
NAME = re.compile(r"(?i)^(?:\w{0,20}_)?(?:user(?:_?name)?|handle|login|nick(?:_?name)?|name|account|id)$")
_WHEN = re.compile(
    r"(?:^|_)(?:date|day|month|time|deadline|due|birthday|dob)$|(?:date|time)$|_(?:at|on|until|since)$"
    r"|^(?:start|end|begin|due|check_?in|check_?out|arrival|departure)s?(?:_(?:at|on))?$"
)
"""Names of fields, as `snake` has them, that hold a date or a time, whatever their schema says."""
_LATER = re.compile(r"end|until|out|departure|due|deadline|close|expire")
_DAY = re.compile(r"(?:^|_)(?:date|day|birthday|dob|on)$|date$")
_NOT_BLANK = re.compile(r"\(\?(?:=(?:\[\\s\\S\]\*|\.\*)?\\S(?:\.\*)?|!\\s\*\$)\)")
"""A look ahead for something that is no blank."""
_PART = re.compile(r"(\[(?:\\.|[^\]\\])+\]|\.|\\[Sw])([*+]\??|\?|\{(\d{0,5})(,?)(\d{0,5})\})?")
"""One class of characters of a pattern, and how often it stands."""
_NESTED = re.compile(r"\[\[|--|&&|~~|\|\|")
_WORDLY = string.ascii_lowercase + string.digits
WORD = 15
"""Characters of a mark."""
ADDRESS = re.compile(
    r"(?i)(?:^|[a-z]_?)(?:ur[il]|href|callback|webhook|hook|endpoint|feed|link)$|^(?:host|target|remote)_?url"
)
"""An input that names an address."""
_PERSON = re.compile(r"(?i)(?:full|first|last|given|family|display|sur|real|middle|company)_?-?name")
_WORDS = frozenset(
    {"date-time", "date", "email", "uuid", "uri", "url", "byte", "binary", "time", "ipv4", "ipv6"}
)
_FORMS = {
    "date": "1990-05-01",
    "date-time": "2030-05-01T12:00:00Z",
    "time": "12:00:00Z",
    "email": "{email}",
    "uuid": "5f0c9ad2-7c1e-4b57-9d3b-0d6a3b0f6b11",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "password": "{phrase}",
}
MARKED_ADDRESS = "https://example.com/{mark}"
"""An address in a thing that an account makes."""
Start = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SentBody:
    """The fields of a body that count, below what it is wrapped in: `layers` are names from outside, each
    with what stands beside it."""

    fields: Mapping[str, Mapping[str, Any]]
    required: frozenset[str]
    layers: tuple[tuple[str, Start], ...] = ()

    @classmethod
    def of(cls, one: Operation) -> SentBody:
        """That of an operation: `{"user": {…}}` and `{"data": {"type": …, "attributes": {…}}}` wrap one."""
        layers, fields, required = list[tuple[str, Start]](), one.fields, one.required
        for _ in range(DEPTH):
            known = {name: plain(said, one.document) for name, said in fields.items()}
            inner = [
                name for name, said in known.items() if said.get("type") == "object" or "properties" in said
            ]
            beside = {name: filled(name, known[name], one.document) for name in known if name not in inner}
            if len(inner) != 1 or any("{" in str(value) for value in beside.values()):
                break
            layers.append((inner[0], {name: one for name, one in beside.items() if one is not None}))
            fields, required = fields_of(fields[inner[0]], one.document)
        return cls(
            {name: plain(said, one.document) for name, said in fields.items()}, required, tuple(layers)
        )

    def wrapped(self, made: Start) -> Start:
        """What is sent, with these fields."""
        for name, beside in reversed(self.layers):
            made = {**beside, name: made}
        return made


def plain(schema: object, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with its reference followed, and of alternatives the first that is not null."""
    said = resolved(schema, document)
    for word in ("anyOf", "oneOf", "allOf"):
        parts = said.get(word)
        inner = [resolved(one, document) for one in parts[:8]] if isinstance(parts, list) else []
        chosen = [one for one in inner if one.get("type") != "null"]
        if chosen:
            merged = {
                key: value
                for one in (chosen if word == "allOf" else chosen[:1])
                for key, value in one.items()
            }
            said = {**merged, **{key: value for key, value in said.items() if key != word}}
    if isinstance(kinds := said.get("type"), list):
        said = {**said, "type": next((one for one in kinds if one != "null"), "null")}
    return said


def filled(
    name: str, schema: object, document: Mapping[str, Any], *, entering: bool = True, depth: int = DEPTH
) -> Any:  # noqa: ANN401  any JSON
    """A value of a field that fits its schema; None for none. `entering`: of a sign-up or log-in, where a
    name is that of the account."""
    said = plain(schema, document)
    kind, choices = said.get("type"), said.get("enum")
    ours = entering and any(form.search(name) for form in (PHRASE, MAIL, NAME))  # an example's is another's
    if "const" in said and not (ours and isinstance(said["const"], str)):
        return said["const"]
    if isinstance(choices, list) and choices:
        return choices[0]
    if depth and (kind == "object" or "properties" in said):
        fields = said.get("properties")
        inner = fields if isinstance(fields, dict) else {}
        needed = said.get("required")
        names = [one for one in (needed if isinstance(needed, list) else inner) if one in inner][:20]
        made = {one: filled(one, inner[one], document, entering=False, depth=depth - 1) for one in names}
        return {one: value for one, value in made.items() if value is not None}
    if kind == "array":
        one = filled(name, said.get("items"), document, entering=False, depth=depth - 1) if depth else None
        return [one] * (one is not None)
    if kind in (None, "string"):
        return _text(name, said, entering=entering)
    shown = next((said[word] for word in ("example", "default") if word in said), None)
    listed = said.get("examples")
    shown = listed[0] if shown is None and isinstance(listed, list) and listed else shown
    if kind == "boolean":
        return shown if isinstance(shown, bool) else guessed(name) is True or not entering
    if kind in ("integer", "number"):
        return _number(shown if type(shown) in (int, float) else guessed(name), said)
    return None


def _number(usual: Any, said: Mapping[str, Any]) -> float:  # noqa: ANN401  any JSON
    """A number within its bounds, the usual one if that is one."""
    least, most = (
        one if isinstance(one, int | float) else None for one in (said.get("minimum"), said.get("maximum"))
    )
    made = usual if type(usual) in (int, float) else 1 if least is None else least
    made = made if least is None else max(made, least)
    return made if most is None else min(made, most)


def _text(name: str, said: Mapping[str, Any], *, entering: bool) -> Any:  # noqa: ANN401  any JSON
    """A text that fits; a file as its name, type and text."""
    pattern, form = said.get("pattern"), str(said.get("format"))
    pattern = pattern if isinstance(pattern, str) and len(pattern) <= MAX_PATTERN else ""
    if form == "binary":
        return ["qa.txt", "text/plain", "qa"]
    if PHRASE.match(name) or form == "password":
        return _shaped("phrase", pattern, said)
    if MAIL.search(name) or form == "email":
        return "{email}"
    if entering and NAME.match(name) and not _PERSON.match(name):
        return _shaped("handle", pattern, said)
    listed = said.get("examples")
    examples = [said.get("example"), said.get("default"), *(listed if isinstance(listed, list) else ())]
    shown = next((one for one in examples if isinstance(one, str) and one), "")
    if names_address(name, said) and not (entering or shown or pattern):
        return MARKED_ADDRESS
    if shown or form in _FORMS or pattern:
        return shown or _FORMS.get(form) or f"{{handle:{pattern}}}"
    usual = guessed(name) if entering else _moment(snake(name)) or "{handle}"
    return _sized(usual if isinstance(usual, str) and "{phrase" not in usual else "{handle}", said)


def names_address(name: str, said: Mapping[str, Any]) -> bool:
    """Whether a text is an address, by its schema or its name."""
    return said.get("format") in ("uri", "url") or bool(ADDRESS.search(name))


def _moment(name: str) -> str:
    """A time, or a day, of a field that holds one by its name; "" for any other."""
    if not _WHEN.search(name):
        return ""
    day = "2030-05-02" if _LATER.search(name) else "2030-05-01"
    return day[:7] if name.endswith("month") else day if _DAY.search(name) else f"{day}T12:00:00Z"


def _shaped(word: str, pattern: str, said: Mapping[str, Any]) -> str:
    """A word of an account, in the form that a schema asks for."""
    longest = said.get("maxLength")
    if pattern:
        return f"{{{word}:{pattern}}}"
    if word == "handle" and isinstance(longest, int) and 0 < longest < HANDLE:
        return f"{{handle:[a-z]{{{longest}}}}}"
    if word == "phrase" and isinstance(longest, int) and 4 < longest < 20:
        return f"{{phrase:Qa1![a-z0-9]{{{longest - 4}}}}}"
    return f"{{{word}}}"


def _sized(usual: str, said: Mapping[str, Any]) -> str:
    """A text of a length that a schema permits."""
    least, longest, size = (
        said.get("minLength"),
        said.get("maxLength"),
        HANDLE if "{" in usual else len(usual),
    )
    if isinstance(longest, int) and 0 < longest < size:
        return "qa"[:longest]
    return usual + "a" * (least - size) if isinstance(least, int) and size < least <= 200 else usual


def any_word(pattern: str) -> bool:
    """Whether any WORD letters and digits fit a pattern of classes in a row. It is a stranger's, so none but
    its single classes are run."""
    rest = _NOT_BLANK.sub("", pattern.removeprefix("^").removesuffix("$"))
    parts = list(_PART.finditer(rest)) if len(pattern) <= MAX_PATTERN else []
    if not parts or "".join(one[0] for one in parts) != rest or _NESTED.search(rest):
        return False
    least = most = 0
    for one in parts:
        try:
            if not all(map(re.compile(one[1]).fullmatch, _WORDLY)):
                return False
        except re.error:
            return False
        how, low, comma, high = one[2] or "", one[3], one[4], one[5]
        if how.startswith("{"):
            bounds = int(low or 0), (int(high or WORD) if comma else int(low or 0))
        else:
            bounds = int(how[:1] not in ("*", "?")), WORD if how[:1] in ("*", "+") else 1
        least, most = least + bounds[0], most + bounds[1]
    anchored = pattern.startswith("^") and pattern.endswith("$")
    return least <= WORD and (most >= WORD or not anchored)


def free(schema: Mapping[str, Any], name: str = "") -> bool:
    """Whether any word fits, of 15 letters and digits and more, by its schema and its name."""
    longest, pattern = schema.get("maxLength"), schema.get("pattern")
    bound = any(one in schema for one in ("enum", "const")) or schema.get("format") in _WORDS
    bound |= pattern is not None and not any_word(str(pattern))
    bound |= bool(PHRASE.match(name) or _WHEN.search(snake(name)) or ADDRESS.search(name))
    return schema.get("type") == "string" and not bound and not (isinstance(longest, int) and longest < 15)
