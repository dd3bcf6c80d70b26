"""Questions with controls that an odd answer of an agent gives rise to. Pure; judges nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from fleet.drivers.explore.agent.knowledge import KnownAgent
from fleet.drivers.explore.agent.messages import COUNTED, GREETING, NONSENSE
from fleet.oracles.agent import vocabulary
from fleet.oracles.agent.consistency import CAP, PAIRS, lost_for_words
from fleet.oracles.agent.dialogue import (
    answered,
    caller,
    gist,
    honest,
    message_of,
    normalized,
    number,
    reply_of,
    served,
)
from fleet.oracles.agent.help_text import Command
from fleet.oracles.model import Exchange

_SIZE = re.compile(r"(?<!\d)\d{1,4}(?!\d)")
_LIMIT = re.compile(r"(?<![\d.])\d{2,6}(?![\d.]*\d)")
UNPAID = 402
TOO_LONG = (400, 413, 414, 422)
SHORT, LONG = 64, 8_000
"""Characters: shorter ones are asked anyway; of longer ones only the limit that a refusal states."""

_CLOSED = {"message": GREETING, "token": "none", "fund": False}
"""Refused where callers are distinguished, by an agent of another wire than the proxy's."""
SHORT_WORDS = ("fern", "sedge", "lichen")
"""What is kept first, as a control: a word that is not shown anyway."""

Talk = Sequence[Mapping[str, object]]
Found = Sequence[tuple[str, Talk]]
"""Key and calls of each question."""


def of_one(agent: KnownAgent, one: Exchange) -> Found:
    """What one answer gives rise to: a broken token that is only asked for credit was believed, too."""
    if not (served(one) or (number(one, "status") == UNPAID and one.args.get("token", "good") != "good")):
        return []
    return [(f"{agent.name}?{key}", talk) for key, talk in _of_served(agent, one)]


def _of_served(agent: KnownAgent, one: Exchange) -> Iterator[tuple[str, Talk]]:
    args = one.args
    plainly = {key: args[key] for key in ("target", "message", "fill", "unit") if key in args}
    calm = {"target": agent.name, "message": agent.reserving or agent.guide or GREETING}
    for tool in one.result.get("tool_calls", ()):
        if isinstance(tool, str) and agent.forbidden(tool):
            yield f"tool/{tool}/{sorted(args)}", (calm, args) if honest(one) else (calm, plainly, args)
    variant = args.get("token", "good")
    if variant != "good":
        needed = plainly | {"token": "garbage" if variant == "none" else "none", "fund": False}
        forged = [plainly | {"token": "foreign", "fund": False}] if variant in ("stale", "future") else []
        yield f"token/{variant}", (plainly, needed, *forged, args)
    claim, words = str(one.result.get("claimed", "")).lower(), normalized(reply_of(one))
    if claim and (claim in (str(one.result.get("caller", "")).lower(), words) or claim in words):
        yield f"sender/{args.get('claim_fields')}/{args.get('claim_headers')}", (plainly, args)
    elif claim and number(one, "charged_claimed") > 0:
        yield f"payer/{args.get('claim_fields')}/{args.get('claim_headers')}", (plainly, args)
    sizes = [*_SIZE.finditer(message_of(one))]
    size = int(sizes[0][0]) if len(sizes) == 1 else 0
    if number(one, "turns") >= CAP and size in COUNTED and not args.get("fill"):  # not what this asked itself
        large = _SIZE.sub(str(max(9, 2 * size)), message_of(one))
        for few in (size // 3, size // 2):  # the larger one is slow where the task begins to loop below it
            less = GREETING if size <= 3 else _SIZE.sub(str(few), message_of(one))
            talk = (
                {"target": agent.name, "message": less},
                {"target": agent.name, "message": large},
                plainly,
            )
            yield f"turns/{message_of(one)}/{few}", talk
    odd = agent.odd == gist(one) or lost_for_words(agent.odd) & lost_for_words(gist(one))
    if not (answered(one) and agent.guide and agent.works and odd):
        return
    if any(
        normalized(Command(spelled).filled()) == normalized(message_of(one)) for spelled in agent.commands
    ):
        messages = (agent.guide, NONSENSE, agent.works, message_of(one))
        yield f"help/{message_of(one)}", tuple({"target": agent.name, "message": text} for text in messages)


def of_refused(one: Exchange) -> Found:
    """The longest message that is served, after one too long: the limit that its refusal states, or half."""
    message, sent = str(one.args.get("message", "")), len(message_of(one))
    if number(one, "status") not in TOO_LONG or not (honest(one) and one.args.get("fill")):
        return []
    reason = str(one.result.get("error", "")).replace(f"HTTP {number(one, 'status')}", "")
    stated = [int(size[0]) for size in _LIMIT.finditer(reason)]
    sizes = [size for size in stated if SHORT <= size < sent] or [sent // 2] * (2 * SHORT <= sent < LONG)
    plainly = {key: one.args[key] for key in ("target", "message", "unit") if key in one.args}
    return [
        (f"{one.args.get('target')}?longest/{size}/{how}", (plainly | {"fill": size - len(message)} | way,))
        for size in dict.fromkeys(sizes)
        for how, way in (("whole", {}), ("stream", {"stream": True}))
    ]


def of_twins(one: Exchange, other: Exchange) -> Found:
    """What a streamed and a whole answer to the same words give rise to."""
    whole, stream = (other, one) if one.args.get("stream") else (one, other)
    if answered(whole, stream) and reply_of(whole).strip() != reply_of(stream).strip():
        key = f"{whole.args.get('target')}?stream/{message_of(whole)[:60]}"
        return [(key, (whole.args, stream.args) * PAIRS)]
    return []


def of_talk(agent: KnownAgent, seen: Sequence[Exchange]) -> Found:
    """What a look at an agent's memory gives rise to."""
    if not all(map(served, seen)) or len(seen) > 3:
        return []
    return [(f"{agent.name}?{key}", talk) for key, talk in _of_memory(agent, seen)]


def _of_memory(agent: KnownAgent, seen: Sequence[Exchange]) -> Iterator[tuple[str, Talk]]:
    keep, show = seen[0], seen[-1]
    pair = next((one for one in agent.pairs() if one.show == message_of(show)), None)
    if pair is None:
        return
    before, _, after = pair.kept("\x00").partition("\x00")
    text = message_of(keep).removeprefix(before)
    text = text.removesuffix(after) if after else text
    said = normalized(f"{agent.name} {show.result.get('address', '')} {reply_of(show)}")
    word = next((one for one in SHORT_WORDS if one not in said), SHORT_WORDS[0])
    short = {"target": agent.name, "message": pair.kept(word)}
    known = (_CLOSED | {"target": agent.name},) if show.result.get("wire") else ()
    there = normalized(text) in normalized(reply_of(show))
    if len(seen) == 2 and caller(keep) == caller(show):
        if not there and vocabulary.CONFIRMS.search(reply_of(keep)):
            yield f"kept/{pair.keep.spelled}/{len(text)}", (short, show.args, keep.args, show.args)
    elif len(seen) == 2 and there:
        yield f"reads/{pair.keep.spelled}", (*known, short, show.args, keep.args, show.args)
    elif len(seen) == 3 and not there:
        mine = {key: value for key, value in show.args.items() if key != "caller"}
        yield (
            f"changes/{pair.keep.spelled}/{sorted(seen[1].args)}",
            (*known, keep.args, mine, seen[1].args, show.args),
        )
