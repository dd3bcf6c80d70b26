"""One request to the model: streamed, shown live, retried only before any output has arrived.

Errors of the SDKs become one of three: `ProviderFailed` (no endpoint available), `LostAnswer` (this answer is
unusable), or, before any output and if it may pass, another attempt.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio
from pydantic_ai import exceptions as wrong
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from fleet.config import PricesSection
from fleet.drivers.desk import ProviderFailed
from fleet.drivers.model.refusal import is_invalid, named
from fleet.drivers.model.usage import usage
from fleet.events.model import Event, Kind, MessageDelta, MessageDone, MessageSaid, MessageStarted, TurnUsage
from fleet.retry import MODEL

_LOG = logging.getLogger("fleet.drivers.model")
MAX_CALLS = 64
"""Most calls in one answer; if there are more, none is executed."""

_PASSING = (
    wrong.ModelRateLimitError,
    wrong.ModelUnavailableError,
    wrong.ModelServerError,
    wrong.ModelConnectionError,
)


class LostAnswer(Exception):
    """This answer is unusable; `failure` is one of FAILURES."""

    def __init__(self, failure: str, detail: str) -> None:
        super().__init__(detail)
        self.failure, self.detail = failure, detail


class TooLong(LostAnswer):
    """The prompt was longer than the model's context."""


class Undone(LostAnswer):
    """The answer contained calls, none was executed, and the model should learn why."""


class ShowsEvents(Protocol):
    """Where an answer is shown while it comes: a turn at the desk."""

    def show(self, event: Event) -> None:
        """Put a message event (started, delta, done, said) on the stream."""


@dataclass(slots=True)
class ModelExchange:
    """One request, all its attempts; `index` is the number of its first message."""

    model: Model
    parameters: ModelRequestParameters
    settings: ModelSettings
    prices: PricesSection | None
    turn: ShowsEvents
    index: int
    key: str = field(repr=False)
    """Removed from the endpoint's words."""
    streamed: bool = True
    attempts: int = 0
    heard: bool = False
    """Whether anything but an error came back: then it may have cost something."""
    next_index: int = 0
    _usage: TurnUsage | None = None
    _refused: bool = False
    _calls: int = 0
    _open: set[int] = field(default_factory=set)

    async def run(self, messages: Sequence[ModelMessage]) -> ModelResponse:
        """The whole answer. Raises ProviderFailed and Lost."""
        started, self.next_index = time.monotonic(), self.index
        failed: float | None = None
        while True:
            try:
                response = await (self._streamed(messages) if self.streamed else self._at_once(messages))
                break
            except LostAnswer:
                raise
            except Exception as error:  # a hostile stream makes an SDK raise anything
                failed = time.monotonic() if failed is None else failed
                pause = self._pause(error, time.monotonic() - failed)
                if pause is None:
                    _LOG.debug("no answer", exc_info=error)
                    raise self._judged(error) from None
            await anyio.sleep(pause)
        seconds = time.monotonic() - started
        self._usage = usage(response, self.prices, attempts=self.attempts, seconds=seconds)
        if response.finish_reason == "content_filter":
            raise LostAnswer("refusal", "the provider or the model refused")
        if response.finish_reason == "error":  # Google's endpoint withholds a call that is not a JSON object
            raise Undone("invalid_action_exhausted", "the endpoint found a malformed call in it")
        return response

    def usage(self) -> TurnUsage:
        """Its cost; RuntimeError until the whole answer was read, because it is unknown before."""
        if self._usage is None:
            raise RuntimeError("the answer was not read to its end")
        return self._usage

    def known(self) -> TurnUsage | None:
        """Its cost as far as known: zero if the endpoint rejected the request."""
        if self._usage is None and not self.heard and self._refused:
            return TurnUsage(input_tokens=0, output_tokens=0, cost_usd="0", model_calls=self.attempts)
        return self._usage

    async def _streamed(self, messages: Sequence[ModelMessage]) -> ModelResponse:
        self.attempts += 1
        async with model_request_stream(
            self.model,
            messages,
            model_settings=self.settings,
            model_request_parameters=self.parameters,
            instrument=False,
        ) as stream:
            try:
                async for event in stream:
                    self.heard = True
                    self._show(event)
                answer = stream.get()
                # one that breaks off has no finish reason; pydantic-ai checks it for chat completions only
                if not (answer.finish_reason or "finish_reason" in (answer.provider_details or {})):
                    raise LostAnswer("provider_error", "the answer has no end")
                for at in sorted(self._open):
                    self._done(at)
            finally:
                self._broken(stream.get())
            return stream.get()

    async def _at_once(self, messages: Sequence[ModelMessage]) -> ModelResponse:
        """The same for an endpoint that cannot stream."""
        self.attempts += 1
        response = await model_request(
            self.model,
            messages,
            model_settings=self.settings,
            model_request_parameters=self.parameters,
            instrument=False,
        )
        self.heard = True
        for at, part in enumerate(response.parts):
            self._show(PartStartEvent(index=at, part=part))
            self._done(at)
        return response

    def _pause(self, error: Exception, since_s: float) -> float | None:
        """Seconds until another attempt; None where there is none: it would fail again, or may have cost."""
        if self.heard or not isinstance(error, _PASSING) or is_invalid(error):
            return None
        if isinstance(error, wrong.ModelConnectionError) and error.phase not in ("connect", "pool"):
            return None
        return MODEL.next_pause(self.attempts - 1, since_s, error.retry_after or 0.0)

    def _judged(self, error: Exception) -> Exception:
        what = named(error, self.key)
        match error:
            case wrong.ModelContextWindowExceededError():
                return TooLong("provider_error", what)
            case wrong.ModelTimeoutError() if error.phase not in ("connect", "pool"):
                self.heard = True
                return LostAnswer("turn_timeout", what)
            case wrong.ModelConnectionError() if error.phase not in ("connect", "pool"):
                self.heard = True
                return LostAnswer("provider_error", what)
            case wrong.ModelAPIError() if not self.heard and isinstance(error, _STATED):
                self._refused = True
                return ProviderFailed(what)
            case _:
                self.heard = True
                return LostAnswer("provider_error", what)

    def _show(self, event: ModelResponseStreamEvent) -> None:
        match event:
            case PartStartEvent(part=TextPart() | ThinkingPart() | ToolCallPart() as part):
                kind, text = _opening(part)
                number = self.index + event.index
                self.next_index = max(self.next_index, number + 1)
                self._open.add(event.index)
                started = MessageStarted(index=number, kind=kind, text=text)
                if isinstance(part, ToolCallPart):
                    self._calls += 1
                    if self._calls > MAX_CALLS:
                        raise Undone("invalid_action_exhausted", f"more than {MAX_CALLS} calls in one answer")
                    named = {"call_id": part.tool_call_id, "tool": part.tool_name}
                    started = started.model_copy(update=named)
                self.turn.show(started)
            case PartDeltaEvent(delta=delta) if (more := _piece(delta)) and event.index in self._open:
                self.turn.show(MessageDelta(index=self.index + event.index, text=more))
            # calls interleave and end together; the last part may still turn out to be cut off
            case PartEndEvent(part=TextPart() | ThinkingPart(), next_part_kind=str()):
                self._done(event.index)

    def _done(self, at: int) -> None:
        if at in self._open:
            self._open.remove(at)
            self.turn.show(MessageDone(index=self.index + at))

    def _broken(self, response: ModelResponse) -> None:
        """Record what was cut off as incomplete."""
        for at in sorted(self._open):
            part = response.parts[at] if at < len(response.parts) else None
            if isinstance(part, TextPart | ThinkingPart):
                kind, text = _opening(part)
                self.turn.show(MessageSaid(index=self.index + at, kind=kind, text=text, is_complete=False))
        self._open.clear()


_STATED = (wrong.ModelRequestRejectedError, wrong.ModelQuotaExceededError, wrong.ModelHTTPError, *_PASSING)


def _opening(part: TextPart | ThinkingPart | ToolCallPart) -> tuple[Kind, str]:
    match part:
        case TextPart():
            return "text", part.content
        case ThinkingPart():
            return "reasoning", part.content
        case ToolCallPart():
            return "tool_request", part.args_as_json_str() if isinstance(part.args, dict) else part.args or ""


def _piece(delta: object) -> str:
    match delta:
        case TextPartDelta():
            return delta.content_delta
        case ThinkingPartDelta():
            return delta.content_delta or ""
        case ToolCallPartDelta() if isinstance(delta.args_delta, str):
            return delta.args_delta
        case _:
            return ""
