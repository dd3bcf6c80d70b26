"""Groups of steps by two accounts of an API, what they need made before, and rows of several. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fleet.drivers.desk import Question
from fleet.drivers.explore.account.api_inputs import (
    MARK,
    OperationInputs,
    Planted,
    Row,
    list_of,
    refers,
    stem,
)
from fleet.drivers.explore.account.api_methods import addresses
from fleet.drivers.explore.account.api_rows import AccountRows, bare_request
from fleet.drivers.explore.account.bodies import filled
from fleet.drivers.explore.state_changes import names_act
from fleet.oracles.account.tokens import leaves
from fleet.oracles.documents.json_schema import resolved
from fleet.oracles.documents.openapi import Operation, fields_of
from sandbox.sites.idents import IDENTS, snake
from sandbox.tools.qa_account import MAX_STEPS

_TOLD = re.compile(r"\{(?:(?:one|other)\.|listed|was\}|refresh\})")
"""Words for what an answer said."""
THING = re.compile(r"\{id-(\d+)\}")
ME = re.compile(
    r"(?i)(?:/(?:me|self|whoami|profile|account|user)|#(?:me|viewer|whoami|currentUser|profile))$"
)
CHANGES = re.compile(r"#(?:delete|remove|update|edit|change|set)")
_DEPOSITS = re.compile(
    r"(?i)[/#](?:top[-_]?ups?|deposits?|recharges?|fund(?:s|ing)?|add[-_]?(?:funds|money|credits?))/?$"
)
"""Where an account puts money on its balance."""
_PAID = re.compile(r"(?i)\bpaid (?:from|by|with|out of) (?:\w+ )?(?:wallet|balance|account|credits?|funds)\b")
PLENTY = 10_000
"""What is put there where the description states no bound, in the smallest unit."""


def askable(rows: AccountRows, *methods: str, lent: bool = False) -> Iterator[OperationInputs]:
    """The operations by these methods that may be asked, but for those that make accounts and sessions;
    `lent`: those of the description whose accounts are lent as well."""
    doors = {rows.start["url"], rows.start.get("login")}
    for one in rows.operations.values():
        at = rows.placed(one.path)
        known = {rows.places.url(one.path), at} & doors
        acts = one.method == "GET" or rows.places.may_act(rows.places.url(one.path))
        safe = one.method == "DELETE" or "#" in at or not names_act(at)
        safe &= not leaves(one.method, at, rows.start.get("login", ""))  # what follows would have no session
        if one.method in methods and acts and not known and safe:
            yield OperationInputs.of(one, at)
    if lent and rows.lender is not None:
        yield from askable(rows.lender, *methods)


def question(rows: AccountRows, steps: list[Row]) -> Iterator[Question]:
    """One call for as many steps as one may have."""
    if steps:
        asked = rows.asked(steps[:MAX_STEPS])
        yield Question((rows.source, *asked.steps), minimal=True, apart=apart(steps[:MAX_STEPS]))


def apart(steps: list[Row]) -> tuple[tuple[int, ...], ...]:
    """The steps on which no other depends (`Question.apart`): what is read after the last word that stands
    for something read."""
    told = max((at for at, step in enumerate(steps) if _TOLD.search(str(step[2:]))), default=-1)
    return tuple((at,) for at in range(told + 1, len(steps)) if steps[at][1] == "GET")


def packed(rows: AccountRows, groups: Iterable[tuple[list[Row], OperationInputs]]) -> Iterator[Question]:
    """Groups of steps that do not depend on each other, as few calls as may be: each makes accounts. What was
    asked as accounts of another role, and served, is not asked again."""
    row, made = list[Row](), 0
    for steps, one in groups:
        if settled(rows, one):
            continue
        making_first = next((step for step in steps if step[1] == "POST"), None)
        # a thing of the same name may be refused the second time
        if row and (len(row) + len(steps) > MAX_STEPS or making_first in row):
            yield from question(rows, row)
            row, made = [], 0
        row += shifted(steps, made)
        made += sum(step[0] in ("one", "other") and step[1] == "POST" for step in steps)
    yield from question(rows, row)


def settled(rows: AccountRows, one: OperationInputs) -> bool:
    """Whether an account of another role was served it."""
    return bare_request(one.operation.method, one.at) in rows.settled


def shifted(steps: list[Row], by: int) -> list[Row]:
    """The steps with the numbers that their things have after so many others."""

    def number(word: re.Match[str]) -> str:
        return f"{{id-{int(word[1]) + by}}}"

    shifted: list[Row] = json.loads(THING.sub(number, json.dumps(steps)))
    return shifted


def waits(one: OperationInputs, known: Mapping[str, Any]) -> bool:
    """Whether a path has a value that nothing is known for."""
    return any(where == "path" and name not in known for name, (where, _) in one.all.items())


def making(rows: AccountRows) -> list[OperationInputs]:
    """What makes something from a text of ours, or of something else, or something that is read by its id;
    and what puts money on a balance. Those without a value in the path come first, then those that need the
    fewest others. A description's own come before those of the one whose accounts are lent."""
    found = [one for one in askable(rows, "POST", lent=True) if not CHANGES.search(one.at)]
    read = {list_of(one.at) for one in askable(rows, "GET", lent=True) if "{" in one.at}
    found = [
        one
        for one in found
        if one.texts()
        or addresses(one)
        or any(map(refers, _names(one)))
        or (one.operation.states(201) and one.at in read)
        or deposit(one, "one")
    ]
    found = [one for one in found if bare_request(one.operation.method, one.at) not in rows.refused]
    needs = {one.at: sum(_needs(one, other) for other in found if other is not one) for one in found}
    return sorted(found, key=lambda one: (one.at.count("{"), needs[one.at]))


def _needs(one: OperationInputs, maker: OperationInputs) -> bool:
    """Whether an input names what the other makes."""
    return MARK in Planted({stem(maker.at): MARK}).values(one, account=False).values()


def deposit(one: OperationInputs, who: str) -> Row | None:
    """As much money on the account's balance as one request may put there; None for what does not do so."""
    amounts = list(one.of_kind("integer", "number"))
    if not _DEPOSITS.search(one.at) or "{" in one.at or len(amounts) != 1:
        return None
    most = one.all[amounts[0]][1].get("maximum")
    return one.row(who, {amounts[0]: most if type(most) is int else PLENTY})


def costs(one: OperationInputs) -> bool:
    """Whether it is paid from a balance, by its description."""
    return one.operation.states(402) or bool(_PAID.search(one.operation.text))


def _names(one: OperationInputs) -> list[str]:
    """What its inputs are called, and the fields of objects in its lists."""
    items = (resolved(said.get("items"), one.operation.document) for _, said in one.all.values())
    inner = (fields_of(said, one.operation.document)[0] for said in items if said)
    return [*one.all, *(name for fields in inner for name in fields)]


def prepared(
    one: OperationInputs, makers: list[OperationInputs], lists: Mapping[str, str], left: int = 2
) -> tuple[list[Row], dict[str, Any]]:
    """What `one` makes first, with what that needs, so that an operation can name it; the inputs that do.
    What it cannot make is the first thing of a list, where the operation changes no thing."""
    planted, steps = Planted(lists=lists), list[Row]()
    for maker in (each for each in makers if each is not one and left):
        name, pays = stem(maker.at), deposit(maker, "one") if costs(one) else None
        if name in planted.made or not (pays or _needs(one, maker)):
            continue
        before, above = prepared(maker, [each for each in makers if each is not one], lists, left - 1)
        if waits(maker, above) or (row := pays or maker.row("one", above)) is None:
            continue
        steps += shifted([*before, row], sum(step[1] == "POST" for step in steps))
        planted.made[name] = f"{{id-{sum(step[1] == 'POST' for step in steps)}}}"
    listed = planted.listed(one)
    entries = {
        name: [entry_of(one, name, lists)] for name in one.of_kind("array") if entry_ids(one, name, lists)
    }
    places = [word[8:-1] for word in listed.values()]
    places += [at for name in entries for at in entry_ids(one, name, lists).values()]
    looks: list[Row] = [["one", "GET", at, {}] for at in dict.fromkeys(places)]
    return [*looks, *steps], entries | listed | planted.values(one, account=False)


def entry_fields(one: OperationInputs, name: str) -> Mapping[str, Any]:
    """The schemas of the fields of the objects in a list that it takes."""
    return fields_of(one.all[name][1].get("items"), one.operation.document)[0]


def entry_ids(one: OperationInputs, name: str, lists: Mapping[str, str]) -> dict[str, str]:
    """The fields of these objects that name something of a list, with its path."""
    fields = entry_fields(one, name)
    return {field: at for field in fields if refers(field) and (at := lists.get(stem(field)))}


def entry_of(one: OperationInputs, name: str, lists: Mapping[str, str], number: int = 1) -> dict[str, Any]:
    """One object of such a list, about the first or the second thing of each list that it names."""
    made: dict[str, Any] = {}
    ids = entry_ids(one, name, lists)
    for field, said in entry_fields(one, name).items():
        value = filled(field, said, one.operation.document, entering=False)
        if field in ids:
            value = f"{{listed{'-2' * (number == 2)}:{ids[field]}}}"
        elif refers(field) and type(value) is int:
            value += number - 1
        if value is not None:
            made[field] = value
    return made


def answered(one: Operation) -> dict[str, Any]:
    """The fields of what an operation answers, by its description; below one that only wraps them."""
    for status in (200, 201, "default"):
        media = one.media(status).get("application/json")
        schema = media.get("schema") if isinstance(media, dict) else None
        if schema is not None and (found := dict(fields_of(schema, one.document)[0])):
            inner = dict(fields_of(next(iter(found.values())), one.document)[0]) if len(found) == 1 else {}
            return inner or found
    return {}


def listing(rows: AccountRows) -> dict[str, str]:
    """The paths of lists that need nothing, by what is in them."""
    found = [one for one in askable(rows, "GET") if not one.required and "{" not in one.at]
    return {stem(one.at): one.at for one in reversed(found)}


def own_ids(rows: AccountRows) -> frozenset[str]:
    """The names of fields in what an account is answered about itself, also as `snake` has them; `team_id`
    for the id of an object in it."""
    told = [one for one in rows.operations.values() if rows.places.url(one.path) == rows.start["url"]]
    told += [one.operation for one in askable(rows, "GET") if ME.search(one.at) and not one.required]
    names = set[str]()
    for one in told:
        for name, said in answered(one).items():
            inner = fields_of(said, one.document)[0]
            names |= {name, snake(name), *(f"{snake(name)}_{ident}" for ident in IDENTS if ident in inner)}
    return frozenset(names)
