"""What accounts of an API are asked by other methods, and about addresses that its server may fetch. Pure.

Nothing of others is changed: a thing that an account did not make is sent the values that it has already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from fleet.drivers.explore.account.api_inputs import OperationInputs, Planted, Row, list_of
from fleet.drivers.explore.account.bodies import names_address
from fleet.drivers.explore.listened import heard
from fleet.drivers.explore.state_changes import ends_or_spends

_BESIDE = {"PUT": "PATCH", "PATCH": "PUT"}


def by_get(every: list[OperationInputs], planted: Planted) -> list[Row]:
    """Reads of one's own things whose path ends something by its words."""
    found = (
        one.row("one", planted.values(one))
        for one in every
        if one.operation.method == "GET" and "#" not in one.at and ends_or_spends(one.at.rpartition("}")[2])
    )
    return [row for row in found if row and "{id-" in row[2]]


def beside(every: list[OperationInputs]) -> Iterator[tuple[OperationInputs, list[Row]]]:
    """A thing of everybody's, the first of its list: the method that changes it, then one that no description
    has, by an account without a role, each with the values that the thing has already."""
    by_place = {(one.operation.method, one.at): one for one in every}
    for (method, at), one in by_place.items():
        other, above = _BESIDE.get(method, ""), list_of(at)
        read, listed = by_place.get(("GET", at)), by_place.get(("GET", above))
        if not other or (other, at) in by_place or at.count("{") != 1 or not read or not listed:
            continue
        needed = one.required or frozenset(one.all)
        thing = {name: "{listed}" for name, (where, _) in one.all.items() if where == "path"}
        sent = {name: "{was}" for name, (where, _) in one.all.items() if where == "body" and name in needed}
        steps = [
            listed.row("other", {}, marked=False),
            read.row("other", thing),
            one.row("other", thing | sent),
        ]
        if sent and (row := [step for step in steps if step]) and len(row) == len(steps):
            yield one, [*row, ["other", other, *row[-1][2:]]]


def fetched(
    one: OperationInputs, values: Mapping[str, Any], uses: list[OperationInputs], made: int, *, listens: bool
) -> list[Row]:
    """Inputs that name an address: of the platform's own machine an open port and a closed one, in turn;
    then the fleet's listener, if there is one, and what may ask for the address that a thing has. `uses` are
    the requests below the thing that need nothing but its id; `made` things come before in the row."""
    found = list[Row]()
    for name in addresses(one):
        told = [heard(Random(f"{one.at} {name}"))] * listens
        for address in (*("{loopback}", "{closed}") * 2, *told):
            found += [row for row in [one.row("one", {**values, name: address})] if row]
        thing = f"{{id-{made + sum(row[1] == 'POST' for row in found)}}}"
        for use in uses if told and found else ():
            ident = re.findall(r"\{([^{}]+)\}", use.at)[-1]
            found += [row for row in [use.row("one", {**values, ident: thing})] if row]
    return found


def addresses(one: OperationInputs) -> list[str]:
    """The names of its inputs that name one."""
    texts = ((name, *one.all[name]) for name in one.of_kind("string"))
    return [name for name, where, said in texts if where in ("query", "body") and names_address(name, said)]
