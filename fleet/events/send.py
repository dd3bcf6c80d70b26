"""Delivery by sending: pushes a run's messages and calls into a channel as they come."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, Protocol

from fleet.errors import FleetError
from fleet.events.model import (
    Event,
    FindingPosted,
    FindingRaised,
    FindingRepeated,
    FindingVerified,
    Footer,
    GateDenied,
    MessageDelta,
    MessageDone,
    MessageSaid,
    MessageStarted,
    ToolRequested,
    ToolResponded,
    TurnEnded,
    TurnStarted,
    TurnUsage,
)
from fleet.events.spans import Observer, Tracer

_NUMBERS = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "duration_s",
    "model_calls",
    "tool_calls",
)


def total(usages: Iterable[TurnUsage | None]) -> TurnUsage | None:
    """The sum of those that reported; a figure that one of them lacks stays unknown.

    The model is the last one named. None when none reported. A cost that is not a decimal number is unknown.
    """
    reported = [usage for usage in usages if usage is not None]
    if not reported:
        return None
    sums: dict[str, Any] = {}
    for name in _NUMBERS:
        values = [getattr(usage, name) for usage in reported]
        sums[name] = None if None in values else sum(values)
    costs = [_decimal(usage.cost_usd) for usage in reported]
    cost = None if None in costs else f"{sum((one for one in costs if one is not None), Decimal(0)):f}"
    models = [usage.model for usage in reported if usage.model]
    return TurnUsage(model=models[-1] if models else "", cost_usd=cost, **sums)


def _decimal(text: str | None) -> Decimal | None:
    try:
        value = Decimal(text) if text is not None else None
    except InvalidOperation:
        return None
    return value if value is not None and value.is_finite() else None


Kind = Literal["text", "reasoning", "tool_request", "tool_response", "finding"]


class DeliveryPort(Protocol):
    """One delivery in progress."""

    def add(self, text: str) -> None:
        """More of it."""

    def close(self, payload: Mapping[str, Any], *, is_complete: bool) -> None:
        """The complete content, and the end."""


class Channel(Protocol):
    """The destination of a run."""

    def open(self, kind: Kind, identity: str) -> DeliveryPort:
        """A delivery begins. `identity`: a message's index, a call's number, a finding's fingerprint."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The result of a run."""

    final_text: str
    usage: TurnUsage | None


@dataclass(slots=True)
class _OpenCall:
    kind: Kind
    context: DeliveryPort | None
    text: str = ""


class AutoSend:
    """A reader that sends one run's stream into a channel.

    Each message has its own context, by index, from its start; calls, answers and changes of a finding are
    sent whole. The end of a turn or of the run closes every open context separately. A channel that raises
    loses that delivery, and `failed` counts it; the run is unaffected.
    """

    def __init__(self, channel: Channel, *, tracer: Tracer | None = None) -> None:
        self._channel, self._observer = channel, Observer(tracer)
        self._open: dict[int, _OpenCall] = {}
        self._final, self._usage, self._over = "", list[TurnUsage | None](), False
        self.failed = 0

    def __call__(self, event: Event) -> None:
        self._observer.observe(event)
        match event:
            case MessageStarted() if event.kind in ("text", "reasoning") and event.index is not None:
                self._start(event.index, event.kind, event.text)
            case MessageDelta() if event.index in self._open:
                self._add(self._open[event.index], event.text)
            case MessageSaid():
                self._said(event)
            case MessageDone() if event.index in self._open:
                message = self._open.pop(event.index)
                self._close(message, {"text": message.text}, is_complete=True)
            case ToolRequested():
                self._whole("tool_request", event.call, {"tool": event.tool, "args": event.args})
            case ToolResponded():
                result = {"tool": event.tool, "result": event.result, "is_error": event.is_error}
                self._whole("tool_response", event.call, result)
            case GateDenied():
                refusal = {"tool": event.tool, "denied": event.rule, "is_error": True}
                self._whole("tool_response", event.call, refusal)
            case FindingRaised() | FindingVerified() | FindingPosted() | FindingRepeated():
                became = event.model_dump(exclude={"run", "at", "type", "fingerprint"})
                self._whole("finding", event.fingerprint, {"event": event.type, **became})
            case TurnStarted() | TurnEnded() | Footer():
                self._end(event)

    def result(self) -> RunSummary:
        """The run's result; FleetError while it is active, because its usage is unknown."""
        if not self._over:
            raise FleetError("the run is not over: its usage is not known yet")
        return RunSummary(self._final, total(self._usage))

    def aclose(self) -> None:
        """An early end: contexts and spans are closed as incomplete."""
        self._teardown()
        self._observer.flush()

    def _start(self, index: int, kind: Kind, text: str) -> None:
        if (earlier := self._open.pop(index, None)) is not None:
            self._close(earlier, {"text": earlier.text}, is_complete=False)
        message = self._open[index] = _OpenCall(kind, self._context(kind, str(index)))
        if text:
            self._add(message, text)

    def _add(self, message: _OpenCall, text: str) -> None:
        message.text += text
        if message.context is not None:
            with self._guarded():
                message.context.add(text)

    def _said(self, event: MessageSaid) -> None:
        if event.kind == "text":
            self._final = event.text
        message = None if event.index is None else self._open.pop(event.index, None)
        if message is None:
            message = _OpenCall(event.kind, self._context(event.kind, str(event.index)))
        self._close(message, {"text": event.text}, is_complete=event.is_complete)

    def _whole(self, kind: Kind, identity: object, payload: Mapping[str, Any]) -> None:
        self._close(_OpenCall(kind, self._context(kind, str(identity))), payload, is_complete=True)

    def _end(self, event: TurnStarted | TurnEnded | Footer) -> None:
        self._teardown()
        if isinstance(event, TurnEnded):
            self._usage.append(event.usage)
        elif isinstance(event, Footer):
            self._over = True
            if event.usage is not None:
                self._usage = [event.usage]

    def _teardown(self) -> None:
        while self._open:
            message = self._open.pop(next(iter(self._open)))
            self._close(message, {"text": message.text}, is_complete=False)

    def _context(self, kind: Kind, identity: str) -> DeliveryPort | None:
        with self._guarded():
            return self._channel.open(kind, identity)
        return None

    def _close(self, message: _OpenCall, payload: Mapping[str, Any], *, is_complete: bool) -> None:
        if message.context is not None:
            with self._guarded():
                message.context.close(payload, is_complete=is_complete)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except Exception:
            self.failed += 1
