"""The Messages protocol of Anthropic, streamed: `POST /v1/messages`, one block after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.doubles.model_wire.say import Say, named, pieces, sse, tokens

PATH, BASE, KEY = "/v1/messages", "", "authorization"

_ENDS = {"content_filter": "refusal", "length": "max_tokens", "tool_calls": "tool_use", "stop": "end_turn"}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_Block = tuple[dict[str, Any], Sequence[dict[str, Any]]]
"""How a block starts, and its deltas."""


def frames(body: Mapping[str, Any], number: int, say: Say) -> Iterator[bytes]:
    """The answer, event by event."""
    yield from (sse(event, event["type"]) for event in _events(body, number, say))


def _events(body: Mapping[str, Any], number: int, say: Say) -> Iterator[dict[str, Any]]:
    used = tokens(say.usage)
    opening = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", ""),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": used.input - used.cached,
            "cache_read_input_tokens": used.cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": 1 if used.output else 0,
        },
    }
    yield {"type": "message_start", "message": opening}
    yield {"type": "ping"}
    for index, (block, deltas) in enumerate(_blocks(number, say)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}
    if not say.has_end:
        return
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": _end(say), "stop_sequence": None},
        "usage": {
            "output_tokens": used.output,
            "output_tokens_details": {"thinking_tokens": used.reasoning},
        },
    }
    yield {"type": "message_stop"}


def _end(say: Say) -> str:
    if say.refusal:
        return "refusal"
    return _ENDS[say.finish or ("tool_calls" if say.calls else "stop")]


def _blocks(number: int, say: Say) -> Iterator[_Block]:
    if say.reasoning:
        thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(say.reasoning)]
        sealed = {"type": "signature_delta", "signature": "c2lnbmVk"}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, sealed]
    if text := say.text or say.refusal:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(text)]
    for name, call in named(number, say.calls):
        block = {"type": "tool_use", "id": name, "name": call.tool, "input": {}}
        yield block, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(call.text())]


def tools(body: Mapping[str, Any]) -> set[str]:
    """Names of the tools on offer."""
    return {tool["name"] for tool in body.get("tools", ())}


def answers(body: Mapping[str, Any]) -> dict[str, str]:
    """Results of the calls so far, by call id."""
    blocks = (one for message in body["messages"] for one in message["content"] if isinstance(one, dict))
    return {one["tool_use_id"]: str(one["content"]) for one in blocks if one["type"] == "tool_result"}


def system(body: Mapping[str, Any]) -> str:
    """The whole text in the system role."""
    found = body.get("system", "")
    return found if isinstance(found, str) else "\n".join(str(one["text"]) for one in found)


def refusal(status: int) -> dict[str, Any]:
    """The body of an HTTP error."""
    return {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": "no"}}
