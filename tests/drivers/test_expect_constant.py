"""An expectation that no answer can change is refused, and no other one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.drivers.expect import Values, holds
from fleet.drivers.expect_check import check
from fleet.drivers.expect_constant import constant

TRUE = [
    "true",
    "!false",
    "1 == 1",
    "(1 == 1)",
    "size('ab') == 2",
    "'x' in ['x', 'y']",
    "[1, 2].exists(n, n > 1)",
    "result.ok || !result.ok",
    "result.ok || true",
    "result.ok ? true : true",
    "result.ok == true || result.ok == false",
    "result.status == result.status",
    "result.status == 200 || result.status != 200",
    "result.status < 200 || result.status >= 200",
    "size(result.text) >= 0",
    "result.text.size() > -1",
    "result.text == 'a' || result.text != 'a'",
    "has(result.headers.etag) || !has(result.headers.etag)",
    "result.text.contains('x') || !result.text.contains('x')",
]
FALSE = [
    "false",
    "1 == 2",
    "'x'.contains('y')",
    "result.ok && !result.ok",
    "result.ok && false",
    "result.status == 200 && result.status == 404",
    "result.status > 200 && result.status < 201",
    "result.text == 'a' && result.text == 'b'",
    "size(result.text) < 0",
    "result.status in [200, 204] && result.status in [404]",
]
OPEN = [
    "result.ok",
    "result.status == 200",
    "result.status in [200, 404]",
    "result.status > 200 && result.status < 202",
    "result.p95_ms > 1.2 && result.p95_ms < 1.3",
    "size(result.text) > 1000000",
    "size(result.a11y) == 0",
    "result.text == 'a' || result.text != 'b'",
    "result.text > 'm'",
    "result.text.matches('^a+$')",
    "result.text.contains('a') && !result.text.contains('ab')",
    "'etag' in result.headers && result.headers['etag'] != ''",
    "!('private-key' in result.secrets) && !('api-key' in result.secrets)",
    "result.headers.get('etag', '') == 'x'",
    "results[0].status == results[1].status",
    "results.all(one, one.ok)",
    "result.status == 200 ? result.ok : true",
    "result.status + 1 == result.status",
    "result.p95_ms <= history.page_p95_ms * 3.0",
    "facts.open_registration || result.ok",
]


@pytest.mark.parametrize(("text", "always"), [(t, True) for t in TRUE] + [(t, False) for t in FALSE])
def test_what_no_answer_can_change_is_refused(text: str, always: bool) -> None:
    assert constant(text) is always
    (fault,) = check(text, ["qa_fetch", "qa_fetch"], "bool")
    assert fault.message == f"is always {str(always).lower()}: no answer can change it"
    assert "result.status == 200" in fault.remedy


@pytest.mark.parametrize("text", OPEN)
def test_what_an_answer_can_change_is_taken(text: str) -> None:
    assert check(text, ["qa_fetch", "qa_fetch"], "bool") == []


def test_a_figure_to_keep_may_be_constant() -> None:
    assert check("1", ["qa_fetch"], "number") == []


_PARTS = st.sampled_from(
    ["result.ok", "true", "false", "1 == 1"]
    + [f"result.status {word} {number}" for word in ("==", "!=", "<", ">=") for number in (1, 2, 4)]
    + ["result.status in [1, 3]", "result.status > 1", "result.ok == true", "size(result.text) >= 1"]
)
_TEXTS = st.recursive(
    _PARTS,
    lambda inner: st.one_of(
        inner.map("!({})".format),
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda one: f"({' '.join(one)})"),
        st.tuples(inner, inner, inner).map(lambda one: "({} ? {} : {})".format(*one)),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(_TEXTS)
def test_it_is_constant_only_if_every_answer_agrees(text: str) -> None:
    answers = (
        {"ok": ok, "status": status, "text": letters}
        for ok in (True, False)
        for status in range(7)
        for letters in ("", "a")
    )
    seen = {holds(text, Values([answer])) for answer in answers}
    always = constant(text)
    assert always is None or seen == {always}


@pytest.mark.parametrize(
    ("text", "at", "word", "instead"),
    [
        ("result.ok and result.status == 200", 10, "and", "&&"),
        ("result.ok or result.status == 200", 10, "or", "||"),
        ("result.ok AND result.status == 200", 10, "AND", "&&"),
        ("not result.ok", 0, "not", "!"),
        ("result.ok & result.ok", 10, "&", "&&"),
        ("result.ok | result.ok", 10, "|", "||"),
        ("result.status = 200", 14, "=", "=="),
        ("result.status === 200", 14, "===", "=="),
        ("result.status !== 200", 14, "!==", "!="),
        ("result.text == 'a or b' or result.ok", 24, "or", "||"),
        ("result.ok && and", 13, "and", "&&"),
    ],
)
def test_operators_of_other_languages_are_named_with_those_of_cel(
    text: str, at: int, word: str, instead: str
) -> None:
    (fault,) = check(text, ["qa_fetch"], "bool")
    assert (fault.message, fault.remedy, fault.at) == (
        f"CEL has no {word!r}",
        f"write {instead} instead",
        at,
    )


@pytest.mark.parametrize("word", ["True", "FALSE", "None", "Null"])
def test_constants_of_other_languages_are_named(word: str) -> None:
    (fault,) = check(f"result.ok == {word}", ["qa_fetch"], "bool")
    assert (fault.message, fault.at) == (f"no variable {word!r}", 13)
    assert "lower case" in fault.remedy


@pytest.mark.parametrize("text", ["result.text == 'and' || result.ok", 'result.text.contains("a = b or c")'])
def test_words_in_a_text_are_its_own(text: str) -> None:
    assert check(text, ["qa_fetch"], "bool") == []
