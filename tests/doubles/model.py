"""A scripted model behind real HTTP, in every protocol that the fleet speaks, with nothing intelligent in it.

What it answers is a `Script`: a function of the request. So a test, or a devnet without a model, has an
endpoint that works through a plan, stops early, floods, lies about its usage or falls silent, every time.
The same script serves all protocols (`model_wire`), and chat completions are judged by the strictest schema.
"""

from __future__ import annotations

import asyncio
import contextlib
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

from tests.doubles.model_wire.say import Say, ScriptedCall
from tests.doubles.model_wire.wire import WIRES, ModelProtocol

__all__ = [
    "Answer",
    "Held",
    "ModelPrompt",
    "Raw",
    "Refuse",
    "Say",
    "Script",
    "ScriptedCall",
    "ScriptedModel",
    "Silence",
    "serve_model",
]


INVALID = 500
"""llama-cpp-python's server says so of a request that does not fit its schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """An answer that is an HTTP error."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    """None: the protocol's own text for this status."""


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer of these bytes, as a stream of events or not."""

    pieces: Sequence[bytes]
    content_type: str = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer for N seconds, then an empty one."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Held:
    """An answer that waits for an event."""

    until: anyio.Event
    say: Say


Answer = Say | Refuse | Raw | Silence | Held


@dataclass(frozen=True, slots=True)
class ModelPrompt:
    """One request as the model gets it; `number` counts from 0."""

    number: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    wire: ModelProtocol = WIRES["openai"]
    query: str = ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """As chat completions and the Messages protocol name them."""
        return list(self.body["messages"])

    @property
    def tools(self) -> set[str]:
        """Names of the tools that are on offer."""
        return self.wire.tools(self.body)

    def answers(self) -> dict[str, str]:
        """Results of the calls so far, by call id."""
        return self.wire.answers(self.body)

    def system(self) -> str:
        """The whole text in the system role."""
        return self.wire.system(self.body)

    def frames(self, say: Say) -> Iterator[bytes]:
        """The script's words in wire form."""
        return self.wire.frames(self.body, self.number, say)


Script = Callable[[ModelPrompt], Answer]


@dataclass(slots=True)
class ScriptedModel:
    """One endpoint; `asked` is everything that it was ever sent."""

    script: Script
    url: str = ""
    asked: list[ModelPrompt] = field(default_factory=list)

    def url_of(self, kind: str) -> str:
        """The base URL for a client of that protocol."""
        return self.url.removesuffix(WIRES["openai"].base) + WIRES[kind].base

    def app(self) -> Starlette:
        return Starlette(routes=[self._route(wire) for wire in WIRES.values()])

    def _route(self, wire: ModelProtocol) -> Route:
        async def complete(request: Request) -> Response:
            return await self._complete(request, wire)

        return Route(wire.path, complete, methods=["POST"])

    async def _complete(self, request: Request, wire: ModelProtocol) -> Response:
        body, sent = await request.json(), dict(request.headers)
        asked = ModelPrompt(len(self.asked), body, sent, wire, request.url.query)
        self.asked.append(asked)
        if invalid := wire.invalid(body):
            return JSONResponse(invalid, INVALID)
        match self.script(asked):
            case Refuse(status=status, headers=headers, body=body):
                return JSONResponse(dict(body or wire.refusal(status)), status, dict(headers))
            case Raw(pieces, kind):
                return StreamingResponse(_slowly(pieces), media_type=kind)
            case Silence(seconds):
                await anyio.sleep(seconds)
                return StreamingResponse(_stream(asked, Say()), media_type="text/event-stream")
            case Held(until, say):
                await until.wait()
                return StreamingResponse(_stream(asked, say), media_type="text/event-stream")
            case Say() as say:
                return StreamingResponse(_stream(asked, say), media_type="text/event-stream")


async def _slowly(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        await anyio.lowlevel.checkpoint()


async def _stream(asked: ModelPrompt, say: Say) -> AsyncIterator[bytes]:
    for number, frame in enumerate(asked.frames(say)):
        if number == say.cut_after:
            raise ConnectionResetError("the script ends the connection here")
        yield frame


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # the caller handles signals


@asynccontextmanager
async def serve_model(script: Script) -> AsyncIterator[ScriptedModel]:
    """The endpoint on a free port of loopback; `url` is the base URL for chat completions."""
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
