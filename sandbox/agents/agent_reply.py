"""What an agent said, read out of one JSON document or out of the events of a stream (platform-facts 1.7)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_TOOLS = 32
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class ReplyParts:
    """The parts of an answer that were there; everything else keeps its empty value."""

    text: str = ""
    tools: list[str] = field(default_factory=list)
    finish: str = ""
    caller: str = ""
    turns: int = 0
    shaped: bool = False  # at least one candidate was seen
    halves: bool = False  # a part ends or begins inside a character


def read(documents: Iterable[Any]) -> ReplyParts:
    """Fold one document, or a stream's events in order. Unknown shapes add nothing and never raise."""
    said = ReplyParts()
    for document in documents:
        if not isinstance(document, dict):
            continue
        said.caller = _text(document.get("caller")) or said.caller
        turns = document.get("turns")
        said.turns = turns if type(turns) is int and 0 <= turns < 1 << 31 else said.turns
        for candidate in _objects(document.get("candidates")):
            said.shaped = True
            said.finish = _text(candidate.get("finishReason")) or said.finish
            content = candidate.get("content")
            for part in _objects(content.get("parts") if isinstance(content, dict) else None):
                text = _text(part.get("text"))
                said.text += text
                said.halves = said.halves or _HALF.search(text) is not None
                call = part.get("functionCall")
                if isinstance(call, dict) and len(said.tools) < MAX_TOOLS:
                    said.tools.append(_text(call.get("name"))[:64])
    return said


def _objects(value: object) -> Iterator[dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
