"""A scripted model's answers, for every protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

PIECE = 9
"""Characters of a text or of arguments in one event, so that everything arrives in pieces."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One tool call; `args` goes out as it is when it is a text, well-formed or not."""

    tool: str
    args: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""

    def text(self) -> str:
        """The arguments as they stand in the answer."""
        return self.args if isinstance(self.args, str) else json.dumps(dict(self.args))


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """An answer: reasoning, text, calls.

    `finish` and `usage` are in the words of chat completions, and every other protocol says the same in its
    own; `usage` None sends none at all where a protocol allows it.
    """

    text: str = ""
    reasoning: str = ""
    calls: Sequence[ScriptedCall] = ()
    refusal: str = ""
    finish: str = ""
    usage: Mapping[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    )
    cut_after: int | None = None
    """Break the connection after N events."""
    has_end: bool = True
    """False: the stream ends in good order, but before the answer says that it is over."""


class Tokens(NamedTuple):
    """The four numbers of a usage; `output` includes `reasoning`, `input` includes `cached`."""

    input: int
    output: int
    cached: int
    reasoning: int


def tokens(usage: Mapping[str, Any] | None) -> Tokens:
    """A usage of chat completions as numbers, 0 for what it leaves out."""
    used = usage or {}
    return Tokens(
        used.get("prompt_tokens", 0),
        used.get("completion_tokens", 0),
        used.get("prompt_tokens_details", {}).get("cached_tokens", 0),
        used.get("completion_tokens_details", {}).get("reasoning_tokens", 0),
    )


def named(number: int, calls: Sequence[ScriptedCall]) -> Iterator[tuple[str, ScriptedCall]]:
    """Every call with its id: its own, or one of the number of the request and its place."""
    yield from ((call.id or f"call_{number}_{index}", call) for index, call in enumerate(calls))


def pieces(text: str) -> Iterator[str]:
    """The text as it comes, PIECE characters at a time, or more of a long one."""
    size = max(PIECE, len(text) // 200)
    yield from (text[start : start + size] for start in range(0, len(text), size))


def sse(event: Mapping[str, Any], name: str = "") -> bytes:
    """One server-sent event."""
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(event).encode() + b"\n\n"
