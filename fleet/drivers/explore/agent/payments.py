"""The explorer of what is paid for: its terms, a payment as they say, payments that are wrong, and one used
twice.

Terms are read at any rung, beside documents, cards and lists of tools that name a resource; payments are
made where acts are permitted. What a request lacks is asked with a whole payment too: a refusal must not be
charged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any
from urllib.parse import urlencode, urlsplit

from fleet.drivers.desk import Left, Question, led_by
from fleet.drivers.explore.agent.mcp import arguments, named
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.pages import short_hash
from fleet.drivers.explore.port import ExplorerContext, Results
from fleet.oracles.texts import parsed
from fleet.personas.model import Step
from sandbox.agents.wires.a2a import CARD
from sandbox.payment_offers import V1, V2
from sandbox.tools.qa_pay import WRONG

TOOL = "qa_pay"
READER = "qa_fetch"
LISTER = "qa_mcp"
TOOLS = (TOOL,)
STATING = ("/llms.txt", "/openapi.json", "/.well-known/x402", CARD)
"""Documents of a host that may say what its resources cost."""
REMEMBERED = 1_000
TOOLS_OF_ONE, MESSAGES_OF_ONE = 12, 4
"""Tools of a server, and messages to an agent, of which the price is asked."""
NOTHING = "qa-none-such"
"""A value that nothing has."""


@dataclass(frozen=True)
class Priced:
    """Something that may be paid for: a page, a tool of a server, what an agent does for a message."""

    url: str
    name: str = ""
    message: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Parameters of its query that it knows, or arguments of the tool."""

    def step(self, inputs: Mapping[str, Any] | None = None, /, **args: str) -> Step:
        """A call of it, with these inputs or with its own."""
        given = self.inputs if inputs is None else inputs
        url = f"{self.url}?{urlencode(given)}" if given and not self.name else self.url
        about: dict[str, object] = {"name": self.name, "fields": dict(given)} if self.name else {}
        about |= {"message": self.message} if self.message else {}
        return Step(tool=TOOL, args={"url": url, **about, **args})

    @property
    def words(self) -> str:
        """Its name in the report of a run."""
        return " ".join(filter(None, (self.url, self.name, self.message)))


class PaymentExplorer:
    """Implements Explorer. `asked`: by its hash, how often a question was; the least asked come first."""

    def __init__(self, context: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> None:
        platform, self._chance, self._acts = context.platform, chance, context.acts
        self._payee = (platform.payments.payee or "").lower()
        self._most, self._urls = platform.payments.most, OwnUrls(platform)
        self._never = frozenset(platform.mcp.never)
        asked = state.get("asked")
        pairs = asked.items() if isinstance(asked, dict) else ()
        self.asked = Counter({str(key): times for key, times in pairs if type(times) is int})
        spelled = partial(self._urls.spelled, faces=False)
        sold = {spelled(url) for url in platform.paid_urls}
        self._servers = sold & set(map(spelled, platform.mcp_urls))
        agents = {
            spelled(platform.agent_urls[name])
            for name, one in platform.agents.items()
            if one.wire.startswith("a2a")
        }
        self._agents = {url: _card(url) for url in sold & agents}
        """Agents that are paid, and their cards."""
        pages = [spelled(url) for url in platform.paid_urls]
        self._pages = [url for url in pages if url not in self._servers | agents]
        self._left = dict[str, str]()
        self._ready = dict[Priced, list[str]]()
        """What is paid for, with inputs that it knows; and the forms of its terms: the first is asked for
        without its name."""
        self._asking = dict[str, Priced]()
        """What a question for terms is about, by the hash of the question."""
        self._next = [self._quote(Priced(url)) for url in self._pages]
        self._next += self._statements(context)

    def _quote(self, one: Priced, *before: Step, **args: str) -> Question:
        question = Question((*before, one.step(**args)))
        self._asking[_key(question)] = one
        return question

    def _statements(self, context: ExplorerContext) -> Iterator[Question]:
        """Where prices may be stated: documents of the resources' hosts, cards, and lists of tools."""
        platform = context.platform
        places: list[tuple[str, Sequence[str]]] = [(url, STATING) for url in platform.paid_urls]
        places += [(url, (CARD,)) for url in platform.agent_urls.values()]
        hosts = [("{0.scheme}://{0.netloc}".format(urlsplit(url)), paths) for url, paths in places]
        pages = dict.fromkeys(host + path for host, paths in hosts for path in paths)
        asked = [(READER, url) for url in pages] + [(LISTER, url) for url in platform.mcp_urls]
        for tool, actual in asked:
            url = self._urls.spelled(actual, faces=False)
            if url and tool in context.tools:
                yield Question((Step(tool=tool, args={"url": url}),))

    def ask(self, most: int) -> Sequence[Question]:
        asked = list[Question]()
        while self._next and len(self._next[0].steps) <= most:
            most -= len(self._next[0].steps)
            one = self._next.pop(0)
            asked += led_by(f"what {one.steps[-1].args['url']} quotes", one)
        return asked

    def learn(self, question: Question, results: Results) -> None:
        step = question.steps[-1]
        if step.tool != TOOL:
            self._next += self._stated(step, results[0]) if results else ()
            return
        self.asked[_key(question)] += bool(results)
        if len(results) < len(question.steps):
            return
        result, one = results[-1], self._asking.get(_key(question))
        if step.args.get("pay") == "whole" and not step.args.get("then"):
            self._refused(step, result)
        if one is None or step.args.get("form") or one in self._ready:
            return
        if why := self._why_not(one, result):
            if not one.name or result.get("quoted"):  # most tools cost nothing
                self._left[f"payments for {one.words}"] = why
            return
        inputs = {str(key): str(value) for key, value in dict(result.get("inputs") or {}).items()}
        ready = one if one.name or one.message else replace(one, inputs=inputs)
        forms = self._ready[ready] = [str(form) for form in result.get("forms") or ()]
        self._next += [self._quote(one, form=form) for form in forms[1:]]
        ranked = [(self.asked[_key(each)], rank, each) for rank, each in self._payments(ready, result)]
        self._chance.shuffle(ranked)
        ranked.sort(key=lambda each: each[:2])
        self._next += [each for *_, each in ranked]

    def state(self) -> Mapping[str, Any]:
        return {"asked": dict(self.asked.most_common(REMEMBERED))}

    def left(self) -> Sequence[Left]:
        return [Left(part, why) for part, why in self._left.items()]

    def _stated(self, step: Step, result: Mapping[str, Any]) -> Iterator[Question]:
        """The terms of what a document, a card or a list names, asked beside it."""
        said, url = str([result.get("text"), result.get("tools")]), str(step.args["url"])
        for page in self._pages:
            if urlsplit(self._urls.actual(page)).path in said:
                yield Question((step, Priced(page).step()))
        sold = [agent for agent, card in self._agents.items() if card == url]
        for place in sold if url not in self._servers else [url]:
            if not (self._acts and self._urls.may_act(place)):
                why = "a call is an act: it takes the rung exercise, and the endpoint in web.act_paths"
                self._left[f"payments at {place}"] = why
                continue
            if place == url:
                tools = [one for one in named(result, "tools", "name") if self._may(one)]
                found = [Priced(place, str(one["name"]), inputs=_fitting(one)) for one in tools][
                    :TOOLS_OF_ONE
                ]
            else:
                found = [Priced(place, message=one) for one in _examples(result)[:MESSAGES_OF_ONE]]
            yield from (self._quote(one, step) for one in found)

    def _may(self, tool: Mapping[str, Any]) -> bool:
        hints = tool.get("annotations")
        destroys = isinstance(hints, Mapping) and hints.get("destructiveHint") is True
        return tool["name"] not in self._never and not destroys

    def _refused(self, step: Step, result: Mapping[str, Any]) -> None:
        """Note that a right payment buys nothing: most of what is asked then shows nothing either."""
        form = str(step.args.get("form", ""))
        for one in self._ready:
            if one.step().args.items() <= step.args.items() and not result.get("served"):
                why = f"a payment of what was quoted is refused: {result.get('error', '')}"
                self._left[f"payments for {one.words}" + (f" by {form}" if form else "")] = why

    def _why_not(self, one: Priced, result: Mapping[str, Any]) -> str:
        if not result.get("quoted"):
            return f"it states no terms that the purse can pay by: {result.get('error', '')}"
        if not self._acts or not self._urls.may_act(one.url):
            return "a payment is an act: it takes the rung exercise, and the resource in web.act_paths"
        payee = self._payee
        if payee and str(result.get("payee")).lower() != payee:
            return f"it asks for a payment to another than payments.payee, {payee}"
        asked = result.get("amount")
        return f"it asks {asked} units; payments.most is {self._most}" if asked > self._most else ""  # type: ignore[operator]

    def _payments(self, one: Priced, result: Mapping[str, Any]) -> Iterator[tuple[int, Question]]:
        """Payments by their rank: what costs nothing where it is refused comes first."""
        for at, form in enumerate(self._ready[one] or [V2]):
            yield from self._in_form(one, result, form, {"form": form} if at else {})

    def _in_form(
        self, one: Priced, result: Mapping[str, Any], form: str, way: Mapping[str, str]
    ) -> Iterator[tuple[int, Question]]:
        def paid(pay: str, given: Mapping[str, Any] | None = None, /, **more: str) -> Question:
            return Question((one.step(given, pay=pay, **way, **more),))

        yield 0, paid("whole")
        for how in WRONG:
            if how != "changed" or form != V1:  # a payment of version 1 repeats no terms
                yield 1, paid(how)
        yield 2, paid("whole", then="again")
        yield 2, paid("whole", then="together")
        pages = [each for each in self._ready if not (each.name or each.message)]
        for first, other in ((a, b) for known in pages for a, b in ((one, known), (known, one))):
            both = {first, other} <= set(pages) and first != other
            if both and form in self._ready[first] and form in self._ready[other]:
                more = {"then": "elsewhere", "other": other.step().args["url"]}
                more |= {} if self._ready[first][0] == form else {"form": form}
                yield 3, Question((first.step(pay="whole", **more),))
        if result.get("named") and form == V2:
            yield 3, paid("whole", then="named")
        for name in one.inputs:
            yield 2, paid("whole", {**one.inputs, name: NOTHING})
            yield 3, paid("whole", {key: value for key, value in one.inputs.items() if key != name})
        if not (one.name or one.message):
            yield 4, Question((Priced(f"{one.url}/{NOTHING}").step(pay="whole", **way),))


make = PaymentExplorer


def _card(url: str) -> str:
    """Where the card of an agent is, in the form of its URL."""
    return (url[: url.index("/", url.index("://") + 3)] if "://" in url else url.partition("/")[0]) + CARD


def _fitting(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that a tool's schema takes."""
    schema = tool.get("inputSchema")
    return arguments(schema) if isinstance(schema, Mapping) else {}


def _examples(result: Mapping[str, Any]) -> list[str]:
    """Messages that the skills of a card have as examples."""
    card = parsed(str(result.get("text", "")))
    skills = card.get("skills") if isinstance(card, dict) else None
    listed = (
        [one.get("examples") for one in skills if isinstance(one, dict)] if isinstance(skills, list) else []
    )
    return [word for one in listed if isinstance(one, list) for word in one if isinstance(word, str)]


def _key(question: Question) -> str:
    return short_hash(repr(question.steps))
