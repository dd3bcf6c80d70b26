"""Oracles of what an account sends: fields that are the server's to set, programs, queries, amounts. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from fleet.oracles.account.rights import rights
from fleet.oracles.account.rows import NONE, PlayedStep, described, description, on, oracle, played, row
from fleet.oracles.documents.json_schema import resolved
from fleet.oracles.documents.openapi import Operation
from fleet.oracles.model import Exchange, Facts, Observation, observed
from fleet.oracles.place import host_of
from fleet.oracles.web import traces
from fleet.oracles.web.injections import COMMAND, PRODUCT, RUN, computed, told_listener
from fleet.severity import Severity
from fleet.text import line

SMALL = "2*3"
"""A product in place of a number that has a bound."""
_PASSWD = re.compile(r"\broot:[^:\n]{0,40}:0:0:")
_AMOUNT = re.compile(
    r"(?i)(?:^|[_.])(?:total|amount|price|cost|sum|subtotal|charge|due)(?:_?(?:cents|minor))?$"
)
SETS = frozenset(("price", "unitprice", "total", "amount", "cost", "discount", "paid", "ispaid", "approved"))
"""Fields of a thing that the server works out or decides, besides those of rights."""
_ADMIN = frozenset(("role", "roles", "admin", "isadmin", "superuser", "issuperuser", "staff", "isstaff"))
_ONCE = re.compile(r"(?i)\b(?:only |can be \w+ |just )?once\b|\bone[- ]time\b|\bsingle[- ]use\b")
MOST_ENTRIES = 2_000
"""Entries of one answer above which a page size is without a bound: large public APIs give up to 1,000
(Stripe and GitHub 100, AWS 1,000), and one may give twice as much."""


def folded(name: str) -> str:
    return name.rpartition(".")[2].lower().replace("_", "").replace("-", "")


def servers_own(name: str) -> bool:
    """Whether a field is the server's to set."""
    return rights(name.rpartition(".")[2]) or re.sub(r"(?:cents|minor)$", "", folded(name)) in SETS


def sent_fields(given: object, above: str = "") -> Iterator[tuple[str, Any]]:
    """The plain values of a body by `outer.inner`; of a list of objects by their numbers."""
    for name, value in given.items() if isinstance(given, dict) else ():
        if isinstance(value, list | tuple) and any(isinstance(one, dict) for one in value):
            yield from sent_fields({str(at): one for at, one in enumerate(value)}, f"{above}{name}.")
        elif isinstance(value, dict):
            yield from sent_fields(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _values(step: PlayedStep) -> dict[str, Any]:
    """What a step sends, by name: in its query and its body."""
    query = dict(parse_qsl(urlsplit(step.path).query, keep_blank_values=True))
    below = dict(enumerate(step.path.partition("#")[2].split("/")[1:]))
    return {
        **{f"value {at}": unquote(one) for at, one in below.items()},
        **query,
        **dict(sent_fields(step.given)),
    }


def _one_more(plain: PlayedStep, step: PlayedStep) -> list[tuple[str, Any]]:
    """What a step sends beside the other one, which is the same else."""
    if (plain.method, plain.path, plain.who) != (step.method, step.path, step.who):
        return []
    before, after = dict(sent_fields(plain.given)), dict(sent_fields(step.given))
    more = [(name, value) for name, value in after.items() if name not in before]
    return more if len(more) == 1 and before.keys() == after.keys() - {more[0][0]} else []


def _input_of(step: PlayedStep) -> str:
    """The path without values."""
    endpoint, graphql, field = step.plain.partition("#")
    return endpoint + graphql + field.partition("/")[0]


def varied(plain: PlayedStep, step: PlayedStep) -> tuple[str, Any, Any] | None:
    """The one input in which two requests differ, with both values."""
    same = (plain.method, _input_of(plain), plain.who) == (step.method, _input_of(step), step.who)
    before, after = (_values(one) for one in (plain, step)) if same else ({}, {})
    differ = [name for name in before if before[name] != after.get(name)]
    inner = {name.partition(".")[0] for name in after if name not in before}
    if len(differ) != 1 or before.keys() - after.keys() or after.keys() - before.keys() or inner:
        return None
    return differ[0], before[differ[0]], after[differ[0]]


def _setting(price: int) -> tuple[Exchange, ...]:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    body = {"content": {"application/json": {"schema": schema}}}
    lead = description(more={"/api/things": {"post": {"requestBody": body}}})
    made = row(
        ("one", "POST", "/api/things", {"text": "{mark}"}, NONE | {"facts": {"price": "40"}}),
        (
            "one",
            "POST",
            "/api/things",
            {"text": "{mark}", "price": 7},
            NONE | {"facts": {"price": str(price)}},
        ),
    )
    return (lead, *made)


@oracle(
    id="account-set",
    says="what is the server's to decide, a request does not set: rights, prices, what was paid",
    severity=Severity.HIGH,
    example=_setting(7),
    control=_setting(40),
)
def account_set(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: the same request without a field and with it; the record has the value that
    was sent, and another one without it. The description does not take the field, or it makes its sender an
    administrator."""
    steps, told = played(seen[-1]), set[str]()
    for at, step in enumerate(steps):
        if step.method == "GET" or not step.good:
            continue
        more = [pair for plain in steps[:at] if plain.good for pair in _one_more(plain, step)]
        for name, value in more[:1]:
            shown = _after(steps, at, name)
            before = next(
                (
                    found
                    for when, one in enumerate(steps[:at])
                    if _one_more(one, step) and (found := _after(steps, when, name))
                ),
                None,
            )
            if not servers_own(name) or before is None or shown != json.dumps(value) or before == shown:
                continue
            takes = list(described(seen, step.path, step.method))
            undocumented = [place for place, one in takes if one.closed and not _documents(one, name)]
            rises = folded(name) in _ADMIN and value in (True, "admin", ["admin"])
            if (undocumented or rises) and takes and f"{step.plain} {name}" not in told:
                told.add(f"{step.plain} {name}")
                title = f'{step.called} lets its caller set "{line(name, 40)}"'
                where = on(seen[-1], step.plain, step.method) | {"field": name.rpartition(".")[2]}
                led = (takes[-1][0],)
                yield observed(title, f"account-set {step.plain} {name}", "answers", led=led, where=where)


def _documents(one: Operation, name: str) -> bool:
    """Whether a body's schema has a field of this name, at any depth."""
    return f'"{name.rpartition(".")[2]}"' in json.dumps([one.sent[1], list(one.fields)], default=str)


def _after(steps: Sequence[PlayedStep], at: int, name: str) -> str | None:
    """What the record says of a field after a step: in its answer, or in what the account reads next."""
    for one in steps[at : at + 3]:
        if (
            one.who == steps[at].who
            and one.good
            and (one is steps[at] or one.method == "GET" or "token" not in one.plain)
        ):
            for known, value in one.facts.items():
                if folded(known) == folded(name):
                    return str(value)
        if one is not steps[at] and _one_more(steps[at], one):
            break
    return None


def _computing(shown: str, asked: str = "{{1009*2003}}") -> tuple[Exchange, ...]:
    sent = [{"text": "{mark}"}, {"text": asked}]
    facts = [{"label": '"qam1"'}, {"label": json.dumps(shown)}]
    return row(
        *(
            ("one", "POST", "/api/labels", one, NONE | {"facts": got})
            for one, got in zip(sent, facts, strict=True)
        )
    )


@oracle(
    id="account-computed",
    says="an expression that an account sends is text and is not computed",
    severity=Severity.CRITICAL,
    example=_computing("2021027"),
    control=_computing("{{1009*2003}}"),
)
def account_computed(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Beside a plain text in the same input, the answer holds a product that was not sent. Or a number has a
    bound: SMALL is answered as its product is, and as another number is not."""
    for step, name in _as_product(_sent(seen[-1])):
        yield at_input(seen, step, name, f"{SMALL} is computed to 6", "account-computed")
    for step, name, sent, product in _products(seen[-1], PRODUCT):
        if not COMMAND.search(sent):
            what = f"{line(sent, 40)} is computed to {product}"
            yield at_input(seen, step, name, what, "account-computed")


def _as_product(steps: Sequence[PlayedStep]) -> Iterator[tuple[PlayedStep, str]]:
    """Steps that send SMALL and are answered as 6, with the input; 2 has another answer there."""
    for at, step in enumerate(steps):
        found = [(one, pair) for one in steps[:at] if one.good and step.good and (pair := varied(one, step))]
        known = {str(was): one.facts for one, (_, was, sent) in found if sent == SMALL}
        if known.get("6") == step.facts and "2" in known and known["2"] != step.facts:
            yield step, found[0][1][0]


@oracle(
    id="account-command",
    says="a command that an account sends is text and is not run",
    severity=Severity.CRITICAL,
    example=_computing("2021027", "qa;expr 1009 \\* 2003"),
    control=_computing("qa;expr 1009 \\* 2003", "qa;expr 1009 \\* 2003"),
)
def account_command(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Beside a plain text in the same input, the answer holds what only a shell makes of what was sent."""
    for step, name, sent, product in _products(seen[-1], COMMAND):
        what = f"a command in it, {line(sent, 40)}, prints {product}"
        yield at_input(seen, step, name, what, "account-command")


def _heard(sent: str, *words: str) -> tuple[Exchange, ...]:
    steps = [
        ["one", "POST", "/api/photos", {"url": value}] for value in ("{mark}", f"{sent}/qah0123456789ab")
    ]
    result = {"ok": True, "answers": [NONE, NONE], "heard": list(words)}
    return (Exchange("qa_account", {"url": "{site}/api/accounts", "steps": steps}, result),)


@oracle(
    id="account-listener",
    says="a server asks for no address of its own machine or network that an account names",
    severity=Severity.HIGH,
    example=_heard("{listener}", "qah0123456789ab"),
    control=_heard("{listener}"),
)
def account_listener(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The fleet's own listener was asked for a word that one input alone had."""
    for step, name, sent in _told(seen[-1]):
        if not RUN.search(sent):
            yield at_input(seen, step, name, "the server asks for an address sent there", "account-listener")


@oracle(
    id="account-listener-command",
    says="a command that an account sends is text and is not run, whatever of its output is shown",
    severity=Severity.CRITICAL,
    example=_heard("qa;curl -s {listener}", "qah0123456789ab"),
    control=_heard("qa;curl -s {listener}"),
)
def account_listener_command(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    for step, name, sent in _told(seen[-1]):
        if RUN.search(sent):
            yield at_input(seen, step, name, "a command in it, curl, is run", "account-listener-command")


def _told(call: Exchange) -> Iterator[tuple[PlayedStep, str, str]]:
    """Steps whose word the listener was asked for, each input once."""
    told = set[str]()
    for step, name, sent in _asked(played(call)) if call.result.get("heard") else ():
        if told_listener(sent, call.result) and f"{_input_of(step)} {name}" not in told:
            told.add(f"{_input_of(step)} {name}")
            yield step, name, sent


def _products(call: Exchange, form: re.Pattern[str]) -> Iterator[tuple[PlayedStep, str, str, str]]:
    """Steps whose answer holds the product of what was sent in an input, each input once: its name, what was
    sent, the product."""
    steps, told = _sent(call), set[str]()
    for step, name, sent in _asked(steps):
        other = " ".join(str(value) for one in steps if one is not step for value in one.facts.values())
        product = computed(sent, form, sent, _shown(step), other)
        if product and f"{_input_of(step)} {name}" not in told:
            told.add(f"{_input_of(step)} {name}")
            yield step, name, sent, product


def _climbing(shown: str) -> tuple[Exchange, ...]:
    sent = ("harbour.txt", "/etc/passwd")
    facts: tuple[dict[str, Any], ...] = ({}, {"value": json.dumps(shown)})
    return row(
        *(
            ("one", "GET", f"/api/files?name={one}", {}, NONE | {"facts": got})
            for one, got in zip(sent, facts, strict=True)
        )
    )


@oracle(
    id="account-climb",
    says="an input of an account never reads a file beside those that are served",
    severity=Severity.CRITICAL,
    example=_climbing("root:x:0:0:root:/root:/bin/sh"),
    control=_climbing("no such file"),
)
def account_climb(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Beside another text in the same input, the answer to a path holds a file that everybody may read."""
    told = set[str]()
    for step, name, sent in _asked(_sent(seen[-1])):
        if "passwd" in sent and _PASSWD.search(_shown(step)) and f"{_input_of(step)} {name}" not in told:
            told.add(f"{_input_of(step)} {name}")
            yield at_input(seen, step, name, "it reads /etc/passwd", "account-climb")


def _sent(call: Exchange) -> list[PlayedStep]:
    """The steps of a row, and those of a row of pages that read one by a query or send a form."""
    pairs = zip(call.args.get("steps", ()), call.result.get("answers", ()), strict=False)
    queried = [
        (one, got)
        for one, got in pairs
        if len(one) == 5 and one[0] == "one" and (one[1] == "POST" or (one[1] == "GET" and "?" in one[2]))
    ]
    pages = [PlayedStep(one[0], one[1], one[2], one[3], got) for one, got in queried]
    return played(call) + [one for one in pages if one.status]


def _asked(steps: Sequence[PlayedStep]) -> Iterator[tuple[PlayedStep, str, str]]:
    """Steps with the input in which they differ from an earlier one, and its value."""
    for at, step in enumerate(steps):
        for found in (found for plain in steps[:at] if (found := varied(plain, step))):
            yield step, found[0], str(found[2])


def _shown(step: PlayedStep) -> str:
    return " ".join(map(str, step.facts.values()))


def at_input(seen: Sequence[Exchange], step: PlayedStep, name: str, what: str, key: str) -> Observation:
    input_ = (
        "its value" if name.startswith("value ") else f"{'parameter' if '?' in step.path else 'field'} {name}"
    )
    where = on(seen[-1], _input_of(step), step.method) | {"parameter": input_}
    called = step.called.partition("?")[0]
    title = f"{called}, {input_}: {what}"
    return observed(title, f"{key} {_input_of(step)} {name}", "answers", where=where)


def _quoting(broken: dict[str, Any]) -> tuple[Exchange, ...]:
    sent = ("{mark}", "{mark}'", "{mark}''", "{mark}")
    got = (NONE, broken, NONE, NONE)
    return row(*(("one", "POST", "/api/search", {"q": one}, two) for one, two in zip(sent, got, strict=True)))


@oracle(
    id="account-quoted",
    says="a quote in what an account sends is a character like any other",
    severity=Severity.CRITICAL,
    example=_quoting(NONE | {"status": 500}),
    control=_quoting(NONE | {"status": 422}),
)
def account_quoted(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[value, value and a quote, value and two quotes, value] in one input: one quote fails in the words of a
    database, or it alone by a server error."""
    steps = _sent(seen[-1])
    for name, plain, one, two, again in _appended(steps, "'", "''"):
        words = traces.of_database(_text(one))
        if plain.taken and again.taken and (words or (two.taken and one.status == 500)):
            what = "a quote gives a database error" if words else "a quote answers 500, two of them do not"
            yield at_input(seen, one, name, what, "account-quoted")


ORDERED = "(case when 1=1 then 1 else 2 end)"
"""What orders the entries of a list only as a part of a statement; without its last bracket it is none."""


def _ordering_by(cut: int, ordered: int = 200) -> tuple[Exchange, ...]:
    sent = ("name", ORDERED, ORDERED[:-1], ORDERED, "name")
    got = (200, ordered, cut, ordered, 200)
    return row(
        *(
            ("one", "GET", f"/api/things?sort={quote(one)}", {}, NONE | {"status": two})
            for one, two in zip(sent, got, strict=True)
        )
    )


@oracle(
    id="account-ordered",
    says="the name by which a list is ordered is one of those that there are, and no expression",
    severity=Severity.CRITICAL,
    example=_ordering_by(500),
    control=_ordering_by(200),
)
def account_ordered(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[name, expression, the same without its last bracket, expression, name] in one input: only what reads
    the expression serves the whole one and fails at the other."""
    steps = _sent(seen[-1])
    for plain, whole, cut, again, last in zip(*(steps[at:] for at in range(5)), strict=False):
        found = varied(plain, whole)
        if not found or not again.same(whole) or not last.same(plain) or found[2] != ORDERED:
            continue
        served = all(one.good for one in (plain, whole, again, last))
        failed = cut.status >= 500 or (not cut.good and traces.of_database(_text(cut)))
        if served and failed and varied(plain, cut) == (*found[:2], ORDERED[:-1]):
            what = f"an expression is served, and without its last bracket answers {cut.status}"
            yield at_input(seen, cut, found[0], what, "account-ordered")


def _reflecting(page: dict[str, Any]) -> tuple[Exchange, ...]:
    sent, got = ("{mark}", "{mark}<img src id={mark} onerror=name>"), (NONE, NONE | page)
    return row(
        *(
            ("one", "GET", f"/board?q={quote(one, safe='{}')}", {}, two)
            for one, two in zip(sent, got, strict=True)
        )
    )


@oracle(
    id="account-reflected",
    says="what an account sends in a parameter is text on the page that answers",
    severity=Severity.HIGH,
    example=_reflecting({"handler": True}),
    control=_reflecting({}),
)
def account_reflected(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """After markup in a parameter the page has an element of it, with its handler; after a word none."""
    steps = _sent(seen[-1])
    for plain, marked in pairwise(steps):
        found = varied(plain, marked)
        if found and marked.good and marked.got.get("handler") and not plain.got.get("handler"):
            what = "markup in it becomes an element of the page"
            yield at_input(seen, marked, found[0], what, "account-reflected")


def _text(step: PlayedStep) -> str:
    return " ".join((str(step.got.get("said", "")), *map(str, step.facts.values()))).replace('\\"', '"')


def _breaking(said: str) -> tuple[Exchange, ...]:
    got = NONE | {"status": 500, "said": said}
    return row(("one", "GET", "/api/claims?from=1", {}, NONE), ("one", "GET", "/api/claims?from=1'", {}, got))


@oracle(
    id="account-trace",
    says="an answer to an account never shows a stack trace, a panic, or an error of a database",
    severity=Severity.MEDIUM,
    example=_breaking('Traceback (most recent call last):\n  File "x.py", line 3, in claims'),
    control=_breaking("something went wrong"),
)
def account_trace(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    """A server error in the words of a program that broke, each kind of it once."""
    told = set[str]()
    for step in _sent(seen[-1]):
        found = traces.find(_text(step), paths=False) if step.status >= 500 else None
        if found is not None and found.kind not in told:
            told.add(found.kind)
            title = f"{step.called} answers {step.status} with {found.kind}"
            where = {"trace": f"{found.kind} of {host_of(seen[-1], facts)}"}
            yield observed(title, f"account-trace {found.kind}", "answers", where=where)


def _appended(
    steps: Sequence[PlayedStep], attack: str, control: str
) -> Iterator[tuple[str, PlayedStep, PlayedStep, PlayedStep, PlayedStep]]:
    """The input, and [value, value and attack, value and control, value] of it."""
    for plain, one, two, again in zip(steps, steps[1:], steps[2:], steps[3:], strict=False):
        found, other = varied(plain, one), varied(plain, two)
        if not found or not other or not again.same(plain):
            continue
        name, value, sent = found
        if sent == f"{value}{attack}" and other == (name, value, f"{value}{control}"):
            yield name, plain, one, two, again


WIDE, NARROW = "' OR 'qa'<>'qb", "' OR 'qa'='qb"
"""What makes a condition of a statement true for every row, and its control, whether the text stands in it by
itself or between signs for any letters. To a search for words both are the same words."""


def _widening(many: int) -> tuple[Exchange, ...]:
    sent, got = ("{mark}", "{mark}" + WIDE, "{mark}" + NARROW, "{mark}"), (0, 9, many, 0)
    return row(
        *(
            ("one", "GET", f"/api/search?q={quote(one)}", {}, NONE | {"many": two})
            for one, two in zip(sent, got, strict=True)
        )
    )


@oracle(
    id="account-widened",
    says="a condition in what an account sends is text",
    severity=Severity.CRITICAL,
    example=_widening(0),
    control=_widening(9),
)
def account_widened(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[value, value or true, value or false, value] in one input: what is true alone finds something."""
    steps = played(seen[-1])
    for name, plain, wide, narrow, again in _appended(steps, WIDE, NARROW):
        nothing = [(one.status, one.got.get("many", 0)) for one in (plain, narrow, again)]
        if set(nothing) == {(200, 0)} and wide.status == 200 and wide.got.get("many", 0) > 0:
            what = f"a condition that is true finds {wide.got['many']} entries, a false one none"
            yield at_input(seen, wide, name, what, "account-widened")


def _operating(many: int) -> tuple[Exchange, ...]:
    sent: list[dict[str, Any]] = [{"name": "{mark}"}, {"name": {"$ne": "{mark}"}}]
    got = [NONE | {"many": 0}, NONE | {"many": many}]
    return row(*(("one", "POST", "/api/find", one, two) for one, two in zip(sent, got, strict=True)))


@oracle(
    id="account-operator",
    says="an object in place of a text is refused, and is not an operator of a query",
    severity=Severity.CRITICAL,
    example=_operating(3),
    control=_operating(0),
)
def account_operator(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A text that nothing has finds nothing or is refused; "not that text", as MongoDB writes it, finds some,
    or logs in."""
    steps = played(seen[-1])
    for at, step in enumerate(steps):
        sent = [
            name for name, value in step.given.items() if isinstance(value, dict) and list(value) == ["$ne"]
        ]
        for plain in steps[:at]:
            same = (plain.path, plain.given.keys()) == (step.path, step.given.keys())
            if not same or len(sent) != 1 or isinstance(plain.given[sent[0]], dict):
                continue
            found = plain.good and not plain.got.get("many") and step.good and step.got.get("many", 0) > 0
            entered = plain.status in (400, 401, 403) and step.good and plain.who == "wrong"
            if found or entered:
                what = (
                    "an object with $ne finds what is not asked for"
                    if found
                    else "an object with $ne logs in"
                )
                yield at_input(seen, step, sent[0], what, "account-operator")
                return


_BALANCE = re.compile(r"(?i)(?:^|[_.])(?:balance|credits?|funds|wallet|points|coins)(?:_?(?:cents|minor))?$")


def _ordering(total: int) -> tuple[Exchange, ...]:
    pairs = ((1, 12), (-3, total))
    steps = [
        ("one", "POST", "/api/orders", {"quantity": many}, NONE | {"facts": {"total": str(sum_)}})
        for many, sum_ in pairs
    ]
    return row(*steps)


@oracle(
    id="account-negative",
    says="nothing is bought in a negative quantity, for a negative sum",
    severity=Severity.HIGH,
    example=_ordering(-36),
    control=_ordering(36),
)
def account_negative(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The same request with 1 has a positive sum, and with a negative number a negative one; or the sender
    has so much more after it, who had less after giving 1."""
    steps, told = played(seen[-1]), set[str]()
    for at, step in enumerate(steps):
        for one, found in ((one, found) for one in steps[:at] if one.good and (found := varied(one, step))):
            name, before, sent = found
            numbers = type(before) is int and type(sent) is int and before > 0 > sent
            if not numbers or not step.good or f"{step.plain} {name}" in told:
                continue
            below = [
                fact
                for fact, value in step.facts.items()
                if _AMOUNT.search(fact) and str(value).startswith("-")
            ]
            more = [
                fact
                for fact, value in step.facts.items()
                if (folded(fact) == folded(name) or _BALANCE.search(fact))
                and _number(value) - _number(one.facts.get(fact)) == -sent
            ]
            if below or more:
                what = f"{sent} gives a negative {line(below[0].replace('_', ' '), 30)}" if below else ""
                told.add(f"{step.plain} {name}")
                yield at_input(
                    seen, step, name, what or f"{sent} adds to what its sender has", "account-negative"
                )


def _number(text: object) -> float:
    return int(str(text)) if re.fullmatch(r"-?\d{1,15}", str(text)) else math.nan


ENDING = re.compile(r"(?i)/(?:cancel(?:lation)?|refund|return|void|withdraw|revert)/?$")
"""What ends a thing that was paid for, and gives its price back."""


def _redeeming(status: int) -> tuple[Exchange, ...]:
    path, got = "/api/vouchers/redeem", NONE | {"facts": {"credit": "10"}}
    lead = description(more={path: {"post": {"summary": "Redeem a voucher; each can be redeemed once"}}})
    again = got | {"status": status}
    return (lead, *row(*(("one", "POST", path, {"code": "A"}, one) for one in (got, again))))


@oracle(
    id="account-twice",
    says="what a description permits once does not work twice",
    severity=Severity.MEDIUM,
    example=_redeeming(200),
    control=_redeeming(409),
)
def account_twice(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: the same request twice, by the same account, with the same answer or more. Or
    what ends a thing adds as much to a balance the second time as the first."""
    steps = played(seen[-1])
    for before, act, after, again, last in zip(*(steps[at:] for at in range(5)), strict=False):
        looks = before.same(after) and after.same(last) and before.method == "GET"
        if not looks or not (act.same(again) and act.good and again.good and ENDING.search(act.plain)):
            continue
        figures = [[_number(one.facts.get(name)) for one in (before, after, last)] for name in before.facts]
        given = [two - one for one, two, three in figures if three - two == two - one > 0]
        if given and len({one.who for one in (before, act, after, again, last)}) == 1:
            where = on(seen[-1], act.plain, "POST")
            title = f"{act.called} gives back {given[0]:.0f} each time it is sent"
            yield observed(title, f"account-twice {act.plain}", "answers", where=where)
            return
    for first, second in pairwise(steps):
        if first.method != "POST" or not (first.good and second.good and first.same(second)):
            continue
        grew = any(_number(second.facts.get(name)) > _number(value) for name, value in first.facts.items())
        if first.who != second.who or not first.facts or not (first.facts == second.facts or grew):
            continue
        if led := [at for at, one in described(seen, first.path, "POST") if _ONCE.search(one.text)]:
            where = on(seen[-1], first.plain, "POST")
            title = f"{first.called} succeeds twice"
            yield observed(title, f"account-twice {first.plain}", "answers", led=(led[-1],), where=where)
            return


def once(one: Operation) -> bool:
    """Whether a description says that an operation works once."""
    return bool(_ONCE.search(one.text))


def _listing(many: int) -> tuple[Exchange, ...]:
    sizes = ((5, 5), (100_000, many))
    return row(*(("other", "GET", f"/api/things?limit={at}", {}, NONE | {"many": got}) for at, got in sizes))


@oracle(
    id="account-page-size",
    says="the size of a page has a bound",
    severity=Severity.MEDIUM,
    example=_listing(100_000),
    control=_listing(100),
)
def account_page_size(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A parameter that sets how many entries an answer has gives a great many; or the answer says that it was
    taken as it was sent, beyond the bound that a description states."""
    steps = played(seen[-1])
    for small, large in pairwise(steps):
        found = varied(small, large)
        if not found or not small.good or not large.good or small.got.get("many", 0) > 5:
            continue
        name, few, many = found
        if large.got.get("many", 0) > MOST_ENTRIES:
            what = f"{many} gives {large.got['many']} entries"
            yield at_input(seen, large, name, what, "account-page-size")
        elif [one.facts.get(name) for one in (small, large)] == [few, many]:
            for at, bound in _stated(seen, large, name):
                if bound < int(many):
                    what = f"it takes {many}, and its description {bound} at most"
                    yield replace(
                        at_input(seen, large, name, what, "account-page-size"),
                        severity=Severity.LOW,
                        led=(at,),
                    )
                    break


def _stated(seen: Sequence[Exchange], step: PlayedStep, name: str) -> Iterator[tuple[int, int]]:
    """The greatest value of a parameter by each description, with the position of the description."""
    for at, one in described(seen, step.path, step.method):
        for said in one.parameters:
            most = resolved(said.get("schema"), one.document).get("maximum")
            if said.get("name") == name and type(most) is int:
                yield at, most
