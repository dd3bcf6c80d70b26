"""What two accounts of an API are asked besides their own things: one row by each kind of question. Pure.

Nothing is changed that the accounts did not make themselves: what writes, makes something new, or names one
of their things or one of the two accounts. Paths that name an act (`state_changes`) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

from fleet.drivers.desk import Question
from fleet.drivers.explore.account.api_inputs import MARK, ONE, TAG, USER, OperationInputs, Planted, Row, stem
from fleet.drivers.explore.account.api_rows import AccountRows
from fleet.drivers.explore.account.bodies import PHRASE, SentBody
from fleet.drivers.explore.state_changes import names_act
from fleet.oracles.account.functions import RECOVERS, for_role
from fleet.oracles.account.inputs import folded, once, servers_own
from fleet.oracles.documents.openapi import Operation, fields_of
from sandbox.tools.qa_account import MAX_STEPS

READS, MAKERS, FIELDS, ASKED = 18, 4, 4, 12
"""Of one run: pages read as another role, things made at once, fields tried of one request, operations whose
inputs are asked."""
_SIZE = re.compile(r"(?i)^(?:page_?)?(?:limit|size|count|first|last|take|top|rows|per_?page|max_?results)$")
_MANY = re.compile(r"(?i)(?:^|_)(?:quantity|qty|count|amount|units|nights|seats|number|items)$")
_FILE = re.compile(r"(?i)file|path|name|doc|page|template|photo|image|report|chart")
_ME = re.compile(
    r"(?i)(?:/(?:me|self|whoami|profile|account|user)|#(?:me|viewer|whoami|currentUser|profile))$"
)
_LARGE = 100_000
_CHANGES = re.compile(r"#(?:delete|remove|update|edit|change|set)")


def further(rows: AccountRows) -> Iterator[Question]:
    """All of them, the cheapest and most telling first; an operator's accounts are asked none."""
    for ask in () if rows.operators else (_entrances, _served, _planted, _set, _inputs, _flows):
        yield from ask(rows)


def _all(rows: AccountRows, *methods: str) -> Iterator[OperationInputs]:
    """The operations by these methods that may be asked, but for those that make accounts and sessions."""
    doors = {rows.start["url"], rows.start.get("login")}
    for one in rows.operations.values():
        at = rows.placed(one.path)
        known = {rows.places.url(one.path), at} & doors
        acts = one.method == "GET" or rows.places.may_act(rows.places.url(one.path))
        safe = one.method == "DELETE" or "#" in at or not names_act(at)
        if one.method in methods and acts and not known and safe:
            yield OperationInputs.of(one, at)


def _question(rows: AccountRows, steps: list[Row], *inputs: OperationInputs) -> Iterator[Question]:
    """One call for as many steps as one may have."""
    kinds = {one.at: one.operation.sent[0] for one in inputs}
    if steps:
        asked = rows.asked(steps[:MAX_STEPS], kinds)
        yield Question((rows.source, *asked.steps), minimal=True)


def _entrances(rows: AccountRows) -> Iterator[Question]:
    """Known and unknown names at the log-in, an operator as the password, and a code for a new one."""
    steps: list[Row] = []
    if login := rows.start.get("login"):
        sent = rows.start["login_fields"]
        steps += [[who, "POST", login, sent] for who in ("wrong", "stranger") * 2]
        if "login" not in rows.start.get("bodies", {}) and (name := next(filter(PHRASE.match, sent), "")):
            steps.append(["anonymous", "POST", login, {**sent, name: {"$ne": "qa"}}])
    recovers = [one for one in _all(rows, "POST") if RECOVERS.search(one.at)]
    for one in recovers[:2]:
        named = {
            name: "{email}" if "mail" in name.lower() else "{handle}" for name in one.all if USER.match(name)
        }
        steps += filter(None, [one.row("anonymous", named)])
    yield from _question(rows, steps, *recovers)
    if login and "{user}" not in str(rows.start):
        for one in _all(rows, "PUT", "PATCH", "POST"):
            phrase = next((name for name in one.all if PHRASE.match(name)), "")
            whom = next((name for name in one.all if USER.match(name)), "")
            if phrase and whom and (asked := one.row("other", {whom: ONE, phrase: "{phrase}"})):
                first: Row = ["one", "POST", login, rows.start["login_fields"]]
                yield from _question(rows, [first, asked, first], one)


def _served(rows: AccountRows) -> Iterator[Question]:
    """Pages that are for a role first, each as the account that signed up last, and as a visitor."""
    steps: list[Row] = []
    plain = (one for one in _all(rows, "GET") if "." not in one.at.partition("#")[2])
    reads = sorted(plain, key=lambda one: not for_role(one.operation, one.at))
    for one in reads:
        named = {name: ONE for name, (where, _) in one.all.items() if where == "path" and USER.match(name)}
        if row := one.row("other", named, marked=False) if not _waits(one, named) else None:
            steps += [row, ["anonymous", *row[1:]]]
    yield from _question(rows, steps[: 2 * READS])
    for one in _all(rows, "POST"):
        if for_role(one.operation, one.at) and one.texts() and (row := one.row("other", {})):
            yield from _question(rows, [row, ["anonymous", *row[1:]]], one)


def _waits(one: OperationInputs, known: dict[str, str]) -> bool:
    """Whether a path has a value that nothing is known for."""
    return any(where == "path" and name not in known for name, (where, _) in one.all.items())


def _makers(rows: AccountRows) -> list[OperationInputs]:
    """What makes something from a text of ours; those without a value in the path first."""
    found = [one for one in _all(rows, "POST") if one.texts() and not _CHANGES.search(one.at)]
    return sorted(found, key=lambda one: one.at.count("{"))


def _planted(rows: AccountRows) -> Iterator[Question]:
    """Things with one's mark, then every request that can name one of them or its account: as one, as a
    visitor, and as the other; last, what removes them."""
    every = list(_all(rows, "GET", "POST", "PATCH", "PUT", "DELETE"))
    planted, steps, makers, number = Planted(), list[Row](), _makers(rows), 0
    reading = {stem(one.at) for one in every if one.operation.method == "GET"}
    makers = [one for one in makers if stem(one.at.partition("/{")[0]) in reading or "{" in one.at]
    used: list[OperationInputs] = []
    for one in makers:
        above = planted.values(one, account=False)
        if _waits(one, above) or number >= 2 * MAKERS:
            continue
        own = _own_names(one, every)
        if (row := one.row("one", above | own)) is None:
            continue
        used.append(one)
        steps.append(row)
        number += 1
        planted.named |= set(own)
        planted.made[stem(one.at)] = f"{{id-{number}}}"
        if above:
            steps.append(["other", *row[1:]])
            number += 1
    lists = [one for one in every if one.operation.method == "GET" and not one.required and "{" not in one.at]
    lists.sort(key=lambda one: stem(one.at) not in planted.made)
    for one in lists[:4] if steps else ():
        steps += [[who, "GET", one.at, {}] for who in ("one", "other", "anonymous")]
    refers, changes = _referring(every, planted, used)
    if not steps:
        return
    while refers:
        row = list(steps)
        while refers and len(row) + len(refers[0]) <= MAX_STEPS:
            row += refers.pop(0)
        yield from _question(rows, row, *used)
    yield from _changed(rows, steps, changes, lists, used)


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


def _referring(
    every: list[OperationInputs], planted: Planted, used: list[OperationInputs]
) -> tuple[list[list[Row]], list[Row]]:
    """The requests that can name what was made, or its account: as one, a visitor and the other, together;
    and those that change or remove it. They are added to `used`."""
    refers, changes = list[list[Row]](), list[Row]()
    for one in every:
        values = planted.values(one)
        if not values or one in used or _waits(one, values) or (row := one.row("one", values)) is None:
            continue
        used.append(one)
        if one.operation.method in ("DELETE", "PATCH", "PUT") or _CHANGES.search(one.at):
            changes.append(row)
        elif any(word in str(row) for word in ("{id-", TAG, ONE)) and not RECOVERS.search(one.at):
            group = [row, ["anonymous", *row[1:]], ["other", *row[1:]]]
            if ONE in str(row[3]) and (bare := one.row("one", {})) and bare[2] == row[2]:
                group += [bare, ["other", *bare[1:]]]
            refers.append(group)
    return refers, changes


def _changed(
    rows: AccountRows,
    steps: list[Row],
    changes: list[Row],
    lists: list[OperationInputs],
    used: list[OperationInputs],
) -> Iterator[Question]:
    """What one made, changed or removed by the other, and removed by a visitor where no description has it:
    seen in the lists."""
    see: list[Row] = [["one", "GET", one.at, {}] for one in lists[:4]]
    for row in changes[: 2 * FIELDS]:
        yield from _question(rows, [*steps, *see, ["other", *row[1:]], *see], *used)
    items = {row[2] for row in changes if row[1] == "DELETE"}
    for one in _all(rows, "GET"):
        word = next((step[2] for step in steps if step[0] == "one" and step[1] == "POST"), "")
        item = re.sub(r"\{[^{}]+\}$", "{id}", one.at)
        if "#" not in item and item.endswith("/{id}") and item.count("{") == 1 and item not in items:
            made = next(
                (step for step in steps if step[0] == "one" and step[2] == item.removesuffix("/{id}")), None
            )
            if made and word:
                read: Row = ["one", "GET", item, {}]
                bare: Row = ["anonymous", *made[1:]]
                yield from _question(rows, [bare, made, read, ["anonymous", "DELETE", item, {}], read], *used)


def _answers(one: Operation) -> dict[str, Any]:
    """The plain fields of what an operation answers, by its description."""
    for status in (200, 201, "default"):
        media = one.media(status).get("application/json")
        schema = media.get("schema") if isinstance(media, dict) else None
        if schema is not None and (found := fields_of(schema, one.document)[0]):
            return dict(found)
    return {}


def _value(name: str, said: dict[str, Any]) -> object:
    """What an account would give itself."""
    kind = said.get("type") if isinstance(said, dict) else ""
    if kind == "boolean" or folded(name).startswith(("is", "verified", "admin", "paid", "approved")):
        return True
    if kind in ("integer", "number"):
        return 7
    return "admin" if folded(name) in ("role", "roles") else None


def _fields(one: Operation, *others: Operation | None) -> list[tuple[str, object]]:
    """The server's own fields in answers, which the request does not name; those of rights without a word."""
    known = {name: said for at in (one, *others) if at for name, said in _answers(at).items()}
    known = known or {"role": {"type": "string"}, "is_admin": {"type": "boolean"}}
    found = [(name, _value(name, said)) for name, said in known.items() if servers_own(name)]
    taken = {
        name: said
        for name, said in SentBody.of(one).fields.items()
        if folded(name) in ("role", "isadmin", "admin")
    }
    found += [(name, _value(name, dict(said))) for name, said in taken.items() if isinstance(said, dict)]
    return list(dict.fromkeys((name, value) for name, value in found if value is not None))[:FIELDS]


def _set(rows: AccountRows) -> Iterator[Question]:
    """Fields that are the server's: at sign-up, in what changes the own record, in what makes a thing."""
    own = next((one for one in _all(rows, "GET") if _ME.search(one.at) and not one.required), None)
    join = next(
        (
            one
            for one in rows.operations.values()
            if rows.places.url(one.path) == rows.start["url"] and one.method == "POST"
        ),
        None,
    )
    if join and "{user}" not in str(rows.start):
        steps: list[Row] = []
        for more in (
            {},
            *({name: value} for name, value in _fields(join, own.operation if own else None)),
        ):
            sent = _inside(rows.start["fields"], more)
            steps.append(["new", "POST", rows.places.at(join.path), sent])
            if login := rows.start.get("login"):
                steps.append(["new", "POST", login, rows.start["login_fields"]])
            steps += [["new", "GET", own.at, {}]] if own else []
        yield from _question(rows, steps, OperationInputs.of(join, rows.places.at(join.path)))
    changes = [
        one for one in _all(rows, "PATCH", "PUT") if "{" not in one.at and (own is None or one.at != own.at)
    ]
    made = [one for one in _makers(rows) if "{" not in one.at]
    graphql = [
        one for one in _all(rows, "POST") if _CHANGES.search(one.at) and not {"id", "ID"} & set(one.all)
    ]
    for one in (*changes, *graphql, *(each for each in made if each not in graphql))[:ASKED]:
        plain = one.row("one", {})
        steps = [plain] if plain else []
        read: list[Row] = [["one", "GET", own.at, {}]] if own and one not in made[:0] else []
        candidates = _fields(one.operation, own.operation if own and one not in made else None)
        for name, value in candidates if steps else ():
            steps += read
            for body in _nested(steps[0][3], {name: value}):
                steps += [[*steps[0][:3], body], *read]
        if len(steps) > 1:
            yield from _question(rows, steps, one)


def _inside(body: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """A body with more beside its words."""
    inner = [name for name, one in body.items() if isinstance(one, dict)]
    if len(inner) == 1 and not any(isinstance(one, str) for one in body.values()):
        return {**body, inner[0]: _inside(body[inner[0]], more)}
    return body | more


def _nested(body: dict[str, Any], more: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A body with more at each level."""
    yield body | more
    for name, inner in body.items():
        if isinstance(inner, dict):
            yield from ({**body, name: one} for one in _nested(inner, more))


def _inputs(rows: AccountRows) -> Iterator[Question]:
    """Each text that an account sends, as an expression, with a quote, as an operator and as a path."""
    chance = Random(str(sorted(rows.start.items(), key=str)))
    secured = (
        one
        for one in _all(rows, "GET", "POST")
        if one.operation.secured or ("#" in one.at and "." not in one.at.partition("#")[2])
    )
    asked = (
        one for one in secured if one.texts() or any(_FILE.search(name) for name in one.of_kind("string"))
    )
    for one in islice(asked, ASKED):
        steps: list[Row] = []
        names = [
            name for name in one.of_kind("string") if one.all[name][0] != "header" and not PHRASE.match(name)
        ]
        values: dict[str, Any] = dict.fromkeys((name for name in names if one.all[name][0] == "path"), MARK)
        values |= {name: f"{MARK}{at}" for at, name in enumerate(one.texts())}  # names may have to differ
        for name in names[:3]:
            if "pattern" in one.all[name][1] or "enum" in one.all[name][1]:
                continue
            two = f"{chance.randrange(1_009, 9_973)}*{chance.randrange(1_009, 9_973)}"
            tries: list[object] = [MARK, f"{{{{{two}}}}}", f"${{{two}}}", f"$(({two}))"]
            tries += [MARK, f"{MARK}'", f"{MARK}''", MARK]
            tries += [{"$ne": MARK}] * (one.all[name][0] == "body")
            tries += ["/etc/passwd", "../" * 8 + "etc/passwd"] * bool(_FILE.search(name))
            steps += filter(None, (one.row("one", {**values, name: value}) for value in tries))
        yield from _question(rows, steps, one)


def _flows(rows: AccountRows) -> Iterator[Question]:
    """A negative number of things, what is permitted once a second time, pages of any size."""
    for one in _all(rows, "POST"):
        for name in (name for name in one.of_kind("integer", "number") if _MANY.search(name)):
            rows_ = [one.row("one", {name: many}) for many in (1, -3)]
            yield from _question(rows, [row for row in rows_ if row], one)
        if once(one.operation) and "{" not in one.at and (row := one.row("one", _shown(one), marked=False)):
            yield from _question(rows, [row, row], one)
    for one in _all(rows, "GET"):
        for name in (name for name in one.of_kind("integer") if _SIZE.search(name)):
            sizes = [one.row("other", {name: size}, marked=False) for size in (5, _LARGE)]
            if "{" not in one.at and all(sizes):
                yield from _question(rows, [row for row in sizes if row], one)


def _shown(one: OperationInputs) -> dict[str, Any]:
    """The inputs that a description gives an example of."""
    words = ("example", "default", "const")
    return {name: said[word] for name, (_, said) in one.all.items() for word in words if word in said}
