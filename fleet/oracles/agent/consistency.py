"""Oracles of several calls of one agent: whole and streamed, price, help, turns. Pure.

Agents may be chatty and never say the same twice; so each compares an answer only with answers that agree
with each other first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from fleet.findings.field_words import amount
from fleet.findings.sighting import template
from fleet.oracles.agent.dialogue import (
    SHOWN,
    agent,
    answered,
    gist,
    message_of,
    normalized,
    number,
    one_agent,
    reply_of,
    same_words,
)
from fleet.oracles.agent.help_text import commands
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.severity import Severity
from fleet.text import line

PAIRS = 3
"""Times that a message is answered whole and streamed before other words count as the stream's."""
CAP = 8
"""Turns from which a task looks as if it had run into a cap: agents have caps of 8, 10, 11, 16 ... turns."""
_DIGITS = re.compile(r"\d{1,4}")
_UNKNOWN = re.compile(
    r"\{echo\}|unknown|understand|understood|(?:do not|don't) know|not sure|recogni[sz]|unsupported"
    r"|no (?:such )?command|not a command|what do you mean|did(?: not|n't) (?:get|catch|follow)"
)
"""What is answered to words that mean nothing."""
_SENTENCES = re.compile(r"(?<=[.!?;])\s+")


oracle = partial(Oracle, judges=("reply",), surface="ux")


def exchange(message: str, reply: str, args: dict[str, object] | None = None, **result: object) -> Exchange:
    """One served call of an agent, for examples."""
    answer = {"ok": True, "status": 200, "reply": reply, "turns": 1}
    return Exchange("qa_call", {"target": "a", "message": message, **(args or {})}, answer | result)


_STREAM: dict[str, object] = {"stream": True}
_GUIDE = exchange("help", "Try: weather CITY; time; news. Or just talk to me.")
_ODD = exchange("qwzx plover", "I do not know what that means.")
_TIME = exchange("time", "It is noon.")


def _streamed(reply: str) -> tuple[Exchange, ...]:
    return (exchange("hi", "good day"), exchange("hi", reply, _STREAM)) * PAIRS


def _priced(charged: int) -> tuple[Exchange, ...]:
    singles = tuple(exchange(word, word * 2, charged=5) for word in ("ab", "cd", "ef"))
    return (*singles, exchange("ef", "efef", _STREAM, charged=charged))


def _counted(turns: int) -> tuple[Exchange, ...]:
    return (
        exchange("hello", "hi"),
        exchange("count to 9", "1 … 9", turns=11),
        exchange("count to 2", "1 2", turns=turns),
    )


@oracle(
    id="stream-differs",
    says="an agent that says the same twice says the same in a stream",
    severity=Severity.MEDIUM,
    example=_streamed("good dy"),
    control=_streamed("good day"),
)
def stream_differs(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Whole and streamed in turn: the whole ones agree, the streamed ones too, and not with each other. Two
    of each are enough where one lacks characters of the other; an agent may give one of two answers."""
    for count in (2, PAIRS):
        turns = seen[-2 * count :]
        ways = [bool(one.args.get("stream")) for one in turns]
        if ways != [False, True] * count or not (answered(*turns) and same_words(*turns)):
            return
        said_whole, said_streamed = ({reply_of(one).strip() for one in turns[at::2]} for at in (0, 1))
        calls = {tuple(one.result.get("tool_calls", ())) for one in turns[::2]}
        whole, first = next(iter(said_whole)), next(iter(said_streamed))
        if not whole or len(whole) > SHOWN or max(len(said_whole), len(said_streamed), len(calls)) > 1:
            return
        if whole != first and (count == PAIRS or _within(first, whole) or _within(whole, first)):
            pairs = enumerate(zip(whole, first, strict=False))
            at = next((at for at, (a, b) in pairs if a != b), min(len(whole), len(first)))
            shown, wanted = (line(text[at : at + 12], 12) for text in (first, whole))
            title = f'{agent(turns[-1])} streams "{shown}" for "{wanted}" at character {at}'
            kind = "cut" if whole.startswith(first) else "words"
            kind = "blanks" if "".join(whole.split()) == "".join(first.split()) else kind
            yield observed(title, f"stream-differs {kind}", "reply", led=_before(seen, 2 * count - 1))
            return


def _within(short: str, long: str) -> bool:
    """Whether a text is another one without some of its characters."""
    rest = iter(long)
    return all(char in rest for char in short)


def _before(seen: Sequence[Exchange], count: int) -> tuple[int, ...]:
    """Positions of the exchanges right before the last."""
    return tuple(range(max(0, len(seen) - 1 - count), len(seen) - 1))


@oracle(
    id="uneven-price",
    says="where every call costs the same, one message costs it once, however it is sent",
    severity=Severity.HIGH,
    surface="on-chain",
    yields_to=("overcharged",),
    example=_priced(10),
    control=_priced(5),
)
def uneven_price(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A flat price, shown by three different messages; then one of these messages costs more when it is
    streamed, or sent twice, than its calls together."""
    last, singles = seen[-1], seen[:-1]
    odd = bool(last.args.get("stream")) or bool(last.args.get("twice"))
    if not odd or len(singles) < 3 or not one_agent(seen) or not answered(*seen):
        return
    if any(one.args.get("stream") or one.args.get("twice") for one in singles):
        return
    prices = {number(one, "charged") for one in singles}
    if len(prices) != 1 or len({reply_of(one) for one in singles}) < 3:
        return
    if not any(same_words(one, last) for one in singles):
        return
    (price,) = prices
    times = 2 if last.args.get("twice") and 200 <= number(last, "status_again") < 300 else 1
    charged = number(last, "charged") + number(last, "charged_again")
    if 0 < price * times < charged:
        how = "sent twice" if last.args.get("twice") else "streamed"
        title = f"{agent(last)} costs {amount(charged)} {how}, {amount(price)} in a single call"
        yield observed(
            title, f"uneven-price {how}", "charged", "charged_again", led=tuple(range(len(singles)))
        )


@oracle(
    id="help-unknown",
    says="an agent knows the commands that its help text names",
    severity=Severity.LOW,
    forgeable=True,
    example=(_GUIDE, _ODD, _TIME, exchange("news", "I do not know what that means.")),
    control=(_GUIDE, _ODD, _TIME, exchange("news", "Nothing new today.")),
)
def help_unknown(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The help text, nonsense, a command of the text that works, one that is answered like the nonsense."""
    four = seen[-4:]
    if len(four) < 4 or not (answered(*four) and one_agent(four)):
        return
    guide, nonsense, works, last = four
    named = [normalized(one.filled()) for one in commands(reply_of(guide)) if one.sure]
    shown = any(normalized(message_of(last)) == one for one in named)
    if (
        not shown
        or normalized(message_of(works)) not in named
        or normalized(message_of(nonsense)) in normalized(reply_of(guide))
    ):
        return
    if message_of(works) == message_of(last) or not gist(last) or last.result.get("tool_calls"):
        return
    if lost_for_words(gist(last)) & lost_for_words(gist(nonsense)) - lost_for_words(gist(works)):
        title = f'{agent(last)} answers "{line(message_of(last), 40)}" like nonsense'
        command = template(normalized(message_of(last)))
        where = {"command": command}
        yield observed(title, f"help-unknown {command}", "reply", led=_before(seen, 3), where=where)


def lost_for_words(gist: str) -> frozenset[str]:
    """The sentences of a reply that say that it was not understood; what stands beside them may vary."""
    return frozenset(said for said in _SENTENCES.split(gist) if _UNKNOWN.search(said))


@oracle(
    id="turns",
    says="a small task takes fewer turns than a large one of its kind, and never all that there are",
    severity=Severity.MEDIUM,
    surface="perf",
    forgeable=True,
    example=_counted(11),
    control=_counted(2),
)
def turns(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A plain message or a task, a larger one, and one of a size between, which takes turns up to a cap."""
    three = seen[-3:]
    if len(three) < 3 or not (answered(*three) and one_agent(three)):
        return
    less, large, last = three
    sizes = [[int(size) for size in _DIGITS.findall(message_of(one))] for one in (large, last)]
    kinds = {_DIGITS.sub("#", normalized(message_of(one))) for one in (large, last)}
    if len(kinds) != 1 or [len(one) for one in sizes] != [1, 1] or len(message_of(last).split()) > 8:
        return
    (big,), (small,) = sizes
    took, larger, plainly = (number(one, "turns") for one in (last, large, less))
    fewer = [int(size) for size in _DIGITS.findall(message_of(less))]
    share = 3.0 * small  # turns that no healthy task of this size takes: three a step
    if fewer:  # the same task in a size that takes one turn or two: three times in proportion to it
        if (
            len(fewer) > 1
            or _DIGITS.sub("#", normalized(message_of(less))) not in kinds
            or not 0 < fewer[0] < small
        ):
            return
        share = 3.0 * plainly * small / fewer[0]
    if not 0 < small < big or not 0 < plainly <= 2 or took < max(CAP, share):
        return
    if (CAP if fewer else 1) <= larger <= took:
        task, more = (line(message_of(one), 24) for one in (last, large))
        title = f'{agent(last)} takes {took} turns for "{task}", {larger} for "{more}"'
        yield observed(title, f"turns {kinds.pop()[:60]}", "turns", led=_before(seen, 2))
