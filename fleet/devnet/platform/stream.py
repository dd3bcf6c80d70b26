"""Replies on the wire: one JSON document, or server-sent events with one JSON document each."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from fleet.devnet.platform.agent import AgentReply

WIDTH = 16
"""Characters of text in one event."""

SPLIT_BYTES = 16
"""Not a multiple of three, so that a run of three-byte characters is cut inside one."""


def document(reply: AgentReply, caller: str, asked: str) -> dict[str, Any]:
    """The whole answer in the shape of a generateContent reply, and the identity that the platform saw."""
    parts: list[dict[str, Any]] = [_call_part(tool, argument) for tool, argument in reply.tools]
    parts += [{"text": reply.text}] if reply.text else []
    return _body(parts, "STOP") | _totals(reply, caller, asked)


async def events(
    reply: AgentReply, caller: str, asked: str, *, cut_inside_characters: bool
) -> AsyncIterator[bytes]:
    """The same answer in pieces; the last event has the finish reason and the totals."""
    for tool, argument in reply.tools:
        yield _event(_body([_call_part(tool, argument)]))
    whole = (reply.text[at : at + WIDTH] for at in range(0, len(reply.text), WIDTH))
    for piece in _split_bytes(reply.text) if cut_inside_characters else whole:
        yield _event(_body([{"text": piece}]))
    yield _event(_body([], "STOP") | _totals(reply, caller, asked))


def _split_bytes(text: str) -> list[str]:
    """The defect `stream-edge`: halves of characters, carried as lone surrogates to `_event`."""
    raw = text.encode()
    pieces = [raw[at : at + SPLIT_BYTES] for at in range(0, len(raw), SPLIT_BYTES)]
    return [piece.decode("utf-8", "surrogateescape") for piece in pieces]


def _event(body: dict[str, Any]) -> bytes:
    """JSON escapes every line break, so one `data:` line always holds the whole document."""
    return b"data: " + json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n\n"


def _body(parts: list[dict[str, Any]], finish: str = "") -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})]}


def _call_part(tool: str, argument: str) -> dict[str, Any]:
    return {"functionCall": {"name": tool, "args": {"value": argument}}}


def _totals(reply: AgentReply, caller: str, asked: str) -> dict[str, Any]:
    prompt, said = len(asked.split()), len(reply.text.split())
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": said, "totalTokenCount": prompt + said}
    return {"usageMetadata": usage, "caller": caller, "turns": reply.turns}
