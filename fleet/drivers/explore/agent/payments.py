"""The explorer of what is paid for: its terms, a payment as they say, payments that are wrong, and one used
twice.

Terms are read at any rung, beside documents, cards and lists of tools that name a resource; payments are
made where acts are permitted. What a request lacks is asked with a whole payment too: a refusal must not be
charged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any
from urllib.parse import urlencode, urlsplit

from fleet.drivers.desk import Left, Question, led_by
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.pages import short_hash
from fleet.drivers.explore.port import ExplorerContext, Results
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
NOTHING = "qa-none-such"
"""A value that nothing has."""


class PaymentExplorer:
    """Implements Explorer. `asked`: by its hash, how often a question was; the least asked come first."""

    def __init__(self, context: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> None:
        platform, self._chance, self._acts = context.platform, chance, context.acts
        self._payee = (platform.payments.payee or "").lower()
        self._most, self._urls = platform.payments.most, OwnUrls(platform)
        asked = state.get("asked")
        pairs = asked.items() if isinstance(asked, dict) else ()
        self.asked = Counter({str(key): times for key, times in pairs if type(times) is int})
        self._resources = [self._urls.spelled(url, faces=False) for url in platform.paid_urls]
        self._left = dict[str, str]()
        self._ready = dict[str, str]()
        """Resources that are paid for, with a query that they know."""
        self._forms = dict[str, list[str]]()
        """Forms of terms by which each is; the first is asked for without its name."""
        self._next = [Question((self._step(url),)) for url in self._resources]
        self._next += self._statements(context)

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
        step = question.steps[0]
        if step.tool != TOOL:
            said = str([results[0].get("text"), results[0].get("tools")]) if results else ""
            for url in self._resources if len(question.steps) == 1 else ():
                if urlsplit(self._urls.actual(url)).path in said:
                    self._next.append(Question((step, self._step(url))))
            return
        first = not self.asked[_key(question)] or not step.args.get("pay")
        self.asked[_key(question)] += bool(results)
        if results and step.args.get("pay") == "whole" and not step.args.get("then"):
            self._refused(str(step.args["url"]), str(step.args.get("form", "")), results[0])
        if not results or step.args.get("pay") or step.args.get("form") or not first:
            return
        url, result = str(step.args["url"]), results[0]
        if url not in self._resources:
            return
        why = self._why_not(url, result)
        if why:
            self._left[f"payments for {url}"] = why
            return
        self._ready[url] = _query(url, result)
        self._forms[url] = [str(one) for one in result.get("forms") or ()]
        self._next += [Question((self._step(url, form=one),)) for one in self._forms[url][1:]]
        ranked = [(self.asked[_key(one)], rank, one) for rank, one in self._payments(url, result)]
        self._chance.shuffle(ranked)
        ranked.sort(key=lambda each: each[:2])
        self._next += [one for *_, one in ranked]

    def state(self) -> Mapping[str, Any]:
        return {"asked": dict(self.asked.most_common(REMEMBERED))}

    def left(self) -> Sequence[Left]:
        return [Left(part, why) for part, why in self._left.items()]

    def _refused(self, url: str, form: str, result: Mapping[str, Any]) -> None:
        """Note that a right payment buys nothing: most of what is asked then shows nothing either."""
        if url in self._ready.values() and not result.get("served"):
            why = f"a payment of what was quoted is refused: {result.get('error', '')}"
            how = f" by {form}" if form else ""
            self._left[f"payments for {url.partition('?')[0]}{how}"] = why

    def _why_not(self, url: str, result: Mapping[str, Any]) -> str:
        if not result.get("quoted"):
            return f"it states no terms that the purse can pay by: {result.get('error', '')}"
        if not self._acts or not self._urls.may_act(url):
            return "a payment is an act: it takes the rung exercise, and the resource in web.act_paths"
        payee = self._payee
        if payee and str(result.get("payee")).lower() != payee:
            return f"it asks for a payment to another than payments.payee, {payee}"
        asked = result.get("amount")
        return f"it asks {asked} units; payments.most is {self._most}" if asked > self._most else ""  # type: ignore[operator]

    def _step(self, url: str, **args: object) -> Step:
        return Step(tool=TOOL, args={"url": url, **args})

    def _payments(self, url: str, result: Mapping[str, Any]) -> Iterator[tuple[int, Question]]:
        """Payments by their rank: what costs nothing where it is refused comes first."""
        for at, form in enumerate(self._forms[url] or [V2]):
            yield from self._in_form(url, result, form, {"form": form} if at else {})

    def _in_form(
        self, url: str, result: Mapping[str, Any], form: str, named: Mapping[str, object]
    ) -> Iterator[tuple[int, Question]]:
        inputs = {str(key): str(value) for key, value in dict(result.get("inputs") or {}).items()}

        def paid(pay: str, given: Mapping[str, str] = inputs, **more: object) -> Question:
            query = f"?{urlencode(given)}" if given else ""
            return Question((self._step(url + query, pay=pay, **named, **more),))

        yield 0, paid("whole")
        for how in WRONG:
            if how != "changed" or form != V1:  # a payment of version 1 repeats no terms
                yield 1, paid(how)
        yield 2, paid("whole", then="again")
        yield 2, paid("whole", then="together")
        for one, other in (
            (one, other) for known in self._ready for one, other in ((url, known), (known, url))
        ):
            if one != other and form in self._forms[one] and form in self._forms[other]:
                way = {} if self._forms[one][0] == form else {"form": form}
                more = {"then": "elsewhere", "other": self._ready[other]}
                yield 3, Question((self._step(self._ready[one], pay="whole", **way, **more),))
        if result.get("named") and form == V2:
            yield 3, paid("whole", then="named")
        for name in inputs:
            yield 2, paid("whole", {**inputs, name: NOTHING})
            yield 3, paid("whole", {key: value for key, value in inputs.items() if key != name})
        yield 4, Question((self._step(f"{url}/{NOTHING}", pay="whole", **named),))


make = PaymentExplorer


def _query(url: str, result: Mapping[str, Any]) -> str:
    """A resource with the query that its terms give as an example."""
    inputs = {str(key): str(value) for key, value in dict(result.get("inputs") or {}).items()}
    return f"{url}?{urlencode(inputs)}" if inputs else url


def _key(question: Question) -> str:
    return short_hash(repr(question.steps))
