"""A direct question for each class of switches, which shows its effect."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from bench.findings.classes.answers import EDGES
from bench.findings.classes.pages import path_of
from bench.findings.rules import EvidenceCall, Posted
from bench.findings.switches import Switch
from fleet.chain.keys import Secret, address_of
from tests.bench.asking import OTHER, Asking, titled


def edge(kind: str, over: int) -> str:
    """A value at an edge, as a URL carries it."""
    return {
        "empty": "",
        "long": "a" * (over + 1),
        "negative": "-1",
        "huge": str(2**over + 1),
        "nul": "%00",
        "foreign": "%C3%A9",
        "percent": "%25",
        "bracket": "%5B",
    }[kind]


def server_error(ask: Asking, switch: Switch) -> Posted:
    value, path = edge(switch.kind, switch.data["over"]), path_of(ask.plan, switch.place)
    if EDGES[switch.place][0] == "id":
        path = path.replace("{id}", value)
    else:
        path += f"?{switch.data['param']}={value}"
    return titled("GET of a page answers 500", ask.get(path))


def trace_leak(ask: Asking, switch: Switch) -> Posted:
    plan, bad = ask.plan, "%27nothing"
    if switch.place.startswith("call-"):
        raw = {"call-json": "{", "call-contents": '{"contents": []}'}.get(switch.place, "")
        more = {"agent": "nobody-here"} if switch.place == "call-agent" else {}
        call = ask.say("hello", raw=raw, more=more)
    elif switch.place == "face":
        call = ask.get(plan.face_of("nobody-here"))
    elif switch.place == "unknown-page":
        call = ask.get("/nothing-here")
    else:
        role = {"entries": "limit", "shelf": "file", "convert": "amount", "profile": "name"}[switch.place]
        call = ask.get(f"{plan.paths[switch.place]}?{plan.params[role]}={bad}")
    return titled("it answers with a stack trace", call)


def script_injection(ask: Asking, switch: Switch) -> Posted:
    name = {"search": "term", "prefs": "theme", "face": "view"}[switch.place]
    path = ask.plan.face_of(ask.plan.agents[0]) if switch.place == "face" else ask.plan.paths[switch.place]
    text = {
        "element": "<script>qacanary</script>",
        "attribute": '" onfocus="qacanary',
        "script": '";qacanary;"',
    }[switch.kind]
    call = ask.get(f"{path}?{ask.plan.params[name]}={quote(text)}", "qacanary")
    return titled("a canary runs as a script", call)


def path_climb(ask: Asking, switch: Switch) -> Posted:
    up = {"plain": "../", "encoded": "%2e%2e%2f", "once": "....//"}[switch.kind] * 4 + "etc/passwd"
    if switch.place == "shelf":
        path = f"{ask.plan.paths['shelf']}?{ask.plan.params['file']}={quote(up, safe='')}"
    else:
        path = ask.plan.paths["folder"] + quote(up, safe="/").replace("../", "%2e%2e/")
    return titled("a path climbs out of its folder", ask.get(path))


def open_redirect(ask: Asking, switch: Switch) -> Posted:
    to = {
        "absolute": "http://evil.test/",
        "slashes": "//evil.test/",
        "prefix": "http://127.0.0.1.evil.test/",
        "backslash": "/\\evil.test/",
    }[switch.kind]
    path = f"{ask.plan.paths['jump']}?{ask.plan.params['next']}={quote(to, safe='')}"
    return titled("a redirect to a foreign host", ask.get(path))


def origin_rule(ask: Asking, switch: Switch) -> Posted:
    origin = {
        "prefix": f"{ask.url}.evil.test",
        "suffix": "http://evil127.0.0.1",
        "substring": "http://evil127.0.0.1.test",
        "null": "null",
        "any": "https://evil.test",
    }[switch.kind]
    return titled("a foreign origin may read", ask.get(ask.plan.paths[switch.place], origin=origin))


def sql_injection(ask: Asking, switch: Switch) -> Posted:
    path = f"{ask.plan.paths[switch.place]}?{ask.plan.params['term']}="
    yes, no = (ask.get(path + quote(f"{ask.plan.titles[0]}%' AND '1'='{one}' AND '%'='")) for one in "12")
    assert yes.text != no.text
    return titled("two conditions of a query differ: an SQL injection", yes, no)


def template_expression(ask: Asking, switch: Switch) -> Posted:
    name = {"render": "line", "search": "term", "prefs": "theme"}[switch.place]
    text = quote(f"{switch.data['left']}7919*6841{switch.data['right']}")
    call = ask.get(f"{ask.plan.paths[switch.place]}?{ask.plan.params[name]}={text}")
    return titled("an expression is computed", call)


def route_missing(ask: Asking, switch: Switch) -> Posted:
    return titled("a documented page answers 404, 405 or as HTML", ask.get(path_of(ask.plan, switch.place)))


def documents_disagree(ask: Asking, switch: Switch) -> Posted:
    plan, place = ask.plan, switch.place
    title = "two sources differ in a fact"
    if place == "reply":
        return titled(title, ask.say(plan.commands["price"]), ask.get(plan.paths["llms"]))
    if place == "refused-credit":
        return titled(title, ask.say("hello", key=Secret(bytes.fromhex("55" * 32))))
    if place == "refused-length":
        return titled(title, ask.say("a" * (plan.longest + 1)))
    if place == "refused-limit":
        return titled(title, ask.get(f"{plan.paths['entries']}?{plan.params['limit']}=999999"))
    return titled(title, ask.get(plan.paths[place]))


def lost_confirmation(ask: Asking, switch: Switch) -> Posted:
    text = {"long": "abcde " * 200, "foreign": "größe", "digits": "gate 42"}[switch.kind].strip()
    keep = ask.say(f"{ask.plan.commands['keep']} {text}")
    return titled("a note is confirmed and not kept", keep, ask.say(ask.plan.commands["recall"]))


def destructive_tool(ask: Asking, switch: Switch) -> Posted:
    tool = switch.place.upper() if switch.kind == "shouted" else switch.place
    words = "" if switch.kind in ("shouted", "plain") else f" {switch.kind}"
    return titled("a stranger runs a tool", ask.say(f"{ask.plan.commands['use']} {tool} qa.txt{words}"))


def caller_spoofed(ask: Asking, switch: Switch) -> Posted:
    claim = {switch.place: "0x00000000000000000000000000000000000051de"}
    field = "headers" if switch.kind == "header" else "more"
    how: dict[str, Any] = {field: claim}
    return titled("another caller is believed", ask.say("hello", **how))


def token_taken(ask: Asking, switch: Switch) -> Posted:
    def foreign(token: str) -> str:
        return ":".join([address_of(OTHER).lower(), *token.split(":")[1:]])

    ways: dict[str, dict[str, Any]] = {
        "stale": {"age": 100_000},
        "foreign": {"token": foreign},
        "truncated": {"token": lambda one: one[:-20]},
        "unsigned": {"token": lambda one: ""},
    }
    how = ways[switch.kind]
    return titled("a bad token is taken", ask.say("hello", told={"token": switch.kind}, **how))


def paid_refusal(ask: Asking, switch: Switch) -> Posted:
    ways: dict[str, dict[str, Any]] = {
        "json": {"raw": "{"},
        "contents": {"raw": '{"contents": []}'},
        "agent": {"more": {"agent": "nobody-here"}},
        "length": {},
    }
    how = ways[switch.place]
    message = "a" * (ask.plan.longest + 1) if switch.place == "length" else "hello"
    return titled("a refused call is charged", ask.say(message, **how))


def overcharge(ask: Asking, switch: Switch) -> Posted:
    message = {"long": "a" * (switch.data["over"] + 1), "foreign": "größe"}.get(switch.kind, "hello")
    calls = [ask.say(message, stream=switch.kind == "stream") for _ in range(2)]
    return titled("a message is charged more than its price", *calls)


def stream_edge(ask: Asking, switch: Switch) -> Posted:
    message = f"{ask.plan.commands['keep']} größe 世界の皆さん、こんにちは。お元気ですか。"
    return titled("a stream differs or breaks", ask.say(message), ask.say(message, stream=True))


def help_lies(ask: Asking, switch: Switch) -> Posted:
    calls = [ask.say(message) for message in (ask.plan.commands["help"], f"{switch.kind} something")]
    return titled("help names an unknown command", *calls)


def gas_quote(ask: Asking, switch: Switch) -> Posted:
    quoted = ask.get("/api/estimate?bytes=200")
    figures = {"gas_used": 216_000, "gas_quote": json.loads(quoted.text.split("\n")[0])["gas"]}
    return titled("the gas quote is off", EvidenceCall("qa_publish", {}, figures))


def of_page(title: str) -> Callable[[Asking, Switch], Posted]:
    """A plain look at the page of the place."""
    return lambda ask, switch: titled(title, ask.get(path_of(ask.plan, switch.place)))


def of_command(title: str, message: Callable[[Asking, Switch], str]) -> Callable[[Asking, Switch], Posted]:
    return lambda ask, switch: titled(title, ask.say(message(ask, switch)))


QUESTIONS: dict[str, Callable[[Asking, Switch], Posted]] = {
    "accessibility": of_page("a page breaks a11y rules"),
    "dead-link": lambda ask, switch: titled("a link answers 404", ask.get(switch.data["path"])),
    "script-injection": script_injection,
    "cookie-flags": of_page("a cookie lacks flags"),
    "directory-listing": of_page("a directory is listed"),
    "latency": lambda ask, switch: titled(
        "a page is slow",
        *(ask.get(path_of(ask.plan, switch.place).replace("{name}", ask.plan.agents[0])) for _ in range(6)),
    ),
    "server-error": server_error,
    "trace-leak": trace_leak,
    "secret": of_page("a page shows a secret"),
    "origin-rule": origin_rule,
    "open-redirect": open_redirect,
    "route-missing": route_missing,
    "path-climb": path_climb,
    "sql-injection": sql_injection,
    "template-expression": template_expression,
    "documents-disagree": documents_disagree,
    "empty-reply": of_command("an empty reply", lambda ask, switch: ask.plan.commands[switch.place]),
    "lost-confirmation": lost_confirmation,
    "help-lies": help_lies,
    "turns-loop": of_command("it takes all turns", lambda ask, _: f"{ask.plan.commands['count']} 30"),
    "destructive-tool": destructive_tool,
    "caller-spoofed": caller_spoofed,
    "token-taken": token_taken,
    "paid-refusal": paid_refusal,
    "overcharge": overcharge,
    "stream-edge": stream_edge,
    "gas-quote": gas_quote,
}
