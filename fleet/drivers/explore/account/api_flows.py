"""What accounts of an API send whose answers must agree: several lines, repeats, other types. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, zip_longest
from typing import Any

from fleet.drivers.desk import Question
from fleet.drivers.explore.account.api_groups import (
    askable,
    entry_fields,
    entry_ids,
    entry_of,
    listing,
    making,
    own_ids,
    packed,
    prepared,
    waits,
)
from fleet.drivers.explore.account.api_inputs import MARK, OperationInputs, Planted, Row
from fleet.drivers.explore.account.api_rows import AccountRows
from fleet.drivers.explore.account.bodies import PHRASE, filled, plain
from fleet.oracles.account.agreements import ODD_NUMBER, ODD_TEXT, QUANTITY, bounds, repeat_key
from fleet.oracles.documents.openapi import fields_of

Group = tuple[list[Row], OperationInputs]
MISFITS, FIELDS = 24, 6
"""Of one run: operations that are sent values of another type, and such values of each."""
BOUNDED = 12
"""Of one run: bounds of numbers."""
AGAIN = 3
"""Of one run: operations with a key for repeats."""


def agreeing(rows: AccountRows) -> Iterator[Question]:
    """Sums of one line and of several, and repeats with a key, share rows."""
    yield from packed(rows, (*_summed(rows), *islice(_repeated(rows), AGAIN)))


def misfitting(rows: AccountRows) -> Iterator[Question]:
    """Values of another type, texts without the form that a name asks for, and numbers at the bounds that a
    description states."""
    yield from packed(rows, (*islice(_misfits(rows), MISFITS), *islice(_bounded(rows), BOUNDED)))


def _summed(rows: AccountRows) -> Iterator[Group]:
    """A request with a list of objects that have a quantity: one line, then two; so of a quote below."""
    known, lists = Planted(seen=own_ids(rows)), listing(rows)
    every = [(one, name) for one in askable(rows, "POST") for name in one.of_kind("array")]
    every = [(one, name) for one, name in every if any(map(QUANTITY.match, entry_fields(one, name)))]
    for one, name in every:
        looks: list[Row] = [["other", "GET", at, {}] for at in entry_ids(one, name, lists).values()]
        first, second = (entry_of(one, name, lists, number) for number in (1, 2))
        (many,) = list(filter(QUANTITY.match, first))[:1] or [""]
        bodies = [[{**first, many: 1}], [{**first, many: 3}, {**second, many: 1}]]
        quotes = [two for two, other in every if two.at.startswith(f"{one.at}/") and other == name]
        values = known.values(one)
        steps = [
            row
            for each in (one, *quotes[:1])
            for lines in bodies
            if many and not waits(each, values) and (row := each.row("other", {**values, name: lines}))
        ]
        if len(steps) > 1:
            yield [*looks, *steps], one


def _repeated(rows: AccountRows) -> Iterator[Group]:
    """A request with a key for repeats, the same again, and the same with another key."""
    makers = making(rows)
    for one in askable(rows, "POST"):
        steps, things = prepared(one, makers, listing(rows))
        if (name := repeat_key(one.operation)) and not waits(one, things):
            made = [one.row("one", {**things, name: word}) for word in (MARK, MARK, "{tag}")]
            yield [*steps, *filter(None, made)], one


def _misfits(rows: AccountRows) -> Iterator[Group]:
    """Each of the fields of a body with a value that does not fit, between two requests that do."""
    makers = making(rows)
    for one in askable(rows, "POST", "PATCH", "PUT"):
        steps, things = prepared(one, makers, listing(rows))
        if waits(one, things) or any(PHRASE.match(name) for name in one.all):
            continue
        row = one.row("one", things)
        by_field = [
            [(name, value) for value in _misfit(name, said, one)]
            for name, (where, said) in one.all.items()
            if where == "body" and name not in things
        ]
        turns = (pair for each in zip_longest(*by_field) for pair in each if pair)  # each field has its turn
        odd = [made for name, value in turns if (made := one.row("one", {**things, name: value}))]
        if row and odd:
            yield [*steps, row, *odd[:FIELDS], row], one


def _bounded(rows: AccountRows) -> Iterator[Group]:
    """Each whole number of a request at a bound, beside it, and at the bound again."""
    makers = making(rows)
    for one in askable(rows, "POST"):
        steps, things = prepared(one, makers, listing(rows))
        names = [name for name in one.of_kind("integer") if one.all[name][0] in ("body", "query")]
        names = [name for name in names if name not in things]
        for name in names if not waits(one, things) else ():
            for bound, inner in bounds(one.all[name][1]):
                sent = [one.row("one", {**things, name: value}) for value in (bound, inner, bound)]
                yield [*steps, *filter(None, sent)], one


def _misfit(name: str, said: Mapping[str, Any], one: OperationInputs) -> Iterator[Any]:
    """A number in place of a text, a text in place of anything else, and null in that of a list or an object;
    of an object, each of its fields so."""
    document = one.operation.document
    kind = said.get("type")
    if kind == "object" or "properties" in said:
        yield None
        fields = fields_of(said, document)[0]
        whole = filled(name, said, document, entering=False)
        for inner, schema in fields.items() if isinstance(whole, dict) else ():
            yield from ({**whole, inner: value} for value in _simple(plain(schema, document)))
    else:
        yield from _simple(said)


def _simple(said: Mapping[str, Any]) -> Iterator[Any]:
    if said.get("type") == "string":
        yield from (ODD_NUMBER, ODD_TEXT)
    elif said.get("type") in ("integer", "number", "boolean"):
        yield ODD_TEXT
    elif said.get("type") == "array":
        yield from (ODD_TEXT, None)
