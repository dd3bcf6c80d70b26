"""Attack questions against a small platform in memory: its oracle sees each weakness, health none."""

from __future__ import annotations

import html
import json
import re
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from random import Random
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from fleet.broker.forward import NO_ONES
from fleet.drivers.desk import Question
from fleet.drivers.explore.origins import origins
from fleet.drivers.explore.web import attacks
from fleet.drivers.explore.web.attacks import questions
from fleet.drivers.explore.web.points import Point
from fleet.oracles import table
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.web.injections import KNOWN_FILES
from fleet.oracles.web.variations import FORM
from sandbox.pages.html import read
from sandbox.pages.page_request import page_request
from sandbox.spec import Mistake

FACTS = Facts(site="https://moss.example.org", proxy="https://moss.example.org")
POINT = Point("{site}/search?page=2&q=moss", "query", "q", "moss")
Answer = dict[str, Any]
Site = Callable[[str, Mapping[str, Any]], Answer]


def page(markup: str, status: int = 200) -> Answer:
    return {"status": status, "content_type": "text/html; charset=utf-8", "text": markup}


def healthy(value: str, args: Mapping[str, Any]) -> Answer:
    if "\0" in value or len(value) > 500:
        return {"status": 400, "content_type": "application/json", "text": '{"error":"q is not a text"}'}
    found = "<li>moss</li>" if value == "moss" else "<p>nothing</p>"
    shown = html.escape(value)
    return page(f'<h1>{shown}</h1><input value="{shown}"><a href="/s?q=1">next</a>{found}')


def strict(value: str, args: Mapping[str, Any]) -> Answer:
    """Another healthy one: the value is part of a program, as a text, and quotes must be balanced."""
    if value.count("'") % 2:
        return {"status": 400, "content_type": "application/json", "text": '{"error":"unbalanced quote"}'}
    quoted = json.dumps(value).replace("<", "\\u003c").replace("'", "\\u0027")
    return page(f"<script>var q = {quoted};</script><p>{html.escape(value)}</p>")


def api(value: str, args: Mapping[str, Any]) -> Answer:
    """A healthy one that answers JSON, and redirects at home."""
    if value.startswith("/") and not re.match(r"/[/\\\s]", value):
        return {"status": 302, "location": value, "text": "", "content_type": ""}
    return {"status": 200, "content_type": "application/json", "text": json.dumps({"q": value, "n": 0})}


def element(value: str, args: Mapping[str, Any]) -> Answer:
    return page(f"<h1>{value}</h1>")


def textarea(value: str, args: Mapping[str, Any]) -> Answer:
    return page(f"<textarea>{value.replace('<script>', '')}</textarea>")


def attribute(value: str, args: Mapping[str, Any]) -> Answer:
    return page(f'<input value="{html.escape(value, quote=False)}">')


def link(value: str, args: Mapping[str, Any]) -> Answer:
    return page(f'<a href="{html.escape(value)}">x</a>')


def program(value: str, args: Mapping[str, Any]) -> Answer:
    return page(f"<script>var q = '{value.replace('<', '')}';</script>")


def quote(value: str, args: Mapping[str, Any]) -> Answer:
    if value.count("'") % 2:
        return page("<p>unterminated quoted string at or near</p>", 500)
    return healthy(value, args)


def condition(value: str, args: Mapping[str, Any]) -> Answer:
    pair = re.search(r"'(\w+)'='(\w+)$", value)
    known = value.partition("'")[0] == "moss"
    wide = " OR " in value
    holds = pair is None or pair[1] == pair[2]
    listed = "<li>moss</li>" if (known and holds) or (wide and holds) else "<p>nothing</p>"
    return page(f"<h1>{html.escape(value)}</h1>{listed}")


def expression(value: str, args: Mapping[str, Any]) -> Answer:
    return page(re.sub(r"\$\{(\d+)\*(\d+)\}", lambda hit: str(int(hit[1]) * int(hit[2])), html.escape(value)))


def shell(value: str, args: Mapping[str, Any]) -> Answer:
    """What `ping NAME` says by a shell; of the rest of the line only what counts is imitated."""
    counted = re.sub(r"\$\(\((\d+)\*(\d+)\)\)", lambda hit: str(int(hit[1]) * int(hit[2])), value)
    run = re.search(r"[;|]expr (\d+) \\\* (\d+)", value)
    text = f"{counted}: unknown" if run is None else f"{int(run[1]) * int(run[2])}"
    return {"status": 200, "content_type": "text/plain", "text": text}


def climb(value: str, args: Mapping[str, Any]) -> Answer:
    text = "root:x:0:0:root:/root:/bin/bash\n" if unquote(value).endswith("/etc/passwd") else "moss"
    return {"status": 200, "content_type": "text/plain", "text": text}


def split(value: str, args: Mapping[str, Any]) -> Answer:
    lines = value.splitlines()
    headers = dict(re.split(r":\s*", one, maxsplit=1) for one in lines[1:] if ": " in one)
    return {"status": 302, "location": "/x", "headers": headers, "text": "", "content_type": ""}


def by_hand(value: str, args: Mapping[str, Any]) -> Answer:
    return {"status": 200, "content_type": "application/json", "text": f'{{"q":"{value}"}}', "bytes": -1}


def away(value: str, args: Mapping[str, Any]) -> Answer:
    return {"status": 302, "location": value if ":" in value else "/", "text": "", "content_type": ""}


def ask(question: Question, site: Site) -> list[str]:
    seen: list[Exchange] = []
    said: list[str] = []
    for step in question.steps:
        url = urlsplit(str(step.args["url"]).replace("{site}", FACTS.site))
        value = parse_qs(url.query, keep_blank_values=True).get("q", [""])[0]
        answer = site(value, step.args)
        markup = answer["text"] if "html" in answer["content_type"] else ""
        ran = read(markup, str(step.args.get("canary", "")))[0].canary_executable
        seen.append(Exchange("qa_fetch", step.args, {"canary_executable": ran, **answer}))
        for one in table.judge(seen, FACTS):
            again = [*(seen[at] for at in one.led), seen[-1]]
            assert one.oracle in {two.oracle for two in table.judge(again, FACTS)}  # as a repro asks it
            said.append(one.oracle)
    return said


def boats(order: str, names: str = "wren auk teal") -> Answer:
    """A list as a real database orders it; `names` are as they lie there."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("create table boats (id integer primary key, name text)")
        db.executemany("insert into boats (name) values (?)", [(one,) for one in names.split()])
        try:
            rows = db.execute(f"select name from boats order by {order}").fetchall()
        except sqlite3.Error:
            return page("<p>bad order</p>", 400)
    return page("".join(f"<li>{name}</li>" for (name,) in rows))


def dotted(order: str) -> str:
    """An order as a library makes it: a column by its name, another table's as it came, quotes around the
    table unless it has them; a sign before it is a direction."""
    plain, down = order.removeprefix("-"), " DESC" * order.startswith("-")
    table, dot, column = plain.partition(".")
    if not dot:
        return f'"{plain}"{down}' if plain in ("id", "name") else "("
    return f"({table if table[0] == table[-1] == chr(34) else chr(34) + table + chr(34)}.{column}){down}"


@pytest.mark.parametrize("name", ["sort", "order_by", "orderBy", "ordering"])
@pytest.mark.parametrize(
    ("orders", "heard"),
    [
        (boats, {"condition-injection"}),
        (lambda order: boats(order, "auk teal wren"), {"condition-injection"}),
        (lambda order: boats(order, "wren teal auk"), {"condition-injection"}),
        (lambda order: boats(order if order in ("id", "name") else "id"), set()),
        (lambda order: boats(order) if order in ("id", "name") else page("<p>bad order</p>", 400), set()),
        (lambda order: boats(dotted(order)), {"condition-injection"}),
        (lambda order: page(f"<h1>by {html.escape(order)}</h1>"), set()),
    ],
    ids=[
        "raw",
        "they lie in order",
        "they lie in the other order",
        "falls back",
        "refuses",
        "lets a table's by",
        "shows it",
    ],
)
def test_a_column_to_sort_by_is_not_a_program(
    name: str, orders: Callable[[str], Answer], heard: set[str]
) -> None:
    point = Point("{site}/boats?q=name", "query", "q", "name")
    asked = questions(replace(point, name=name), Random(3))
    steps = [
        [point.step(parse_qs(urlsplit(str(step.args["url"])).query)[name][0]) for step in one.steps]
        for one in asked
        if any("CASE WHEN" in unquote(str(step.args["url"])) for step in one.steps)
    ]
    assert len(steps) == 4
    said = [ask(Question(tuple(one)), lambda value, _: orders(value)) for one in steps]
    assert {oracle for one in said for oracle in one} == heard


@pytest.mark.parametrize("site", [healthy, strict, api])
@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_platform_hears_nothing(site: Site, seed: int) -> None:
    assert [said for one in questions(POINT, Random(seed)) for said in ask(one, site)] == []


@pytest.mark.parametrize(
    ("site", "oracle"),
    [
        (element, "script-injection"),
        (textarea, "script-injection"),
        (attribute, "script-injection"),
        (link, "script-injection"),
        (program, "script-injection"),
        (quote, "quote-injection"),
        (condition, "condition-injection"),
        (expression, "expression-injection"),
        (shell, "command-injection"),
        (climb, "path-climb"),
        (split, "header-injection"),
        (by_hand, "json-injection"),
        (away, "open-redirect"),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_each_weakness_is_seen(site: Site, oracle: str, seed: int) -> None:
    said = {said for one in questions(POINT, Random(seed)) for said in ask(one, site)}
    assert oracle in said
    assert said - {oracle} <= {"trace", "server-error"}


@pytest.mark.parametrize("line", ["echo {}", "echo '{}'", 'echo "{}"', "echo {} moss", "cat /dev/null {}"])
def test_commands_count_in_a_real_shell(line: str) -> None:
    """However a careless program quotes it, one of the ways makes the shell count, and none does more."""
    one, *asked = [
        parse_qs(urlsplit(str(step.args["url"])).query)["q"][0]
        for question in attacks._command(POINT, Random(7))
        for step in question.steps
    ]
    factors = re.search(r"(\d+)\*(\d+)", asked[0])
    assert factors is not None
    product = str(int(factors[1]) * int(factors[2]))
    said = [
        subprocess.run(["sh", "-c", line.format(text)], capture_output=True, text=True, check=False).stdout
        for text in asked
    ]
    assert any(product in text for text in said)
    assert not any(product in text for text in (one, *asked))


def test_each_input_is_attacked_in_its_own_place() -> None:
    for kind, name in (("path", "1"), ("header", "x-lang"), ("field", "title")):
        point = Point("{site}/moss/x?a=1", kind, name, "moss")  # type: ignore[arg-type]
        for question in questions(point, Random(1)):
            assert 2 <= len(question.steps) <= 16
            assert question.steps[0] in (point.step("moss"), question.steps[0])
            assert all(step.args["url"].startswith("{site}/") for step in question.steps)


def test_the_same_seed_asks_the_same() -> None:
    assert list(questions(POINT, Random("a"))) == list(questions(POINT, Random("a")))
    assert sum(len(one.steps) for one in questions(POINT, Random("a"))) <= 100


def cors(allows: Callable[[str], bool], any_one: bool = False) -> Site:
    def answer(value: str, args: Mapping[str, Any]) -> Answer:
        origin = str(args.get("origin", ""))
        allowed = "*" if any_one else origin if origin and allows(origin) else ""
        return {"status": 200, "content_type": "text/plain", "text": "x", "allow_origin": allowed}

    return answer


OWN = "https://moss.example.org"


@pytest.mark.parametrize(
    "site",
    [
        cors(lambda origin: origin == OWN),
        cors(
            lambda origin: bool(
                re.fullmatch(r"https?://(?:localhost|127\.0\.0\.1|moss\.example\.org)(:\d+)?", origin)
            )
        ),
        cors(lambda origin: origin.endswith(".moss.example.org")),
        cors(lambda origin: False, any_one=True),
    ],
)
def test_a_careful_origin_check_hears_nothing(site: Site) -> None:
    assert [said for one in origins("{site}/x", [OWN], Random(1)) for said in ask(one, site)] == []


@pytest.mark.parametrize(
    "site",
    [
        cors(lambda origin: origin.startswith(OWN)),
        cors(lambda origin: origin.startswith("http://localhost")),
        cors(lambda origin: origin.endswith("moss.example.org")),
        cors(lambda origin: "localhost" in origin),
        cors(lambda origin: bool(re.fullmatch("https://moss.example.org", origin))),
        cors(lambda origin: origin == "null"),
        cors(lambda origin: True),
    ],
)
def test_a_careless_origin_check_is_seen(site: Site) -> None:
    said = {said for one in origins("{site}/x", [OWN], Random(1)) for said in ask(one, site)}
    assert said == {"foreign-origin"}


@pytest.mark.parametrize("credentials", ["true", "false"])
def test_whoever_is_allowed_by_name_with_credentials_is_foreign_though_all_may_read(credentials: str) -> None:
    """A server that allows everyone, and one by name who says who one is: with credentials that is no public
    answer."""

    def answer(_: str, args: Mapping[str, Any]) -> Answer:
        allowed = str(args.get("origin", "*"))
        headers = {"access-control-allow-credentials": credentials}
        return {
            "status": 200,
            "content_type": "text/plain",
            "text": "x",
            "allow_origin": allowed,
            "headers": headers,
        }

    said = {said for one in origins("{site}/x", [OWN], Random(1)) for said in ask(one, answer)}
    assert said == ({"foreign-origin"} if credentials == "true" else set())


OPTION = "settings[view options][outputFunctionName]"


def computing(value: str) -> str:
    """What such an engine shows: the product of what it is made to append."""
    factors = re.fullmatch(r"x;__append\((\d+)\*(\d+)\);y", value)
    return f"<p>{int(factors[1]) * int(factors[2])}</p>" if factors else "<p></p>"


@pytest.mark.parametrize(
    ("shown", "heard"),
    [
        (computing, ["expression-injection"]),
        (html.escape, []),
        (lambda _: "<p>moss</p>", []),
        (lambda value: "<p>1</p>" * len(value), []),
    ],
    ids=["computes", "shows", "leaves aside", "differs"],
)
@pytest.mark.parametrize("url", ["{site}/", "{site}/boats?sort=name"])
def test_an_option_of_a_template_engine_is_never_taken_from_the_query(
    url: str, shown: Callable[[str], str], heard: list[str]
) -> None:
    def answer(_: str, args: Mapping[str, Any]) -> Answer:
        return page(shown(parse_qs(urlsplit(str(args["url"])).query)[OPTION][0]))

    assert ask(attacks.options(url, Random(5)), answer) == heard


@pytest.mark.parametrize(
    ("shown", "heard"),
    [
        (lambda name: f"no host {name}", {"script-injection"}),
        (lambda name: f"no host {html.escape(name)}", set()),
        (lambda _: "<h1>moss</h1>", set()),
    ],
    ids=["as it is", "escaped", "leaves aside"],
)
def test_the_name_by_which_a_host_is_called_is_never_a_program(
    shown: Callable[[str], str], heard: set[str]
) -> None:
    def answer(_: str, args: Mapping[str, Any]) -> Answer:
        return page(shown(str(args.get("headers", {}).get("host", "moss.example.org"))))

    assert {said for one in attacks.hosts("{site}/", Random(2)) for said in ask(one, answer)} == heard


@pytest.mark.parametrize("seed", range(20))
def test_no_name_that_a_host_is_called_may_be_another_server_s(seed: int) -> None:
    """The broker sends them all."""
    names = [
        step.args["headers"]["host"]
        for one in attacks.hosts("{site}/", Random(seed))
        for step in one.steps
        if "headers" in step.args
    ]
    assert len(names) == 7
    assert all(NO_ONES.fullmatch(name.encode()) for name in names)


BODY = Point("{site}/boats", "body", "application/json", '{"name": "wren"}', "POST")


@pytest.mark.parametrize(
    ("reads", "heard"),
    [
        (lambda body: body.replace("&qa;", "root:x:0:0:root:/root:/bin/sh"), ["path-climb"]),
        (html.escape, []),
        (lambda _: "root:x:0:0:root:/root:/bin/sh", []),
    ],
    ids=["takes entities", "shows it", "an example"],
)
@pytest.mark.parametrize("kind", ["application/json", "text/xml; charset=utf-8", FORM])
def test_a_document_names_no_file_of_its_server(
    kind: str, reads: Callable[[str], str], heard: list[str]
) -> None:
    said = [
        said
        for one in attacks.bodies(replace(BODY, name=kind))
        for said in ask(one, lambda _, args: page(reads(str(args.get("body", "")))))
    ]
    assert said == heard


def test_what_is_asked_of_a_body_and_of_headers_can_be_sent() -> None:
    asked = (*attacks.bodies(BODY), *attacks.headers("{site}/"), attacks.upgrades("{site}/"))
    sent = [step.args for one in asked for step in one.steps]
    for args in sent:
        given = {name: args.get(name, "") for name in ("body", "body_type")}
        page_request(
            args.get("method", "GET"), "http://moss/", headers=args.get("headers", {}), fields={}, **given
        )
    parts = [one["body"] for one in sent if "boundary=qa" in str(one.get("body_type", ""))]
    assert parts == [*attacks.PARTS]
    with pytest.raises(Mistake, match="only `websocket` is offered"):
        page_request("GET", "http://moss/", headers={"Upgrade": "h2c"}, fields={}, body="", body_type="")
    names = {one for args in sent for one in args.get("headers", {}).values() if "__proto__" in one}
    assert {"__proto__", "__proto__=1; constructor=2", "__proto__=0-1"} <= names


@pytest.mark.parametrize("sent", ["{site}.qa1.evil.test%2F", "{site}%2Fx", "%2F%2Fh%3A1%2Fx"])
def test_a_redirect_to_the_platform_itself_is_not_foreign(sent: str) -> None:
    answers = tuple(
        Exchange("qa_fetch", {"url": "{site}/go?to=" + one}, {"status": 302, "location": to})
        for one, to in zip(("%2Fa", sent), ("/a", "http://h:1.qa1.evil.test/"), strict=True)
    )
    assert table.judge(answers, Facts(site="http://h:1")) == ()


def test_a_redirect_to_a_host_that_begins_like_the_platform_is_foreign() -> None:
    facts = Facts(site="http://h")
    sent = ("%2Fa", "{site}.qa1.evil.test%2F")
    answers = tuple(
        Exchange("qa_fetch", {"url": "{site}/go?to=" + one}, {"status": 302, "location": to})
        for one, to in zip(sent, ("/a", "http://h.qa1.evil.test/"), strict=True)
    )
    assert [one.oracle for one in table.judge(answers, facts)] == ["open-redirect"]


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        ("root:x:0:0:root:/root:/bin/sh", True),
        ('{"result": ["moss", "root:x:0:0:root:/root:/bin/sh\\ndaemon"]}', True),
        ("<pre>root:x:0:0:root</pre>", True),
        ("Done. root:*:0:0:System", True),
        ("chroot:x:0:0:", False),
        ("http://root:x:0:0:", False),
        ("ask root:x:1000:0:", False),
    ],
)
def test_a_known_file_is_known_wherever_an_answer_puts_it(text: str, shows: bool) -> None:
    assert bool(KNOWN_FILES[0][1].search(text)) is shows
