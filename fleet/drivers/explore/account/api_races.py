"""What accounts of an API send at the same moment, each behind its control one after the other. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from fleet.drivers.desk import Question
from fleet.drivers.explore.account.api_groups import (
    ME,
    askable,
    listing,
    making,
    prepared,
    question,
    settled,
    shifted,
    waits,
)
from fleet.drivers.explore.account.api_inputs import OperationInputs, Row
from fleet.drivers.explore.account.api_rows import AccountRows
from fleet.oracles.account.functions import RECOVERS, for_role
from fleet.oracles.account.inputs import once

COUNTERS, LISTS, ONCE = 3, 2, 4
"""Of one run: changes of a number, additions to a list, and what may work once, that are sent together."""
AT_ONCE, STEP = 6, 3
"""Requests of one moment; by what each moves a number, which no clock and no counter of requests does."""
_MOVES = re.compile(
    r"(?i)(?:^|_)(?:delta|by|change|adjust\w*|increment|minutes|hours|points|amount|quantity|credits?|coins|units)$"
)
_ADDS = re.compile(
    r"(?i)(?:[/#](?:add|append|attach|assign|tag|label)\w*|/(?:tags|labels|members|keywords|topics))$"
)


def raced(rows: AccountRows) -> Iterator[Question]:
    """One question for each moment: its steps must be sent together, and nothing else of the row."""
    makers = making(rows)
    every = [one for one in askable(rows, "POST", "PUT", "PATCH") if not ME.search(one.at)]
    every = [one for one in every if not RECOVERS.search(one.at) and not settled(rows, one)]
    for steps, begin in (
        *islice(_counters(rows, every, makers), COUNTERS),
        *islice(_additions(rows, every, makers), LISTS),
        *islice(_once(rows, every, makers), ONCE),
    ):
        for asked in question(rows, steps):
            last, alone = asked.steps[-1], steps[begin][0] == "one"  # the last one then is by itself
            args = {**last.args, "shared": False, "together": [begin, len(steps) - alone]}
            yield replace(asked, steps=(*asked.steps[:-1], last.model_copy(update={"args": args})))


Moment = tuple[list[Row], int]
"""The steps of a row, and the position of the first that is sent together."""


def _counters(
    rows: AccountRows, every: list[OperationInputs], makers: list[OperationInputs]
) -> Iterator[Moment]:
    """Changes by a number: three by themselves, as many as AT_ONCE together, and one more."""
    for one in every:
        named = [name for name in one.of_kind("integer", "number") if one.all[name][0] == "body"]
        steps, things = prepared(one, makers, listing(rows))
        for name in [name for name in named if _MOVES.search(name)][: 0 if waits(one, things) else 1]:
            if row := one.row("one", {**things, name: STEP}):
                yield [*steps, *[row] * (3 + AT_ONCE + 1)], len(steps) + 3


def _additions(
    rows: AccountRows, every: list[OperationInputs], makers: list[OperationInputs]
) -> Iterator[Moment]:
    """Short words added to a thing, each another one: two by themselves, four together, and one more."""
    for one in every:
        steps, things = prepared(one, makers, listing(rows))
        texts = [name for name in one.texts() if one.all[name][0] == "body" and name not in things]
        if (
            len(texts) != 1
            or not things
            or not _ADDS.search(re.sub(r"/\{[^{}]+\}", "", one.at))
            or waits(one, things)
        ):
            continue
        added = [one.row("one", {**things, texts[0]: f"qa{at}"}) for at in range(1, 8)]
        if asked := [row for row in added if row]:
            yield [*steps, *asked], len(steps) + 2


def _once(rows: AccountRows, every: list[OperationInputs], makers: list[OperationInputs]) -> Iterator[Moment]:
    """What may work once: twice by one account, then four times together by the other, each with its own
    things. First what a description says to work once, then what can conflict with what is there."""

    def rank(one: OperationInputs) -> int:
        return 0 if once(one.operation) else 1 if one.operation.states(409) else 2

    for one in sorted(every, key=rank):
        steps, things = prepared(one, makers, listing(rows))
        named = once(one.operation) or one.operation.states(409) or things
        barred = for_role(one.operation, one.at) or waits(one, things)
        row = one.row("one", things) if one.operation.method == "POST" and named and not barred else None
        if row is None:
            continue
        mine: list[Row] = [*steps, row, row]
        made = sum(step[1] == "POST" for step in mine)
        theirs = shifted([["other", *step[1:]] for step in (*steps, *[row] * 4)], made)
        yield [*mine, *theirs], len(mine) + len(steps)
