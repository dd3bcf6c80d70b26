"""generateContent of Google, streamed: `POST /v1beta/models/<name>:streamGenerateContent?alt=sse`.

A call comes whole in one part. Arguments that are no JSON object never reach a client: the answer then ends
with `MALFORMED_FUNCTION_CALL` and holds none of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.doubles.model_wire.say import Say, ScriptedCall, named, pieces, sse, tokens

PATH, BASE, KEY = "/v1beta/models/{model}:streamGenerateContent", "", "x-goog-api-key"

_ENDS = {"content_filter": "SAFETY", "length": "MAX_TOKENS", "tool_calls": "STOP", "stop": "STOP"}
_ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def frames(body: Mapping[str, Any], number: int, say: Say) -> Iterator[bytes]:
    """The answer, event by event."""
    yield from map(sse, _events(number, say))


def _events(number: int, say: Say) -> Iterator[dict[str, Any]]:
    head = {"responseId": f"r{number}", "modelVersion": "scripted"}
    if say.refusal:
        yield {**head, "promptFeedback": {"blockReason": "SAFETY"}, **_usage(say)}
        return

    def chunk(part: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
        content = {"role": "model", "parts": [] if part is None else [part]}
        return {**head, "candidates": [{"index": 0, "content": content, **more}]}

    for piece in pieces(say.reasoning):
        yield chunk({"text": piece, "thought": True})
    for piece in pieces(say.text):
        yield chunk({"text": piece})
    malformed = False
    for name, call in named(number, say.calls):
        args = _object(call)
        if malformed := args is None:
            break
        yield chunk({"functionCall": {"id": name, "name": call.tool, "args": args}})
    if say.has_end:
        end = "MALFORMED_FUNCTION_CALL" if malformed else _ENDS[say.finish or "stop"]
        yield chunk(None, finishReason=end) | _usage(say)


def _object(call: ScriptedCall) -> dict[str, Any] | None:
    try:
        found = json.loads(call.text() or "{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _usage(say: Say) -> dict[str, Any]:
    if say.usage is None:
        return {}
    used = tokens(say.usage)
    counts = {
        "promptTokenCount": used.input,
        "candidatesTokenCount": used.output - used.reasoning,
        "thoughtsTokenCount": used.reasoning,
        "cachedContentTokenCount": used.cached,
        "totalTokenCount": used.input + used.output,
    }
    return {"usageMetadata": {key: count for key, count in counts.items() if count}}


def tools(body: Mapping[str, Any]) -> set[str]:
    """Names of the tools on offer."""
    return {one["name"] for tool in body.get("tools", ()) for one in tool["functionDeclarations"]}


def answers(body: Mapping[str, Any]) -> dict[str, str]:
    """Results of the calls so far, by call id."""
    parts = (part for content in body["contents"] for part in content["parts"])
    said = [part["functionResponse"] for part in parts if "functionResponse" in part]
    return {one["id"]: json.dumps(one["response"], ensure_ascii=False) for one in said}


def system(body: Mapping[str, Any]) -> str:
    """The whole text in the system role."""
    return "\n".join(str(part["text"]) for part in body.get("systemInstruction", {}).get("parts", ()))


def refusal(status: int) -> dict[str, Any]:
    """The body of an HTTP error."""
    return {"error": {"code": status, "message": "no", "status": _ERRORS.get(status, "INTERNAL")}}
