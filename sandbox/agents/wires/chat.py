"""Calls in the words of the OpenAI API: POST {base}/chat/completions, whole or as an event stream."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sandbox import http
from sandbox.agents.wires.port import (
    CHARGES,
    CONVERSATIONS,
    MAX_TOOLS,
    OWNER,
    SIGNATURES,
    TASKS,
    TURNS,
    KeyedWire,
    ReplyParts,
    Spoken,
    objects,
    word,
)
from sandbox.spec import Mistake

MEANT = frozenset(
    ("model", "messages", "stream", "user", "safety_identifier", "prompt_cache_key", "metadata", "store")
)
"""Fields of a request that mean something; `user` and its like name the end users of who has the key, by
the API's own documents, so it is no false sender."""
READS = "read_letter"
"""The tool of the caller's whose result is what a message is given beside."""
_ASKS = ("tool_calls", "function_call")
"""Finish reasons of an answer that asks its reader to run tools: none of them ran."""


class ChatWire(KeyedWire):
    """`agent` has its `url`, with the path, and its `model`."""

    LACKS: ClassVar[Mapping[str, str]] = {
        CHARGES: "this wire states no balance of a caller",
        TURNS: "this wire does not say how many turns an answer took",
        OWNER: "an agent of this wire has no owner that is known",
        SIGNATURES: "a key has no age and no signature",
        TASKS: "this wire has no tasks",
        CONVERSATIONS: "a conversation is what a request of this wire holds",
    }

    def request(self, spoken: Spoken) -> http.HttpRequest:
        if taken := MEANT & set(spoken.claim_fields):
            raise Mistake(f"/args/claim_fields: {min(taken)} means something in this wire")
        body: dict[str, Any] = {
            "model": self._agent.get("model") or spoken.target,
            "messages": [{"role": "user", "content": spoken.message}],
            "stream": spoken.stream,
            **(_tool_gave(spoken) if spoken.given else {}),
            **(dict.fromkeys(spoken.claim_fields, spoken.claimed) if spoken.claimed else {}),
        }
        sent = spoken.raw.encode() or json.dumps(body).encode()
        url = http.absolute(self._agent["url"], "/ctx/agents")
        return http.HttpRequest("POST", url, self.headers(spoken), sent, encodings="identity")

    def read(self, documents: Sequence[object]) -> ReplyParts:
        said, tools = ReplyParts(), list[str]()
        for document in documents:
            if not isinstance(document, dict):
                continue
            if error := document.get("error"):
                said.refused = word(error.get("message") if isinstance(error, dict) else error) or "an error"
            for choice in objects(document.get("choices"))[:1]:
                said.shaped = True
                said.finish = word(choice.get("finish_reason")) or said.finish
                part = choice.get("message") or choice.get("delta")
                part = part if isinstance(part, dict) else {}
                text, more = _content(part.get("content"))
                said.text += text or word(part.get("refusal"))
                said.more = said.more or more or bool(part.get("audio"))
                for call in objects(part.get("tool_calls")):
                    function = call.get("function")
                    name = word(function.get("name")) if isinstance(function, dict) else ""
                    tools += [name[:64]] if name and len(tools) < MAX_TOOLS else []
        said.tools = [] if said.finish in _ASKS else tools
        return said


def _tool_gave(spoken: Spoken) -> dict[str, Any]:
    """The messages of a caller whose tool was asked for, and has answered."""
    function = {"name": READS, "parameters": {"type": "object", "properties": {}}}
    call = {"id": "qa-1", "type": "function", "function": {"name": READS, "arguments": "{}"}}
    return {
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "user", "content": spoken.message},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "qa-1", "content": spoken.given},
        ],
    }


def _content(value: object) -> tuple[str, bool]:
    """The text of a content, which may be a list of parts, and whether there is anything else in it."""
    parts = objects(value)
    more = any("text" not in one for one in parts)
    return word(value) or "".join(word(one.get("text")) for one in parts), more
