"""Requests for chat completions that the strictest server takes, and those that it refuses."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]

TOOL_CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USER = {"role": "user", "content": "hello"}
TEXT = {"type": "text", "text": "x"}


def said(**message: Any) -> Body:
    """A chat that ends with this message."""
    return {"messages": [USER, message]}


TAKEN: list[Body] = [
    said(role="assistant", content=""),
    said(role="assistant", tool_calls=[TOOL_CALL]),
    said(role="assistant", content="", reasoning_content="", tool_calls=[TOOL_CALL]),
    said(role="system", content=None),
    said(role="user", content=[TEXT]),
    said(role="tool", content=None, tool_call_id="a"),
    {"messages": [], "tool_choice": "auto", "max_completion_tokens": 1},
]
REFUSED: list[tuple[Body, str]] = [
    (said(role="assistant", content=None, tool_calls=[TOOL_CALL]), "Input should be a valid string"),
    (said(role="assistant", content="", tool_calls=None), "Input should be a valid list"),
    (said(role="assistant", content=[TEXT]), "Input should be a valid string"),
    (said(role="assistant", content="", tool_calls=[{**TOOL_CALL, "type": "tool"}]), "'function'"),
    (said(role="tool", content="x"), "'tool_call_id'"),
    (said(role="developer", content="x"), "Input should be 'system'"),
    (said(role="user", content=[{"type": "image", "text": "x"}]), "'image_url'"),
    ({"messages": "x"}, "Input should be a valid list"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "'parameters'"),
    ({"tool_choice": "any"}, "'none', 'auto' or 'required'"),
]
"""With something of the complaint."""
