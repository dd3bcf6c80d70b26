"""Things that an account of an API makes with its mark, and each request that can name one of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fleet.drivers.desk import Question
from fleet.drivers.explore.account.api_groups import (
    CHANGES,
    ME,
    THING,
    askable,
    costs,
    deposit,
    listing,
    making,
    own_ids,
    packed,
    prepared,
    question,
    settled,
    waits,
)
from fleet.drivers.explore.account.api_inputs import (
    ONE,
    TAG,
    USER,
    OperationInputs,
    Planted,
    Row,
    list_of,
    stem,
)
from fleet.drivers.explore.account.api_methods import by_get
from fleet.drivers.explore.account.api_rows import AccountRows
from fleet.drivers.explore.state_changes import ends_or_spends
from fleet.oracles.account.functions import RECOVERS, for_role
from fleet.oracles.account.inputs import ENDING
from sandbox.sites.accounts import ACCOUNTS
from sandbox.tools.qa_account import MAX_STEPS

SEARCH = re.compile(r"(?i)^(?:q|query|search|search_?(?:term|text)|terms?|text|keywords?|find)$")
"""A parameter of a list that looks for a text in it."""
MADE, LISTS, ENDS = 8, 4, 4
"""Of one run: things made at once, lists looked at, reads whose path ends something."""


def planted_rows(rows: AccountRows) -> Iterator[Question]:
    """Things with one's mark, then every request that can name one of them or its account: as one, as a
    visitor, and as the other; last, what removes them."""
    every = list(askable(rows, "GET", "POST", "PATCH", "PUT", "DELETE"))
    lists = [one for one in every if one.operation.method == "GET" and not one.required and "{" not in one.at]
    planted = Planted(seen=own_ids(rows), lists=listing(rows), role=rows.role.lower())
    steps, number, used = list[Row](), 0, list[OperationInputs]()
    reads = {one.at for one in every if one.operation.method == "GET" and "{" in one.at}
    near: list[Row] = []
    """Lists below a thing, where what was made there is read."""
    makers = list(_makers(rows, every, lists))
    if any(map(costs, makers)):
        pays = [deposit(one, who) for one in every for who in ACCOUNTS]
        steps += [row for row in pays if row][: len(ACCOUNTS)]
        number = len(steps)
    for one in makers if not all(settled(rows, one) for one in makers) else ():
        listed = planted.listed(one)
        looked: list[Row] = [["one", "GET", word[8:-1], {}] for word in listed.values()]
        steps += [each for each in looked if each not in steps]
        above = listed | planted.values(one, account=False)
        if waits(one, above) or number >= MADE:
            continue
        own = _own_names(one, every)
        if (row := one.row("one", above | own)) is None:
            continue
        used.append(one)
        steps.append(row)
        near += [
            each for each in ([["one", "GET", row[2], {}]] if one.at in reads else []) if each not in near
        ]
        number += 1
        planted.named |= set(own)
        planted.made[stem(one.at)] = f"{{id-{number}}}"
        if above:
            steps.append(["other", *row[1:]])
            number += 1
    lists.sort(key=lambda one: stem(one.at) not in planted.made)
    looks: list[Row] = [*(["one", "GET", one.at, {}] for one in lists[:LISTS]), *near[:LISTS]]
    looks.sort(key=lambda look: stem(look[2]) not in planted.made)
    # by three each, then once before and once after what is asked
    del looks[max(1, (MAX_STEPS - len(steps) - 2) // 5) :]
    record: list[Row] = [["other", "GET", one.at, {}] for one in lists if ME.search(one.at)]
    steps += [[who, *look[1:]] for look in looks for who in ("one", "other", "anonymous")] if steps else []
    steps += [look for look in record[:1] if steps and look not in steps]
    refers, changes = _referring(every, planted, used, _searches(lists))
    if not steps:
        return
    row = list(steps)
    for group in refers:
        if len(row) > len(steps) and len(row) + len(group) > MAX_STEPS:
            yield from question(rows, row)
            row = list(steps)
        row += group
    yield from question(rows, row)
    private = [group[2] for group in refers if group[0][1] == "GET" and "{" in group[0][2]]
    for join in _admissions(every, planted)[:ENDS]:
        yield from question(rows, [*steps, *private[:ENDS], join, *private[:ENDS]])
    ends = by_get(
        [OperationInputs.of(one, rows.placed(one.path)) for one in rows.operations.values()], planted
    )
    for end in ends[:ENDS]:
        yield from question(rows, [*steps, *looks, end, *looks])
    yield from _changed(rows, steps, changes, looks)


def _makers(
    rows: AccountRows, every: list[OperationInputs], lists: list[OperationInputs]
) -> Iterator[OperationInputs]:
    """What makes things that are read somewhere, but for what only a role makes: by its words, or because it
    may be forbidden and anybody reads the list of it."""
    reading = {stem(list_of(one.at)) for one in every if one.operation.method == "GET"}
    open_lists = {one.at for one in lists if not one.operation.secured}
    for one in making(rows):
        a_role_only = for_role(one.operation, one.at) or (one.operation.states(403) and one.at in open_lists)
        read = stem(one.at.partition("/{")[0]) in reading or "{" in one.at
        if read and not a_role_only and not ENDING.search(one.at):
            yield one


def _own_names(one: OperationInputs, every: list[OperationInputs]) -> dict[str, str]:
    """The texts of a new thing by which paths name it; one text at least is left for the mark."""
    near = [other for other in every if other.operation.method == "GET"]
    near = [
        other
        for other in near
        if other.at.startswith(f"{one.at}/{{") or stem(other.at.partition("/{")[0]) == stem(one.at)
    ]
    parts = {name for other in near for name, (where, _) in other.all.items() if where == "path"}
    names = [name for name in one.texts() if name in parts]
    return dict.fromkeys(names[: len(one.texts()) - 1], "{tag}")


def _searches(lists: list[OperationInputs]) -> dict[str, Row]:
    """Searches of the other for what one made, by the path of the list that is searched."""
    found = dict[str, Row]()
    for one in lists:
        name = next((name for name in one.texts() if SEARCH.match(name) and one.all[name][0] == "query"), "")
        if name and (row := one.row("other", {name: "{one-part}"}, marked=False)):
            found[one.at] = row
    return found


def _referring(
    every: list[OperationInputs],
    planted: Planted,
    used: list[OperationInputs],
    searches: Mapping[str, Row],
) -> tuple[list[list[Row]], list[Row]]:
    """The requests that can name what was made, or its account: as one, a visitor and the other, together,
    with a search of the list that has it; and those that change or remove it. They are added to `used`."""
    refers, changes = list[list[Row]](), list[Row]()
    for one in every:
        values = planted.values(one)
        if not values or one in used or waits(one, values) or (row := one.row("one", values)) is None:
            continue
        acts = re.sub(r"\{[^{}]+\}", "", one.at)  # the name of a value, `orderId`, says nothing of it
        if one.operation.method == "GET" and ends_or_spends(acts):
            continue  # asked by itself
        used.append(one)
        if (
            one.operation.method in ("DELETE", "PATCH", "PUT")
            or CHANGES.search(one.at)
            or ENDING.search(acts)
        ):
            changes.append(row)
        elif any(word in str(row) for word in ("{id-", TAG, ONE, "{one.")) and not RECOVERS.search(one.at):
            group = [row, ["anonymous", *row[1:]], ["other", *row[1:]]]
            if ONE in str(row[3]) and (bare := one.row("one", {})) and bare[2] == row[2]:
                group += [bare, ["other", *bare[1:]]]
            if one.operation.method == "GET" and one.at.endswith("}") and list_of(one.at) in searches:
                group.append(searches[list_of(one.at)])
            refers.append(group)
    return refers, changes


def _admissions(every: list[OperationInputs], planted: Planted) -> list[Row]:
    """Requests of the other that name a thing of one's, and its own account."""
    found: list[Row] = []
    for one in every:
        values = planted.values(one)
        own = {name: word.replace("{one.", "{other.") for name, word in values.items() if USER.match(name)}
        own = {name: word for name, word in own.items() if word.startswith("{other.")}
        adds = one.operation.method in ("POST", "PUT") and own and "{" in one.at and not waits(one, values)
        if adds and (row := one.row("other", values | own)):
            found.append(row)
    return found


def _changed(rows: AccountRows, steps: list[Row], changes: list[Row], see: list[Row]) -> Iterator[Question]:
    """What one made, changed or removed by the other, and removed by a visitor where no description has it:
    seen in the lists."""
    named = [row for row in changes if any(word in str(row[2:]) for word in ("{id-", TAG, "/{one"))]
    while named:
        together, things = [*steps, *see], set[str]()
        for at, row in enumerate(list(named)):
            its = set(THING.findall(str(row[2:])))
            if not at or (not its & things and len(together) + len(see) < MAX_STEPS):
                together += [["other", *row[1:]], *see]
                things |= its or {row[2]}
                named.remove(row)
        yield from question(rows, together)
    yield from packed(rows, _removed_by_visitors(rows, {row[2] for row in changes if row[1] == "DELETE"}))


def _removed_by_visitors(rows: AccountRows, known: set[str]) -> Iterator[tuple[list[Row], OperationInputs]]:
    """A thing that a visitor may not make, and one may; then a visitor removes it, by a method that no
    description has."""
    makers = making(rows)
    described = {re.sub(r"\{[^{}]+\}", "", one.at) for one in askable(rows, "DELETE")}
    for one in askable(rows, "GET"):
        steps, things = prepared(one, makers, listing(rows))
        bare = re.sub(r"\{[^{}]+\}", "", one.at)
        word = next((value for value in map(str, things.values()) if value.startswith("{id-")), "")
        if "#" in one.at or not one.at.endswith("}") or bare in described | known or not word:
            continue
        if read := one.row("one", things):
            remove: Row = ["anonymous", "DELETE", read[2], {}]
            yield [*steps, ["anonymous", *steps[-1][1:]], read, remove, read], one
