"""An expectation is refused before a run when no answer can decide it; what the library decides is sound."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection
from typing import Any

import pytest

from fleet.drivers.expect import FUNCTIONS, MACROS, ExpectationError, Values, functions, holds, invariant
from fleet.drivers.expect_check import check
from fleet.drivers.expect_shapes import result_of
from fleet.files import ROOT
from fleet.personas.check import Wants
from sandbox.errors import CLASSES
from sandbox.fuzz.port import ROUND_ENDS
from sandbox.pages.html import RULES
from sandbox.programs.process import Ending
from sandbox.tools import TOOLS

PAGES = ["qa_fetch", "qa_fetch"]
MIXED = ["qa_fetch", "qa_chain"]
ANSWERED = ["qa_call"]
COMPILED = ["qa_compile"]
BUILT = ["qa_compile", "qa_publish"]
SEARCHED = ["qa_fuzz"]
WRONG = (  # tools, expectation, where in it, part of the message, part of the remedy
    (PAGES, "result.statu == 200", "statu", "no field 'statu'; did you mean 'status'?", "fields: "),
    (PAGES, 'result["statu"] == 200', '"statu"', "no field 'statu'; did you mean 'status'?", "fields: "),
    (PAGES, "has(result.hedaers.etag)", "hedaers", "did you mean 'headers'?", "fields: "),
    (PAGES, "result.forms[0].acton == ''", "acton", "did you mean 'action'?", "action, fields, json, method"),
    (PAGES, "reslt.ok", "reslt", "no variable 'reslt'; did you mean 'result'?", "results, history, facts"),
    (PAGES, "results[2].ok", "results[2]", "results[2] with 2 steps: the last one is results[1]", "index"),
    (PAGES, "results[-1].ok", "-1", "index -1 is below 0", "count from 0"),
    (PAGES, "result.text.contain('x')", "contain", "no function 'contain'; did you mean 'contains'?", "all"),
    (PAGES, "len(result.text) > 1", "len", "no function 'len'", "functions: "),
    (PAGES, 'result.status == "200"', "result", '== does not take result.status (int) and "200"', "200.0"),
    (PAGES, "result.status == 200.0", "result", "(int) and 200.0 (double)", "one type"),
    (PAGES, "result.status == null", "result", "(int) and null (null_type)", "one type"),
    (PAGES, "result.ok == 1", "result", "(bool) and 1 (int)", "one type"),
    (PAGES, "7 in result.secrets", "7", "in does not take 7 (int) and result.secrets (list(string))", "one"),
    (PAGES, "result.status", "result", "is neither true nor false but an int", "compare it"),
    (PAGES, "result.ok && result.status", "result.status", "&& needs true or false, result.status is an", ""),
    (PAGES, "!result.status", "result", "! needs true or false", "compare it"),
    (PAGES, "result.ok ? true : 5", "5", "? answers a bool or an int", "one type"),
    (PAGES, "-result.text == ''", "-", "- does not take result.text (string)", "one type"),
    (PAGES, "size(result.status) == 1", "size", "size() does not take int", "size(list)"),
    (PAGES, "result.links.all(l)", "all", "all() is not written like this", "list.all(x, x.ok)"),
    (PAGES, "result.ok.all(x, x)", "result", "all() needs a list or a map, not a bool", "name a list"),
    (PAGES, "result.text.matches('(')", "'('", "not a regular expression", "RE2"),
    (PAGES, "result.headers.etag == 'x'", "etag", "result.headers may be without 'etag'", '.get("etag", "")'),
    (PAGES, "result.headers.get('etag', 0) == 0", "0)", "the members are string", "one type"),
    (PAGES, "result.ok &&", "", "not a CEL expression", "write CEL over"),
    (PAGES, "(" * 400 + "true" + ")" * 400, "(", "nested too deeply", "flat"),
    (COMPILED, "result.outcome != 'pannic'", "'pannic'", "outcome is never", "one of: \"\", accepted, "),
    (COMPILED, "'Panic' == result.outcome", "'Panic'", "did you mean 'panic'?", "one of: "),
    (COMPILED, "!(result['outcome'] in ['panic', 'cras'])", "['panic'", "did you mean 'crash'?", "one of: "),
    (COMPILED, "result.outcome.startsWith('pann1')", "'pann1'", "never startsWith(", "one of: "),
    (COMPILED, "result.hint.matches('(fund|auht)x')", "'(fund", "result.hint never matches(", "one of: "),
    (BUILT, "results.all(r, r.outcome == 'acepted')", "'acepted'", "did you mean 'accepted'?", "one of: "),
    (SEARCHED, "!result.defects.exists(d, d.kind == 'pannic')", "'pannic'", "d.kind is never", "one of: "),
    (PAGES, "result.error_class == 'timout'", "'timout'", "did you mean 'timeout'?", "one of: "),
    (PAGES, "!('privatekey' in result.secrets)", "'privatekey'", "did you mean 'private-key'?", "one of"),
    (PAGES, "result.a11y.all(x, x != 'img-alt')", "'img-alt'", "mean 'image-alt'?", "one of: button-name"),
    (PAGES, "['a', 'b'][2] == result.text", "2", "index 2 is past the last one, 1", "correct it"),
    (PAGES, "result.headers.get('Content-Type', '') != ''", "'Content-Type'", "lower case", "'content-type'"),
    (PAGES, "result.headers['X-Y'] == ''", "'X-Y'", "names of headers are in lower case", "write 'x-y'"),
    (PAGES, "result.headers.ETag == ''", "ETag", "names of headers are in lower case", "write 'etag'"),
    (PAGES, "has(result.headers.ETag)", "ETag", "names of headers are in lower case", "write 'etag'"),
    (PAGES, "!has(result.headers['X-Y'])", "'X-Y'", "names of headers are in lower case", "write 'x-y'"),
    (PAGES, "!('Vary' in result.headers)", "'Vary'", "names of headers are in lower case", "write 'vary'"),
    (PAGES, "results[0].headers.get('Vary', '') == ''", "'Vary'", "in lower case", "write 'vary'"),
    (PAGES, "results.all(r, r.headers.get('Vary', '') == '')", "'Vary'", "lower case", "write 'vary'"),
    (PAGES, "result.headers.exists(k, k == 'Vary')", "'Vary'", "in lower case", "write 'vary'"),
    (PAGES, "result.headers.all(k, k != \"Vary\")", '"Vary"', "in lower case", "write 'vary'"),
    (PAGES, "result.headers.all(k, !k.startsWith('X-'))", "'X-'", "in lower case", "write 'x-'"),
    (PAGES, "result.headers.all(k, !(k in ['a', 'B']))", "['a', 'B']", "in lower case", "write 'b'"),
    (ANSWERED, "result.charged <= result.advertised_wei", "advertised_wei", "may be without", "has(result"),
    (MIXED, "results.all(r, r.status == 200)", "status", "every result of qa_fetch, qa_chain has no", "ok"),
)  # fmt: skip
SOUND = (
    (PAGES, "result.headers.exists(k, k == 'vary' && result.headers[k] == 'Accept')"),
    (PAGES, "result.headers.get('vary', 'None') != 'Accept' && 'x' in result.headers"),
    (ANSWERED, "!has(result.advertised_wei) || result.charged <= result.advertised_wei"),
    (PAGES, "results.all(r, r.status == 200)"),
    (PAGES, "has(result.headers.etag) && result.headers.etag != ''"),
    (PAGES, "'etag' in result.headers && result.headers['etag'] != ''"),
    (PAGES, "!has(result.headers['x-frame-options'])"),
    (PAGES, "result.headers.get('x-frame-options', '') == 'DENY'"),
    (PAGES, "result.headers.all(k, result.headers[k] != '')"),
    (PAGES, "result.forms.exists(f, f.action == '/' && f.fields.size() > 0)"),
    (PAGES, "result.a11y.map(x, size(x))[0] > 3 || result.samples_ms.min() > 1.0"),
    (PAGES, "double(result.status) < history.figure * 3.0 && result.p95_ms > 100"),
    (PAGES, "facts.anything.at.all == 3 && type(result.status) == int"),
    (MIXED, "results.all(r, r.ok) && results[0].status == 200 && result.value.free[3].json > 1"),
    (MIXED, "result.value == null || result.before[0] == 7"),
    (PAGES, "result.status in [200, 404] && result.unjudged == []"),
    (COMPILED, "result.outcome in ['panic', 'crash'] || result.outcome == '' || result.kind == 'unknown'"),
    (COMPILED, "(result.ok ? result.outcome : 'no') == 'no' && result.outcome == result.kind + 'x'"),
    (COMPILED, "result.outcome.startsWith('pan') || result.outcome.matches('^(crash|hang)$')"),
    (BUILT, "results.all(r, r.outcome == 'accepted') && results[1].code == 'anything'"),
    (PAGES, "'x' in result.links && 'y' in (result.a11y + ['y']) && result.allow_origin == 'anything'"),
    (PAGES, "['timeout', 'x'].exists(w, w == result.error_class)"),
    (PAGES, "timestamp('2020-01-01T00:00:00Z').getFullYear() == result.status"),
)


@pytest.mark.parametrize(
    ("tools", "text", "at", "message", "remedy"), WRONG, ids=[row[1][:30] for row in WRONG]
)
def test_what_no_answer_can_decide_is_refused(
    tools: list[str], text: str, at: str, message: str, remedy: str
) -> None:
    (fault,) = check(text, tools, "bool")
    assert message in fault.message
    assert remedy in fault.remedy
    assert text[fault.at :].startswith(at)


@pytest.mark.parametrize(("tools", "text"), SOUND)
def test_what_an_answer_can_decide_is_sound(tools: list[str], text: str) -> None:
    assert not check(text, tools, "bool")


@pytest.mark.parametrize(("text", "wants"), [("result.text", "number"), ("result.p95_ms", "bool")])
def test_a_figure_is_a_number_and_an_expectation_is_not(text: str, wants: Wants) -> None:
    assert check(text, PAGES, wants)
    assert not check("result.p95_ms", PAGES, "number")


@pytest.mark.parametrize(
    ("file", "pattern", "words"),
    [
        ("pages/html.py", r'rules\.add\("([^"]+)"\)|"([a-z]+-name|(?<=in_label, ")label)"', RULES),
        ("fuzz/loop.py", r'why = "(\w+)"|return "(\w+)"', set(ROUND_ENDS) - {"executions"}),
    ],
)
def test_no_word_of_a_closed_set_is_forgotten(file: str, pattern: str, words: Collection[str]) -> None:
    said = re.findall(pattern, (ROOT / "sandbox" / file).read_text("utf-8"))
    assert {one or other for one, other in said} == set(words)


def test_a_word_of_a_field_is_one_that_its_tools_can_say() -> None:
    assert {one.value for one in Ending} | {""} == set(result_of("qa_compile").fields["outcome"].words)
    assert result_of("qa_publish").fields["outcome"] == result_of("qa_compile").fields["outcome"]
    for tool in TOOLS:
        assert result_of(tool).fields["error_class"].words == CLASSES


def test_every_mistake_of_a_text_is_told_in_its_order() -> None:
    found = check("reslt.ok || result.statu == 200 || results[4].ok", PAGES, "bool")
    assert [fault.at for fault in found] == [0, 19, 35]


def test_an_absent_header_can_be_asked_for() -> None:
    bare = Values([{"headers": {}}])
    assert holds('result.headers.get("etag", "none") == "none"', bare)
    assert holds('!has(result.headers.etag) && !has(result.headers["etag"])', bare)
    assert holds('result.headers.get("etag", "none") == "x"', Values([{"headers": {"etag": "x"}}]))
    with pytest.raises(ExpectationError, match="no such member"):
        holds('result.headers.etag == "x"', bare)


def test_the_list_of_functions_is_the_library_s() -> None:
    assert set(FUNCTIONS) == set(functions())
    data = tomllib.loads((ROOT / "fleet/drivers/functions.toml").read_text("utf-8"))
    assert set(MACROS) == set(data["macros"])


@pytest.mark.parametrize("wei", [2**63 - 1, 2**63, 2**64 + 1, 10**30])
@pytest.mark.parametrize(
    "where", [lambda n: {"charged": n}, lambda n: {"charged": n, "list": [{"deep": -n}]}]
)
def test_amounts_beyond_64_bits_are_compared_exactly(
    wei: int, where: Callable[[int], dict[str, Any]]
) -> None:
    values = Values([where(wei), where(wei + 1)])
    assert holds("result.charged > 0 && results[0].charged < results[1].charged", values)
    assert not holds("results[0].charged == results[1].charged || result.charged <= 5", values)


def test_a_sum_beyond_64_bits_is_undecided() -> None:
    with pytest.raises(ExpectationError, match="overflow"):
        holds("result.charged + 1 > 0", Values([{"charged": 2**63 - 1}]))


@pytest.mark.parametrize(
    "text",
    [
        "a + b == c && c - b == a && a * 2 == c && 2 * a == c",
        "-a < 0 && 5 - a < 0 && 1 + a > a && a - 1 < a",
        "c / 2 == a && (0 - c) / 3 == 0 - c / 3 && 9 / a == 0",
        "a % 7 == r && (0 - a) % 7 == 0 - r && 9 % a == 9",
        "a in list && list[0] == a && size(list) == 2 && list.all(one, one > 8)",
    ],
)
def test_an_invariant_counts_with_integers_of_any_size(text: str) -> None:
    a = 10**30
    assert invariant(text, {"a": a, "b": a, "c": 2 * a, "r": a % 7, "list": [a, 9]})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a", "neither true nor false"),
        ("a / 0 == 1", "zero"),
        ("other > 1", "undeclared"),
        ("a == 'x'", "string"),
    ],
)
def test_an_invariant_that_cannot_be_decided_says_so(text: str, why: str) -> None:
    with pytest.raises(ExpectationError, match=why):
        invariant(text, {"a": 10**30})
