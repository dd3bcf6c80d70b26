"""Oracles of one call of an agent: its price, and that its answer is whole. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from fleet.findings.field_words import amount
from fleet.findings.sighting import Sighting, template
from fleet.oracles.agent import vocabulary
from fleet.oracles.agent.dialogue import agent, honest, message_of, number, same_words, served
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.severity import Severity
from fleet.text import line

PRICE = "call_price_wei"
AGAIN = "asked again by the same caller"
"""What is said of an answer that the same words had not before: something is kept between calls."""
_ENDED = frozenset({"", "stop", "end_turn", "end", "complete", "completed", "finish", "finished"})
"""Finish reasons, in lower case, that give no reason for silence."""
_HELP = re.compile(r"\b(?:help|commands?|what can you)\b", re.IGNORECASE)
_OTHER_FIELD = re.compile(r"a line that is not a field: '[A-Za-z_-]{1,24}(?::|')")
"""A field that event streams do not know, which their readers ignore."""


oracle = partial(Oracle, judges=("reply",), surface="on-chain")


def _call(args: dict[str, object], **result: object) -> tuple[Exchange, ...]:
    return (Exchange("qa_call", {"target": "a", "message": "hello"} | args, result),)


_STREAM: dict[str, object] = {"stream": True}


@oracle(
    id="paid-refusal",
    says="a refused call is free",
    severity=Severity.HIGH,
    example=(Exchange("qa_call", {"target": "a"}, {"status": 400, "charged": 1}),),
    control=(Exchange("qa_call", {"target": "a"}, {"status": 400, "charged": 0}),),
)
def paid_refusal(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    status, charged = last.result.get("status", 0), last.result.get("charged", 0)
    if status >= 400 and charged > 0:
        words = line(str(last.result.get("error", "")).partition(": ")[2], 60)
        why = f" ({words})" if words else ""
        title = f"{agent(last)} costs {amount(charged)} although refused with {status}{why}"
        yield observed(title, f"paid-refusal {status}", "charged")
    again, charged = number(last, "status_again"), number(last, "charged_again")
    if again >= 400 and charged > 0 and served(last) and number(last, "charged") > 0:
        title = f"{agent(last)} costs {amount(charged)} the second time although refused with {again}"
        yield observed(title, f"paid-refusal again {again}", "charged_again")


@oracle(
    id="overcharged",
    says="a call costs no more than the platform advertises, each time that it is sent",
    severity=Severity.HIGH,
    example=_call({}, ok=True, status=200, charged=9, advertised_wei=5),
    control=_call({}, ok=True, status=200, charged=1, advertised_wei=5),
)
def overcharged(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    promised, said_itself = facts.promised.get(PRICE, 0), number(last, "advertised_wei")
    prices = [price for price in (promised, said_itself) if isinstance(price, int) and price > 0]
    if not prices or not served(last):
        return
    price, how = min(prices), "sent once"
    charged = number(last, "charged")
    if any(0 < number(one, "charged") <= price for one in _earlier(seen)):
        how = AGAIN
    if charged <= price and 200 <= number(last, "status_again") < 300:
        charged, how = number(last, "charged_again"), "sent a second time"
    if charged > price:
        when = {AGAIN: ", asked again,", "sent a second time": ", sent twice,"}.get(how, "")
        title = f"{agent(last)}{when} costs {amount(charged)}, not {amount(price)}"
        times = "twice" if charged == 2 * price else "more"  # a charge made twice is another defect
        form = "stream" if last.args.get("stream") else "whole"
        older = f"overcharged {how} {form} {'its own word' if price == said_itself else PRICE}"
        former = ((f"{older} {times}", True), (older, True))
        found = Sighting(title, f"overcharged {how} {times}", whole=True, former=former)
        yield Observation(found, frozenset({"charged", "charged_again"}))


@oracle(
    id="empty-reply",
    says="a question is never answered with an empty reply that says it is complete",
    severity=Severity.MEDIUM,
    surface="ux",
    forgeable=True,
    example=_call({}, ok=True, status=200, empty=True, finish_reason="STOP"),
    control=_call({}, ok=True, status=200, empty=True, finish_reason="MAX_TOKENS"),
)
def empty_reply(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if not (last.result.get("empty") and served(last) and honest(last)):
        return
    reason, words = str(last.result.get("finish_reason", "")), message_of(last)
    if sum(map(str.isalnum, words)) < 2 or vocabulary.SILENCE.search(words):
        return
    if reason.lower().replace("finish_reason_", "") in _ENDED:
        charged = number(last, "charged")
        cost = f" for {amount(charged)}" if charged > 0 else ""
        # one defect has one signature, however it is asked for
        long, script = len(words) > 200, "text" if words.isascii() else "multi-byte text"
        first = "" if long else template(words.split()[0].casefold())
        kind = "help" if _HELP.search(words) else f"{'long' if long else 'short'} {script} {first}".strip()
        again = any(not one.result.get("empty") for one in _earlier(seen))
        when = ", asked again" if again else ""
        title = f'{agent(last)} answers nothing to "{line(words, 20)}"{when}{cost} ({reason or "no reason"})'
        key = f"empty-reply {'again ' if again else ''}{kind}"
        yield observed(title, key, "reply", "empty")


def _earlier(seen: Sequence[Exchange]) -> list[Exchange]:
    """The earlier calls of a question with the last one's words, by the same caller, that were served."""
    last = seen[-1]
    return [one for one in seen[:-1] if served(one) and honest(one) and same_words(one, last)]


@oracle(
    id="stream-broken",
    says="an event stream is whole: framing, UTF-8, JSON, a final event",
    severity=Severity.MEDIUM,
    surface="ux",
    example=_call(_STREAM, status=200, stream_ok=False, stream_error="not UTF-8"),
    control=_call(_STREAM, status=200, ok=True, stream_ok=True, stream_error="", reply="x"),
)
def stream_broken(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    fault = str(last.result.get("stream_error", ""))
    if not (last.args.get("stream") and 200 <= number(last, "status") < 300 and fault):
        return
    if _OTHER_FIELD.match(fault) or ("is not an event stream" in fault and not facts.promised.get("streams")):
        return
    if last.args.get("raw"):
        return
    kind = template(fault).partition(":")[0]
    title = f"{agent(last)}: {line(fault, 100)}"
    yield observed(title, f"stream-broken {kind}", "stream_ok", "stream_error")
