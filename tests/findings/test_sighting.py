"""A finding is named by what was seen: titles, signatures, and fingerprints of version 2."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.findings.fingerprint import fingerprint, identity
from fleet.findings.repro import ReproCall
from fleet.findings.sighting import Sighting, mentioned, of_probe, template, titled

FETCH = {"tool": "qa_fetch", "args": {"url": "{site}/x"}}
CALLS = (ReproCall("qa_fetch", {"url": "{site}/x"}),)
INTENT = "what its author had in mind"


def seen(expect: str, **result: Any) -> Sighting:
    return of_probe(expect, [FETCH], [result], INTENT)


def test_the_title_says_what_was_seen_and_the_authors_words_are_the_intent() -> None:
    found = seen("result.status == 200 && !result.canary_executable", status=404, canary_executable=False)
    assert found.title == "GET {site}/x: 404, the sent script does not run"
    assert found.body == f"intent: {INTENT}"
    assert INTENT not in found.title


@pytest.mark.parametrize(
    ("more", "where"), [({}, "a call of iris"), ({"unsigned": True}, "a call of iris without a token")]
)
def test_the_title_says_what_the_call_left_out(more: dict[str, Any], where: str) -> None:
    calls = [{"tool": "qa_call", "args": {"target": "iris", "message": "hello", **more}}]
    assert of_probe("result.status >= 400", calls, [{"status": 200}], INTENT).title == f"{where}: 200"


@pytest.mark.parametrize(
    ("error_class", "error"),
    [
        ("garbage", "127.0.0.1:8080 sent less than it announced"),
        ("garbage", "content-encoding 'br' was not asked for"),
        ("http", "no answer, and none to other requests for a while"),
    ],
)
def test_without_an_outcome_the_error_is_the_outcome(error_class: str, error: str) -> None:
    found = seen("result.status == 200", status=0, error_class=error_class, error=error)
    assert found.title == f"GET {{site}}/x: {error_class} {error}"
    other = seen("result.status == 200", status=0, error_class=error_class, error="another cause")
    elsewhere = seen(
        "result.status == 200", status=0, error_class=error_class, error=error.replace("80", "9")
    )
    assert identity("ux", found, CALLS) == identity("ux", elsewhere, CALLS) != identity("ux", other, CALLS)


def test_other_answers_of_one_probe_are_other_defects() -> None:
    expect = "result.status == 200"
    names = {identity("ux", seen(expect, status=status), CALLS) for status in (403, 404, 410)}
    assert len(names) == 3


@pytest.mark.parametrize(
    ("expect", "one", "other"),
    [
        ("result.p95_ms < 5", {"p95_ms": 812.3}, {"p95_ms": 799.0}),
        ("result.charged == 0", {"charged": 7}, {"charged": 10**16}),
        ("result.reply != ''", {"reply": "one text"}, {"reply": "another"}),
        ("result.caller == ''", {"caller": "0x" + "ab" * 20}, {"caller": "0x" + "cd" * 20}),
        ("size(result.a11y) == 0", {"a11y": ["x", "y"]}, {"a11y": ["y", "x"]}),
    ],
)
def test_what_differs_between_two_looks_is_no_part_of_it(
    expect: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = (seen(expect, status=200, **result) for result in (one, other))
    assert identity("ux", first, CALLS) == identity("ux", second, CALLS)


@pytest.mark.parametrize(
    ("expect", "one", "other"),
    [
        ("result.charged == 0", {"charged": 7}, {"charged": 0}),
        ("result.reply != ''", {"reply": "x"}, {"reply": ""}),
        ("size(result.a11y) == 0", {"a11y": ["x"]}, {"a11y": ["x", "y"]}),
        ("result.ok", {"ok": True, "allow_origin": "a"}, {"ok": False}),
        ("result.allow_origin == ''", {"allow_origin": "http://a"}, {"allow_origin": "null"}),
    ],
)
def test_what_tells_two_defects_apart_is_part_of_it(
    expect: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = (seen(expect, status=200, **result) for result in (one, other))
    assert identity("ux", first, CALLS) != identity("ux", second, CALLS)


def test_a_signature_that_names_the_defect_needs_no_calls() -> None:
    others = (ReproCall("qa_fetch", {"url": "{site}/y"}),)
    whole, part = Sighting("t", "s", whole=True), Sighting("t", "s")
    assert identity("ux", whole, CALLS) == identity("ux", whole, others)
    assert identity("ux", part, CALLS) != identity("ux", part, others)
    assert identity("ux", whole, CALLS) != identity("perf", whole, CALLS)


def test_the_two_versions_never_meet() -> None:
    assert identity("ux", Sighting("t", ""), CALLS) != fingerprint("ux", CALLS, "t")


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ("byte index 3 of 'größe'", "byte index {n} of {text}"),
        ("at src/a.rs:12:5: no", "at {place}: no @ src/a.rs:12"),
        ("name qa-abcd2345-1 by 0xdeadbeef", "name {name} by {hex}"),
        ("a   b\nc", "a b c"),
        ("", ""),
    ],
)
def test_the_template_of_a_message(message: str, key: str) -> None:
    assert template(message) == key


def test_fields_that_an_expectation_speaks_of() -> None:
    text = "results.all(r, r.ok) && results[1].value == 2 && result.secrets.exists(t, t == 'x')"
    assert mentioned(text) == ("ok", "value", "secrets")


def test_a_hostile_answer_stays_one_bounded_line() -> None:
    found = seen("result.text == ''", status=200, text="\x1b[2J evil\n# head " * 999)
    assert "\n" not in found.title
    assert "\x1b" not in found.title
    assert len(found.title) <= 220


@pytest.mark.parametrize(
    ("name", "shown", "title"),
    [
        ("", "GET {site}/a: 500", "GET {site}/a: 500"),
        ("Open redirect", "GET {face:docs}?q=x: 302", "Open redirect: GET docs/?q=x: 302"),
        (
            "an agent is mute; a reply was expected",
            "a call of moss: 200",
            "An agent is mute: a call of moss: 200",
        ),
        ("the price is not as expected", "GET {site}/p: 200", "The price is not as expected: GET /p: 200"),
        (
            "Refused call is charged",
            "a call of " + "m" * 99,
            "Refused call is charged: a call of " + "m" * 32 + "…" + "m" * 32,
        ),
        ("Overcharged", "costs 20000000000000000 wei; 15 wei", "Overcharged: costs 0.02 credits; 15 wei"),
        ("Forged", f"as 0x{'0' * 36}51de", "Forged: as 0x0000…51de"),
    ],
    ids=["no name", "kind", "sentence", "no expectation", "cut", "wei", "address"],
)
def test_a_title_says_what_is_wrong_where_and_what_was_seen(name: str, shown: str, title: str) -> None:
    assert titled(name, shown) == title
    assert len(title) <= 100


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("charged", 10**16, "costs 0.01 credits"),
        ("a11y", ["button-name", "html-has-lang"], "breaks button-name, html-has-lang"),
        ("a11y", ["a", "b", "c"], "breaks a, b, c"),
        ("a11y", ["a", "b", "c", "d"], "breaks a, b and 2 more"),
        ("a11y", [], "breaks no rule"),
        ("allow_origin", "http://a.test", "allows http://a.test"),
        ("stream_ok", False, "broken stream"),
        ("control_p95_ms", 12.34567, "its control's p95 12.3 ms"),
    ],
)
def test_a_field_is_shown_in_words_and_units(field: str, value: object, shown: str) -> None:
    found = seen(f"result.{field} == 1", **{"status": 200, field: value})
    assert found.title == f"GET {{site}}/x: 200, {shown}"


def test_an_origin_that_is_allowed_stands_in_a_title_once() -> None:
    call = {"tool": "qa_fetch", "args": {"url": "{site}/x", "origin": "http://a.test"}}
    result = {"status": 200, "allow_origin": "http://a.test"}
    found = of_probe("result.allow_origin == ''", [call], [result], INTENT)
    assert found.title == "GET {site}/x from the origin http://a.test: 200, allows it"


def test_what_failed_is_said_first_and_a_long_text_by_what_was_looked_for_in_it() -> None:
    calls = [FETCH, {"tool": "qa_fetch", "args": {"url": "{site}/y"}}]
    long = {"status": 200, "text": "word " * 90 + "(os error 2)"}
    expect = """results.all(r, !r.text.contains('(os error '))"""
    assert of_probe(expect, calls, [long, {"status": 200, "text": ""}], INTENT).title == (
        'GET {site}/y: 200, no text; GET {site}/x: 200, text with "(os error "'
    )
    broken = {"status": 0, "error_class": "too_large", "error": "more than 8 MB"}
    assert of_probe(expect, calls, [broken, long], INTENT).title == (
        'GET {site}/x: too large more than 8 MB; GET {site}/y: 200, text with "(os error "'
    )
