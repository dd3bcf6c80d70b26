"""What two accounts of an API are asked besides their own things: one row by each kind of question. Pure.

Nothing is changed that the accounts did not make themselves: what writes, makes something new, or names one
of their things or one of the two accounts. Paths that name an act (`state_changes`) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from fleet.drivers.desk import Question
from fleet.drivers.explore.account.api_flows import agreeing, misfitting
from fleet.drivers.explore.account.api_groups import (
    CHANGES,
    ME,
    answered,
    askable,
    costs,
    deposit,
    listing,
    making,
    own_ids,
    packed,
    prepared,
    question,
    waits,
)
from fleet.drivers.explore.account.api_inputs import (
    HANDLER,
    MARK,
    ONE,
    USER,
    OperationInputs,
    Planted,
    Row,
    names_owner,
    names_people,
    stem,
)
from fleet.drivers.explore.account.api_methods import addresses, beside, fetched
from fleet.drivers.explore.account.api_planted import planted_rows
from fleet.drivers.explore.account.api_races import raced
from fleet.drivers.explore.account.api_rows import AccountRows
from fleet.drivers.explore.account.bodies import MARKED_ADDRESS, PHRASE, SentBody
from fleet.drivers.explore.listened import asking
from fleet.oracles.account.functions import RECOVERS, for_role
from fleet.oracles.account.inputs import ENDING, NARROW, ORDERED, SMALL, WIDE, folded, once, servers_own
from fleet.oracles.account.rights import rights
from fleet.oracles.account.tokens import leaves
from fleet.oracles.documents.openapi import Operation
from sandbox.sites.idents import snake
from sandbox.sites.likeness import like

READS, FIELDS, ASKED, VARIED, USES = 18, 4, 24, 3, 2
"""Of one run: pages read as another role, fields tried of one request, operations whose inputs are asked,
texts of each, uses of a thing with an address."""
STORED, SHOWN = 4, 8
"""Of one run: operations and their texts that are looked for on pages, and pages for each."""
_SIZE = re.compile(r"(?i)^(?:page_?)?(?:limit|size|count|first|last|take|top|rows|per_?page|max_?results)$")
_MANY = re.compile(
    r"(?:^|_)(?:quantity|qty|count|amount|units|nights|seats|number|items|points|credits?|coins|shares|miles)"
    r"(?:_(?:cents|minor))?$"
)
"""Names of numbers of things or of money, as `snake` has them."""
_BALANCE = re.compile(r"(?i)[/#](?:(?:my[-_]?)?wallet|balance|credits?|points)$")
_ORDERS = re.compile(r"(?i)^(?:sort|order|(?:sort|order|group)_?by|sort_?(?:field|column|key)|ordering)$")
"""An input that names what a list is ordered or grouped by."""
_FILE = re.compile(
    r"(?i)file|path|name|doc|page|template|photo|image|report|chart|leaflet|brochure|attachment|print|download"
)
_CURRENT = re.compile(r"(?i)current|old|existing|previous")
_LARGE = 100_000


def further(rows: AccountRows) -> Iterator[Question]:
    """All of them: those of `first`, then those of `then`."""
    yield from first(rows)
    yield from then(rows)


def first(rows: AccountRows) -> Iterator[Question]:
    """What is grave and cheap: flows share a row, then whose things are read and changed. An operator's
    accounts are asked none."""
    asks = (_entrances, _flows, agreeing, _served, planted_rows, _for_others, raced)
    for ask in () if rows.operators else asks:
        yield from ask(rows)


def then(rows: AccountRows) -> Iterator[Question]:
    """What may be set, what inputs do, and where their texts are shown."""
    for ask in () if rows.operators else (_set, _inputs, misfitting, _shown_to_people):
        yield from ask(rows)


def _entrances(rows: AccountRows) -> Iterator[Question]:
    """Known and unknown names at the log-in, an operator as the password, and a code for a new one."""
    if rows.settled:  # they were asked, and are the same for every role
        return
    steps: list[Row] = []
    if login := rows.start.get("login"):
        sent = rows.start["login_fields"]
        steps += [[who, "POST", login, sent] for who in ("wrong", "stranger") * 2]
        if login not in rows.start.get("bodies", {}) and (name := next(filter(PHRASE.match, sent), "")):
            steps.append(["anonymous", "POST", login, {**sent, name: {"$ne": "qa"}}])
    recovers = [one for one in askable(rows, "POST") if RECOVERS.search(one.at)]
    for one in recovers[:2]:
        named = {
            name: "{email}" if "mail" in name.lower() else "{handle}" for name in one.all if USER.match(name)
        }
        steps += filter(None, [one.row(who, named) for who in ("anonymous", "stranger") * 2])
    yield from question(rows, steps)
    if login and "{user}" not in str(rows.start):
        for one in askable(rows, "PUT", "PATCH", "POST"):
            phrase = next((name for name in one.all if PHRASE.match(name)), "")
            whom = next((name for name in one.all if USER.match(name)), "")
            if phrase and whom and (asked := one.row("other", {whom: ONE, phrase: "{phrase}"})):
                first: Row = ["one", "POST", login, rows.start["login_fields"]]
                yield from question(rows, [first, asked, first])
        yield from _proven(rows, login)


def _proven(rows: AccountRows, login: str) -> Iterator[Question]:
    """A password changed with another text as the current one; a session begun again after its end."""
    first: Row = ["one", "POST", login, rows.start["login_fields"]]
    for one in askable(rows, "PUT", "PATCH", "POST"):
        phrases = [name for name in one.all if PHRASE.match(name)]
        current = [name for name in phrases if _CURRENT.search(name)]
        new = dict.fromkeys((name for name in phrases if name not in current), "{phrase}2")
        if current and new and (change := one.row("one", {**new, current[0]: MARK})):
            yield from question(rows, [first, change, first])
    every = [OperationInputs.of(one, rows.placed(one.path)) for one in rows.operations.values()]
    ends = next((one for one in every if leaves(one.operation.method, one.at, login)), None)
    for one in every:
        token = next((name for name in one.all if re.search(r"(?i)refresh", name)), "")
        again = one.row("one", {token: "{refresh}"}) if token and one.operation.method == "POST" else None
        if (
            ends
            and again
            and (end := ends.row("one", {}))
            and rows.places.may_act(rows.places.url(one.operation.path))
        ):
            yield from question(rows, [end, again])


def _served(rows: AccountRows) -> Iterator[Question]:
    """Pages that are for a role first, each as the account that signed up last, and as a visitor."""
    own = [one for one in askable(rows, "GET") if ME.search(one.at) and not one.required][:1]
    record: list[Row] = [["other", "GET", one.at, {}] for one in own]  # it may have a role after all
    steps: list[Row] = []
    plain = (one for one in askable(rows, "GET") if "." not in one.at.partition("#")[2])
    reads = sorted(plain, key=lambda one: not for_role(one.operation, one.at))
    for one in reads:
        named = {name: ONE for name, (where, _) in one.all.items() if where == "path" and USER.match(name)}
        if row := one.row("other", named, marked=False) if not waits(one, named) else None:
            steps += [row, ["anonymous", *row[1:]]]
    yield from question(rows, [*record, *steps[: 2 * READS]])
    inner: list[Row] = [["anonymous", "GET", one.at, {}] for one in askable(rows, "GET") if below(one)]
    yield from question(rows, inner)
    yield from packed(rows, (([*record, *group], one) for group, one in _for_roles(rows)))


def _for_roles(rows: AccountRows) -> Iterator[tuple[list[Row], OperationInputs]]:
    """What a role may change, by a method that no description has; what it may make."""
    for one, steps in beside(list(askable(rows, "GET", "PUT", "PATCH"))):
        yield steps, one
    makers = making(rows)
    for one in makers:
        steps, things = prepared(one, makers, listing(rows))
        if for_role(one.operation, one.at) and (row := one.row("other", things)):
            yield [*steps, row, ["anonymous", *row[1:]]], one


def _shown_to_people(rows: AccountRows) -> Iterator[Question]:
    """Each text of what an account makes, on the pages for people: first a word, then markup."""
    yield from packed(rows, _stored(rows))


def _stored(rows: AccountRows) -> Iterator[tuple[list[Row], OperationInputs]]:
    makers, pages = making(rows), rows.places.pages()
    for one in [one for one in makers if one.texts()][:STORED]:
        steps, things = prepared(one, makers, listing(rows))
        made = sum(step[1] == "POST" for step in steps)
        near = sorted(pages, key=lambda path: not stem(one.at) or stem(one.at) not in path.lower())[:SHOWN]
        for name in one.texts()[: STORED if near else 0]:
            words = [one.row("one", {**things, name: text}) for text in (MARK, HANDLER)]
            pairs = [row for row in words if row]
            looks = [
                [["anonymous", "GET", _own_page(path, one.at, made + number), {}] for path in near]
                for number in range(1, len(pairs) + 1)
            ]
            if len(pairs) > 1:
                yield [*steps, pairs[0], *looks[0], pairs[1], *looks[1]], one


def _own_page(path: str, at: str, number: int) -> str:
    """A page of a thing by its number is that of the thing just made."""
    folder, _, last = path.rpartition("/")
    own = last.isdecimal() and stem(folder) == stem(at)
    return f"{folder}/{{id-{number}}}" if own else path


def below(one: OperationInputs) -> bool:
    """Whether it is a field of GraphQL below one that needs nothing."""
    return "." in one.at.partition("#")[2] and "{" not in one.at


def _for_others(rows: AccountRows) -> Iterator[Question]:
    """What the other sends with the id of `one`: a right for it, or a thing in its name."""
    yield from packed(rows, _in_name(rows))


def _in_name(rows: AccountRows) -> Iterator[tuple[list[Row], OperationInputs]]:
    own = next((one for one in askable(rows, "GET") if ME.search(one.at) and not one.required), None)
    if own is None or "id" not in own_ids(rows):
        return
    known = Planted(seen=frozenset({"id"}), lists=listing(rows))
    read: Row = ["one", "GET", own.at, {}]
    for one in askable(rows, "POST", "PUT", "PATCH"):
        named = {name: word for name, word in known.values(one).items() if word == "{one.id}"}
        in_body = [name for name in named if one.all[name][0] == "body"]
        user_path = any(one.all[name][0] == "path" for name in named) and names_people(one.at)
        granted = [
            (name, value) for name, (_, said) in one.all.items() if rights(name) for value in _highest(said)
        ]
        if granted and (in_body or user_path):
            for name, value in granted[:FIELDS]:
                if row := one.row("other", {**named, name: value}, marked=False):
                    yield [read, row, read], one
        elif (whose := next(filter(names_owner, in_body), "")) and one.operation.method == "POST":
            listed = known.listed(one)
            lists: list[Row] = [["other", "GET", word[8:-1], {}] for word in listed.values()]
            pair = [one.row("other", listed), one.row("other", listed | {whose: "{one.id}"})]
            if steps := [row for row in pair if row]:
                yield [read, *lists, *steps], one


def _highest(said: Mapping[str, Any]) -> list[Any]:
    """The values of a right that are worth having: of a list those of administrators, else its last two."""
    choices = said.get("enum")
    if isinstance(choices, list) and choices:
        above = [one for one in choices if re.search(r"(?i)admin|owner|super|root", str(one))]
        return [*above[:1], *(one for one in choices[-2:] if one not in above)]
    kind = said.get("type")
    return ["admin"] if kind == "string" else [True] if kind == "boolean" else []


def _value(name: str, said: dict[str, Any]) -> object:
    """What an account would give itself."""
    kind = said.get("type") if isinstance(said, dict) else ""
    if kind == "boolean" or folded(name).startswith(("is", "verified", "admin", "paid", "approved")):
        return True
    if kind in ("integer", "number"):
        return 7
    if kind == "array" and folded(name) in ("roles", "permissions", "scopes"):
        return ["admin"]
    return "admin" if folded(name) in ("role", "roles") else None


def _fields(one: Operation, *others: Operation | None) -> list[tuple[str, object]]:
    """The server's own fields in answers, which the request does not name; those of rights without a word."""
    known = {name: said for at in (one, *others) if at for name, said in answered(at).items()}
    known = known or {"role": {"type": "string"}, "is_admin": {"type": "boolean"}}
    found = [(name, _value(name, said)) for name, said in known.items() if servers_own(name)]
    taken = {
        name: said
        for name, said in SentBody.of(one).fields.items()
        if folded(name) in ("role", "isadmin", "admin")
    }
    found += [(name, _value(name, dict(said))) for name, said in taken.items() if isinstance(said, dict)]
    return list({name: (name, value) for name, value in found if value is not None}.values())[:FIELDS]


def _set(rows: AccountRows) -> Iterator[Question]:
    """Fields that are the server's: at sign-up, in what changes the own record, in what makes a thing."""
    own = next((one for one in askable(rows, "GET") if ME.search(one.at) and not one.required), None)
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
        yield from question(rows, steps)
    yield from packed(rows, _fields_set(rows, own))


def _fields_set(
    rows: AccountRows, own: OperationInputs | None
) -> Iterator[tuple[list[Row], OperationInputs]]:
    """The same request without a field and with it: what changes the own record or a thing, or makes one."""
    makers = making(rows)
    every = list(askable(rows, "PATCH", "PUT", "POST"))
    changes = [one for one in every if one.operation.method != "POST" or CHANGES.search(one.at)]
    makes = [one for one in every if one not in changes and "{" not in one.at]
    for one in (*changes, *makes)[:ASKED]:
        first, things = prepared(one, makers, listing(rows))
        plain = one.row("one", things)
        about_own = own is not None and (one.at == own.at or "{" not in one.at) and one in changes
        candidates = _fields(one.operation, own.operation if own and about_own else None)
        if plain is None or waits(one, things) or not candidates:
            continue
        read: list[Row] = [["one", "GET", own.at, {}]] if own and about_own else []
        steps = [*first, plain]
        for name, value in candidates:
            steps += read
            for body in _nested(plain[3], {name: value}):
                steps += [[*plain[:3], body], *read]
        yield steps, one


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
    fields = (one for one in askable(rows, "GET", "POST") if "." not in one.at.partition("#")[2])
    asked = [
        one
        for one in fields
        if one.texts()
        or addresses(one)
        or numbers(one)
        or orders(one)
        or any(_FILE.search(name) for name in one.of_kind("string"))
    ]
    asked.sort(key=lambda one: not one.operation.secured)  # the web explorer asks what is open as well
    makers = making(rows)
    yield from packed(
        rows,
        ((group, one) for one in asked[:ASKED] for group in _varied(rows, one, makers, chance)),
    )


def _varied(
    rows: AccountRows, one: OperationInputs, makers: list[OperationInputs], chance: Random
) -> Iterator[list[Row]]:
    """What its addresses are asked, and each of its texts; a text that must fit a pattern stays in front."""
    steps, things = prepared(one, makers, listing(rows))
    listens = rows.places.listens
    names = [name for name in one.of_kind("string") if one.all[name][0] != "header"]
    names = [name for name in names if not PHRASE.match(name) and "enum" not in one.all[name][1]]
    values: dict[str, Any] = dict.fromkeys((name for name in names if one.all[name][0] == "path"), MARK)
    values |= {name: f"{MARK}{at}" for at, name in enumerate(one.texts())}  # names may have to differ
    values |= things
    made = sum(step[1] == "POST" for step in steps)
    if found := fetched(one, things, _uses(rows, one), made, listens=listens):
        yield [*steps, *found]
    for name in orders(one)[:1]:
        said = one.all[name][1]
        plain = str(said.get("default") or next(iter(said.get("enum") or ()), "id"))
        order = (plain, ORDERED, ORDERED[:-1], ORDERED, plain)
        yield [*steps, *filter(None, (one.row("one", {**values, name: value}) for value in order))]
    for name in numbers(one)[:VARIED]:
        two = f"{chance.randrange(1_009, 9_973)}*{chance.randrange(1_009, 9_973)}"
        yield [
            *steps,
            *filter(None, (one.row("one", {**values, name: value}) for value in (2, two, 6, SMALL))),
        ]
    for name in [name for name in names if name not in things][:VARIED]:
        left, right = chance.randrange(1_009, 9_973), chance.randrange(1_009, 9_973)
        two, runs = f"{left}*{right}", f"expr {left} \\* {right}"
        pattern = str(one.all[name][1].get("pattern", ""))
        plain = like(pattern, name) if pattern and name not in one.texts() else MARK
        plain = MARKED_ADDRESS if name in addresses(one) else plain
        tries: list[object] = [plain, f"{{{{{two}}}}}", f"${{{two}}}"]
        tries += [f"$(({two}))", f"{plain};{runs};", f"{plain}|{runs}", f'{plain}";{runs};"']
        tries += [f"{plain}{way}" for way in asking(chance)[:2]] * listens
        tries += [plain, f"{plain}'", f"{plain}''", plain, f"{plain}{WIDE}", f"{plain}{NARROW}", plain]
        tries += [{"$ne": plain}] * (one.all[name][0] == "body")
        tries += ["/etc/passwd", "../" * 8 + "etc/passwd"] * bool(_FILE.search(name))
        yield [*steps, *filter(None, (one.row("one", {**values, name: value}) for value in tries))]


def _uses(rows: AccountRows, one: OperationInputs) -> list[OperationInputs]:
    """What may be done with a thing that one request makes, and needs nothing but its id."""
    below_it = re.compile(re.escape(one.at) + r"/\{[^{}/]+\}/[\w-]+")
    found = [each for each in askable(rows, "POST") if below_it.fullmatch(each.at)]
    return [each for each in found if all(each.all[name][0] == "path" for name in each.required)][:USES]


def numbers(one: OperationInputs) -> list[str]:
    """The names of its inputs in a query that are numbers."""
    return [name for name in one.of_kind("integer", "number") if one.all[name][0] == "query"]


def orders(one: OperationInputs) -> list[str]:
    """The names of its inputs in a query that say what a list is ordered by."""
    return [name for name in one.of_kind("string") if one.all[name][0] == "query" and _ORDERS.match(name)]


def _flows(rows: AccountRows) -> Iterator[Question]:
    """A negative number of things, what is permitted once a second time, what gives back a price twice, pages
    of any size."""
    yield from packed(rows, _misused(rows))


def _misused(rows: AccountRows) -> Iterator[tuple[list[Row], OperationInputs]]:
    known, makers = Planted(seen=own_ids(rows)), making(rows)
    balance = next(
        (one.at for one in askable(rows, "GET") if _BALANCE.search(one.at) and not one.required), ""
    )
    read: Row = ["one", "GET", balance, {}]
    for one in askable(rows, "POST"):
        named = known.values(one)
        for name in (name for name in one.of_kind("integer", "number") if _MANY.search(snake(name))):
            pays = [row for maker in makers if costs(one) and (row := deposit(maker, "other"))]
            steps = [one.row("other", {**named, name: many}) for many in (1, -3)]
            yield [*pays[:1], *(row for row in steps if row)], one
        if balance and "{" in one.at and ENDING.search(one.at):
            first, things = prepared(one, makers, listing(rows))
            if first and not waits(one, things) and (row := one.row("one", things)):
                yield [*first, read, row, read, row, read], one
        if (whole := one.row("other", named)) and (pairs := list(_few_and_less(whole[3]))):
            yield [[*whole[:3], body] for pair in pairs for body in pair], one
        if once(one.operation) and "{" not in one.at and (row := one.row("one", _shown(one), marked=False)):
            yield [row, row], one
    for one in askable(rows, "GET"):
        for name in (name for name in one.of_kind("integer") if _SIZE.search(name)):
            sizes = [one.row("other", {name: size}, marked=False) for size in (5, _LARGE)]
            if "{" not in one.at and all(sizes):
                yield [row for row in sizes if row], one


def _few_and_less(body: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """A body with a number of things in a list of it as one, and negative."""
    for name, value in body.items():
        if isinstance(value, dict):
            for few, less in _few_and_less(value):
                yield {**body, name: few}, {**body, name: less}
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number in [
                at for at, many in value[0].items() if type(many) is int and _MANY.search(snake(at))
            ]:
                one, none = ([{**value[0], number: many}, *value[1:]] for many in (1, -3))
                yield {**body, name: one}, {**body, name: none}


def _shown(one: OperationInputs) -> dict[str, Any]:
    """The inputs that a description gives an example of."""
    words = ("example", "default", "const")
    return {name: said[word] for name, (_, said) in one.all.items() for word in words if word in said}
