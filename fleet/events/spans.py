"""Spans, derived: a pure fold of a run's events into openings and closings.

    run ── turn ── model        one per turn that reported usage
               ├── reasoning    reasoning:<index>
               └── tool         tool:<number of the call>

A tool's span is keyed by the number that the desk gave the call: a driver's own ids may repeat. It opens at
the record of the call, never at the driver's request, so that a file, which has no requests, gives the same
spans as the live stream. Signals carry what the records carry, masked and cut.

Ignored: a response to no open call, a second opening of an open call, pieces and ends without an index
or of no open one. A second start of reasoning under an open index closes the first as incomplete.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fleet.events.model import (
    Event,
    Footer,
    GateDenied,
    Header,
    MessageDelta,
    MessageDone,
    MessageSaid,
    MessageStarted,
    ToolRequested,
    ToolResponded,
    TurnEnded,
    TurnStarted,
)

Kind = Literal["run", "turn", "model", "tool", "reasoning"]
RUN = "run"
HELD = 32_768
"""Most characters of reasoning held until a record brings the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSpan:
    """A span begins; `parent` is the key of an open one, "" for the run."""

    key: str
    kind: Kind
    name: str
    parent: str = RUN
    input: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseSpan:
    """A span ends. `is_error` is None unless it was reported; not `is_complete`: it was cut off."""

    key: str
    output: Mapping[str, Any] = field(default_factory=dict)
    is_complete: bool = True
    is_error: bool | None = None


Signal = OpenSpan | CloseSpan


Tracer = Callable[[Signal], None]
"""A receiver of signals."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Open spans: tools in order of opening, reasoning by index with its text so far."""

    run: bool = False
    turn: str = ""
    tools: tuple[str, ...] = ()
    reasoning: Mapping[int, str] = field(default_factory=dict)

    @property
    def top(self) -> str:
        """The parent of the next span."""
        return self.turn or RUN


def fold(spans: Spans, event: Event) -> tuple[Spans, tuple[Signal, ...]]:
    """Apply one event: the new state and its signals."""
    match event:
        case Header():
            return _header(spans, event)
        case TurnStarted():
            closed, signals = _close_turn(spans, CloseSpan(key=spans.turn, is_complete=False))
            opened, more = _open_turn(closed, event.index)
            return opened, signals + more
        case TurnEnded():
            return _turn(spans, event)
        case ToolRequested():
            return _open_tool(spans, event, event.args)
        case ToolResponded():
            key = f"tool:{event.call}"
            if key not in spans.tools:
                return spans, ()
            close = CloseSpan(key=key, output=event.result, is_error=event.is_error)
            return replace(spans, tools=tuple(one for one in spans.tools if one != key)), (close,)
        case GateDenied():
            return _denied(spans, event)
        case MessageStarted() | MessageDelta() | MessageDone() | MessageSaid():
            return _message(spans, event)
        case Footer():
            after, signals = flush(replace(spans, run=False))
            if not spans.run:
                return after, signals
            output = event.model_dump(include={"outcome", "detail", "calls", "turns", "seconds"})
            if event.usage is not None:
                output["usage"] = event.usage.model_dump(exclude_none=True)
            close = CloseSpan(key=RUN, output=output, is_error=True if event.outcome == "failed" else None)
            return after, (*signals, close)
    return spans, ()


def flush(spans: Spans) -> tuple[Spans, tuple[Signal, ...]]:
    """An early end: tools in order of opening, reasoning by index, the turn, the run."""
    after, signals = _cut(spans)
    after, more = _close_turn(after, CloseSpan(key=spans.turn, is_complete=False))
    last = (CloseSpan(key=RUN, is_complete=False),) if spans.run else ()
    return replace(after, run=False), signals + more + last


def _header(spans: Spans, event: Header) -> tuple[Spans, tuple[Signal, ...]]:
    if spans.run:
        return spans, ()
    about = event.model_dump(
        include={"run", "driver", "platform", "chain_id", "rung", "jail", "trigger", "goal", "model", "build"}
    )
    opened = OpenSpan(key=RUN, kind="run", name=event.persona, parent="", input=about)
    return replace(spans, run=True), (opened,)


def _open_turn(spans: Spans, index: int) -> tuple[Spans, tuple[Signal, ...]]:
    key = f"turn:{index}"
    return replace(spans, turn=key), (OpenSpan(key=key, kind="turn", name=key),)


def _close_turn(spans: Spans, close: CloseSpan) -> tuple[Spans, tuple[Signal, ...]]:
    if not spans.turn:
        return spans, ()
    after, signals = _cut(spans)
    return replace(after, turn=""), (*signals, close)


def _turn(spans: Spans, event: TurnEnded) -> tuple[Spans, tuple[Signal, ...]]:
    """Its usage is what the model did; files without `turn.started` get the turn too."""
    key = f"turn:{event.index}"
    signals: tuple[Signal, ...] = ()
    if spans.turn != key:
        spans, cut = _close_turn(spans, CloseSpan(key=spans.turn, is_complete=False))
        spans, opened = _open_turn(spans, event.index)
        signals = cut + opened
    spans, cut = _cut(spans)
    if event.usage is not None:
        usage = event.usage.model_dump(exclude_none=True)
        model = f"model:{event.index}"
        cut += (
            OpenSpan(key=model, kind="model", name=event.usage.model, parent=key),
            CloseSpan(key=model, output=usage),
        )
    output = event.model_dump(include={"executed", "validation", "failure", "seconds"})
    close = CloseSpan(key=key, output=output, is_error=True if event.failure else None)
    return replace(spans, turn=""), (*signals, *cut, close)


def _open_tool(
    spans: Spans, event: ToolRequested | GateDenied, args: Mapping[str, Any]
) -> tuple[Spans, tuple[Signal, ...]]:
    key = f"tool:{event.call}"
    if key in spans.tools:
        return spans, ()
    given = {"call_id": event.call_id, "args": args}
    opened = OpenSpan(key=key, kind="tool", name=event.tool, parent=spans.top, input=given)
    return replace(spans, tools=(*spans.tools, key)), (opened,)


def _denied(spans: Spans, event: GateDenied) -> tuple[Spans, tuple[Signal, ...]]:
    """A refused call is a span too: it shows what was tried."""
    spans, opened = _open_tool(spans, event, event.args)
    key = f"tool:{event.call}"
    close = CloseSpan(key=key, output={"denied": event.rule, "reason": event.reason}, is_error=True)
    return replace(spans, tools=tuple(one for one in spans.tools if one != key)), (*opened, close)


def _message(
    spans: Spans, event: MessageStarted | MessageDelta | MessageDone | MessageSaid
) -> tuple[Spans, tuple[Signal, ...]]:
    """Among messages only reasoning is a span: from its start, or whole from its record."""
    index, is_open = event.index, event.index in spans.reasoning
    match event:
        case MessageStarted(kind="reasoning") if index is not None:
            cut = (_close_reasoning(spans, index, is_complete=False),) if is_open else ()
            held = {**spans.reasoning, index: event.text[:HELD]}
            return replace(spans, reasoning=held), (*cut, _open_reasoning(spans, index))
        case MessageDelta() if index is not None and is_open:
            held = {**spans.reasoning, index: (spans.reasoning[index] + event.text)[:HELD]}
            return replace(spans, reasoning=held), ()
        case MessageDone() if index is not None and is_open:
            return _without(spans, index), (_close_reasoning(spans, index),)
        case MessageSaid(kind="reasoning"):
            opened = () if is_open else (_open_reasoning(spans, index),)
            close = CloseSpan(
                key=f"reasoning:{index}", output={"text": event.text}, is_complete=event.is_complete
            )
            return _without(spans, index), (*opened, close)
    return spans, ()


def _open_reasoning(spans: Spans, index: int | None) -> OpenSpan:
    return OpenSpan(key=f"reasoning:{index}", kind="reasoning", name="reasoning", parent=spans.top)


def _close_reasoning(spans: Spans, index: int, *, is_complete: bool = True) -> CloseSpan:
    return CloseSpan(
        key=f"reasoning:{index}", output={"text": spans.reasoning[index]}, is_complete=is_complete
    )


def _without(spans: Spans, index: int | None) -> Spans:
    return replace(spans, reasoning={key: text for key, text in spans.reasoning.items() if key != index})


def _cut(spans: Spans) -> tuple[Spans, tuple[Signal, ...]]:
    tools = [CloseSpan(key=key, is_complete=False) for key in spans.tools]
    thoughts = [_close_reasoning(spans, index, is_complete=False) for index in sorted(spans.reasoning)]
    return replace(spans, tools=(), reasoning={}), (*tools, *thoughts)


class Observer:
    """Passes one run's spans to a tracer. A tracer that raises does not affect the run."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer, self._spans = tracer, Spans()

    def observe(self, event: Event) -> None:
        self._spans, signals = fold(self._spans, event)
        self._trace(signals)

    def flush(self) -> None:
        """Close open spans as incomplete. A second call does nothing."""
        self._spans, signals = flush(self._spans)
        self._trace(signals)

    def _trace(self, signals: tuple[Signal, ...]) -> None:
        for signal in signals:
            with contextlib.suppress(Exception):  # observability fails open
                self._tracer(signal)
