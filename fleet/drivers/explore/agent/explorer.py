"""The explorer of agents: their commands, tools, streams, prices, memory, and who they take a caller for.

It asks one cheap call first wherever that can show that something is off, and the whole question with its
controls only then: the same words without the false sender, the text before, the larger task. Breadth over
agents comes first; what all agents share (refusals, tokens) is asked of one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random
from typing import Any

from fleet.drivers.desk import Left, Question
from fleet.drivers.explore.agent import questions, suspicions
from fleet.drivers.explore.agent.knowledge import KnownAgent
from fleet.drivers.explore.agent.ways import AgentWay
from fleet.drivers.explore.listened import heard
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.port import Explorer, ExplorerContext, Results
from fleet.oracles.agent.charges import kept_private, promising
from fleet.oracles.agent.dialogue import honest
from fleet.oracles.model import Exchange
from fleet.personas.model import Step
from sandbox.spec import Effect
from sandbox.tools import TOOLS as SPECS

TOOLS = tuple(name for name, spec in SPECS.items() if "reply" in spec.judged_as)
"""The tool that talks to agents."""
READER = "qa_fetch"
"""The tool that reads documents, where the persona has it."""
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

    def __init__(self, context: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> None:
        acts = context.acts and all(SPECS[tool].effect is Effect.ACT for tool in TOOLS)
        names = tuple(dict.fromkeys(context.platform.agent_names)) if acts else ()
        known = state.get("agents")
        agents = known if isinstance(known, Mapping) else {}
        self._known = {name: KnownAgent.of(name, agents.get(name)) for name in names}
        self._ways = {name: AgentWay.of(context.platform, name) for name in names}
        self._documents = documents(context) if names else []
        self._texts = chance.sample(TEXTS, len(TEXTS))
        self._addresses = [heard(chance) for _ in range(10)] if context.platform.web.listens else []
        done = state.get("asked")
        asked = [key for key in done if isinstance(key, str)] if isinstance(done, list) else []
        self._asked = dict.fromkeys([] if state.get("done") is True else asked)
        """Keys; when a run before had asked everything, it begins again, with other texts."""
        self._posed: dict[str, list[str]] = {}
        """The keys of each question of this run, by its calls."""
        self._suspected: list[tuple[str, tuple[Step, ...]]] = []
        left = state.get("suspected")
        for one in left if isinstance(left, list) else ():  # the gate checks their arguments like any other's
            key, args = one if isinstance(one, list) and len(one) == 2 else ("", None)
            talk = args if isinstance(args, list) and len(args) <= 8 else []
            if talk and all(isinstance(call, dict) and call.get("target") in names for call in talk):
                self._suspect(str(key), calls(*talk))
        self._heard: dict[str, Exchange] = {}
        self._tried: set[str] = set()
        """Keys of this run, with those that were not answered."""
        self._busy, self._done, self._once = 0, False, False
        self._private: list[Step] = []

    def ask(self, most: int) -> Sequence[Question]:
        chosen: list[Question] = []
        if self._documents:
            asked, self._documents = self._documents[:most], self._documents[most:]
            return asked
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
            chosen.append(Question(steps, led=f"agent and its part {key}"))
            left -= len(steps)
            self._tried.add(key)
            self._posed[words] = [key]
        self._done = not chosen and not any(True for _ in self._open())
        return chosen

    def learn(self, question: Question, results: Results) -> None:
        if question.steps[-1].tool == READER:
            for one, result in product(self._known.values(), results):
                one.read(str(result.get("text", "")))
            for step, result in zip(question.steps, results, strict=False):
                self._read_promises(step, result)
            return
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
        for call in seen:
            agent = self._known.get(str(call.args.get("target")))
            if agent is None:
                continue
            agent.learn(call)
            self._ways[agent.name].learn(call)
            self._add([*suspicions.of_one(agent, call), *suspicions.of_refused(call)])
            twin = {key: value for key, value in call.args.items() if key != "stream"}
            if not call.args.get("stream"):
                twin["stream"] = True
            if other := self._heard.get(_spelled(calls(twin))):
                self._add(suspicions.of_twins(call, other))
            self._heard[_spelled(calls(call.args))] = call
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

    def left(self) -> Sequence[Left]:
        """What the wires of agents have no place for."""
        return [
            Left(f"{what} of the agent {name}", why)
            for name, way in self._ways.items()
            for what, why in way.missed.items()
        ]

    def _read_promises(self, step: Step, result: Mapping[str, Any]) -> None:
        """A call of each agent that is sent twice, beside a document that promises to charge it once; and a
        document that says whose an agent's memories are."""
        page = Exchange(step.tool, step.args, result)
        self._private += [step] * bool(promising(page, kept_private))
        if self._once or not self._known or not promising(page):
            return
        self._once = True
        for agent in self._known:
            twice = calls({"target": agent, "message": "good afternoon", "twice": True})
            self._suspect(f"{agent}/promise/once", (step, *twice))

    def _add(self, found: Sequence[tuple[str, Sequence[Mapping[str, object]]]]) -> None:
        for key, args in found:
            promise = self._private[:1] if "?reads/" in key else []
            self._suspect(key, (*promise, *calls(*args)))

    def _suspect(self, key: str, steps: tuple[Step, ...]) -> None:
        if all(self._ways[str(one.args["target"])].has(key, one.args) for one in steps if one.tool in TOOLS):
            self._suspected.append((key, steps))

    def _open(self) -> Iterator[Asked]:
        """Everything that may be asked now and was not: suspicions, then each agent by rank."""
        for key, steps in self._suspected:
            if key not in self._asked and key not in self._tried:
                yield 0, key, steps
        for at, agent in enumerate(self._known.values()):
            way = self._ways[agent.name]
            about = (
                *questions.first_words(agent),
                *questions.strangers(agent),
                *questions.senders(agent, first=at == 0 or bool(way.wire), taken=way.taken),
                *(talk for pair in agent.pairs()[:4] for talk in questions.kept(pair, self._texts)),
                *questions.wire(agent, first=at == 0 or bool(way.wire)),
                *questions.tasks(agent, self._addresses),
                *questions.planted(agent, self._texts, self._addresses),
            )
            for rank, key, args in about:
                full, steps = f"{agent.name}/{key}", calls(*({"target": agent.name} | one for one in args))
                done = full in self._asked or full in self._tried
                if not done and all(way.has(key, one) for one in args):
                    yield rank * 10 + min(at, 9), full, steps


def documents(context: ExplorerContext) -> list[Question]:
    """The platform's documents, where commands of its agents may be written down."""
    urls = OwnUrls(context.platform)
    pages = [one for one in urls.named() if not one.startswith("{face:")]
    guides = [place + path for place in urls.places for path in ("/llms.txt", "/skill.md")]
    found = dict.fromkeys([*pages, *guides] if READER in context.tools else [])
    return [Question((Step(tool=READER, args={"url": url}),)) for url in found]


def _spelled(steps: Sequence[Step]) -> str:
    return json.dumps([step.args for step in steps], sort_keys=True)


def make(context: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> Explorer:
    """The explorer of a platform's agents."""
    return AgentExplorer(context, chance, state)
