"""The dictionary of internal errors by tool chain (faults.json), compiled once."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class FaultWords:
    """What a tool chain prints when it fails itself, and what to leave out of a trace or a message."""

    fatal: re.Pattern[str]
    memory: re.Pattern[str]
    parser_limit: re.Pattern[str]
    """A Python trace whose MemoryError is its parser's: the stack of the parser, not memory, is used up."""
    margin: re.Pattern[str]
    """What a crash report has at the start of its lines."""
    recursion: re.Pattern[str]
    builtin: re.Pattern[str]
    ours: tuple[str, ...]
    runtime_file: re.Pattern[str]
    runtime_name: re.Pattern[str]
    no_headline: re.Pattern[str]
    headline: re.Pattern[str]
    words: frozenset[str]


@cache
def faults(tool_chain: str) -> FaultWords:
    """The words for a tool chain; "" and an unknown one try those of all."""
    told = _dictionary()
    return FaultWords(
        fatal=_any(told["fatal"], tool_chain),
        memory=_any(told["memory"], tool_chain),
        parser_limit=re.compile(told["parser_limit"], re.M),
        margin=re.compile(told["margin"], re.M),
        recursion=re.compile(told["recursion"]),
        builtin=re.compile(told["builtin"]),
        ours=tuple(told["ours"]),
        runtime_file=re.compile(told["runtime"]["file"]),
        runtime_name=re.compile(told["runtime"]["name"]),
        no_headline=re.compile(told["no_headline"]),
        headline=re.compile(told["headline"]),
        words=frozenset(told["words"]),
    )


@cache
def _dictionary() -> Any:  # noqa: ANN401  a table of TOML
    return json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


def _any(by_chain: dict[str, list[str]], tool_chain: str) -> re.Pattern[str]:
    groups = ("any", tool_chain) if tool_chain in by_chain else tuple(by_chain)
    return re.compile("|".join(f"(?:{one})" for group in groups for one in by_chain.get(group, ())), re.M)


_QUOTED = re.compile(r"\"[^\"\n]{0,300}\"|(?<!\w)'[^'\n]{0,300}'|`[^`\n]{0,300}`")
_PATH = re.compile(
    r"(?<![\w.])(?:[\w.~-]*/)+[\w.-]+(?::\d+)*|\b[\w-]+\.(?:vy|sol|ts|wat|c|rs|rl|py|js|wasm)(?::\d+)+"
)
_SPAN = re.compile(
    r"\[\d+\.\.\d+\]|\(\d+,\s?\d+\)|\b(?:line|col|column|offset)s? \d+(?::\d+)?|\b\d+:\d+(?:-\d+)?(?::\d+)?"
)
_HEX = re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{16,}\b")
_NUMBER = re.compile(r"-?\b\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?\b")
_BRACKETED = re.compile(r"\b(LH\d{4}|TS\d{3,5}|AS\d{3,5}|E\d{4})\b")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_BLANKS = re.compile(r"\s+")
_CHARS = 160
_LINES = 400
"""Lines of a diagnostic that are read for its headline."""


def headline(text: str, words: FaultWords) -> str:
    """The line of a diagnostic that says what is wrong; "" when there is none."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > _LINES:  # what an exception says stands at its end
        lines = lines[: _LINES // 2] + lines[-_LINES // 2 :]
    told = [line.strip() for line in lines if not words.no_headline.search(line)]
    named = (line for line in told if words.headline.search(line))
    return next(named, (told or [line.strip() for line in lines] or [""])[0])[:500]


def template(message: str, source: str = "", plain: frozenset[str] = frozenset()) -> str:
    """The message with quoted texts, paths, spans, hex, numbers and the source's own names folded.

    A code like LH0204 is kept. Names of the source that are `plain` words stay: a message says them anyway.
    """
    for pattern, word in (
        (_QUOTED, "{text}"),
        (_PATH, "{path}"),
        (_SPAN, "{span}"),
        (_HEX, "{hex}"),
    ):
        message = pattern.sub(word, message)
    if source:
        names = set(_WORD.findall(source)) - plain
        message = _WORD.sub(lambda hit: "{name}" if _own(hit, names) else hit[0], message)
    message = _NUMBER.sub(lambda hit: hit[0] if _BRACKETED.fullmatch(hit[0]) else "{n}", message)
    return _BLANKS.sub(" ", message).strip()[:_CHARS]


def _own(hit: re.Match[str], names: set[str]) -> bool:
    """Whether a word of a message is a name of the source, not one of our placeholders."""
    placed = hit.string[hit.start() - 1 : hit.start()] == "{"
    return not placed and hit[0] in names
