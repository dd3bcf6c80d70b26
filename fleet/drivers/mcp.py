"""An outside agent at the desk: the gated, jailed tools over MCP on stdio, as one run.

Needs the extra `mcp`; importing this module imports the SDK. The conversation begins before the run, so that
an agent is greeted at once; its first look at the tools waits for the desk. Every tool call is a turn of its
own, and concurrent calls run one after the other: an agent that floods meets the same limits as any driver.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO, cast

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from fleet import __version__
from fleet.drivers.desk import FINISH, RUN_PROBE, Desk, Reply
from fleet.drivers.session import RunOver
from fleet.text import clean

MAX_MESSAGE = 1 << 20
"""Most bytes in one message of the agent; a longer one ends the conversation."""
TELL_S = 30.0
"""Time in which an agent may still ask, and hears why its run did not begin."""
LINGER_S = 0.5
"""Time to deliver the last answer before the conversation ends."""

_Context = ServerRequestContext[Any]


@dataclass(frozen=True, slots=True)
class _AskedCall:
    """A call of the agent, on its way to the driver and back."""

    call_id: str
    tool: str
    args: dict[str, Any]
    result: asyncio.Future[types.CallToolResult] = field(default_factory=asyncio.Future)

    def answer(self, result: types.CallToolResult) -> None:
        if not self.result.done():  # the agent may have cancelled it
            self.result.set_result(result)


class McpDriver:
    """Serves one agent until it says `finish`, hangs up, or a fence ends the run."""

    def __init__(self, agent: BinaryIO, answers: BinaryIO, instructions: str) -> None:
        """`agent` is the source of messages (a pipe or socket), `answers` their destination."""
        self._agent, self._answers, self._instructions = agent, answers, instructions
        self._desk: Desk | None = None
        self._begun, self._informed, self._ended, self._closed = (anyio.Event() for _ in range(4))
        """There is a desk, or none will be; the agent knows that there is none; no other call is made; the
        agent sees the end."""
        self._calls: asyncio.Queue[_AskedCall] = asyncio.Queue()
        self._refusal = ""
        self._over: RunOver | None = None
        self._broken: Exception | None = None
        self._detail = "the agent hung up"
        self.fault = ""
        """The agent's fault that ended the conversation; "" for a normal end."""

    async def __call__(self, desk: Desk) -> str:
        self._desk, making = desk, list[_AskedCall]()
        self._begun.set()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._make_calls, desk, making)
                await self._closed.wait()
                tasks.cancel_scope.cancel()
        finally:
            self._ended.set()
            while not self._calls.empty():
                making.append(self._calls.get_nowait())
            for call in making:
                call.answer(self._no_more())
        if stop := self._over or self._broken:
            raise stop
        return self._detail

    async def refuse(self, why: str) -> None:
        """Tell the agent that its run did not begin, if it did not, and end the conversation."""
        if self._desk is None:
            self._refusal = f"the run did not begin: {why}"
            self._begun.set()
            with anyio.move_on_after(TELL_S):
                await self._informed.wait()
        self._ended.set()

    async def serve(self) -> None:
        """Answer the agent until the conversation ends; calls wait for the desk."""
        server: Server[Any] = Server(
            "qa-fleet",
            version=__version__,
            instructions=self._instructions,
            on_list_tools=self._tools,
            on_call_tool=self._call,
        )
        lines = cast("anyio.AsyncFile[str]", self._lines(self._agent))  # the SDK only iterates over it
        try:
            with (
                self._agent,
                self._answers,
            ):  # closed at the end: the agent does not see what the run does then
                async with (
                    anyio.create_task_group() as tasks,
                    stdio_server(lines, anyio.wrap_file(_text(self._answers))) as (incoming, outgoing),
                ):
                    tasks.start_soon(self._hang_up, tasks.cancel_scope)
                    await server.run(incoming, outgoing, server.create_initialization_options())
                    tasks.cancel_scope.cancel()
        except Exception as error:  # raised by the driver, as any driver's: the run records it
            self._broken = error
        finally:
            for event in (self._ended, self._informed, self._closed):
                event.set()

    async def _hang_up(self, scope: anyio.CancelScope) -> None:
        await self._ended.wait()
        await anyio.sleep(LINGER_S)
        scope.cancel()

    async def _begun_desk(self) -> Desk:
        """The desk, once the run has begun. MCPError when it did not."""
        await self._begun.wait()
        if self._desk is None:
            self._informed.set()
            raise MCPError(types.INTERNAL_ERROR, self._refusal)
        return self._desk

    async def _tools(self, _: _Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        desk = await self._begun_desk()
        brief = desk.brief()
        more = {RUN_PROBE: f"\n\nThe brief of this run:\n\n{brief.system}\n\n{brief.plan}"}
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=one.name,
                    description=one.description + more.get(one.name, ""),
                    input_schema=dict(one.parameters),
                )
                for one in desk.offers()
            ]
        )

    async def _call(self, context: _Context, asked: types.CallToolRequestParams) -> types.CallToolResult:
        await self._begun_desk()
        if self._ended.is_set():
            return self._no_more()
        call = _AskedCall(str(context.request_id), asked.name, asked.arguments or {})
        self._calls.put_nowait(call)
        return await call.result

    async def _make_calls(self, desk: Desk, making: list[_AskedCall]) -> None:
        """Make calls one after the other, in the driver's own task: what cancels the run cancels them."""
        while True:
            call = await self._calls.get()
            if call.result.done():
                continue
            making[:] = [call]
            if self._ended.is_set():
                call.answer(self._no_more())
                continue
            try:
                async with desk.turn() as turn:
                    reply = await turn.ask(call.call_id, call.tool, call.args)
            except RunOver as over:
                self._over = over
                self._ended.set()
                call.answer(self._no_more())
            except TimeoutError:
                call.answer(_error("timed out: the call took longer than a turn may"))
            except Exception as error:  # ours: the agent learns that the call failed, and may go on
                call.answer(_error(str(error)))
            else:
                if call.tool == FINISH and not reply.is_error:
                    self._detail = "the agent finished"
                    self._ended.set()
                call.answer(_result(reply))

    def _no_more(self) -> types.CallToolResult:
        return _error(f"this run is over: {self._over or self._detail}")

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


def _text(answers: BinaryIO) -> IO[str]:
    return open(answers.fileno(), "w", encoding="utf-8", closefd=False, newline="\n")


@asynccontextmanager
async def conversation(agent: BinaryIO, answers: BinaryIO, instructions: str) -> AsyncIterator[McpDriver]:
    """A driver whose agent is answered from now on: it learns what fails before its run begins."""
    driver, failure = McpDriver(agent, answers, instructions), None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(driver.serve)
        try:
            yield driver
        except Exception as error:  # raised below, outside of the group
            failure = error
        await driver.refuse(clean(str(failure or "it ended before its first turn"), 500))
    if failure is not None:
        raise failure


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
