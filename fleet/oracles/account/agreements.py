"""Oracles of what an account is answered beside what it sent: sums, repeats, wrong types, statuses. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from fleet.oracles.account.inputs import at_input, sent_fields, varied
from fleet.oracles.account.rows import NONE, PlayedStep, described, description, on, oracle, played, row
from fleet.oracles.documents.json_schema import resolved
from fleet.oracles.documents.openapi import Operation
from fleet.oracles.model import Exchange, Facts, Observation, observed
from fleet.severity import Severity
from sandbox.sites.idents import IDENTS

ODD_TEXT, ODD_NUMBER = "qa-someday", 5
"""What is sent in place of another type, or of a text of a certain form."""
REPEAT_KEY = re.compile(r"(?i)(?:x-)?idempoten(?:cy|t)(?:-?key)?")
"""The header by which a request says that it is one that may have been sent before."""
_UNIT = r"(?:_?(?:amount|price|cents?|minor|euros?|value))?"
_TOTAL = re.compile(rf"(?i)(?:grand_?|order_?|invoice_?)?total{_UNIT}|amount_?due|sum{_UNIT}")
_SUBTOTAL = re.compile(rf"(?i)sub_?total{_UNIT}|(?:items|lines|goods)_?total{_UNIT}")
_LESS = re.compile(rf"(?i)(?:total_?)?(?:discount|rebate|voucher|coupon|reduction){_UNIT}")
_MORE = re.compile(
    rf"(?i)(?:total_?)?(?:shipping|delivery|postage|tax|vat|fee|service|tip)(?:_?(?:fee|cost|total))?{_UNIT}"
)
_PRICE = re.compile(r"(?i)price|cents|amount|cost|rate|value")
QUANTITY = re.compile(r"(?i)^(?:quantity|qty|count|units|pieces|hours|number)$")


def numbers(step: PlayedStep) -> dict[str, float]:
    """The numbers of an answer by the last part of their names, the outermost first."""
    found: dict[str, float] = {}
    for name, value in sorted(step.facts.items(), key=lambda one: one[0].count(".")):
        if re.fullmatch(r"-?\d{1,12}(?:\.\d{1,6})?", str(value)):
            found.setdefault(name.rpartition(".")[2], float(str(value)))
    return found


def _named(known: Mapping[str, float], form: re.Pattern[str]) -> list[float]:
    return [value for name, value in known.items() if form.fullmatch(name)]


def lines_of(step: PlayedStep) -> list[dict[str, Any]]:
    """The one list of objects that a step sends."""
    lists = [one for one in step.given.values() if isinstance(one, list | tuple) and one]
    lists += [
        two
        for one in step.given.values()
        if isinstance(one, Mapping)
        for two in one.values()
        if isinstance(two, list | tuple) and two
    ]
    tables = [one for one in lists if all(isinstance(entry, Mapping) for entry in one)]
    return [dict(one) for one in tables[0]] if len(tables) == 1 else []


def _adds_up(step: PlayedStep) -> bool | None:
    """Whether a total is its subtotal with what is taken off and added; None without such sums."""
    known = numbers(step)
    total, subtotal = _named(known, _TOTAL), _named(known, _SUBTOTAL)
    if len(total) != 1 or len(subtotal) != 1:
        return None
    return abs(subtotal[0] - sum(_named(known, _LESS)) + sum(_named(known, _MORE)) - total[0]) < 0.011


def _is_sum_of_lines(step: PlayedStep) -> bool | None:
    """Whether a sum in the answer is that of what was sent: of quantities and prices, line by line."""
    sent = 0.0
    for entry in lines_of(step):
        many = [value for name, value in entry.items() if QUANTITY.match(name) and type(value) is int]
        price = [
            value for name, value in entry.items() if _PRICE.search(name) and type(value) in (int, float)
        ]
        if len(many) != 1 or len(price) != 1:
            return None
        sent += many[0] * price[0]
    known = numbers(step)
    sums = _named(known, _SUBTOTAL) or _named(known, _TOTAL)
    return abs(sums[0] - sent) < 0.011 if len(sums) == 1 and sent else None


def _summing(total: int) -> tuple[Exchange, ...]:
    def facts(subtotal: int, shown: int) -> dict[str, str]:
        return {"subtotal": str(subtotal), "shipping": "5", "total": str(shown)}

    one, two = [{"item_id": 1, "quantity": 1}], [{"item_id": 1, "quantity": 3}, {"item_id": 2, "quantity": 1}]
    return row(
        ("other", "POST", "/api/orders", {"lines": one}, NONE | {"facts": facts(10, 15)}),
        ("other", "POST", "/api/orders", {"lines": two}, NONE | {"facts": facts(40, total)}),
    )


@oracle(
    id="account-sum",
    says="the sums of an answer agree: with its other sums, with what was sent, and with a quote",
    severity=Severity.HIGH,
    example=_summing(25),
    control=_summing(45),
)
def account_sum(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Two requests of one kind, with one line and with several: what holds of the first does not hold of the
    second. Or a quote and what it is for: of one line they have the same sums, of several they have not."""
    steps, told = [one for one in played(seen[-1]) if one.good and lines_of(one)], set[str]()
    for few, many in pairwise(steps):
        alike = (few.method, few.path, few.who) == (many.method, many.path, many.who)
        if not alike or len(lines_of(few)) != 1 or len(lines_of(many)) < 2 or few.plain in told:
            continue
        what = ""
        if _adds_up(few) and _adds_up(many) is False:
            what = "the total of several lines is not that of its parts"
        elif _is_sum_of_lines(few) and _is_sum_of_lines(many) is False:
            what = "the sum of several lines is not that of the lines"
        elif other := _quoted(steps, few, many):
            what = f"the total of several lines is not that of {other.called}"
        if what:
            told.add(few.plain)
            where = on(seen[-1], few.plain, few.method)
            yield observed(f"{few.called}: {what}", f"account-sum {few.plain}", "answers", where=where)
            return


def _quoted(steps: Sequence[PlayedStep], few: PlayedStep, many: PlayedStep) -> PlayedStep | None:
    """The quote that has another total for several lines, and the same for one."""

    def total(step: PlayedStep) -> list[float]:
        return _named(numbers(step), _TOTAL)

    for one, two in pairwise(steps):
        if one.path == few.path or one.path != two.path or not one.path.startswith(f"{few.path}/"):
            continue
        same = (lines_of(one), lines_of(two)) == (lines_of(few), lines_of(many))
        totals = [total(step) for step in (few, one, many, two)]
        if (
            same
            and all(len(each) == 1 for each in totals)
            and totals[0] == totals[1]
            and totals[2] != totals[3]
        ):
            return one
    return None


def _repeating(second: str) -> tuple[Exchange, ...]:
    key = {"name": "Idempotency-Key", "in": "header"}
    lead = description(more={"/api/orders": {"post": {"parameters": [key]}}})
    made = [
        ("one", "POST", "/api/orders", {"header Idempotency-Key": word}, NONE | {"facts": {"id": ident}})
        for word, ident in (("{mark}", "7"), ("{mark}", second), ("{tag}", "9"))
    ]
    return (lead, *row(*made))


@oracle(
    id="account-repeated",
    says="a request with the key of an earlier one makes nothing new",
    severity=Severity.MEDIUM,
    example=_repeating("8"),
    control=_repeating("7"),
)
def account_repeated(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: it takes a key for repeats. Two requests with one key make two things, as one
    with another key makes a third."""
    steps = played(seen[-1])
    for first, again, other in zip(steps, steps[1:], steps[2:], strict=False):
        keys = [
            next((str(value) for name, value in one.given.items() if REPEAT_KEY.search(name)), "")
            for one in (first, again, other)
        ]
        idents = [_ident(one) for one in (first, again, other)]
        kept = first.same(again) and keys[0] and keys[0] != keys[2] and other.path == first.path
        if not kept or not all(one.good for one in (first, again, other)) or len({*idents, ""}) != 4:
            continue
        if led := [at for at, one in described(seen, first.path, first.method) if repeat_key(one)]:
            where = on(seen[-1], first.plain, first.method)
            title = f"{first.called} makes a second thing for the same key"
            yield observed(title, f"account-repeated {first.plain}", "answers", led=(led[-1],), where=where)
            return


def repeat_key(one: Operation) -> str:
    """The header of an operation by which a repeat is known; "" for none."""
    names = (str(said.get("name", "")) for said in one.parameters if said.get("in") == "header")
    return next(filter(REPEAT_KEY.fullmatch, names), "")


def _ident(step: PlayedStep) -> str:
    """The id of what was made, by the outermost name of one."""
    found = [name for name in step.facts if name.rpartition(".")[2] in IDENTS]
    return str(step.facts[min(found, key=lambda name: name.count("."))]) if found else ""


def _failing(status: int) -> tuple[Exchange, ...]:
    plain: dict[str, Any] = {"text": "{mark}"}
    sent = (plain, {**plain, "coupon": ODD_NUMBER}, plain)
    got = (NONE, NONE | {"status": status}, NONE)
    return row(*(("one", "POST", "/api/quotes", one, two) for one, two in zip(sent, got, strict=True)))


@oracle(
    id="account-fails",
    says="a value of another type, or form, is refused",
    severity=Severity.MEDIUM,
    example=_failing(500),
    control=_failing(422),
)
def account_fails(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The request is served without the value before and after it, and answers 500 with it."""
    steps, told = played(seen[-1]), set[str]()
    for at, step in enumerate(steps):
        if step.status != 500:
            continue
        before, after = (
            [
                one
                for one in some
                if one.good and (one.method, one.path, one.who) == (step.method, step.path, step.who)
            ]
            for some in (steps[:at], steps[at + 1 :])
        )
        plain = [one for one in before if any(one.same(again) for again in after)]
        names = [name for one in plain if (name := _odd_one(one, step))]
        if names and f"{step.plain} {names[0]}" not in told:
            told.add(f"{step.plain} {names[0]}")
            value = dict(sent_fields(step.given))[names[0]]
            kind = {ODD_NUMBER: "a number", None: "null"}.get(value, "a text without its form")
            yield at_input(seen, step, names[0], f"{kind} answers 500", "account-fails")


def bounds(said: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """The bounds of a whole number by its schema, each with the value beside it that is permitted too."""
    if {"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum", "const"} & said.keys():
        return
    least, most = said.get("minimum"), said.get("maximum")
    if type(most) is int and not (type(least) is int and most - least < 2):
        yield most, most - 1
    if type(least) is int and not (type(most) is int and most - least < 2):
        yield least, least + 1


def _at_bound(status: int) -> tuple[Exchange, ...]:
    schema = {"type": "object", "properties": {"grams": {"type": "integer", "maximum": 30_000}}}
    body = {"content": {"application/json": {"schema": schema}}}
    lead = description(more={"/api/quotes": {"post": {"requestBody": body}}})
    sent = ((30_000, status), (29_999, 201), (30_000, status))
    made = (("one", "POST", "/api/quotes", {"grams": grams}, NONE | {"status": got}) for grams, got in sent)
    return (lead, *row(*made))


@oracle(
    id="account-bound",
    says="a number at the bound that a description states is accepted",
    severity=Severity.LOW,
    example=_at_bound(422),
    control=_at_bound(201),
)
def account_bound(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: a number at its bound is refused twice, as not valid, and the number beside
    it is accepted in between."""
    steps, told = played(seen[-1]), set[str]()
    for first, inner, again in zip(steps, steps[1:], steps[2:], strict=False):
        found = varied(first, inner)
        refused = first.same(again) and first.status == again.status and first.status in (400, 422)
        if not found or not refused or not inner.good:
            continue
        name, *sent = found[0], *(_whole(one) for one in found[1:])
        for at, one in described(seen, first.path, first.method):
            schemas = {str(said.get("name")): said.get("schema") for said in one.parameters} | dict(
                one.fields
            )
            if (
                tuple(sent) in list(bounds(resolved(schemas.get(name), one.document)))
                and one.where not in told
            ):
                told.add(one.where)
                title = f"{first.called} refuses {name} = {sent[0]}, which its description permits"
                where = on(seen[-1], first.plain, first.method) | {"field": name}
                key = f"account-bound {first.plain} {name}"
                yield observed(title, key, "answers", led=(at,), where=where)


def _whole(value: object) -> int | None:
    """A whole number, as a query has it too."""
    text = str(value)
    return int(text) if re.fullmatch(r"-?\d{1,15}", text) else None


def _odd_one(plain: PlayedStep, step: PlayedStep) -> str:
    """The one value in which a request differs, where that is one of ours; "" for none."""
    before, after = dict(sent_fields(plain.given)), dict(sent_fields(step.given))
    differ = [name for name, value in after.items() if name not in before or before[name] != value]
    if len(differ) != 1:
        return ""
    value, gone = after[differ[0]], before.keys() - after.keys()
    inner = value is None and all(name.startswith(f"{differ[0]}.") for name in gone)
    odd = value in (ODD_TEXT, ODD_NUMBER) and not gone
    return differ[0] if odd or inner else ""


def _answering(status: int) -> tuple[Exchange, ...]:
    lead = description(more={"/api/things": {"post": {"responses": {"201": {"description": "made"}}}}})
    return (lead, *row(("one", "POST", "/api/things", {"text": "{mark}"}, NONE | {"status": status})))


@oracle(
    id="account-status",
    says="an operation succeeds for an account with a status that its description lists",
    severity=Severity.LOW,
    example=_answering(200),
    control=_answering(201),
)
def account_status(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: it lists successes of the operation, and the one that is answered is none."""
    told = set[str]()
    for step in played(seen[-1]):
        if not step.good or "#" in step.path or step.who not in ("one", "other"):
            continue
        for at, one in described(seen, step.path, step.method):
            listed = any(status.startswith("2") for status in one.statuses) and "DEFAULT" not in one.statuses
            said = one.states(step.status) or re.search(rf"\b{step.status}\b", one.text)
            if listed and not said and one.where not in told:
                told.add(one.where)
                title = f"{step.called} answers {step.status}, which is not described"
                key = f"account-status {step.plain} {step.status}"
                where = on(seen[-1], step.plain, step.method)
                yield observed(title, key, "answers", led=(at,), where=where)
