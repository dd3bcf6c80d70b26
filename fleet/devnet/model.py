"""A scripted model behind real HTTP: the chat-completions protocol, streamed, with nothing intelligent in it.

What it answers is a `Script`: a function of the request. So a test, or a devnet without a model, has an
endpoint that works through a plan, stops early, floods, lies about its usage or falls silent, every time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

PIECE = 9
"""Characters of a text or of arguments in one event, so that everything arrives in pieces."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call; `args` goes out as it is when it is a text, well-formed or not."""

    tool: str
    args: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """An answer: reasoning, text, calls. `usage` None sends none at all."""

    text: str = ""
    reasoning: str = ""
    calls: Sequence[Call] = ()
    refusal: str = ""
    finish: str = ""
    usage: Mapping[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    )
    cut_after: int | None = None
    """Break the connection after so many events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """An answer that is an HTTP error."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=lambda: {"error": {"message": "no", "code": "no"}})


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer of these bytes, as a stream of events or not."""

    pieces: Sequence[bytes]
    content_type: str = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer for so many seconds, then one that says nothing."""

    seconds: float


Answer = Say | Refuse | Raw | Silence


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as the model gets it; `number` counts from 0."""

    number: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])

    @property
    def tools(self) -> set[str]:
        """Names of the tools that are on offer."""
        return {tool["function"]["name"] for tool in self.body.get("tools", ())}

    def answers(self) -> dict[str, str]:
        """What the calls so far were answered, by call id."""
        return {one["tool_call_id"]: str(one["content"]) for one in self.messages if one["role"] == "tool"}


Script = Callable[[Asked], Answer]


@dataclass(slots=True)
class ScriptedModel:
    """One endpoint; `asked` is everything that it was ever sent."""

    script: Script
    url: str = ""
    asked: list[Asked] = field(default_factory=list)

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/chat/completions", self._complete, methods=["POST"])])

    async def _complete(self, request: Request) -> Response:
        asked = Asked(len(self.asked), await request.json(), dict(request.headers))
        self.asked.append(asked)
        match self.script(asked):
            case Refuse(status=status, headers=headers, body=body):
                return JSONResponse(dict(body), status, dict(headers))
            case Raw(pieces, kind):
                return StreamingResponse(_slowly(pieces), media_type=kind)
            case Silence(seconds):
                await anyio.sleep(seconds)
                return StreamingResponse(_stream(asked, Say()), media_type="text/event-stream")
            case Say() as say:
                return StreamingResponse(_stream(asked, say), media_type="text/event-stream")


async def _slowly(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        await anyio.lowlevel.checkpoint()


async def _stream(asked: Asked, say: Say) -> AsyncIterator[bytes]:
    for number, event in enumerate(_events(asked, say)):
        if number == say.cut_after:
            raise ConnectionResetError("the script ends the connection here")
        yield b"data: " + json.dumps(event).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def _events(asked: Asked, say: Say) -> Iterator[dict[str, Any]]:
    head = {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion.chunk",
        "created": 1_800_000_000,
        "model": asked.body.get("model", ""),
    }

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for key, text in (("reasoning_content", say.reasoning), ("content", say.text), ("refusal", say.refusal)):
        yield from (chunk({key: piece}) for piece in _pieces(text))
    yield from (chunk({"tool_calls": [one]}) for one in _calls(asked, say.calls))
    yield chunk({}, say.finish or ("tool_calls" if say.calls else "stop"))
    if say.usage is not None:
        yield {**head, "choices": [], "usage": dict(say.usage)}


def _calls(asked: Asked, calls: Sequence[Call]) -> Iterator[dict[str, Any]]:
    """Names first, then the arguments of all of them piece by piece in turn: parallel calls interleave."""
    texts: list[list[str]] = []
    for index, call in enumerate(calls):
        name = call.id or f"call_{asked.number}_{index}"
        yield {
            "index": index,
            "id": name,
            "type": "function",
            "function": {"name": call.tool, "arguments": ""},
        }
        texts.append(list(_pieces(call.args if isinstance(call.args, str) else json.dumps(dict(call.args)))))
    for turn in range(max(map(len, texts), default=0)):
        for index, pieces in enumerate(texts):
            if turn < len(pieces):
                yield {"index": index, "function": {"arguments": pieces[turn]}}


def _pieces(text: str) -> Iterator[str]:
    size = max(PIECE, len(text) // 200)
    yield from (text[start : start + size] for start in range(0, len(text), size))


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals are for whoever runs this


@asynccontextmanager
async def serve_model(script: Script) -> AsyncIterator[ScriptedModel]:
    """The endpoint on a free port of loopback; `url` is the base URL that a client is configured with."""
    model = ScriptedModel(script)
    listener = socket.create_server(("127.0.0.1", 0))
    model.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    config = uvicorn.Config(
        model.app(),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve([listener]))  # a task group would wrap what its user raises
    try:
        yield model
    finally:
        server.should_exit = server.force_exit = True
        with anyio.CancelScope(shield=True):
            await serving
        listener.close()
