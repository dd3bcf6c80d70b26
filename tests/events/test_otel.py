"""Spans at a real collector over real HTTP; and tracers of every kind, which no run ever notices."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fleet.clock import SystemClock
from fleet.config import OtelSection
from fleet.events.model import Event, Footer, TurnStarted, TurnUsage
from fleet.events.otel import CAP, OtelTracer
from fleet.events.stream import Stream
from fleet.events.tracing import Tracing, is_wanted, tracing
from fleet.events.trajectory import TrajectoryFile, read
from tests.events.samples import HEADER, Kept, answers, asks, denied, said, stream, turn

pytestmark = pytest.mark.anyio


class Collector:
    """An OTLP/HTTP receiver on loopback that keeps what it was sent."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.spans: dict[str, Any] = {}
        self.resource: dict[str, str] = {}

    async def take(self, request: Request) -> Response:
        body = ExportTraceServiceRequest.FromString(await request.body())
        for group in body.resource_spans:
            self.resource = {one.key: one.value.string_value for one in group.resource.attributes}
            for scope in group.scope_spans:
                self.spans |= {span.name: span for span in scope.spans}
        return Response(status_code=self.status)

    def attributes(self, name: str) -> dict[str, Any]:
        found = {}
        for one in self.spans[name].attributes:
            found[one.key] = getattr(one.value, str(one.value.WhichOneof("value")))
        return found


@asynccontextmanager
async def collecting(status: int = 200) -> AsyncIterator[tuple[Collector, str]]:
    collector = Collector(status)
    app = Starlette(routes=[Route("/v1/traces", collector.take, methods=["POST"])])
    line = socket.create_server(("127.0.0.1", 0))

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    server = Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [line])
        yield collector, f"http://127.0.0.1:{line.getsockname()[1]}"
        server.should_exit = True
    line.close()


RUN: tuple[Event, ...] = (
    HEADER.model_copy(update={"model": "openai:small"}),
    TurnStarted(index=0),
    asks(1, url="http://127.0.0.1/sesame"),
    asks(2),
    said(0, "hm " + "x" * (2 * CAP), "reasoning"),
    answers(2, error_class="timeout", is_error=True),
    answers(1, ok=True),
    denied(3),
    turn(0, TurnUsage(model="openai:small", input_tokens=7, output_tokens=2, duration_s=1.5)),
    Footer(outcome="done", calls=3, usage=TurnUsage(input_tokens=7)),
)


def mask(text: str) -> str:
    return text.replace("sesame", "[redacted]")


async def export(url: str, events: Sequence[Event], sink: Kept) -> None:
    with anyio.fail_after(15):
        async with tracing(OtelSection(endpoint=url), mask=mask, environ={}) as readers:
            line = stream(sink, *readers)
            for event in events:
                line.emit(event)


async def collected(events: Sequence[Event]) -> Collector:
    async with collecting() as (collector, url):
        await export(url, events, Kept())
    return collector


async def test_a_run_arrives_as_one_trace_by_the_genai_conventions() -> None:
    collector = await collected(RUN)
    names = ["invoke_agent qa-x", "turn:0", "execute_tool qa_fetch", "reasoning", "execute_tool qa_call"]
    names.append("chat openai:small")
    assert sorted(collector.spans) == sorted(names)
    assert collector.resource["service.name"] == "qa-fleet"
    assert len({span.trace_id for span in collector.spans.values()}) == 1
    run, turn_0 = collector.spans["invoke_agent qa-x"], collector.spans["turn:0"]
    assert (run.parent_span_id, turn_0.parent_span_id) == (b"", run.span_id)
    parents = {collector.spans[name].parent_span_id for name in names[2:]}
    assert parents == {turn_0.span_id}
    about = collector.attributes("invoke_agent qa-x")
    assert about["gen_ai.operation.name"] == "invoke_agent"
    assert about["gen_ai.agent.name"] == "qa-x"
    assert about["gen_ai.conversation.id"] == "r1"
    assert about["gen_ai.provider.name"] == "openai"
    assert about["gen_ai.usage.input_tokens"] == 7
    assert (about["qa_fleet.outcome"], about["qa_fleet.rung"]) == ("done", "observe")


async def test_what_a_tool_and_a_model_did_is_on_their_spans() -> None:
    collector = await collected((HEADER, *RUN[1:3], *RUN[6:]))
    tool = collector.attributes("execute_tool qa_fetch")
    assert tool == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "qa_fetch",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"url": "http://127.0.0.1/[redacted]"}',
        "gen_ai.tool.call.result": '{"ok": true}',
        "qa_fleet.is_error": False,
    }
    refused = collector.attributes("execute_tool qa_call")
    assert (refused["error.type"], collector.spans["execute_tool qa_call"].status.code) == ("dial", 2)
    chat = collector.spans["chat openai:small"]
    assert 1.4e9 < chat.end_time_unix_nano - chat.start_time_unix_nano < 3e9
    assert collector.attributes("chat openai:small") == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "small",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 2,
    }


async def test_attributes_are_cut_with_a_mark_and_what_was_cut_off_says_so() -> None:
    collector = await collected((HEADER, asks(1, text="y" * 99_999), RUN[4]))
    assert collector.attributes("invoke_agent qa-x")["qa_fleet.is_complete"] is False
    assert collector.attributes("execute_tool qa_fetch")["qa_fleet.is_complete"] is False
    assert "[cut " in collector.attributes("execute_tool qa_fetch")["gen_ai.tool.call.arguments"]
    assert len(collector.attributes("reasoning")["qa_fleet.text"]) < CAP + 40


@pytest.mark.parametrize("status", [500, 400, 0])
async def test_a_collector_that_refuses_or_is_away_costs_a_run_nothing(
    status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    sink = Kept()
    async with collecting(status or 200) as (_, url):
        if status:
            await export(url, RUN, sink)
    if not status:
        await export(url, RUN, sink)
    assert len(sink.events) == len(RUN)
    assert capfd.readouterr() == ("", "")


class Duck:
    """Has the shape of a tracer, and is none."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.ended = 0

    def start_span(self, name: str, **_: Any) -> Duck:
        self.names.append(name)
        return self

    def set_attribute(self, key: str, value: Any) -> None: ...
    def set_status(self, status: Any) -> None: ...

    def end(self) -> None:
        self.ended += 1


class Broken:
    """Raises whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def recorded(path: Path, tracer: Any) -> list[Event]:
    """What a run leaves when this tracer watches it."""
    sink, told = TrajectoryFile(path), list[Event]()
    watch = Tracing(lambda run: OtelTracer(tracer, run=run, mask=mask))
    line = Stream("r1", clock=SystemClock(), sink=sink, readers=(watch, told.append))
    for event in RUN:
        line.emit(event)
    assert len(told) == len(RUN)
    return [event.model_copy(update={"at": ""}) for event in read(path)]


def test_a_duck_is_told_and_a_broken_tracer_changes_nothing(tmp_path: Path) -> None:
    duck = Duck()
    healthy = recorded(tmp_path / "duck", duck)
    assert len(duck.names) == duck.ended == 7
    assert recorded(tmp_path / "broken", Broken()) == healthy


@pytest.mark.parametrize(
    ("endpoint", "environ", "wanted"),
    [
        ("", {}, False),
        ("http://127.0.0.1:4318", {}, True),
        ("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, True),
        ("", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, True),
        ("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, False),
        ("http://127.0.0.1:4318", {"OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_who_configures_it(endpoint: str, environ: dict[str, str], wanted: bool) -> None:
    assert is_wanted(OtelSection.model_validate({"endpoint": endpoint}), environ) is wanted
