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
def _dictionary() -> Any:
    return json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


def _any(by_chain: dict[str, list[str]], tool_chain: str) -> re.Pattern[str]:
    groups = ("any", tool_chain) if tool_chain in by_chain else tuple(by_chain)
    return re.compile("|".join(f"(?:{one})" for group in groups for one in by_chain.get(group, ())), re.M)
