"""An observation in words and as a key: the title, the body and the signature of a finding. Pure.

A finding is named after the answer, not after its author's expectation: another panic at the same probe has
another title and is another finding. The signature omits what differs between two looks at one defect (times,
addresses, hashes, run names, free text) and keeps what distinguishes defects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from fleet.findings.field_words import amount, in_words
from fleet.text import clean, line
from sandbox import tools

SEEN_CHARS = 220
TITLE_CHARS = 100
"""A title that begins with what is wrong fits a line of a terminal with its rank, severity and age."""
NAME_CHARS = 52
"""What is wrong has this many characters of it, more where the place and the observation leave some."""
WORD_CHARS = 16
"""A longer word is cut in its middle before a title is cut at its end: a path keeps both of its ends."""
CLAUSE = 4
"""Words of an observation that are kept at least where its last clauses are left out."""
QUERY_CHARS = 24
ARGUMENT_CHARS = 120

_MENTION = re.compile(r"\b(?:results?(?:\[\d{1,2}\])?|[a-z])\.([a-z][a-z0-9_]{0,40})(?![\w(])")
_FREE = frozenset({"text", "reply", "error", "headers", "value", "sha256", "tx", "location", "diagnostic"})
"""Fields with free text: shown, but only their template is part of a signature."""
_EXACT = frozenset({"status", "exit_code"})
"""Numbers that are significant as values; of others only the sign is part of a signature."""
_PLACE = re.compile(r"([\w./-]{1,120}\.[a-z]{1,4}):(\d{1,7})(?::\d{1,7})?")
_NAME = re.compile(r"\bqa-[a-z0-9]{4,40}-\d{1,4}\b")
_HEX = re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{16,}\b")
_QUOTED = re.compile(r"\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|`[^`\n]{0,200}`")
_LITERAL = re.compile(r"[\"']([^\"'\n]{3,40})[\"']")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ARGUMENT = re.compile(r"\{([a-z_]+)(?::([^{}]+))?\}")
_QUOTATION = re.compile(r'"([^"]*)(?:"|$)')
_CLAUSE = re.compile(r"[,:;] | \(")
_BLANKS = re.compile(r"\s+")
_FACE = re.compile(r"\{face:(\{name\}|[^{}]+)\}/?")
_QUERY = re.compile(r"((?<![^\s\"(])(?:https?://|[\w{-]*[/}])[^\s?]*)\?([^\s?]*?=[^\s]*?)(?=[,:;)]?(?:\s|$))")
_ENCODED = re.compile(r"(?:%[0-9a-fA-F]{2})+")


@dataclass(frozen=True, slots=True)
class Sighting:
    """`kind` and `where` are its identity: the kind's id, and the parts of the kind's place.

    Without a kind it is the signature; `whole`: that names the defect by itself, else the calls that show it
    are part of it. `former` are signatures of earlier versions with their `whole`: a finding that was
    recorded under one is looked for.
    """

    title: str
    signature: str
    whole: bool = False
    body: str = ""
    kind: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    former: tuple[tuple[str, bool], ...] = ()


def titled(name: str, seen: str) -> str:
    """The title of a finding: what is wrong, where, and the observation that shows it.

    `name` is that of its kind, or its probe's own sentence; without one the observation is the title.
    """
    if not name:
        return seen
    sentence = re.split(r"[;,] [^;,]{0,60}\bexpected\b", name, maxsplit=1)[0].rstrip(". ")
    observed = line(spelled(seen), 2 * SEEN_CHARS)
    room = max(NAME_CHARS, TITLE_CHARS - len(": ") - len(observed))
    begin = f"{line(sentence[:1].upper() + sentence[1:], room)}: "
    return line(begin + _shortened(observed, TITLE_CHARS - len(begin)), TITLE_CHARS)


def _shortened(text: str, room: int) -> str:
    """An observation of `room` characters at most, if it can be: without the middle of its longest words,
    then without its later sentences, the ends of what it quotes, and its last clauses."""
    while len(text) > room and len(word := max(text.split(), key=len)) > WORD_CHARS:
        kept = max(WORD_CHARS, len(word) - (len(text) - room)) - 1
        text = text.replace(word, f"{word[: kept - kept // 2]}…{word[-(kept // 2) :]}", 1)
    while len(text) > room and "; " in text:
        text = text.rpartition("; ")[0]
    while len(text) > room and len(quote := max(_QUOTATION.findall(text), key=len, default="")) > WORD_CHARS:
        kept = max(WORD_CHARS, len(quote) - (len(text) - room)) - 1
        text = text.replace(quote, f"{quote[:kept].rpartition(' ')[0] or quote[:kept]}…", 1)
    while len(text) > room:
        plain = _QUOTATION.sub(lambda quoted: "x" * len(quoted[0]), text)
        ends = [one.start() for one in _CLAUSE.finditer(plain) if len(plain[: one.start()].split()) >= CLAUSE]
        if not ends:
            break
        text = text[: ends[-1]]
    return text.rstrip(" :,;(")


def spelled(seen: str) -> str:
    """An observation as people write it: `{face:docs}/x` is `docs/x`, wei are credits, an address is cut, and
    of a long query the names of its parameters are left."""
    seen = _FACE.sub(r"\1/", seen).replace("{site}", "").replace("{proxy}", "proxy")
    seen = _QUERY.sub(_parameters, seen)
    seen = _ENCODED.sub(_decoded, seen)
    seen = re.sub(r"\b(\d{13,30}) wei\b", lambda found: amount(int(found[1])), seen)
    seen = re.sub(r"\b(0x[0-9a-fA-F]{4})[0-9a-fA-F]{8,}([0-9a-fA-F]{4})\b", r"\1…\2", seen)
    return seen.replace("{name}", "a new name").replace("{value}", "…")


def _parameters(found: re.Match[str]) -> str:
    page, query = found[1] or "/", found[2]
    if len(query) <= QUERY_CHARS and "%" not in query:
        return f"{page}?{query}"
    names = list(dict.fromkeys(unquote(pair.partition("=")[0]) for pair in query.split("&")))
    return f"{page}, parameter{'s' if len(names) > 1 else ''} {', '.join(names[:3])}" + (
        ", …" if len(names) > 3 else ""
    )


def _decoded(found: re.Match[str]) -> str:
    """Printable characters that stand encoded in a path; any other stays as it was sent."""
    plain = unquote(found[0])
    return plain if plain.isascii() and plain.isprintable() else found[0]


def template(message: str) -> str:
    """A message with names, hex, quoted texts and numbers removed; a source location is kept."""
    places = [f"{found[1]}:{found[2]}" for found in _PLACE.finditer(message)]
    for pattern, word in ((_PLACE, "{place}"), (_NAME, "{name}"), (_HEX, "{hex}"), (_QUOTED, "{text}")):
        message = pattern.sub(word, message)
    message = _BLANKS.sub(" ", _NUMBER.sub("{n}", message)).strip()[:160]
    return f"{message} @ {', '.join(places[:3])}" if places else message


def mentioned(expect: str) -> tuple[str, ...]:
    """Fields of results that an expectation uses, in its order."""
    return tuple(dict.fromkeys(_MENTION.findall(expect)))


def of_probe(
    expect: str, calls: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]], intent: str
) -> Sighting:
    """Of an attempt whose expectation failed: the last call, and those before it that failed or have a field
    in question, the last first."""
    fields = mentioned(expect)
    shown: list[tuple[bool, str]] = []
    for call, result in zip(reversed(calls), reversed(results), strict=True):
        values = _values(call, result, fields, expect)
        if values or not shown or result.get("error_class"):
            ended = state(call["tool"], result).replace("_", " ")
            how = ", ".join(filter(None, (ended, values)))
            where = lead(call["tool"], call["args"])
            shown.append((not result.get("error_class"), ": ".join(filter(None, (where, how)))))
    shown.sort(key=lambda one: one[0])  # what failed comes first
    keys = [_key(call, result, fields) for call, result in zip(calls, results, strict=True)]
    return Sighting(
        title=line("; ".join(text for _, text in shown), SEEN_CHARS),
        signature="probe " + " | ".join(keys),
        body=f"intent: {line(intent, 300)}",
    )


def lead(tool: str, args: Mapping[str, Any]) -> str:
    """The call in a few words; arguments as in the repro, with placeholders."""
    if (spec := tools.TOOLS.get(tool)) is None:
        return tool
    mode = spec.mode(args)
    args = spec.defaults | dict(args)
    first, *more = (mode.asks,) if mode else spec.asks or (tool,)
    given = [part for part in more if all(args.get(name) for name, _ in _ARGUMENT.findall(part))]
    return "".join(
        _ARGUMENT.sub(lambda name: name[2] or line(str(args.get(name[1], "")), ARGUMENT_CHARS), part)
        for part in (first, *given)
    )


def state(tool: str, result: Mapping[str, Any]) -> str:
    """Its outcome: this tool's outcome field; where that is empty, the error is the outcome."""
    spec = tools.TOOLS.get(tool)
    if spec and spec.ends_in and (result.get(spec.ends_in) or not result.get("error_class")):
        return str(result.get(spec.ends_in, ""))
    return (
        "ok" if result.get("ok") else line(f"{result.get('error_class', '')} {result.get('error', '')}", 120)
    )


def _values(call: Mapping[str, Any], result: Mapping[str, Any], fields: Iterable[str], expect: str) -> str:
    spec = tools.TOOLS.get(call["tool"])
    told = {"status", "outcome", "ok", spec.ends_in if spec else ""}
    told |= {"error", "error_class"} if not (spec and result.get(spec.ends_in)) else set()
    shown = []
    for name in fields:
        if name in result and name not in told:
            value = result[name]
            asked = [one for one in _LITERAL.findall(expect) if isinstance(value, str) and one in value]
            if value and value == call["args"].get("origin"):
                shown.append(in_words(name, "it"))
            elif len(str(value)) > ARGUMENT_CHARS and asked:
                shown.append(f'{name} with "{asked[0]}"')
            elif name not in _FREE or len(str(value)) <= ARGUMENT_CHARS:
                shown.append(in_words(name, value))
    return ", ".join(shown)


def _key(call: Mapping[str, Any], result: Mapping[str, Any], fields: Iterable[str]) -> str:
    tool = call["tool"]
    spec = tools.TOOLS.get(tool)
    told = state(tool, result)
    if spec and spec.ends_in and told != str(result.get(spec.ends_in, "")):
        told = template(told)  # an error in place of the outcome
    parts = [tool, str(bool(result.get("ok"))) if spec and spec.error_varies else told]
    parts += [f"{field}={_steady(field, result[field])}" for field in fields if field in result]
    if state(tool, result) in ("panic", "crash"):
        parts.append(template(clean(str(result.get("error", "")))))
    return " ".join(parts)


def _steady(field: str, value: object) -> str:
    if isinstance(value, bool) or value is None or field in _EXACT:
        return str(value)
    if isinstance(value, int | float):
        return "0" if value == 0 else "+" if value > 0 else "-"
    if isinstance(value, list | tuple):
        return ",".join(sorted({template(str(one)) for one in value}))
    if field in _FREE or not isinstance(value, str):
        return "some" if value else "none"
    return template(value)
