"""An outside agent at the desk: the gated, jailed tools over MCP on stdio, as one run.

Needs the extra `mcp`; importing this module imports the SDK. Every tool call is a separate turn, and
concurrent calls run one after the other: an agent that floods meets the same limits as any driver.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from fleet import __version__
from fleet.drivers.desk import FINISH, Desk, Reply
from fleet.drivers.session import RunOver

MAX_MESSAGE = 1 << 20
"""Most bytes in one message of the agent; a longer one ends the conversation."""
LINGER_S = 0.5
"""Time to deliver the last answer before the conversation ends."""

_Context = ServerRequestContext[Any]


class McpDriver:
    """Serves one agent until it says `finish`, hangs up, or a fence ends the run."""

    def __init__(self, agent: BinaryIO, answers: BinaryIO) -> None:
        """`agent` is the source of messages (a pipe or socket), `answers` their destination."""
        self._agent, self._answers = agent, answers
        self.fault = ""
        """The agent's fault that ended the conversation; "" for a normal end."""

    async def __call__(self, desk: Desk) -> str:
        conversation = _Conversation(desk)
        try:
            with (
                self._agent,
                self._answers,
            ):  # closed at the end: the agent does not see what the run does afterwards
                return await conversation.serve(self._agent, self._answers)
        finally:
            self.fault = conversation.fault


class _Conversation:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._one_at_a_time = anyio.Lock()
        self._ended = anyio.Event()
        self._over: RunOver | None = None
        self._detail = "the agent hung up"
        self.fault = ""

    async def serve(self, agent: BinaryIO, answers: BinaryIO) -> str:
        brief = self._desk.brief()
        server: Server[Any] = Server(
            "qa-fleet",
            version=__version__,
            instructions=f"{brief.system}\n\n{brief.plan}",
            on_list_tools=self._tools,
            on_call_tool=self._call,
        )
        lines = cast("anyio.AsyncFile[str]", self._lines(agent))  # the SDK only iterates over it
        async with (
            anyio.create_task_group() as tasks,
            stdio_server(lines, anyio.wrap_file(_text(answers))) as (incoming, outgoing),
        ):
            tasks.start_soon(self._hang_up, tasks.cancel_scope)
            await server.run(incoming, outgoing, server.create_initialization_options())
            tasks.cancel_scope.cancel()
        if self._over is not None:
            raise self._over
        return self._detail

    async def _hang_up(self, scope: anyio.CancelScope) -> None:
        await self._ended.wait()
        await anyio.sleep(LINGER_S)
        scope.cancel()

    async def _tools(self, _: _Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        offers = self._desk.offers()
        return types.ListToolsResult(
            tools=[
                types.Tool(name=one.name, description=one.description, input_schema=dict(one.parameters))
                for one in offers
            ]
        )

    async def _call(self, context: _Context, asked: types.CallToolRequestParams) -> types.CallToolResult:
        async with self._one_at_a_time:
            if self._ended.is_set():
                return _error(f"this run is over: {self._over or self._detail}")
            try:
                async with self._desk.turn() as turn:
                    reply = await turn.ask(str(context.request_id), asked.name, asked.arguments or {})
            except RunOver as over:
                self._over = over
                self._ended.set()
                return _error(f"this run is over: {over}")
            except TimeoutError:
                return _error("timed out: the call took longer than a turn may")
            if asked.name == FINISH and not reply.is_error:
                self._detail = "the agent finished"
                self._ended.set()
            return _result(reply)

    async def _lines(self, agent: BinaryIO) -> AsyncIterator[str]:
        """Messages as they arrive; read by the event loop, since a thread that reads cannot be cancelled."""
        reader = asyncio.StreamReader(limit=MAX_MESSAGE)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, agent)
        try:
            while line := await reader.readline():
                yield line.decode("utf-8", "replace")
        except ValueError:  # the rest of the stream cannot be separated from it
            self._detail = self.fault = f"the agent sent a message of more than {MAX_MESSAGE} bytes"
        finally:
            transport.close()


def _result(reply: Reply) -> types.CallToolResult:
    text = json.dumps(reply.content, ensure_ascii=False, default=str)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=reply.is_error)


def _error(text: str) -> types.CallToolResult:
    return _result(Reply("", "", {"error": text}, is_error=True))


def _text(answers: BinaryIO) -> Any:
    return open(answers.fileno(), "w", encoding="utf-8", closefd=False, newline="\n")


@contextmanager
def own_stdio() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Reserve stdin and stdout for the conversation: other output goes to stderr, other reads get nothing."""
    kept = [os.dup(fd) for fd in (0, 1)]
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    with os.fdopen(kept[0], "rb", buffering=0) as agent, os.fdopen(kept[1], "wb", buffering=0) as answers:
        yield agent, answers
