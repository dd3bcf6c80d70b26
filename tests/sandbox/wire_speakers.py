"""What an agent of each wire sends, for tests: one answer in the words of every wire, and its questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.sandbox.doubles import Got, http_answer, json_answer

Json = dict[str, Any]
SECRETS = {"one": "wire-one-4f9c2b7d8e", "other": "wire-other-7a1e5c3b9d"}
USERS = {"one": "one@example.org", "other": "two@example.org"}


@dataclass(frozen=True)
class Speaker:
    """One wire: `wire` as `[agents]` names it, "" for the proxy."""

    wire: str = ""
    path: str = ""

    def context(self, url: str) -> Json:
        """What the guest is told of the agent `fern` besides the rest."""
        if not self.wire:
            return {"call_url": f"{url}/call", "stream_url": f"{url}/call?alt=sse"}
        agent = {"wire": self.wire, "url": f"{url}{self.path}", "model": "fern-1", "carried": ""}
        accounts = {label: {"user": USERS[label], "secret": SECRETS[label]} for label in SECRETS}
        return {"agents": {"fern": agent}, "accounts": accounts}

    def message(self, got: Got) -> str:
        """What was said."""
        body = json.loads(got.body)
        if not self.wire:
            return str(body["contents"][0]["parts"][0]["text"])
        if self.wire == "chat":
            return str(body["messages"][-1]["content"])
        return str(body["params"]["message"]["parts"][0]["text"])

    def whole(self, text: str, **more: Any) -> bytes:
        """A complete answer."""
        return json_answer(200, self.document(text, **more))

    def document(self, text: str, finish: str = "") -> Json:
        if not self.wire:
            parts = [{"text": text}] if text else []
            return {"candidates": [{"content": {"parts": parts}, "finishReason": finish or "STOP"}]}
        if self.wire == "chat":
            message = {"role": "assistant", "content": text}
            return {"choices": [{"index": 0, "message": message, "finish_reason": finish or "stop"}]}
        return self.result(self.task(finish or "completed", text))

    def result(self, one: Json) -> Json:
        return {"jsonrpc": "2.0", "id": "1", "result": one}

    def task(self, state: str, text: str = "", ident: str = "t-1", *, wrapped: bool = True) -> Json:
        """A task of A2A."""
        new = self.wire == "a2a-1.0"
        parts = [{"text": text} if new else {"kind": "text", "text": text}] if text else []
        name = f"TASK_STATE_{state.upper()}" if new else state
        task: Json = {"id": ident, "contextId": "c", "status": {"state": name}}
        task |= {"artifacts": [{"artifactId": "a", "parts": parts}]} if parts else {}
        return ({"task": task} if wrapped else task) if new else task | {"kind": "task"}

    def events(self, *pieces: str, ends: bool = True) -> list[Json]:
        """A stream's events; without its end if `ends` is false."""
        if not self.wire:
            last = len(pieces) - 1
            return [
                {
                    "candidates": [
                        {"content": {"parts": [{"text": piece}]}}
                        | ({"finishReason": "STOP"} if ends and at == last else {})
                    ]
                }
                for at, piece in enumerate(pieces)
            ]
        if self.wire == "chat":
            found: list[Json] = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
            return found + ([{"choices": [{"delta": {}, "finish_reason": "stop"}]}] if ends else [])
        new, about = self.wire == "a2a-1.0", {"taskId": "t-1", "contextId": "c"}
        found = [self.task("working")]
        for at, piece in enumerate(pieces):
            part = {"text": piece} if new else {"kind": "text", "text": piece}
            update: Json = about | {"artifact": {"artifactId": "a", "parts": [part]}, "append": at > 0}
            found.append({"artifactUpdate": update} if new else update | {"kind": "artifact-update"})
        if ends:
            status: Json = about | {"status": {"state": "TASK_STATE_COMPLETED" if new else "completed"}}
            found.append(
                {"statusUpdate": status} if new else status | {"kind": "status-update", "final": True}
            )
        return [self.result(one) for one in found]

    def stream(self, *pieces: str, ends: bool = True) -> bytes:
        """The same as a body."""
        lines = [
            f"data: {json.dumps(one, ensure_ascii=False)}\n\n" for one in self.events(*pieces, ends=ends)
        ]
        return http_answer(200, "".join(lines).encode(), "content-type: text/event-stream")

    def error(self, message: str) -> bytes:
        """A refusal of the agent."""
        if self.wire.startswith("a2a"):
            said = {"code": -32602, "message": message}
            return json_answer(200, {"jsonrpc": "2.0", "id": "1", "error": said})
        return json_answer(422, {"error": {"message": message}})


SPEAKERS: Mapping[str, Speaker] = {
    "proxy": Speaker(),
    "chat": Speaker("chat", "/v1/chat/completions"),
    "a2a-1.0": Speaker("a2a-1.0", "/a2a"),
    "a2a-0.3": Speaker("a2a-0.3", "/a2a"),
}
