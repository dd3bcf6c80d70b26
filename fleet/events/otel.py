"""Spans in OpenTelemetry's form: GenAI conventions, sent in batches by a thread of the SDK.

Imported only where spans are exported: it needs the extra `otel`. Names of attributes are those of the
package opentelemetry-semantic-conventions (GenAI, status: development); our own start with `qa_fleet.`.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context

from fleet import __version__
from fleet.config import OtelSection
from fleet.events.spans import CloseSpan, OpenSpan, Signal
from fleet.events.truncate import shrink
from fleet.http_client import on_record
from fleet.text import line

CAP = 4_096
"""Most characters of one attribute; a longer one is cut with a mark."""
TIMEOUT_S = 5.0
_PROVIDERS = {"google": "gcp.gemini"}
_USAGE = {
    "input_tokens": gen_ai.GEN_AI_USAGE_INPUT_TOKENS,
    "output_tokens": gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS,
    "cached_tokens": gen_ai.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
    "reasoning_tokens": gen_ai.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS,
    "cost_usd": "qa_fleet.cost_usd",
}
_RUN = ("driver", "platform", "chain_id", "rung", "jail", "trigger", "build")

Attributes = dict[str, str | int | float | bool]


def provider_for(section: OtelSection) -> TracerProvider:
    """A provider of this fleet's own, never the process's global one; the environment configures the rest."""
    for name in ("opentelemetry.exporter", "opentelemetry.sdk._shared_internal"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # an absent collector is not an event of a run
    endpoint = section.endpoint.rstrip("/") + "/v1/traces" if section.endpoint else None
    resource = Resource.create({SERVICE_VERSION: __version__})
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "qa-fleet"}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_OnRecord(endpoint=endpoint, timeout=TIMEOUT_S)))
    return provider


class _OnRecord(OTLPSpanExporter):
    """Exports in a thread of the SDK, on the record of requests of the process that made it."""

    def __init__(self, *, endpoint: str | None, timeout: float) -> None:
        super().__init__(endpoint=endpoint, timeout=timeout)
        self._made_in = copy_context()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._made_in.run(self._asked, spans)

    def _asked(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        place = urlsplit(self._endpoint)
        with on_record("POST", place.netloc.rpartition("@")[2], place.path) as failed:
            result = super().export(spans)
            failed("" if result is SpanExportResult.SUCCESS else "the collector did not take it")
        return result


class OtelTracer:
    """One run's signals as spans of one trace. Texts are masked, then cut to CAP."""

    def __init__(self, tracer: Tracer, *, run: str, mask: Callable[[str], str]) -> None:
        self._tracer, self._run, self._mask = tracer, run, mask
        self._open: dict[str, Span] = {}
        self._held: dict[str, OpenSpan] = {}

    def __call__(self, signal: Signal) -> None:
        if isinstance(signal, OpenSpan):
            if signal.kind == "model":  # known only at its end: back-date its start by its duration
                self._held[signal.key] = signal
            else:
                self._start(signal, time.time_ns())
        elif signal.key in self._held:
            took = signal.output.get("duration_s") or 0.0
            self._start(self._held.pop(signal.key), time.time_ns() - int(took * 1e9))
            self._end(signal)
        else:
            self._end(signal)

    def _start(self, signal: OpenSpan, at: int) -> None:
        parent = self._open.get(signal.parent)
        context = set_span_in_context(parent) if parent is not None else None
        name, attributes = _described(signal, self._run)
        self._open[signal.key] = self._tracer.start_span(
            line(self._mask(name), 200),
            context=context,
            kind=SpanKind.CLIENT if signal.kind == "model" else SpanKind.INTERNAL,
            attributes=self._safe(attributes),
            start_time=at,
        )

    def _end(self, signal: CloseSpan) -> None:
        span = self._open.pop(signal.key, None)
        if span is None:
            return
        try:
            for key, value in self._safe(_outcome(signal)).items():
                span.set_attribute(key, value)
            if signal.is_error:
                span.set_status(StatusCode.ERROR)
        finally:
            span.end()

    def _safe(self, attributes: Mapping[str, Any]) -> Attributes:
        return {key: self._value(value) for key, value in attributes.items() if value not in ("", None)}

    def _value(self, value: object) -> str | int | float | bool:
        if isinstance(value, bool | int | float):
            return value
        if not isinstance(value, str):
            plain = dict(value) if isinstance(value, Mapping) else value
            value = json.dumps(shrink(plain, CAP // 2, 64), ensure_ascii=False, default=str)
        masked = self._mask(value)
        return masked if len(masked) <= CAP else f"{masked[:CAP]}…[cut {len(masked) - CAP} characters]"


def _described(signal: OpenSpan, run: str) -> tuple[str, Mapping[str, Any]]:
    """A span's name and what is known when it opens."""
    given = signal.input
    match signal.kind:
        case "run":
            about = {f"qa_fleet.{key}": given.get(key) for key in _RUN}
            return f"invoke_agent {signal.name}", about | _model(str(given.get("model", ""))) | {
                gen_ai.GEN_AI_OPERATION_NAME: "invoke_agent",
                gen_ai.GEN_AI_AGENT_NAME: signal.name,
                gen_ai.GEN_AI_CONVERSATION_ID: run,
            }
        case "tool":
            return f"execute_tool {signal.name}", {
                gen_ai.GEN_AI_OPERATION_NAME: "execute_tool",
                gen_ai.GEN_AI_TOOL_NAME: signal.name,
                gen_ai.GEN_AI_TOOL_TYPE: "function",
                gen_ai.GEN_AI_TOOL_CALL_ID: given.get("call_id") or signal.key,
                gen_ai.GEN_AI_TOOL_CALL_ARGUMENTS: given.get("args"),
            }
        case "model":
            chat = {gen_ai.GEN_AI_OPERATION_NAME: "chat"}
            return f"chat {signal.name}".rstrip(), chat | _model(signal.name)
    return signal.name, {"qa_fleet.kind": signal.kind}


def _model(name: str) -> dict[str, Any]:
    provider, colon, model = name.partition(":")
    if not colon:
        return {gen_ai.GEN_AI_REQUEST_MODEL: name}
    known = _PROVIDERS.get(provider, provider)
    return {gen_ai.GEN_AI_PROVIDER_NAME: known, gen_ai.GEN_AI_REQUEST_MODEL: model}


def _outcome(signal: CloseSpan) -> Mapping[str, Any]:
    """The fields known when a span closes; it is an error only if reported as one."""
    kind, output = signal.key.partition(":")[0], signal.output
    found: dict[str, Any] = {} if signal.is_complete else {"qa_fleet.is_complete": False}
    if signal.is_error is not None:
        found["qa_fleet.is_error"] = signal.is_error
    if signal.is_error:
        why = output.get("error_class") or output.get("denied") or output.get("failure")
        found[ERROR_TYPE] = why or output.get("outcome") or "_OTHER"
    match kind:
        case "tool" if output:
            found[gen_ai.GEN_AI_TOOL_CALL_RESULT] = output
        case "reasoning":
            found["qa_fleet.text"] = output.get("text")
        case "run":
            found |= {f"qa_fleet.{key}": output.get(key) for key in ("outcome", "detail", "calls", "turns")}
            found |= _used(output.get("usage") or {})
        case "model":
            found |= _used(output)
    return found


def _used(usage: Mapping[str, Any]) -> dict[str, Any]:
    return {name: usage[key] for key, name in _USAGE.items() if key in usage}
