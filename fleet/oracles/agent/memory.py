"""Oracles of what an agent keeps: what is confirmed is read back, and by its own caller alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from fleet.findings.sighting import template
from fleet.oracles.agent import vocabulary
from fleet.oracles.agent.charges import kept_private, promising
from fleet.oracles.agent.dialogue import (
    SHOWN,
    agent,
    answered,
    caller,
    message_of,
    normalized,
    one_agent,
    reply_of,
    served,
    told_apart,
    without,
)
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.severity import Severity
from fleet.text import line
from sandbox.agents.wires import LACKS
from sandbox.agents.wires.port import CONVERSATIONS

UNMISTAKABLE = 8
"""Characters of a text that is not said by accident."""
_SIMPLE = re.compile(r"[\w\s-]+")
_MARKED = re.compile(r"\.\.\.|…|\[")


@dataclass(frozen=True, slots=True)
class _Kept:
    """Two texts given to the same command: what the command is, and the texts."""

    command: str
    first: str
    second: str


def _kept(first: Exchange, second: Exchange) -> _Kept | None:
    """The command that two messages share, and what follows it in each; None for two other messages."""
    a, b = message_of(first), message_of(second)
    same = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    cut = a.rfind(" ", 0, same + 1) + 1
    if not cut or not a[cut:].strip() or not b[cut:].strip() or a[cut:] == b[cut:]:
        return None
    return _Kept(a[:cut].strip(), a[cut:].strip(), b[cut:].strip())


def _confirmed(one: Exchange, text: str) -> bool:
    words = without(reply_of(one), message_of(one), text)
    return bool(vocabulary.CONFIRMS.search(words)) and not vocabulary.DENIES.search(words)


def _has(reply: str, text: str) -> bool:
    return normalized(text) in normalized(reply)


oracle = partial(Oracle, judges=("reply",), surface="security")


def _talk(*said_and_heard: tuple[str, str] | tuple[str, str, str]) -> tuple[Exchange, ...]:
    return tuple(
        Exchange(
            "qa_call",
            {"target": "a", "message": message, "caller": who[0] if who else "caller"},
            {"ok": True, "status": 200, "reply": reply},
        )
        for message, reply, *who in said_and_heard
    )


_KEEP = ("note moss", "Saved.")
_LONG = ("note moss and granite", "Saved.")
_A, _B = ("note birch and alder", "Saved."), ("note moss and granite", "Saved.")
_NONE = ("show my note", "You have no note.", "other")


@oracle(
    id="not-read-back",
    says="what an agent confirms to keep is what it shows when it is asked for it",
    severity=Severity.HIGH,
    surface="ux",
    forgeable=True,
    example=_talk(_KEEP, ("my note", "It is: moss."), _LONG, ("my note", "It is: moss and gr.")),
    control=_talk(_KEEP, ("my note", "It is: moss."), _LONG, ("my note", "It is: moss and granite.")),
)
def not_read_back(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Keep one text, show it, keep another one, show that: the second is confirmed, and is not there."""
    four = seen[-4:]
    if len(four) < 4 or not (answered(*four) and one_agent(four)) or len({caller(one) for one in four}) > 1:
        return
    keep, show, again, last = four
    kept = _kept(keep, again)
    if (
        message_of(show) != message_of(last)
        or kept is None
        or message_of(show).startswith(f"{kept.command} ")
    ):
        return
    if (
        not (_confirmed(keep, kept.first) and _confirmed(again, kept.second))
        or len(message_of(again)) > SHOWN - 500
    ):
        return
    if normalized(kept.first) in normalized(f"{agent(last)} {last.result.get('address', '')}"):
        return  # said anyway: it shows nothing of what is kept
    lacks = LACKS.get(str(last.result.get("wire", "")), {})
    if how := _lost(reply_of(show), reply_of(last), kept, alone=CONVERSATIONS in lacks):
        kind, words = how
        title = f'{agent(last)}, "{line(kept.command, 20)}": {words}'
        key = f"not-read-back {template(normalized(kept.command))} {kind}"
        led = tuple(range(len(seen) - 4, len(seen) - 1))
        yield observed(title, key, "reply", led=led)


def _lost(before: str, after: str, kept: _Kept, *, alone: bool) -> tuple[str, str] | None:
    """How the second text was lost, by the two replies that should show the texts; None when in doubt.

    `alone`: each call is a conversation of its own, which an agent may forget."""
    if _has(after, kept.second) or _has(before, kept.second):
        return None
    if not _has(before, kept.first):  # not even the control is kept: only a plain "there is nothing" counts
        empty = before == after and vocabulary.NOTHING.search(after) and not vocabulary.USAGE.search(after)
        return ("lost", f'shows "{line(after, 60)}" after it') if empty and not alone else None
    frame, _, rest = normalized(before).partition(normalized(kept.first))
    now, second = normalized(after), normalized(kept.second)
    if not (now.startswith(frame) and now.endswith(rest) and len(now) >= len(frame) + len(rest)):
        return None
    shown = now[len(frame) : len(now) - len(rest)].strip()
    if shown == normalized(kept.first):
        return "stale", "shows the text before it"
    if len(shown) >= UNMISTAKABLE and second.startswith(shown) and not _MARKED.search(rest):
        return "cut", f"shows {len(shown)} of {len(kept.second)} characters"
    if len(frame) > 5 and shown and _SIMPLE.fullmatch(second) and len(shown) * 2 > len(second):
        return "changed", f'shows "{line(shown, 60)}" instead'
    return None


@oracle(
    id="other-reads",
    says="what one caller keeps as its own, another caller does not read as its own",
    severity=Severity.HIGH,
    forgeable=True,
    example=_talk(_A, _NONE, _B, ("show my note", "Your note: moss and granite", "other")),
    control=_talk(_A, _NONE, _B, _NONE),
)
def other_reads(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """One keeps a text, the other asks for its own, one keeps another text, the other asks again.

    It is one's own by the words of the question or the answer, or by a document that comes first."""
    four = seen[-4:]
    if len(four) < 4 or not (answered(*four) and one_agent(four)):
        return
    keep, other, again, last = four
    kept = _kept(keep, again)
    if not _two([keep, again], [other, last]) or message_of(other) != message_of(last) or kept is None:
        return
    text = kept.second
    promised = [at for at, page in enumerate(seen[:-4]) if promising(page, kept_private)][:1]
    if len(text) < UNMISTAKABLE or not (_personal(last) or promised) or not _confirmed(again, text):
        return
    if last.result.get("wire") and not told_apart(seen):
        return
    if _has(reply_of(last), text) and not _has(reply_of(other), text) and not _has(message_of(last), text):
        title = f'{agent(last)} shows what "{line(kept.command, 20)}" keeps to another caller'
        led = (*promised, *_closed(seen), *range(len(seen) - 4, len(seen) - 1))
        yield observed(title, f"other-reads {template(normalized(kept.command))}", "reply", led=led)


@oracle(
    id="other-changes",
    says="what one caller keeps as its own, another caller does not change",
    severity=Severity.HIGH,
    forgeable=True,
    example=_talk(
        _A,
        ("show my note", "birch and alder"),
        (*_B, "other"),
        ("show my note", "moss and granite"),
    ),
    control=_talk(
        _A,
        ("show my note", "birch and alder"),
        (*_B, "other"),
        ("show my note", "birch and alder"),
    ),
)
def other_changes(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """One keeps a text and reads it, the other one says something, and the text is another one."""
    four = seen[-4:]
    if len(four) < 4 or not (answered(four[0], four[1], four[3]) and one_agent(four)) or not served(four[2]):
        return
    keep, show, other, last = four
    kept = _kept(keep, other)
    if not _two([keep, show, last], [other]) or message_of(show) != message_of(last) or kept is None:
        return
    mine, theirs = kept.first, kept.second
    if min(len(mine), len(theirs)) < UNMISTAKABLE or not _personal(last):
        return
    if last.result.get("wire") and not told_apart(seen):
        return
    before, after = reply_of(show), reply_of(last)
    if _has(before, mine) and not _has(after, mine) and _has(after, theirs) and not _has(before, theirs):
        title = f'{agent(last)} lets another caller overwrite "{line(kept.command, 20)}"'
        yield observed(
            title,
            f"other-changes {template(normalized(kept.command))}",
            "reply",
            led=(*_closed(seen), *range(len(seen) - 4, len(seen) - 1)),
        )


def _closed(seen: Sequence[Exchange]) -> tuple[int, ...]:
    """The call that shows that callers are distinguished, where that is in doubt."""
    return tuple(told_apart(seen)[:1]) if seen[-1].result.get("wire") else ()


def _personal(show: Exchange) -> bool:
    """Whether what is shown is the caller's own: by the question, or by the agent's own word for it."""
    own = vocabulary.YOURS.search(without(reply_of(show), message_of(show)))
    return vocabulary.PERSONAL.search(message_of(show)) is not None or own is not None


def _two(one: Sequence[Exchange], other: Sequence[Exchange]) -> bool:
    """Whether these are two identities, one each."""
    first, second = {caller(each) for each in one}, {caller(each) for each in other}
    return len(first) == len(second) == 1 and first != second
