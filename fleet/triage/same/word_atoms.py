"""What one token of a text is: a word, a number, a mark that tells defects apart, or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fleet.triage.same.word_lists import lists, stem

WORD_CHARS = 48
"""A longer word is not a word of a language: it is left out."""

_VOLATILE = re.compile(
    r"0x[0-9a-f]{9,}(?:\.\.\.|…)?[0-9a-f]*|0x[0-9a-f]{2,8}(?:\.\.\.|…)[0-9a-f]*"  # addresses, hashes
    r"|(?=[a-f]*\d)[0-9a-f]{8,}|[0-9a-f]{8}-[0-9a-f-]{20,32}"  # bare hex, UUIDs
    r"|\d{4}-\d\d-\d\d(?:t[\d:.+z-]*)?|\d{1,2}:\d\d(?::\d\d)?(?:\.\d+)?z?"  # dates and times
    r"|v?\d+(?:\.\d+){2,3}(?::\d+)?|v\d+(?:\.\d+)?"  # versions, IPv4
    r"|#\d+|[$€£~]?\d[\d,._]*(?:ms|s|m|h|d|min|sec|eth|usd|lh|gwei|wei|k|kb|mb|gb|%|x|th)?"  # amounts
    r"|(?:run|tx|block|id|seed)[-:#=]?\w*\d\w*|qa-[a-z0-9]{4,40}-\d{1,4}|run-?[0-9a-z-]+",
    re.IGNORECASE,
)
STATUS = re.compile(r"[45]\d\ds?")
_MARKS = (
    ("selector", re.compile(r"0x[0-9a-fA-F]{8}")),
    ("mode", re.compile(r"0[0-7]{3}")),
    ("code", re.compile(r"[A-Z]{1,8}-?\d{2,6}|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")),
    ("host", re.compile(r"(?:[a-z0-9-]+\.){1,4}(?:com|org|net|io|dev|xyz|app|example|local|test|eth)")),
    ("route", re.compile(r"(?:(?:GET|POST|PUT|DELETE)?/[\w.{}:*-]+)(?:/[\w.{}:*-]*)*")),
    ("file", re.compile(r"[\w-]*\.(?:json|toml|md|py|rs|js|ts|html|css|txt|sol|yaml|yml|lock|env|log)")),
    ("flag", re.compile(r"--[a-z][a-z0-9-]*")),
    ("agent", re.compile(r"@[A-Za-z0-9][\w-]*")),
    (
        "function",
        re.compile(r"[A-Za-z_][\w.:]*\(\)|[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+"),
    ),
)
_URL = re.compile(r"(?:https?|wss?)://([^/\s:?#]+)(?::\d+)?(/[^\s?#]*)?\S*", re.IGNORECASE)
_EDGE = "`*_~'\"()[]<>.:…"
_SUBWORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_JOINS = re.compile(r"[/+&()\[\].:@#*`~]+")
_UNIT = re.compile(r"(\d+)[- ]?(px|chars?|characters?|bytes?|bits?)")
_SPEAKING = frozenset({"function", "flag", "route", "file"})
_PAUSES, _ENDS = frozenset(",;—–→|:"), frozenset("!?.\n")

Atom = tuple[str, str, str]
"""(kind, value, stem): `w` a word, `+` `-` its concept, `?` a word of no list, `n` a number, `.` and `,` the
end of a sentence and of a clause, else the class of a mark."""


def atoms_of(token: str) -> Iterator[Atom]:
    """What one token of a text is: nothing, if it is volatile."""
    if token in _PAUSES or token in _ENDS:
        yield "." if token in _ENDS else ",", token, token
    elif match := _URL.match(token):
        yield "host", match[1].lower(), ""
        if match[2] and match[2] != "/":
            yield "route", match[2].lower().rstrip("/.,:)"), ""
    else:
        bare = token.strip(_EDGE) if not token.endswith("()") else token.lstrip(_EDGE)
        if len(bare) <= WORD_CHARS * 2:
            yield from _bare_atoms(bare, token)
        if token[-1] in ".:" and len(token) > 1:
            yield "." if token[-1] == "." else ",", token[-1], token[-1]


def _bare_atoms(bare: str, token: str) -> Iterator[Atom]:
    lowered = bare.lower()
    known = lists().concepts
    for exact in (token, lowered):
        if exact in known:
            yield "n" if bare.isdecimal() else "w", exact, stem(exact)
            return
    if "../" in token:
        yield "w", "../", "../"
    elif STATUS.fullmatch(bare) or bare.isdecimal():
        yield "n", bare, bare
    elif split := _UNIT.fullmatch(lowered):
        yield "n", split[1], split[1]
        yield "w", split[2], stem(split[2])
    elif found := next((kind for kind, pattern in _MARKS if pattern.fullmatch(bare)), ""):
        yield found, lowered.removesuffix("()").replace("_", "") if found == "function" else lowered, ""
        if found in _SPEAKING:
            yield from (("w", part.lower(), stem(part.lower())) for part in _SUBWORDS.findall(bare))
    elif not _VOLATILE.fullmatch(bare):
        yield from _words(lowered)


def _words(text: str) -> Iterator[Atom]:
    for part in _JOINS.split(text):
        if part in lists().concepts:
            yield "w", part, stem(part)
            continue
        for piece in part.split("-"):
            piece = piece.strip("'").removesuffix("'s")
            if piece and len(piece) <= WORD_CHARS and not piece.isdecimal():
                yield "w", piece, stem(piece)
