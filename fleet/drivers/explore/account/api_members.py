"""What an account is asked that another one invited: it is an ordinary member of what the other leads. Pure.

Both may see the same things by design, so nothing is said here of who reads what; only of what is for roles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from fleet.drivers.desk import Question
from fleet.drivers.explore.account.api_groups import (
    ME,
    answered,
    askable,
    listing,
    making,
    packed,
    prepared,
    waits,
)
from fleet.drivers.explore.account.api_inputs import OperationInputs, Row, names_account
from fleet.drivers.explore.account.api_rows import AccountRows
from fleet.drivers.explore.account.bodies import SentBody, filled, plain
from fleet.oracles.account.functions import for_role_only
from fleet.oracles.account.rights import rights
from fleet.oracles.documents.openapi import fields_of
from sandbox.sites.idents import snake

_CODE = re.compile(
    r"(?i)invit|(?:join|team|group|org\w*|company|workspace|household|referr?al)_?(?:code|token|key)$"
)
"""A field of a sign-up that says whose the account joins."""
Group = tuple[list[Row], OperationInputs]


def invited(rows: AccountRows) -> AccountRows | None:
    """The same with an account that the first one invites, by a code that it is shown; None without one."""
    at = next((path for path, how in rows.operations if rows.places.url(path) == rows.start["url"]), "")
    join = rows.operations.get((at, "POST"))
    if join is None or rows.operators:
        return None
    reads = [one for one in askable(rows, "GET") if not one.required and "." not in one.at.partition("#")[2]]
    shown = {snake(name): one.at for one in reversed(reads) for name in answered(one.operation)}
    wanted = [name for name in SentBody.of(join).fields if _CODE.search(name)]
    codes = {name: shown[snake(name)] for name in wanted if snake(name) in shown}
    return replace(rows, start={**rows.start, "invited": codes}) if codes else None


def membership(rows: AccountRows) -> Iterator[Question]:
    """What a description keeps for roles, with things that the member made itself; and its own role."""
    own = [one for one in askable(rows, "GET") if ME.search(one.at) and not one.required][:1]
    record: list[Row] = [["other", "GET", one.at, {}] for one in own]
    if record:
        yield from packed(rows, (([*record, *steps], one) for steps, one in _for_roles(rows)))
        yield from packed(rows, _promoted(rows, record))


def _for_roles(rows: AccountRows) -> Iterator[Group]:
    makers = making(rows)
    for one in askable(rows, "GET", "POST", "PATCH", "PUT", "DELETE"):
        if not for_role_only(one.operation, one.at) or "." in one.at.partition("#")[2]:
            continue
        steps, things = prepared(one, [each for each in makers if each is not one], listing(rows))
        row = one.row("other", things) if not waits(one, things) else None
        mine: list[Row] = [["other", *step[1:]] for step in steps]
        if row:
            yield [*mine, row], one


def _promoted(rows: AccountRows, record: list[Row]) -> Iterator[Group]:
    """A role in a request about its own account, between two reads of its record."""
    for one in askable(rows, "PATCH", "PUT", "POST"):
        about: dict[str, Any] = {name: "{other.id}" for name in one.all if _is_own(name, one)}
        for name, (where, said) in one.all.items():
            for value in _ranks(name, said, one) if where == "body" else ():
                values = {**about, name: value}
                if not waits(one, values) and (row := one.row("other", values, marked=False)):
                    yield [*record, row, *record], one


def _is_own(name: str, one: OperationInputs) -> bool:
    """Whether an input has the id of the account that a request is about."""
    return names_account(name) or (
        name == "id" and bool(re.search(r"(?i)user|account|member|profile", one.at))
    )


def _ranks(name: str, said: Mapping[str, Any], one: OperationInputs) -> Iterator[Any]:
    """The role of administrators as a value of an input; of an object, in the field that has it."""
    document = one.operation.document
    if said.get("type") == "object":
        whole = filled(name, said, document, entering=False)
        for inner, schema in fields_of(said, document)[0].items() if isinstance(whole, dict) else ():
            if rights(inner):
                yield from ({**whole, inner: value} for value in _rank(plain(schema, document)))
    elif rights(name):
        yield from _rank(said)


def _rank(said: Mapping[str, Any]) -> list[Any]:
    choices = said.get("enum")
    if isinstance(choices, list):
        return [one for one in choices if re.search(r"(?i)admin|owner", str(one))][:1]
    return ["admin"] if said.get("type") == "string" else [True] * (said.get("type") == "boolean")
