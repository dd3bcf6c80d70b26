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
from fleet.events.model import Event, TurnUsage
from fleet.personas.duration import parse_duration

SETTLE_S = 5.0
"""Time limit of the shielded settle."""
Answer = ModelResponse | LostAnswer | ProviderFailed
"""What a model says, or why there is none."""


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
            return await _Conductor(desk, model, self._section, self._key).drive()


@dataclass(frozen=True, slots=True)
class _Step:
    """Result of a turn: whether the model stopped on its own, and its reason if it called `finish`."""

    stopped: bool = False
    detail: str = "the model stopped"


@dataclass(slots=True)
class _Conductor:
    """Gives each open probe of the plan to a worker of its own, as many at a time as are configured.

    The plan decides what is next, whatever a conversation says. A plan with nothing open is one worker's.
    """

    desk: Desk
    model: Model
    section: ModelSection
    key: str = field(repr=False)
    taken: set[str] = field(default_factory=set)
    messages: int = 0
    """Shown so far: the number of the next one."""
    detail: str = ""

    async def drive(self) -> str:
        try:
            async with anyio.create_task_group() as workers:
                for _ in range(self.section.workers):
                    workers.start_soon(self._work)
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None  # the first ended the others
        return self.detail

    async def _work(self) -> None:
        while (probe := self.desk.next_probe(self.taken)) or not self.taken:
            self.taken.add(probe)
            self.detail = await _Worker(self, probe).drive()


@dataclass(slots=True)
class _Aside:
    """What a worker's answer shows and costs, until its turn is taken."""

    events: list[Event] = field(default_factory=list)
    usage: TurnUsage | None = None

    def show(self, event: Event) -> None:
        self.events.append(event)

    def used(self, usage: TurnUsage) -> None:
        self.usage = usage


@dataclass(slots=True)
class _Worker:
    """One conversation about one probe, from its brief until that is settled; then it is thrown away."""

    conductor: _Conductor
    probe: str
    talk: Talk = field(init=False)

    def __post_init__(self) -> None:
        self.talk = Talk(secrets.token_hex(8), self.conductor.section.context * BYTES_PER_TOKEN)

    async def drive(self) -> str:
        desk = self.conductor.desk
        self.talk.open(desk.brief(self.probe))
        while True:
            try:
                step = await (self._alone() if self.conductor.section.workers == 1 else self._beside_others())
            except TimeoutError:
                continue  # the desk counts them and ends the run
            if not step.stopped:
                continue
            if not (words := await desk.more(self.probe)):
                return step.detail
            self.talk.go_on(words)

    async def _alone(self) -> _Step:
        """A turn in which the model is asked, so that its answer is seen while it comes."""
        async with self.conductor.desk.turn(self.probe) as turn:
            answer, self.conductor.messages = await self._answer(turn, self.conductor.messages)
            return await self._act(turn, answer)

    async def _beside_others(self) -> _Step:
        """The model is asked while others are; the turn is taken when its answer is there, and shows it."""
        desk, aside = self.conductor.desk, _Aside()
        answer: Answer
        try:
            with anyio.fail_after(desk.turn_s):
                answer, shown = await self._answer(aside, 0)
        except TimeoutError:
            answer, shown = LostAnswer("turn_timeout", "no answer in the time of a turn"), len(aside.events)
        async with desk.turn(self.probe) as turn:
            first = self.conductor.messages
            self.conductor.messages += shown
            for event in aside.events:
                turn.show(event.model_copy(update={"index": first + (getattr(event, "index", None) or 0)}))
            if aside.usage is not None:
                turn.used(aside.usage)
            return await self._act(turn, answer)

    async def _act(self, turn: Turn, answer: Answer) -> _Step:
        """Make the calls of an answer; ProviderFailed as it came."""
        if isinstance(answer, ProviderFailed):
            turn.failed("provider_error", str(answer))
            raise answer
        if isinstance(answer, LostAnswer):
            turn.failed(answer.failure, answer.detail)
            if isinstance(answer, TooLong):
                self.talk.shrink()
            if isinstance(answer, Undone):
                self.talk.go_on(f"Your last answer was not executed: {answer.detail}.")
            return _Step()
        asked, replies = calls(answer), dict[int, Reply]()
        try:
            for position, call in enumerate(asked):
                replies[position] = await turn.ask(call.tool_call_id, call.tool_name, arguments(call.args))
        finally:
            self.talk.answered(answer, replies)
        if any(reply.tool == FINISH and not reply.is_error for reply in replies.values()):
            return _Step(stopped=True, detail="the model finished")
        return _Step(stopped=not asked)

    async def _answer(self, turn: Turn | _Aside, index: int) -> tuple[Answer, int]:
        """The model's answer, or why there is none; and the number of the next message after `index`."""
        desk, section = self.conductor.desk, self.conductor.section
        messages, offers = self.talk.messages(), desk.offers()
        reserved = await desk.reserve(tokens=tokens(messages, offers) + section.max_tokens)
        exchange = ModelExchange(
            model=self.conductor.model,
            parameters=ModelRequestParameters(function_tools=[offered(one) for one in offers]),
            settings=settings(section),
            prices=section.prices,
            turn=turn,
            index=index,
            key=self.conductor.key,
            streamed=section.stream,
        )
        answer: Answer
        try:
            answer = await exchange.run(messages)
        except (LostAnswer, ProviderFailed) as why:
            answer = why
        finally:
            used = exchange.known()
            turn.used(used or TurnUsage(model=section.name, model_calls=exchange.attempts))
            with anyio.move_on_after(SETTLE_S, shield=True):
                await reserved.settle(used)
        return answer, exchange.next_index


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
