"""What the fleet says of one answer: only what no choice of arguments makes false on a healthy platform."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fleet.oracles import table
from fleet.oracles.model import Exchange, Facts, Oracle, Violation
from fleet.oracles.table import ORACLES
from fleet.oracles.web.variations import FORM
from fleet.personas.model import Step
from fleet.runs.proof.candidates import _led
from fleet.runs.proof.minimise import cuts
from sandbox.tools import TOOLS


def judge(tool: str, args: dict[str, Any], result: dict[str, Any]) -> tuple[Violation, ...]:
    return table.judge((Exchange(tool, args, result),), Facts())


TRACE = "Traceback (most recent call last):\n  File x"
URL = {"url": "{site}/x"}
AWS = "AKIA" + "Q7FTZ2LWXKB4MRCY"
ECHO = {"url": "{site}/?q=Traceback%20(most%20recent%20call%20last):"}


PAID = {"status": 402, "quoted": True, "amount": 9}
TWICE, ONCE = {"pay": "whole", "then": "again"}, {"pay": "whole", "then": "together"}


@pytest.mark.parametrize(
    ("tool", "args", "result", "oracle"),
    [
        ("qa_compile", {"source": "x"}, {"outcome": "panic", "exit_code": 101}, "compiler-broken"),
        ("qa_compile", {"module_hex": "00"}, {"outcome": "crash", "exit_code": -6}, "compiler-broken"),
        ("qa_compile", {"source": "x"}, {"outcome": "hang"}, "compiler-endless"),
        ("qa_compile", {"source": "x", "timeout_s": 0.5}, {"outcome": "hang"}, ""),  # its own deadline
        ("qa_compile", {"source": "x"}, {"outcome": "accepted", "valid": False}, "module-invalid"),
        ("qa_compile", {"module_hex": "00"}, {"outcome": "accepted", "valid": False}, ""),  # its own bytes
        ("qa_compile", {"source": "x"}, {"outcome": "accepted", "valid": True}, ""),
        ("qa_compile", {"source": "x"}, {"outcome": "clean_error"}, ""),
        ("qa_compile", {"source": "x"}, {"error_class": "internal"}, ""),
        ("qa_fetch", URL, {"status": 500}, "server-error"),
        ("qa_fetch", URL, {"status": 502}, ""),  # a gateway's word for an outage
        ("qa_fetch", URL, {"status": 503}, ""),
        ("qa_fetch", URL, {"status": 404}, ""),
        ("qa_fetch", URL, {"status": 404, "text": TRACE}, "trace"),
        ("qa_fetch", URL, {"status": 500, "text": TRACE}, "trace"),
        ("qa_fetch", URL, {"status": 200, "text": "(os error 2)"}, "trace"),
        ("qa_fetch", URL, {"status": 200, "text": TRACE, "content_type": "text/html"}, ""),  # a document
        ("qa_fetch", URL, {"status": 200, "text": TRACE + " " * 2_000}, ""),
        ("qa_fetch", ECHO, {"status": 404, "text": TRACE}, ""),
        ("qa_fetch", URL, {"status": 200, "secrets": ["private-key"]}, "secret"),
        ("qa_fetch", {"url": "{face:{name}}"}, {"status": 200, "secrets": ["private-key"]}, ""),
        ("qa_fetch", {"url": "http://qa-abcd2345-1.f/"}, {"status": 200, "secrets": ["private-key"]}, ""),
        ("qa_fetch", {"url": "{site}/?k=" + "ab" * 32}, {"status": 200, "secrets": ["private-key"]}, ""),
        ("qa_fetch", URL, {"status": 200, "secrets": ["api-key"]}, ""),  # documents hold examples of them
        ("qa_fetch", URL, {"status": 200, "secrets": ["aws-key"]}, "secret"),
        ("qa_fetch", {"url": "{face:{name}}"}, {"status": 200, "secrets": ["aws-key"]}, ""),
        ("qa_fetch", {"url": f"{{site}}/?k={AWS}"}, {"status": 200, "secrets": ["aws-key"]}, ""),
        ("qa_fetch", URL, {}, ""),
        ("qa_call", {"target": "a"}, {"status": 400, "charged": 1}, "paid-refusal"),
        ("qa_call", {"target": "a"}, {"status": 400, "charged": 0}, ""),
        ("qa_call", {"target": "a"}, {"status": 200, "charged": 9}, ""),
        ("qa_call", {"target": "a"}, {"status": 500, "charged": 0, "error": "x panic: [Errno 2] y"}, "trace"),
        ("qa_call", {"target": "a"}, {"status": 200, "charged": 0, "reply": TRACE}, ""),  # an agent's words
        ("qa_publish", {}, {"published": True, "app_read_back": False}, "lost-publish"),
        ("qa_publish", {}, {"published": False, "app_read_back": False}, ""),
        ("qa_create", {}, {"ok": False}, ""),
        ("qa_pay", URL | {"pay": "whole"}, {"status_paid": 404, "taken": 7}, "payment-kept"),
        ("qa_pay", URL | {"pay": "whole"}, {"status_paid": 200, "served": 1, "taken": 7}, ""),
        ("qa_pay", URL | {"pay": "less"}, PAID | {"amount": 2, "served": 1}, "unpaid-service"),
        ("qa_pay", URL | {"pay": "less"}, PAID | {"amount": 1, "served": 1}, ""),  # that is all of it
        ("qa_pay", URL | {"pay": "forged"}, PAID | {"status": 200, "served": 1}, ""),  # it is free
        ("qa_pay", URL | TWICE, PAID | {"served": 1, "served_then": 1, "same_then": False}, "payment-reused"),
        ("qa_pay", URL | TWICE, PAID | {"served": 1, "served_then": 1, "same_then": True}, ""),  # kept
        ("qa_pay", URL | ONCE, PAID | {"served": 4, "distinct": 1}, ""),
        ("qa_pay", URL | ONCE, PAID | {"served": 4, "distinct": 2}, "payment-reused"),
        ("qa_chain", {}, {"ok": True, "value": 7}, ""),
    ],
)
def test_one_answer(tool: str, args: dict[str, Any], result: dict[str, Any], oracle: str) -> None:
    assert [one.oracle for one in judge(tool, args, result)] == [oracle] * bool(oracle)


def test_every_tool_with_an_oracle_is_in_the_table_above() -> None:
    judged = {name: spec.judged_as for name, spec in TOOLS.items() if spec.judged_as}
    others = {"qa_browse", "qa_account", "qa_mcp", "qa_registry"}  # test_browser.py, test_accounts.py, and
    # tests/drivers: test_mcp_explorer.py, test_registry.py
    assert set(judged) == {"qa_compile", "qa_fetch", "qa_call", "qa_publish", "qa_chain", "qa_pay"} | others
    assert {word for one in ORACLES for word in one.judges} == {
        word for words in judged.values() for word in words
    }


def panic(said: str, source: str = "x") -> Any:
    (one,) = judge("qa_compile", {"source": source}, {"outcome": "panic", "exit_code": 101, "error": said})
    return one.sighting


def test_a_panic_is_known_by_its_place_and_message_not_by_the_input() -> None:
    first = panic("thread 'main' panicked at lexer.rs:12:5: byte index 3 is not a boundary")
    again = panic("thread 'main' panicked at lexer.rs:12:9: byte index 77 is not a boundary", source="y")
    other = panic("thread 'main' panicked at parser.rs:80:1: no token")
    assert first.whole
    assert first.signature == again.signature != other.signature
    assert "lexer.rs:12" in first.title


def test_a_panic_without_a_word_is_known_by_its_calls() -> None:
    assert not panic("").whole


@pytest.mark.parametrize(
    "text",
    [
        "thread 'main' panicked at src/main.rs:1:1",
        "goroutine 1 [running]:",
        "    at Object.<anonymous> (/srv/app/server.js:10:3)",
        "\tat com.example.App.main(App.java:5)",
        "PHP Fatal error: Uncaught Error: no in /var/www/x.php on line 3",
        "   at App.Run(String[] args) in C:\\x\\Program.cs:line 12",
        "SQLSTATE[42601]: syntax error",
        "ORA-00942: table or view does not exist",
        "ENOENT: no such file or directory",
        "[Errno 13] Permission denied",
    ],
)
def test_the_dictionary_of_traces(text: str) -> None:
    assert [one.oracle for one in judge("qa_fetch", URL, {"status": 404, "text": f"oops\n{text}\n"})] == [
        "trace"
    ]


@pytest.mark.parametrize(
    "text",
    ["not found", "the name has no app", "at noon (see /help)", "error 2", "panic room", '{"error":"no"}'],
)
def test_plain_words_are_no_trace(text: str) -> None:
    assert judge("qa_fetch", URL, {"status": 404, "text": text}) == ()


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda one: one.id)
def test_every_oracle_speaks_of_its_example_and_is_silent_on_its_control(oracle: Oracle) -> None:
    facts = replace(oracle.given, promised=dict.fromkeys(oracle.needs, 1))
    assert oracle.id in {one.oracle for one in table.judge(oracle.example, facts)}
    assert table.judge(oracle.control, facts) == ()


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda one: one.id)
def test_what_the_proof_asks_again_shows_it_too(oracle: Oracle) -> None:
    """The calls that an oracle names, the acts before its own, and its own."""
    facts = replace(oracle.given, promised=dict.fromkeys(oracle.needs, 1))
    steps = [Step(tool=one.tool, args=dict(one.args)) for one in oracle.example]
    for found in table.judge(oracle.example, facts):
        if found.oracle == oracle.id:
            kept = [oracle.example[at] for at in _led(steps, len(steps) - 1, found.led)]
            assert oracle.id in {one.oracle for one in table.judge(kept, facts)}


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda one: one.id)
def test_a_question_that_a_search_cut_is_judged(oracle: Oracle) -> None:
    """Whatever argument is missing, of any call: an oracle that fails would end its run."""
    facts = replace(oracle.given, promised=dict.fromkeys(oracle.needs, 1))
    steps = tuple(Step(tool=one.tool, args=dict(one.args)) for one in oracle.example)
    for cut in cuts(steps):
        results = [one.result for one in oracle.example][-len(cut) :]
        asked = zip(cut, results, strict=True)
        table.judge([Exchange(step.tool, step.args, result) for step, result in asked], facts)


@pytest.mark.parametrize("missing", ["body", "body_type"])
def test_a_form_without_a_part_of_it_is_judged(missing: str) -> None:
    form = {"url": "{site}/login", "method": "POST", "body": "name=moss", "body_type": FORM}
    other = {key: value for key, value in form.items() if key != missing}
    calls = [Exchange("qa_fetch", args, {"status": 200, "text": ""}) for args in (form, other)]
    assert table.judge(calls, Facts()) == ()


def test_the_ids_of_oracles_differ() -> None:
    assert len({one.id for one in ORACLES}) == len(ORACLES)


@pytest.mark.parametrize(("status", "same"), [(404, True), (405, True), (400, False), (500, False)])
def test_what_one_handler_leaks_of_every_unknown_page_is_one_defect(status: int, same: bool) -> None:
    result = {"status": status, "text": TRACE}
    pages = ("{site}/x", "{site}/y/z")
    told = {judge("qa_fetch", {"url": url}, result)[0].sighting.signature for url in pages}
    assert (len(told) == 1) == same


@pytest.mark.parametrize(
    ("status", "kind", "told"),
    [
        (502, "application/problem+json", ["secret"]),
        (200, "text/markdown", []),  # an example
        (404, "text/html", []),  # a key that every page has for its scripts
    ],
)
def test_a_key_in_a_refusal_is_none_of_an_example(status: int, kind: str, told: list[str]) -> None:
    result = {
        "status": status,
        "content_type": kind,
        "secrets": ["api-key"],
        "text": "GET https://x [api-key]",
    }
    assert [one.oracle for one in judge("qa_fetch", {"url": "{site}/rates"}, result)] == told


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("server", "kiln/4.2.0 (/srv/kiln/releases/2026-11-02/app.py)", 1),
        ("server", "nginx/1.25 (Debian)", 0),
        ("x-pathname", "/home/about/us", 0),
    ],
)
def test_a_place_of_the_servers_own_in_a_header_is_one_defect(name: str, value: str, found: int) -> None:
    pages = [
        judge("qa_fetch", {"url": url}, {"status": 200, "text": "moss", "headers": {name: value}})
        for url in ("{site}/a", "{site}/b")
    ]
    assert len({one.sighting.signature for page in pages for one in page}) == found


def test_sql_errors_of_one_route_are_one_defect_whatever_was_sent() -> None:
    leaks = ("no such column: moss", 'near "<": syntax error', 'unrecognized token: """')
    seen = [
        judge(
            "qa_fetch", {"url": "{site}/pieces?sort=x"}, {"status": 400, "text": f"OperationalError: {one}"}
        )
        for one in leaks
    ]
    assert [len(one) for one in seen] == [1, 1, 1]
    assert len({one[0].sighting.signature for one in seen}) == 1


def test_a_server_error_names_the_header_that_it_answers() -> None:
    calls = [Exchange("qa_fetch", {"url": "{site}/x", "headers": {"accept-language": "%"}}, {"status": 500})]
    (found,) = table.judge(calls, Facts(site="http://h.test"))
    assert found.sighting.title == "GET {site}/x answers 500 to the header accept-language"
