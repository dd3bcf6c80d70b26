"""The driver that asks a model: one request and its tool calls are one turn at the desk.

It decides no permissions: names, arguments and malformed texts go to the desk unchanged, and the desk's
answers go back as data. Importing this module imports the SDKs.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

import anyio
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_core import from_json

from fleet.config import ModelSection
from fleet.drivers.desk import FINISH, Desk, Offer, ProviderFailed, Reply, Turn
from fleet.drivers.model.endpoint import open_endpoint
from fleet.drivers.model.exchange import LostAnswer, ModelExchange, TooLong, Undone
from fleet.drivers.model.talk import BYTES_PER_TOKEN, Talk, calls, tokens
from fleet.events.model import TurnUsage
from fleet.personas.duration import parse_duration

SETTLE_S = 5.0
"""Time limit of the shielded settle."""


class ModelDriver:
    """Drives one run after the other with the model of the configuration; holds the key and nothing else."""

    def __init__(self, section: ModelSection, key: str) -> None:
        self._section, self._key = section, key

    def __repr__(self) -> str:
        return f"ModelDriver({self._section.name})"

    async def __call__(self, desk: Desk) -> str:
        """Drive to the end of the run. Raises ProviderFailed, BudgetExceeded and RunOver."""
        silence = parse_duration(self._section.timeout)
        async with open_endpoint(self._section, self._key, silence) as model:
            return await _Work(desk, model, self._section, self._key).drive()


@dataclass(frozen=True, slots=True)
class _Step:
    """Result of a turn: whether the model stopped on its own, and its reason if it called `finish`."""

    stopped: bool = False
    detail: str = "the model stopped"


@dataclass(slots=True)
class _Work:
    desk: Desk
    model: Model
    section: ModelSection
    key: str = field(repr=False)
    talk: Talk = field(init=False)
    index: int = 0

    def __post_init__(self) -> None:
        self.talk = Talk(secrets.token_hex(8), self.section.context * BYTES_PER_TOKEN)

    async def drive(self) -> str:
        self.talk.open(self.desk.brief())
        while True:
            try:
                async with self.desk.turn() as turn:
                    step = await self._step(turn)
            except TimeoutError:
                continue  # the desk counts them and ends the run
            if not step.stopped:
                continue
            if not (words := await self.desk.more()):
                return step.detail
            self.talk.go_on(words)

    async def _step(self, turn: Turn) -> _Step:
        try:
            response = await self._answer_of_model(turn)
        except LostAnswer as lost:
            turn.failed(lost.failure, lost.detail)
            if isinstance(lost, TooLong):
                self.talk.shrink()
            if isinstance(lost, Undone):
                self.talk.go_on(f"Your last answer was not executed: {lost.detail}.")
            return _Step()
        except ProviderFailed as failed:
            turn.failed("provider_error", str(failed))
            raise
        asked, replies = calls(response), dict[int, Reply]()
        try:
            for position, call in enumerate(asked):
                replies[position] = await turn.ask(call.tool_call_id, call.tool_name, arguments(call.args))
        finally:
            self.talk.answered(response, replies)
        if any(reply.tool == FINISH and not reply.is_error for reply in replies.values()):
            return _Step(stopped=True, detail="the model finished")
        return _Step(stopped=not asked)

    async def _answer_of_model(self, turn: Turn) -> ModelResponse:
        messages, offers = self.talk.messages(), self.desk.offers()
        await self.desk.reserve(tokens=tokens(messages, offers) + self.section.max_tokens)
        exchange = ModelExchange(
            model=self.model,
            parameters=ModelRequestParameters(function_tools=[offered(one) for one in offers]),
            settings=settings(self.section),
            prices=self.section.prices,
            turn=turn,
            index=self.index,
            key=self.key,
            streamed=self.section.stream,
        )
        try:
            return await exchange.run(messages)
        finally:
            self.index, used = exchange.next_index, exchange.known()
            turn.used(used or TurnUsage(model=self.section.name, model_calls=exchange.attempts))
            with anyio.move_on_after(SETTLE_S, shield=True):
                await self.desk.settle(used)


def arguments(args: str | dict[str, Any] | None) -> dict[str, Any] | str:
    """The arguments of a call as an object, or the unchanged text if it is not one."""
    if isinstance(args, dict):
        return args
    if not args:
        return {}
    try:
        found = from_json(args, allow_inf_nan=False)
    except ValueError:
        return args
    return found if isinstance(found, dict) else args


def offered(offer: Offer) -> ToolDefinition:
    """A tool as the SDK takes it."""
    return ToolDefinition(
        name=offer.name,
        description=offer.description,
        parameters_json_schema=dict(offer.parameters),
        strict=False,
    )


def settings(section: ModelSection) -> ModelSettings:
    """The limit of an answer; retries are ours alone."""
    found = ModelSettings(max_tokens=section.max_tokens)
    if not section.name.startswith("google:"):  # its SDK does not retry by default
        found["max_retries"] = 0
    return found
