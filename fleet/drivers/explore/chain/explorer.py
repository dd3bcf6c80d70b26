"""An explorer of the chain: every selector of the diamond as a stranger, by simulation; nothing is sent.

It reads the surface and what exists first, asks views that speak of the same thing together, then simulates
every function once before any twice, with what exists watched. What a call changed is asked again, without
the rest. A function is asked anew when the code of its facet is another.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from fleet.drivers.desk import Question, led_by
from fleet.drivers.explore.chain.arguments import ArgumentPool, rounds
from fleet.drivers.explore.chain.diamond_map import MAX_READ, DiamondMap, text_limits
from fleet.drivers.explore.chain.publishing import sizes
from fleet.drivers.explore.chain.reentrancy import reentrances
from fleet.drivers.explore.chain.stated import FETCH, StatedContract
from fleet.drivers.explore.chain.unnamed import UnnamedFunctions
from fleet.drivers.explore.port import Explorer, ExplorerContext, Results
from fleet.oracles.chain import fourbyte
from fleet.oracles.chain.simulated import NARROW
from fleet.personas.model import Step
from sandbox.tools.qa_chain import SPEC

TOOLS = (SPEC.name,)
MAX_KNOWN = 4_096
"""Functions that are remembered between runs."""
MAX_NARROW = 2
"""Questions for what one call changed."""
REGISTER = "register(string)"
_METADATA = re.compile(r"metadata\((\d+),.*\)")


def make(context: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> Explorer:
    """An explorer of this platform's diamond, with what was asked before."""
    return ChainExplorer(context, chance, state)


class ChainExplorer:
    """Stages, each made from the answers to the one before; a stage's questions wait in a queue."""

    def __init__(self, context: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> None:
        self._ground, self._chance, self._map = context, chance, DiamondMap(context.functions)
        self._stated, self._unnamed = StatedContract(context.platform), UnnamedFunctions(self._map)
        self._reads = FETCH in context.tools
        self._role = "app" if context.platform.metadata.app else ""
        asked = state.get("asked")
        known = asked.items() if isinstance(asked, dict) else ()
        self._asked: dict[str, int] = {str(key): count for key, count in known if isinstance(count, int)}
        self._rounds: dict[str, str] = {}
        self._narrowed: set[tuple[str, tuple[str, ...]]] = set()
        self._queue = [_question({"surface": True})]
        self._stages = self._every_stage()

    def ask(self, most: int) -> Sequence[Question]:
        """The next questions of the current stage; the next stage's when it is empty."""
        while not self._queue:
            stage = next(self._stages, None)
            if stage is None:
                return []
            self._queue.extend(stage)
        taken: list[Question] = []
        while self._queue and len(self._queue[0].steps) <= most:
            most -= len(self._queue[0].steps)
            question = self._queue.pop(0)
            args = question.steps[-1].args
            about = args.get("simulate") or ", ".join(args.get("watch", ())) or args.get("url", "surface")
            steps = tuple(map(self._with_names, question.steps))
            taken += led_by(f"{about} of the contract", replace(question, steps=steps))
        return taken

    def learn(self, question: Question, results: Results) -> None:
        """Keep what was answered; a simulated call that changed something is asked again."""
        for step, result in zip(question.steps, results, strict=False):
            if step.tool == FETCH:
                self._stated.learn(str(step.args["url"]), result)
            if step.tool != SPEC.name or not result.get("ok"):
                continue
            if step.args.get("surface"):
                self._map.learn(result.get("value"))
            elif not step.args.get("simulate"):
                read = zip(step.args.get("watch", ()), result.get("before", ()), strict=False)
                self._map.values |= (found := dict(read))
                self._stated.values |= found
            else:
                self._unnamed.learn(step.args, result)
                if key := self._rounds.pop(_spelled(step.args), ""):
                    self._asked[key] = self._asked.pop(key, 0) + 1
                    if not step.args.get("code"):
                        self._narrow(step.args, result)

    def _with_names(self, step: Step) -> Step:
        """The step with the signatures of the functions that it names, which only the profile's ABI knows."""
        words = [str(step.args.get("simulate", "")), *step.args.get("watch", ())]
        names = [
            self._map.named[one].signature
            for one in dict.fromkeys(word[:10] for word in words)
            if one in self._map.named and not fourbyte.signature_of(one)
        ]
        return step.model_copy(update={"args": step.args | {"named": names}}) if names else step

    def state(self) -> Mapping[str, Any]:
        """How many rounds of each function, in this code of its facet, were asked."""
        return {"asked": dict(list(self._asked.items())[-MAX_KNOWN:])}

    def _every_stage(self) -> Iterator[list[Question]]:
        yield _reads(self._map.basics())
        yield _reads(self._map.ids(self._chance))
        together = [one for views in self._map.agreements(self._chance) for one in _reads(views)]
        yield [*together, *sizes(self._ground)]
        if self._reads:
            yield from self._by_documents()
        pool = ArgumentPool.of(self._map.things(), self._role, self._chance)
        plans = {
            selector: list(rounds(self._map.signature(selector), pool))
            for selector in self._map.codes
            if not self._map.is_view(selector)
        }
        for level in range(max(map(len, plans.values()), default=0)):
            due = [
                one for one, plan in plans.items() if self._asked.get(self._key(one), 0) == level < len(plan)
            ]
            self._chance.shuffle(due)
            stage = []
            for selector in due:
                kinds, values = plans[selector][level]
                args = {"simulate": selector, "watch": self._map.watch(selector, self._role)}
                args |= {"types": list(kinds), "args": list(values)} if kinds else {}
                self._rounds[_spelled(args)] = self._key(selector)
                stage.append(_question(args))
            yield stage
        yield [one for selector in plans for one in self._edges(selector, pool)]
        yield [
            one for selector, one in reentrances(plans) if self._once(f"re-entry {self._key(selector)}", one)
        ]
        yield from self._by_code()

    def _by_code(self) -> Iterator[list[Question]]:
        """Functions without a name, by the types in their code; again when code or what exists is another."""
        unnamed = self._unnamed
        if not self._map.unnamed():
            return
        yield unnamed.reads()
        things = unnamed.things()
        known = json.dumps([sorted(set(self._map.codes.items())), [str(one) for one in things]])
        key = f"unnamed {hashlib.sha256(known.encode()).hexdigest()[:16]}"
        if self._asked.get(key):
            return
        yield [*unnamed.agreements(), *unnamed.limits()]
        for thing in things:
            yield unnamed.makers(thing)
            unnamed.keep_maker(thing)
            yield unnamed.calls(thing)
            yield unnamed.held(thing)
        self._asked[key] = 1

    def _by_documents(self) -> Iterator[list[Question]]:
        """What the documents state of the contract: its views together, a stranger's calls, and edges."""
        contract, listed = self._stated, self._map.codes
        while pages := contract.pages():
            yield pages
        _, self._map.stated = contract.known(listed)
        yield contract.views(listed, all_=False)
        yield contract.owners(listed)
        yield contract.views(listed, all_=True)
        yield [
            question
            for selector, question in contract.calls(listed)
            if self._once(f"stated {self._key(selector)} {_spelled(question.steps[-1].args)}", question)
        ]

    def _once(self, key: str, question: Question) -> bool:
        """Whether a question was not asked before; it counts as asked when its last call is answered."""
        self._rounds[_spelled(question.steps[-1].args)] = key
        return not self._asked.get(key)

    def _narrow(self, args: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Ask again what a call changed, without the rest; or what it logs, without any view."""
        views, before, after = args.get("watch", ()), result.get("before", ()), result.get("after", ())
        seen = zip(views, before, after, strict=False)
        changed = [view for view, was, now in seen if was is not None and was != now]
        if not result.get("succeeded") or not (changed or result.get("events")):
            return
        kept = {name: value for name, value in args.items() if name != "watch"}
        for number, watch in enumerate(judged_together(changed)[:MAX_NARROW]):
            if (args["simulate"], watch) not in self._narrowed:
                self._narrowed.add((args["simulate"], watch))
                more = {"watch": list(watch)} if watch else {}
                self._queue.insert(number, _question(kept | more))

    def _key(self, selector: str) -> str:
        return f"{selector}:{self._map.codes.get(selector, '')}"

    def _edges(self, selector: str, pool: ArgumentPool) -> Iterator[Question]:
        """A function of one text: names of any form; the length that its facet states, and one more."""
        signature, key = self._map.known(selector), f"edges {self._key(selector)}"
        if not signature.endswith("(string)") or self._asked.get(key):
            return
        short = _text(selector, pool.fresh if signature == REGISTER else "ab")
        longer = [
            _text(selector, {"repeat": "a", "times": times}, view)
            for view, limit in text_limits(self._map.values)
            if self._map.facet_of(view) == self._map.facets[selector] and self._map.only_text(selector)
            for times in (limit, limit + 1)
        ]
        odd: list[Any] = ["", {"repeat": "a", "times": 64}, "a.b", "-a", "a b"]
        forms = [_text(selector, text) for text in odd if signature == REGISTER]
        for step in (*forms, *longer):
            self._rounds[_spelled(step.args)] = key
            yield Question((short, step))


def judged_together(changed: Sequence[str]) -> list[tuple[str, ...]]:
    """Views, as many as an oracle judges at once; metadata beside the owner of its id. One empty for none."""
    groups: list[tuple[str, ...]] = [()]
    for view in changed:
        owned = _METADATA.fullmatch(view)
        views = (view, f"ownerOfId({owned[1]})") if owned else (view,)
        joined = tuple(dict.fromkeys((*groups[-1], *views)))
        if len(joined) <= NARROW:
            groups[-1] = joined
        else:
            groups.append(views)
    return groups


def _spelled(args: Mapping[str, Any]) -> str:
    return json.dumps({key: args[key] for key in sorted(args) if key != "named"}, default=str)


def _question(args: Mapping[str, Any]) -> Question:
    return Question((Step(tool=SPEC.name, args=dict(args)),))


def _reads(views: Sequence[str]) -> list[Question]:
    return [_question({"watch": list(views[:MAX_READ])})] if views else []


def _text(selector: str, text: object, watch: str = "") -> Step:
    args: dict[str, Any] = {"simulate": selector, "types": ["string"], "args": [text]}
    return Step(tool=SPEC.name, args=args | ({"watch": [watch]} if watch else {}))
