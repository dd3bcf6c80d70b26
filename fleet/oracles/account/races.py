"""Oracles of requests that are sent at the same moment: what each does by itself, all do together. Pure.

The control is always the same request one after the other, in the same row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from fleet.oracles.account.inputs import sent_fields, varied
from fleet.oracles.account.rows import NONE, PlayedStep, on, oracle, played, row
from fleet.oracles.model import Exchange, Facts, Observation, observed
from fleet.severity import Severity
from fleet.text import line
from sandbox.sites.idents import IDENT

REFUSED_AGAIN = (400, 403, 409, 410, 422)
"""How what works once is refused the second time."""
_CLOCK = re.compile(r"(?i)time|date|_?at$|epoch|seq|version|revision")
"""Numbers that grow by themselves."""


class SentTogether(NamedTuple):
    """The steps of a row before, at and after the moment at which some were sent together."""

    before: list[PlayedStep]
    during: list[PlayedStep]
    after: list[PlayedStep]


def sent_together(call: Exchange) -> SentTogether | None:
    """None where nothing was sent together, or one of these steps was not made."""
    begin, end = call.args.get("together") or (0, 0)
    parts = []
    for part in (slice(0, begin), slice(begin, end), slice(end, None)):
        cut = {**call.args, "steps": call.args.get("steps", ())[part]}
        parts.append(played(Exchange(call.tool, cut, {"answers": call.result.get("answers", ())[part]})))
    return SentTogether(*parts) if end - begin > 1 and len(parts[1]) == end - begin else None


def _together(
    begin: int, end: int, *steps: tuple[str, dict[str, Any], dict[str, Any]]
) -> tuple[Exchange, ...]:
    path = "/api/stock"
    (made,) = row(*((who, "POST", path, sent, got) for who, sent, got in steps))
    return (Exchange(made.tool, {**made.args, "together": [begin, end]}, made.result),)


def _counting(last: int) -> tuple[Exchange, ...]:
    totals = (13, 16, 19, 22, 25, last)
    return _together(3, 5, *(("one", {"delta": 3}, NONE | {"facts": {"stock": str(one)}}) for one in totals))


@oracle(
    id="account-lost",
    says="changes that are made at the same time all count",
    severity=Severity.HIGH,
    example=_counting(25),
    control=_counting(28),
)
def account_lost(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The same change one after the other moves a number by what is sent, or adds to a list, each time. Sent
    together all succeed; the next one by itself shows that some were lost."""
    if (found := sent_together(seen[-1])) is None or not all(
        one.good for one in (*found.during, *found.after)
    ):
        return
    first, last = found.during[0], found.after[-1] if found.after else None
    alike = [one for one in found.before if one.good and _same_change(one, first)]
    if last is None or not _same_change(last, first) or len(alike) < 2:
        return
    many = len(found.during) + 1
    what = _uncounted(alike, last, many) or _unlisted(alike, found.during, last)
    if what:
        where = on(seen[-1], first.plain, first.method)
        title = f"{first.called}: {what}"
        yield observed(title, f"account-lost {first.plain}", "answers", where=where)


def _same_change(one: PlayedStep, other: PlayedStep) -> bool:
    """Whether two requests are the same, but for one value."""
    return one.same(other) or varied(one, other) is not None


def _uncounted(alike: Sequence[PlayedStep], last: PlayedStep, many: int) -> str:
    """That a number is behind which the same request moves by what it sends, each of three times."""
    sent = [abs(value) for _, value in sent_fields(last.given) if type(value) is int]
    if len(alike) < 3 or not all(one.same(last) for one in alike):
        return ""
    for name in last.facts:
        values = [_number(one.facts.get(name)) for one in (*alike[-3:], last)]
        if None in values or IDENT.search(name) or _CLOCK.search(name):
            continue
        first, second, third, now = (one for one in values if one is not None)
        step = second - first
        moved = (now - third) / step if step else 0
        if step == third - second and abs(step) in sent and 1 <= moved < many:
            called = line(name.rpartition(".")[2].replace("_", " "), 30)
            return f"{called} lacks some of them"
    return ""


def _number(text: object) -> float | None:
    return float(str(text)) if re.fullmatch(r"-?\d{1,12}(?:\.\d{1,6})?", str(text)) else None


def _unlisted(alike: Sequence[PlayedStep], during: Sequence[PlayedStep], last: PlayedStep) -> str:
    """That a list which holds every value sent before, and the last one, lacks one of those sent together."""
    for name, shown in last.facts.items():
        entries = _entries(shown)
        before, then = ({one for step in some for one in _sent(step)} for some in (alike[-2:], during))
        own = set(_sent(last))
        fresh = then - before - own
        if len(fresh) > 1 and len(own & entries) == 1 and len(before & entries) >= 2 and fresh - entries:
            called = line(name.rpartition(".")[2].replace("_", " "), 30)
            return f"{called} lacks some of them"
    return ""


def _entries(shown: object) -> set[str]:
    try:
        read = json.loads(str(shown))
    except ValueError:
        return set()
    return {one for one in read if isinstance(one, str)} if isinstance(read, list) else set()


def _sent(step: PlayedStep) -> list[str]:
    return [value for _, value in sent_fields(step.given) if isinstance(value, str)]


def _reserving(many: int) -> tuple[Exchange, ...]:
    refused = NONE | {"status": 409}
    sent = {"book_id": 1}
    others = [("other", sent, NONE if at < many else refused) for at in range(4)]
    return _together(2, 6, ("one", sent, NONE), ("one", sent, refused), *others)


@oracle(
    id="account-overlapped",
    says="what works once for an account works once, however many requests come at the same moment",
    severity=Severity.HIGH,
    example=_reserving(2),
    control=_reserving(1),
)
def account_overlapped(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """One account's second request is refused; of another account's same requests, sent together, two or more
    succeed."""
    if (found := sent_together(seen[-1])) is None or len(found.before) < 2:
        return
    first, again = _last_pair(found.before)
    once = first.who == "one" and first.good and again.status in REFUSED_AGAIN and first.same(again)
    theirs = [one for one in found.during if one.who == "other" and _alike(one, first)]
    good = sum(one.good for one in theirs)
    if once and len(theirs) == len(found.during) and good > 1:
        where = on(seen[-1], first.plain, first.method)
        title = f"{first.called} succeeds twice at the same moment"
        yield observed(title, f"account-overlapped {first.plain}", "answers", where=where)


def _last_pair(steps: Sequence[PlayedStep]) -> tuple[PlayedStep, PlayedStep]:
    mine = [one for one in steps if one.who == "one"]
    pairs = reversed(list(pairwise(mine)))
    return next((pair for pair in pairs if pair[0].same(pair[1])), (steps[0], steps[0]))


def _alike(one: PlayedStep, other: PlayedStep) -> bool:
    """Whether two accounts ask the same, each of its own things."""

    def bare(step: PlayedStep) -> tuple[str, str, str]:
        own = re.compile(r"\{id-\d+\}")
        given: Mapping[str, Any] = step.given
        return step.method, own.sub("{id}", step.path), own.sub("{id}", json.dumps(given, sort_keys=True))

    return bare(one) == bare(other)
