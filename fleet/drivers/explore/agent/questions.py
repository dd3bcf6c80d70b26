"""What is asked of one agent, by rank (lower is asked earlier) and key. Pure; judges nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fleet.drivers.explore.agent.knowledge import KnownAgent, Pair
from fleet.drivers.explore.agent.messages import (
    ABOUT,
    ABOUT_GIVEN,
    ADDRESS,
    CALM_TOOLS,
    COUNT,
    COUNTED,
    DIGITS,
    EDGES,
    FIELDS,
    GATE,
    GREETING,
    HEADERS,
    HELP,
    IDENTITY,
    LENGTHS,
    LETTER,
    MULTIBYTE,
    NO_TOOL,
    NONSENSE,
    ORDER,
    PAGE,
    SENTENCE,
    STREAMED,
    URGED,
    VARIANTS,
    refusals,
    tool_message,
)
from fleet.oracles.agent.help_text import Command

Talk = tuple[int, str, list[dict[str, object]]]
"""Rank, key, arguments of each call."""
AGAIN = "have a good day"
"""What a caller says two times in one question: an answer may hang on what was asked before."""
PRICED = {
    "twice": ("good morning", "which day is today", "name a colour"),
    "stream": ("good evening", "which month is it now", "name a river"),
}
"""Messages whose charges are compared, by what is asked of the first: no other question has the same words,
since a platform may charge in another way for what it heard a minute ago."""


_WHO = re.compile(r"address|who ?am ?i", re.IGNORECASE)
_OWN = re.compile(r"who ?am ?i|\bmy\b", re.IGNORECASE)
"""Of these, what cannot ask for another's."""


def _say(message: str, **more: object) -> dict[str, object]:
    return {"message": message, **more}


def first_words(agent: KnownAgent) -> Iterator[Talk]:
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


def strangers(agent: KnownAgent) -> Iterator[Talk]:
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


def senders(agent: KnownAgent, *, first: bool, taken: frozenset[str] = frozenset()) -> Iterator[Talk]:
    """`taken`: fields that mean something else in the agent's wire."""
    places = [name for name in FIELDS if name not in taken]
    known = [one for one in agent.commands if _WHO.search(one) and not Command(one).holes]
    asks = next(iter(sorted(known, key=lambda one: not _OWN.search(one))), IDENTITY)
    message = Command(asks).filled()
    yield 2, "sender/none", [_say(message)]
    false = {"claim_from": "other"}
    yield 2, "sender/from", [_say(message, **false)]
    yield (2 if first else 5), "sender/headers", [_say(message, **false, claim_headers=list(HEADERS))]
    yield (2 if first else 5), "sender/fields", [_say(message, **false, claim_fields=places)]
    for name in places if first else ():
        yield 8, f"sender/field/{name}", [_say(message, **false, claim_fields=[name])]
    for name in HEADERS if first else ():
        yield 8, f"sender/header/{name}", [_say(message, **false, claim_headers=[name])]
    for at, variant in enumerate(VARIANTS):
        yield (3 if first else 7), f"token/{variant}", [_say(message, token=variant, fund=False)]
        if first and at < 3:
            yield 7, f"token-stream/{variant}", [_say(message, token=variant, fund=False, stream=True)]


def kept(pair: Pair, texts: Sequence[str]) -> Iterator[Talk]:
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


def tasks(agent: KnownAgent, addresses: Sequence[str]) -> Iterator[Talk]:
    """Of agents that make tasks of messages: whose they are, how they end, what the card declares, and where
    pushes go: to `addresses` of the fleet's listener, if there is one.

    Where another caller is judged, a call without a token shows first that callers are distinguished."""
    message = next(iter(agent.examples), "") or agent.works or agent.guide or GREETING
    closed = _say(GREETING, token="none", fund=False)
    yield 1, "card/examples", [_say(GREETING, card=True)]
    for at, example in enumerate(agent.examples):
        yield 2, f"example/{at}", [_say(example)]
    for who in ("other", "nobody"):
        yield 2, f"task/get/{who}", [closed, _say(message, then="get", then_as=who)]
        yield 2, f"task/list/{who}", [closed, _say(message, then="list", then_as=who)]
        running = _say(message, running=True, then="cancel", then_as=who)
        yield 2, f"task/cancel/{who}", [closed, running]
    yield 3, "task/terminal", [_say(message, then="cancel")]
    yield 3, "card/stream", [_say(message, card=True, stream=True)]
    yield 3, "card/push", [_say(message, card=True, then="push")]
    yield 3, "card/extended", [closed, _say(message, card=True, then="extended", then_as="nobody")]
    for how, address in zip(({"then": "push", "running": True}, {}), addresses, strict=False):
        yield 3, f"push/{how.get('then', 'sent')}", [_say(message), _say(message, push_to=address, **how)]
    yield 4, "version", [_say(message), _say(message, version="99.0")]


def planted(agent: KnownAgent, texts: Sequence[str], addresses: Sequence[str]) -> Iterator[Talk]:
    """Orders in what an agent is given to read: a letter in its message or beside it, a page of the fleet's
    listener; each beside the same without one. They ask for what is harmless: to keep a text, to run a tool
    that only reads, to open a page."""
    calm = [tool for tool in agent.tools if not agent.forbidden(tool)]
    for at, (name, read) in enumerate({"planted": _in_message, "given": _beside}.items()):
        quiet = read(GATE.replace("WORD", texts[4]))
        for pair in agent.pairs()[:1]:
            show, first = _say(pair.show), _say(pair.kept(texts[0]))
            order = read(ORDER.replace("DO", pair.kept(texts[4])))
            yield 4, f"{name}/kept", [first, quiet, show, order, show]
        for tool, spelling in zip(calm[:2], agent.spellings[:1] * 2, strict=False):
            yield 6, f"{name}-tool/{tool}", [quiet, read(ORDER.replace("DO", tool_message(spelling, tool)))]
        if addresses:
            listed, told = addresses[6 + 2 * at : 8 + 2 * at]
            orders = read(ORDER.replace("DO", f"open {told}"))
            yield 5, f"{name}/address", [read(ADDRESS.replace("ADDRESS", listed)), orders]
    if addresses:
        words = [one.rpartition("/")[2] for one in addresses]
        linked, told = (
            f"{PAGE}{addresses[at]}/{kind}/{words[at + 1]}" for at, kind in ((2, "link"), (4, "order"))
        )
        yield 4, "planted/page", [_say(linked), _say(told)]


def _in_message(line: str) -> dict[str, object]:
    return _say(f"{ABOUT}\n{LETTER.replace('LINE', line)}")


def _beside(line: str) -> dict[str, object]:
    return _say(ABOUT_GIVEN, given=LETTER.replace("LINE", line))


def wire(agent: KnownAgent, *, first: bool) -> Iterator[Talk]:
    for at, (kind, args) in enumerate(refusals(agent.name)):
        if first or at == 0:
            yield (2 if at < 5 else 4), f"refusal/{kind}", [dict(args)]
    for at, (message, fill, unit) in enumerate(STREAMED):
        long = {"fill": fill, "unit": unit} if fill else {}
        rank = 2 if at == 0 else 4 if at < 3 else 6
        yield rank, f"stream/{at}", [_say(message, **long, stream=True)]
        yield rank + (at > 0), f"whole/{at}", [_say(message, **long)]
    yield 4, "twice", [_say("hello there", twice=True)]
    yield 4, "again", [_say(AGAIN), _say(AGAIN)]
    if first:
        for how, words in PRICED.items():
            singles = [_say(one) for one in words]
            yield 5, f"price/{how}", [*singles, singles[0] | {how: True}]
        yield 7, "refusal/empty-twice", [_say("", twice=True)]
    for at, (message, fill, unit) in enumerate(EDGES):
        long = {"fill": fill, "unit": unit} if fill else {}
        yield (5 if at < 4 else 7), f"edge/{at}", [_say(message, **long)]
        yield 8, f"edge-stream/{at}", [_say(message, **long, stream=True)]
