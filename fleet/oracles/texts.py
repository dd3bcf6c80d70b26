"""The texts of an answer, decoded, and whether the platform itself speaks in them. Pure.

A refusal speaks for the platform as a whole. In an answer of status below 400 it speaks in the fields of an
error, in a short text that explains and quotes nothing, in comments, and in what a language writes of itself
into a page; what remains may be a document about errors, or the words of a user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import unquote

PLAIN = 2_000
"""Characters: a longer text of status below 400 may well be a document about errors."""
SHORT_PAGE = 600
"""Visible characters of a page that says one thing."""

_ERROR_KEY = re.compile(
    r"(?i)err(?:or|ors)?$|^err|exception|stack|trace(?:back)?$|^debug|detail|reason|cause|fail|fault|diagnostic|panic"
)
_CONTENT_KEY = re.compile(
    r"(?i)^(?:texts?|content|contents|body|notes?|comments?|descriptions?|persona|messages?|titles?|feedback|summary"
    r"|bio|prompts?|html|markdown|source|code|examples?|readme|docs?|help|hint|usage|install|value|snippet|data|q|"
    r"query|input|echo|you_sent)$"
)
_PLACE_KEY = re.compile(
    r"(?i)^(?:cwd|root|db|database|storage|socket|work(?:ing)?_?dir(?:ectory)?|data_?dir|(?:db|config|log)_?(?:file|path)"
    r"|config|(?:source|server|document)_?root)$"
)
"""Fields of a status page that hold a place of the server's own."""
_PROSE = re.compile(
    r"(?i)\b(?:if (?:you|your|it|the)|when (?:you|your|a|the)|means|for example|e\.g\.|such as|how to|faq"
    r"|tutorial|learn|fix(?:es|ed|ing)?|resolved?|solution|changelog|release notes|we (?:now|no longer|have)"
    r"|common|guide|known issues?|was reported|reports?)\b|troubleshoot"
)
_QUOTED = re.compile(r"(?ms)^[ ]{0,3}(`{3,}|~{3,})[^\n]*\n.{0,8000}?^[ ]{0,3}\1|(?<!`)`[^`\n]{1,400}`(?!`)")
"""What a document in Markdown quotes: between two fences, or between two back quotes."""
_EMITTED = re.compile(
    r"<br ?/?>\s{0,4}<b>(?:Warning|Notice|Deprecated|Parse error|Fatal error)</b>:\s{1,4}"
    r"[^\n]{1,400}? in <b>[^<\n]{1,300}</b> on line <b>\d{1,7}</b>"
)
"""What PHP itself writes into a page; a document that shows it quotes its marks, or has it in `<pre>`."""
_SHOWN = re.compile(r"(?is)<(pre|code|samp|textarea)\b[^>]{0,400}>.{0,8000}?</\1\s*>")
_COMMENT = re.compile(r"<!--([\s\S]{0,4000}?)-->")
_SILENT = re.compile(r"(?is)<(script|style|template)\b[^>]{0,400}>.{0,8000}?</\1\s*>|<!--.{0,4000}?-->")
_BLOCK = re.compile(
    r"(?i)</?(?:p|li|h[1-6]|div|section|article|main|nav|header|footer|title|tr|br)\b[^<>]{0,400}>"
)
_TAG = re.compile(r"<[!/a-zA-Z][^<>]{0,2000}>")
_ESCAPE = re.compile(r"\\(?:u00([0-9a-fA-F]{2})|x([0-9a-fA-F]{2})|([nrt\"'/\\]))")
_PLAIN_ESCAPES = {"n": "\n", "r": "\n", "t": "\t"}
_FAILED = frozenset({"error", "failed", "failure", "fail"})
DEPTH = 32


@dataclass(frozen=True, slots=True)
class Passage:
    """`failing`: it speaks of a failure by its place; `page`: it is what a page shows."""

    text: str
    failing: bool
    page: bool = False


def passages(result: Mapping[str, Any]) -> Iterator[Passage]:
    """The passages in which the platform speaks for itself, the clearest reading first."""
    text, refused = str(result.get("text", "")), int(result.get("status", 0)) >= 400
    document = parsed(text)
    if isinstance(document, dict | list):
        yield from _of_json(document, refused)
    elif is_html(result):
        yield from (Passage(unescape(found), True) for found in _COMMENT.findall(text))
        yield from (Passage(found, True) for found in _EMITTED.findall(_SHOWN.sub(" ", text)))
        shown = visible(text)
        if refused or (len(shown) < SHORT_PAGE and not _PROSE.search(shown)):
            yield Passage(shown, refused, page=True)
    elif refused or (len(text) < PLAIN and not _PROSE.search(text)):
        own = text if refused else _QUOTED.sub(" ", text)
        yield Passage(own, refused)
        yield Passage(unescaped(own), refused)
    if refused:
        yield Passage(text, True)
        yield Passage(unescaped(text), True)


def is_html(result: Mapping[str, Any]) -> bool:
    """Whether the answer is declared as a page."""
    return "html" in str(result.get("content_type", "")).lower()


def parsed(text: str) -> object:
    """The JSON document that a text is; None for any other text."""
    try:
        return json.loads(text) if text.lstrip()[:1] in ("{", "[", '"') else None
    except (ValueError, RecursionError):
        return None


def visible(markup: str) -> str:
    """What a reader sees of a page, roughly: no tags, scripts, styles or comments; a block begins a line."""
    return unescape(_TAG.sub(" ", _BLOCK.sub("\n", _SILENT.sub(" ", markup)))).strip()


def unescaped(text: str) -> str:
    """The text without the escapes of JSON, HTML and URLs."""

    def plain(found: re.Match[str]) -> str:
        digits = found[1] or found[2]
        return chr(int(digits, 16)) if digits else _PLAIN_ESCAPES.get(found[3], found[3])

    return unquote(unescape(_ESCAPE.sub(plain, text)))


def leaves(
    value: object, path: tuple[str, ...] = (), depth: int = DEPTH
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value of a document with its path; a list is the step `[]`."""
    if depth == 0:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, (*path, str(key)), depth - 1)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, (*path, "[]"), depth - 1)
    else:
        yield path, value


def _of_json(document: object, refused: bool) -> Iterator[Passage]:
    fields = document.items() if isinstance(document, dict) else ()
    refused = refused or any(  # the call failed, whatever the answer's status
        (key.lower() in ("ok", "success") and value is False)
        or (key.lower() in ("status", "result", "state") and str(value).lower() in _FAILED)
        for key, value in fields
    )
    for path, value in leaves(document):
        keys = [key for key in path if key != "[]"]
        if not isinstance(value, str):
            continue
        if refused or any(_ERROR_KEY.search(key) or _PLACE_KEY.match(key) for key in keys):
            yield Passage(value, True)
        elif "[]" not in path and len(value) < PLAIN and not any(map(_CONTENT_KEY.match, keys)):
            yield Passage(value, False)
