"""Chat completions, streamed: `POST /v1/chat/completions`, as OpenAI and many others speak it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.doubles.model_wire.say import Say, ScriptedCall, named, pieces, sse

PATH, BASE, KEY = "/v1/chat/completions", "/v1", "authorization"


def frames(body: Mapping[str, Any], number: int, say: Say) -> Iterator[bytes]:
    """The answer, event by event."""
    yield from map(sse, _events(body, number, say))
    yield b"data: [DONE]\n\n"


def _events(body: Mapping[str, Any], number: int, say: Say) -> Iterator[dict[str, Any]]:
    head = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": 1_800_000_000,
        "model": body.get("model", ""),
    }

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for key, text in (("reasoning_content", say.reasoning), ("content", say.text), ("refusal", say.refusal)):
        yield from (chunk({key: piece}) for piece in pieces(text))
    yield from (chunk({"tool_calls": [one]}) for one in _calls(number, say.calls))
    if say.has_end:
        yield chunk({}, say.finish or ("tool_calls" if say.calls else "stop"))
    if say.usage is not None:
        yield {**head, "choices": [], "usage": dict(say.usage)}


def _calls(number: int, calls: Sequence[ScriptedCall]) -> Iterator[dict[str, Any]]:
    """Names first, then the arguments of all of them piece by piece in turn: parallel calls interleave."""
    texts: list[list[str]] = []
    for index, (name, call) in enumerate(named(number, calls)):
        about = {"name": call.tool, "arguments": ""}
        yield {"index": index, "id": name, "type": "function", "function": about}
        texts.append(list(pieces(call.text())))
    for turn in range(max(map(len, texts), default=0)):
        for index, parts in enumerate(texts):
            if turn < len(parts):
                yield {"index": index, "function": {"arguments": parts[turn]}}


def tools(body: Mapping[str, Any]) -> set[str]:
    """Names of the tools on offer."""
    return {tool["function"]["name"] for tool in body.get("tools", ())}


def answers(body: Mapping[str, Any]) -> dict[str, str]:
    """Results of the calls so far, by call id."""
    return {one["tool_call_id"]: str(one["content"]) for one in body["messages"] if one["role"] == "tool"}


def system(body: Mapping[str, Any]) -> str:
    """The whole text in the system role."""
    return "\n".join(str(one["content"]) for one in body["messages"] if one["role"] == "system")


def refusal(status: int) -> dict[str, Any]:
    """The body of an HTTP error."""
    return {"error": {"message": "no", "code": "no"}}
