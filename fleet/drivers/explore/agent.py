"""The explorer of agents: their commands, tools, streams, prices, memory, and who they take a caller for.

It asks one cheap call first wherever that can show that something is off, and the whole question with its
controls only then: the same words without the false sender, the text before, the larger task. Breadth over
agents comes first; what all agents share (refusals, tokens) is asked of one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from fleet.drivers.desk import Question
from fleet.drivers.explore import suspicions
from fleet.drivers.explore.acquaintance import Acquaintance, Pair
from fleet.drivers.explore.port import Explorer, Ground, Results
from fleet.drivers.explore.utterances import (
    CALM_TOOLS,
    COUNT,
    COUNTED,
    DIGITS,
    EDGES,
    FIELDS,
    HEADERS,
    HELP,
    IDENTITY,
    LENGTHS,
    MULTIBYTE,
    NO_TOOL,
    NONSENSE,
    SENTENCE,
    STREAMED,
    URGED,
    VARIANTS,
    refusals,
    tool_message,
)
from fleet.oracles.dialogue import honest
from fleet.oracles.model import Exchange
from fleet.oracles.phrases import Command
from fleet.personas.model import Step
from sandbox.spec import Effect
from sandbox.tools import TOOLS as SPECS

TOOLS = tuple(name for name, spec in SPECS.items() if "reply" in spec.judged_as)
"""The tool that talks to agents."""
BUSY = 3
"""Calls in a row that are refused for their number or for want of credit, after which a run asks no more."""
LATER = (402, 429)
MOST_KEYS = 20_000
MOST_SUSPECTED = 200
LEARNING = 19
"""Ranks up to this one, help and nonsense, are asked alone: what follows depends on their answers."""
TEXTS = ("birch and alder", "moss and granite", "heron by the pond", "slate under snow", "amber in the sand")

Asked = tuple[int, str, tuple[Step, ...]]
"""Rank (lower is asked earlier), key, calls."""


def calls(*args: Mapping[str, object]) -> tuple[Step, ...]:
    """The calls of a question about agents."""
    return tuple(Step(tool=TOOLS[0], args=dict(one)) for one in args)


class AgentExplorer:
    """Asks every agent that the profile lists."""

    def __init__(self, ground: Ground, chance: Random, state: Mapping[str, Any]) -> None:
        acts = ground.acts and all(SPECS[tool].effect is Effect.ACT for tool in TOOLS)
        names = tuple(dict.fromkeys(ground.platform.call_targets)) if acts else ()
        known = state.get("agents")
        agents = known if isinstance(known, Mapping) else {}
        self._known = {name: Acquaintance.of(name, agents.get(name)) for name in names}
        self._texts = chance.sample(TEXTS, len(TEXTS))
        done = state.get("asked")
        asked = [key for key in done if isinstance(key, str)] if isinstance(done, list) else []
        self._asked = dict.fromkeys([] if state.get("done") is True else asked)
        """Keys; when a run before had asked everything, it begins again, with other texts."""
        self._posed: dict[str, list[str]] = {}
        """The keys of each question of this run, by its calls."""
        self._suspected = list(_restored(state.get("suspected"), names))
        self._heard: dict[str, Exchange] = {}
        self._tried: set[str] = set()
        """Keys of this run, with those that were not answered."""
        self._busy, self._done = 0, False

    def ask(self, most: int) -> Sequence[Question]:
        chosen: list[Question] = []
        if self._busy >= BUSY:
            return chosen
        left, last = most, 0
        for rank, key, steps in sorted(self._open(), key=lambda one: one[0]):
            words = _spelled(steps)
            if words in self._posed:  # for another reason
                self._tried.add(key)
                self._posed[words].append(key)
                self._asked |= {key: None} if self._posed[words][0] in self._asked else {}
                continue
            last = last if chosen else max(rank - rank % 10 + 9, LEARNING)
            if len(steps) > left or rank > last:
                break  # what comes next is worth less, or depends on these answers
            chosen.append(Question(steps))
            left -= len(steps)
            self._tried.add(key)
            self._posed[words] = [key]
        self._done = not chosen and not any(True for _ in self._open())
        return chosen

    def tell(self, question: Question, results: Results) -> None:
        keys = self._posed.get(_spelled(question.steps), [])
        seen = [
            Exchange(step.tool, step.args, result)
            for step, result in zip(question.steps, results, strict=False)
        ]
        later = any(one.result.get("status") in LATER and honest(one) for one in seen)
        self._busy = self._busy + 1 if later else 0
        if len(seen) < len(question.steps) or later:
            return  # the next run asks it again
        self._asked |= dict.fromkeys(keys)
        for one in seen:
            agent = self._known.get(str(one.args.get("target")))
            if agent is None:
                continue
            agent.learn(one)
            self._suspect(agent, one)
            self._heard[_spelled(calls(one.args))] = one
        if len(seen) > 1:
            agent = self._known.get(str(seen[0].args.get("target")))
            self._add(suspicions.of_talk(agent, seen) if agent else ())

    def state(self) -> Mapping[str, Any]:
        return {
            "done": self._done,
            "asked": list(self._asked)[-MOST_KEYS:],
            "suspected": [
                [key, [step.args for step in steps]]
                for key, steps in self._suspected
                if key not in self._asked
            ][:MOST_SUSPECTED],
            "agents": {name: one.state() for name, one in self._known.items()},
        }

    def _suspect(self, agent: Acquaintance, one: Exchange) -> None:
        """Questions with controls that one answer gives rise to."""
        self._add(suspicions.of_one(agent, one))
        twin = {key: value for key, value in one.args.items() if key != "stream"}
        if not one.args.get("stream"):
            twin["stream"] = True
        if other := self._heard.get(_spelled(calls(twin))):
            self._add(suspicions.of_twins(one, other))

    def _add(self, found: Sequence[tuple[str, Sequence[Mapping[str, object]]]]) -> None:
        self._suspected += [(key, calls(*args)) for key, args in found]

    def _open(self) -> Iterator[Asked]:
        """Everything that may be asked now and was not: suspicions, then each agent by rank."""
        for key, steps in self._suspected:
            if key not in self._asked and key not in self._tried:
                yield 0, key, steps
        for at, agent in enumerate(self._known.values()):
            for rank, key, args in self._about(agent, first=at == 0):
                full, steps = f"{agent.name}/{key}", calls(*({"target": agent.name} | one for one in args))
                if full not in self._asked and full not in self._tried:
                    yield rank * 10 + min(at, 9), full, steps

    def _about(self, agent: Acquaintance, *, first: bool) -> Iterator[_Talk]:
        yield from _first_words(agent)
        yield from _strangers(agent)
        yield from _senders(agent, first=first)
        yield from self._memory(agent)
        yield from _wire(agent, first=first)

    def _memory(self, agent: Acquaintance) -> Iterator[_Talk]:
        for pair in agent.pairs()[:4]:
            yield from _kept(pair, self._texts)


def _restored(state: object, agents: Sequence[str]) -> Iterator[tuple[str, tuple[Step, ...]]]:
    """Suspicions that a run before had no room for; the gate checks their arguments like any other's."""
    for one in state if isinstance(state, list) else ():
        key, args = one if isinstance(one, list) and len(one) == 2 else ("", None)
        talk = args if isinstance(args, list) and len(args) <= 8 else []
        if talk and all(isinstance(call, dict) and call.get("target") in agents for call in talk):
            yield str(key), calls(*talk)


_Talk = tuple[int, str, list[dict[str, object]]]


def _spelled(steps: Sequence[Step]) -> str:
    return json.dumps([step.args for step in steps], sort_keys=True)


def _say(message: str, **more: object) -> dict[str, object]:
    return {"message": message, **more}


def _first_words(agent: Acquaintance) -> Iterator[_Talk]:
    for at, words in enumerate(HELP):
        if at < 2 or not agent.commands:
            yield (1 if at < 2 else 2), f"help/{at}", [_say(words)]
    yield 1, "nonsense", [_say(NONSENSE)]
    for words in agent.hints if not agent.commands else ():
        yield 1, f"help/{words}", [_say(words)]
    for at, one in enumerate(agent.commands):
        message = Command(one).filled()
        yield (2 if at < 8 else 5), f"command/{one}", [_say(message)]
        yield (5 if at < 2 else 7), f"command-stream/{one}", [_say(message, stream=True)]
        yield 8, f"command-bare/{one}", [_say(message.split()[0])]
    for task in agent.counting()[:3] or (Command(COUNT),):
        for size in COUNTED:
            rank = 3 if size < 10 else 4
            yield (rank if agent.counting() else 6), f"count/{task.spelled}/{size}", [_say(task.sized(size))]


def _strangers(agent: Acquaintance) -> Iterator[_Talk]:
    if len(agent.spellings) < 2:
        for at, spelling in enumerate(agent.possible_spellings() if agent.odd else ()):
            rank = 6 if agent.spellings else 2 if at < 3 else 3
            yield rank, f"spelling/{spelling}", [_say(tool_message(spelling, NO_TOOL))]
    spellings = agent.spellings[:2] or list(agent.possible_spellings()[:1])
    for at, tool in enumerate((*agent.tool_words()[:40], *CALM_TOOLS)):
        sure = bool(agent.spellings) and at < max(6, len(agent.tools))
        for turn, spelling in enumerate(spellings):
            rank = 3 if sure and not turn else 6 if at < 12 else 8
            yield rank, f"tool/{tool}/{spelling}", [_say(tool_message(spelling, tool))]
        ways = {"urged": (tool, URGED), "shouted": (tool.upper(),)} if agent.forbidden(tool) else {}
        for how, words in ways.items():
            yield (4 if sure else 8), f"tool/{tool}/{how}", [_say(tool_message(spellings[0], *words))]
        yield (4 if at < 3 else 8), f"tool/{tool}/sentence", [_say(tool_message(SENTENCE, tool))]
        if at < 2:
            claim = _say(tool_message(spellings[0], tool), claim_from="owner")
            yield 5, f"tool/{tool}/as-owner", [claim]


def _senders(agent: Acquaintance, *, first: bool) -> Iterator[_Talk]:
    asks = next((one for one in agent.commands if "address" in one or "who am i" in one.lower()), IDENTITY)
    message = Command(asks).filled()
    yield 2, "sender/none", [_say(message)]
    false = {"claim_from": "other"}
    yield 2, "sender/from", [_say(message, **false)]
    yield (2 if first else 5), "sender/headers", [_say(message, **false, claim_headers=list(HEADERS))]
    yield (2 if first else 5), "sender/fields", [_say(message, **false, claim_fields=list(FIELDS))]
    for name in FIELDS if first else ():
        yield 8, f"sender/field/{name}", [_say(message, **false, claim_fields=[name])]
    for name in HEADERS if first else ():
        yield 8, f"sender/header/{name}", [_say(message, **false, claim_headers=[name])]
    for at, variant in enumerate(VARIANTS):
        yield (3 if first else 7), f"token/{variant}", [_say(message, token=variant, fund=False)]
        if first and at < 3:
            yield 7, f"token-stream/{variant}", [_say(message, token=variant, fund=False, stream=True)]


def _kept(pair: Pair, texts: Sequence[str]) -> Iterator[_Talk]:
    """Short looks at one memory: does it keep, at which lengths, and whose is it."""
    name, show = pair.keep.spelled, _say(pair.show)
    yield 3, f"kept/{name}", [_say(pair.kept(texts[0])), show]
    yield 3, f"kept/{name}/multibyte", [_say(pair.kept(MULTIBYTE)), show]
    yield 3, f"kept/{name}/digits", [_say(pair.kept(DIGITS)), show]
    other = {"caller": "other"}
    yield 4, f"other-reads/{name}", [_say(pair.kept(texts[1])), show | other]
    mine, theirs = _say(pair.kept(texts[2])), _say(pair.kept(texts[3]), **other)
    yield 4, f"other-changes/{name}", [mine, theirs, show]
    claims = _say(pair.kept(texts[3]), **other, claim_from="caller")
    yield 6, f"other-claims/{name}", [mine, claims, show]
    for at, length in enumerate(LENGTHS):
        long = _say(pair.kept("long-"), fill=length - 5, unit="granite-")
        yield (4 if at < 2 else 5 if at < 5 else 7), f"kept/{name}/{length}", [long, show]
    yield 5, f"kept/{name}/streamed", [_say(pair.kept(MULTIBYTE)), show | {"stream": True}]
    yield 7, f"kept/{name}/quoted", [_say(pair.kept('it\'s "a" <b> & \\ 100%')), show]
    yield 7, f"kept/{name}/one", [_say(pair.kept("q")), show]


def _wire(agent: Acquaintance, *, first: bool) -> Iterator[_Talk]:
    for at, (kind, args) in enumerate(refusals(agent.name)):
        if first or at == 0:
            yield (2 if at < 5 else 4), f"refusal/{kind}", [dict(args)]
    for at, (message, fill, unit) in enumerate(STREAMED):
        long = {"fill": fill, "unit": unit} if fill else {}
        rank = 2 if at == 0 else 4 if at < 3 else 6
        yield rank, f"stream/{at}", [_say(message, **long, stream=True)]
        yield rank + (at > 0), f"whole/{at}", [_say(message, **long)]
    words = [_say(one) for one in ("hello there", NONSENSE, "what is the time")]
    yield 4, "twice", [_say("hello there", twice=True)]
    if first:
        yield 5, "price/twice", [*words, words[0] | {"twice": True}]
        yield 5, "price/stream", [*words, words[0] | {"stream": True}]
        yield 7, "refusal/empty-twice", [_say("", twice=True)]
    for at, (message, fill, unit) in enumerate(EDGES):
        long = {"fill": fill, "unit": unit} if fill else {}
        yield (5 if at < 4 else 7), f"edge/{at}", [_say(message, **long)]
        yield 8, f"edge-stream/{at}", [_say(message, **long, stream=True)]


def make(ground: Ground, chance: Random, state: Mapping[str, Any]) -> Explorer:
    """The explorer of a platform's agents."""
    return AgentExplorer(ground, chance, state)
