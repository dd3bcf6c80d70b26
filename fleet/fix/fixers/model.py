"""A fixer that is a model: driven on our side, with tools that act in jails on the work tree.

The key and the provider's SDK stay outside. Of its tools, `read`, `search` and `edit` are one guest
(`sandbox/trees/edit.py`), `run` is a command that the guard permits. What it says is not believed. Importing
this module imports pydantic-ai.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters

from fleet.config import ModelSection
from fleet.drivers.desk import FINISH, Brief, Offer, ProviderFailed, Reply
from fleet.drivers.model.driver import arguments, offered, settings
from fleet.drivers.model.endpoint import open_endpoint
from fleet.drivers.model.exchange import LostAnswer, ModelExchange, TooLong
from fleet.drivers.model.talk import BYTES_PER_TOKEN, Talk, calls, tokens
from fleet.errors import JailError, Unreachable
from fleet.events.model import Event
from fleet.findings.redact import Redactor
from fleet.fix.fixers.brief import write_brief
from fleet.fix.fixers.command import ENVIRONMENT
from fleet.fix.fixers.command_guard import refusal
from fleet.fix.model import CommandEnd, FixAttempt, FixTask, StepResult
from fleet.fix.ports import FixBudget, TreeCommand, TreeJailPort, TreePort
from fleet.jail.locate import find_interpreter
from fleet.personas.duration import parse_duration
from fleet.text import clean, line
from sandbox import strict_json

TURNS = 40
"""Most answers of the model in one attempt."""
LOST = 3
"""Most unusable answers in a row."""
CALLS = 8
"""Most tool calls of one answer."""
SHOWN = 6_000
"""Characters of each end of a command's output that the model sees."""
EDIT_S = 30.0
SETTLE_S = 5.0
EDIT = ("{python}", "-I", "-S", "-B", "/opt/sandbox/trees/edit.py")
_TRANSCRIPT = 16_000
_IDLE = "You called no tool. Change the files by `edit`, check by `run`, and end by `finish`."


@cache
def tools() -> tuple[Offer, ...]:
    """What the model may call."""
    listed = json.loads(files("fleet.fix.fixers").joinpath("model_tools.json").read_text("utf-8"))
    return tuple(Offer(**one, group="tree") for one in listed)


class ModelFixer:
    """Implements `Fixer`, with the model of the configuration."""

    name = "model"

    def __init__(self, section: ModelSection, key: str, budget: FixBudget) -> None:
        self._section, self._key, self._budget = section, key, budget

    def __repr__(self) -> str:
        return f"ModelFixer({self._section.name})"

    async def fix(
        self, task: FixTask, tree: TreePort, jails: TreeJailPort, failed: Sequence[StepResult]
    ) -> FixAttempt:
        """One conversation. RunOver ends the run; Unreachable: no model; JailError: its jail broke."""
        silence = parse_duration(self._section.timeout)
        async with open_endpoint(self._section, self._key, silence) as model:
            work = _FixTalk(
                model, self._section, self._key, self._budget, TreeTools(task, tree.path, jails, self._budget)
            )
            words = await work.hold(task, failed)
        notes = Redactor([self._key] if len(self._key) >= 8 else ()).text("\n".join(work.notes))
        return FixAttempt(words, clean(notes[-_TRANSCRIPT:], _TRANSCRIPT, newlines=True))


class _Unshown:
    """An answer is not shown while it comes."""

    def show(self, event: Event) -> None:  # noqa: ARG002  the port has it
        return


@dataclass(slots=True)
class _FixTalk:
    model: Model
    section: ModelSection
    key: str = field(repr=False)
    budget: FixBudget
    tools: TreeTools
    notes: list[str] = field(default_factory=list)
    talk: Talk = field(init=False)
    index: int = 0

    def __post_init__(self) -> None:
        self.talk = Talk(secrets.token_hex(8), self.section.context * BYTES_PER_TOKEN)

    async def hold(self, task: FixTask, failed: Sequence[StepResult]) -> str:
        """Talk until it finishes, or a limit ends it; how it ended, in words."""
        brief = write_brief(
            task, failed, python=find_interpreter().inside, seconds=self.budget.seconds(), model=True
        )
        self.talk.open(Brief(system=brief.instructions, plan=brief.material))
        lost = 0
        for turn in range(1, TURNS + 1):
            try:
                response = await self._ask()
            except LostAnswer as error:
                lost += 1
                self.notes.append(f"turn {turn}: {line(error.detail, 200)}")
                if lost == LOST:
                    return f"the model gave {LOST} unusable answers in a row"
                if isinstance(error, TooLong):
                    self.talk.shrink()
                continue
            except ProviderFailed as failure:
                raise Unreachable(f"the model does not answer: {failure}") from None
            lost = 0
            if done := await self._act(turn, response):
                return done
        return f"the model did not finish in {TURNS} turns"

    async def _act(self, turn: int, response: ModelResponse) -> str:
        """Execute the calls of one answer; why it is over, or ""."""
        asked, replies = calls(response), dict[int, Reply]()
        try:
            for position, call in enumerate(asked[:CALLS]):
                args = arguments(call.args)
                content = await self.tools.call(call.tool_name, args)
                shown = (
                    args if isinstance(args, str) else json.dumps(dict(args), ensure_ascii=False, default=str)
                )
                end = content.get("error") or f"{content.get('how', 'ok')} {content.get('code', '')}"
                did = f"{line(call.tool_name, 40)} {line(shown, 160)}"
                self.notes.append(f"turn {turn}: {did} -> {line(str(end), 160)}")
                replies[position] = Reply(call.tool_call_id, call.tool_name, content, "error" in content)
                if call.tool_name == FINISH and "error" not in content:
                    return f"the model finished: {line(str(content.get('detail', '')), 200)}"
        finally:
            self.talk.answered(response, replies)
        if not asked:
            self.talk.go_on(_IDLE)
        return ""

    async def _ask(self) -> ModelResponse:
        messages = self.talk.messages()
        reserved = await self.budget.reserve(tokens(messages, tools()) + self.section.max_tokens)
        exchange = ModelExchange(
            model=self.model,
            parameters=ModelRequestParameters(function_tools=[offered(one) for one in tools()]),
            settings=settings(self.section),
            prices=self.section.prices,
            turn=_Unshown(),
            index=self.index,
            key=self.key,
            streamed=self.section.stream,
        )
        try:
            async with asyncio.timeout(self.budget.seconds()):
                return await exchange.run(messages)
        except TimeoutError:
            raise LostAnswer("turn_timeout", "no answer in the time that the run has left") from None
        finally:
            self.index, used = exchange.next_index, exchange.known()
            with anyio.move_on_after(SETTLE_S, shield=True):
                await reserved.settle(used)


@dataclass(slots=True)
class TreeTools:
    """The model's tools on one tree; every answer is data for the model, `{"error"}` for its mistakes."""

    task: FixTask
    tree: Path
    jails: TreeJailPort
    budget: FixBudget

    async def call(self, tool: str, args: Mapping[str, Any] | str) -> Mapping[str, Any]:
        """One call; JailError when its jail broke."""
        if isinstance(args, str):
            return {"error": "arguments: expected a JSON object"}
        if tool == FINISH:
            return {"detail": line(str(args.get("detail", "")), 200)}
        if tool == "run":
            argv = args.get("argv")
            if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
                return {"error": "argv: expected a list of texts"}
            # the repository's own commands, as the brief shows them
            repository, python = self.task.repository, find_interpreter().inside
            path = repository.regression.path.replace("{item}", self.task.item.fingerprint)
            named = (repository.test, repository.regression.command, *repository.build)
            own = [[w.replace("{python}", python).replace("{path}", path) for w in words] for words in named]
            if why := refusal(argv, own=own):
                return {"error": f"refused: {why}"}
            end = await self._jailed(argv, repository.timeout_s, b"")
            return {
                "how": end.how,
                "code": end.code,
                "stdout": _shown(end.stdout),
                "stderr": _shown(end.stderr),
            }
        if tool in ("read", "search", "edit"):
            asked = json.dumps({"tool": tool, "args": dict(args)}).encode()
            end = await self._jailed(EDIT, EDIT_S, asked)
            if not end.passed:
                return {"error": f"it did not work: {end.how} {end.code}"}
            try:
                answer = strict_json.loads(end.stdout)
            except ValueError:
                answer = None
            return answer if isinstance(answer, dict) else {"error": "it did not work"}
        return {"error": f"there is no tool {line(tool, 40)!r}"}

    async def _jailed(self, argv: Sequence[str], seconds: float, stdin: bytes) -> CommandEnd:
        mounts = {name: Path(path) for name, path in self.task.repository.mounts.items()}
        seconds = min(seconds, self.budget.seconds())
        end = await self.jails.run(self.tree, TreeCommand(argv, seconds, True, stdin, ENVIRONMENT, mounts))
        if end.how == "lost":
            why = clean(end.stderr.decode("utf-8", "replace"), 300)
            raise JailError(f"the jail of the model's tools broke: {why}")
        return end


def _shown(output: bytes) -> str:
    text = clean(output.decode("utf-8", "replace"), len(output) + 1, newlines=True)
    return text if len(text) <= 2 * SHOWN else f"{text[:SHOWN]}\n[…]\n{text[-SHOWN:]}"
