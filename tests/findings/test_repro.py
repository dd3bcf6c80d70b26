from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.findings.fingerprint import fingerprint, normalise, normalise_repro
from fleet.findings.repro import MAX_CALLS, ReproCall, ReproError, parse_repro, write_repro

LITERAL = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAME = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
CALL = st.builds(
    ReproCall, st.from_regex(r"qa_[a-z]{1,8}", fullmatch=True), st.dictionaries(NAME, LITERAL, max_size=3)
)


def test_the_form_of_the_design_page() -> None:
    assert parse_repro('qa_compile(source="enum E{}")') == (ReproCall("qa_compile", {"source": "enum E{}"}),)


def test_canonical_form_sorts_and_escapes() -> None:
    calls = (
        ReproCall("qa_call", {"target": "claude", "message": 'é"\u202e\x7f\n; x'}),
        ReproCall("qa_chain", {"n": [1, True]}),
    )
    text = 'qa_call(message="\\u00e9\\"\\u202e\\u007f\\n; x", target="claude"); qa_chain(n=[1,true])'
    assert write_repro(calls) == text
    assert parse_repro(text) == calls


@given(st.text())
def test_one_plain_text_is_read_as_any_other(text: str) -> None:
    found = []
    for blanks in ("", " "):
        try:
            found.append(parse_repro(f'{blanks}qa_x(a="{text}")'))
        except ReproError:
            found.append(())
    assert found[0] == found[1]


@given(st.lists(CALL, min_size=1, max_size=4))
def test_round_trip(calls: list[ReproCall]) -> None:
    text = write_repro(calls)
    assert parse_repro(text) == tuple(calls)
    assert write_repro(parse_repro(text)) == text
    assert text.isascii()
    assert text.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "qa_release",
        'qa_release("real")',
        "qa_fetch(url='single')",
        "qa_fetch(url=site)",
        "qa_fetch(url=str(1))",
        "qa_fetch(**{})",
        "__import__('os').system('id')",
        "qa_fetch(url=1).x",
        "qa_fetch(url=1) or 2",
        "qa_fetch(url=1);",
        "qa_fetch(url=1) qa_fetch(url=1)",
        "qa_fetch(url=1,)",
        "qa_fetch(url=1, url=2)",
        'qa_fetch(url={"a":1,"a":2})',
        "qa_fetch(n=NaN)",
        "qa_fetch(n=-Infinity)",
        "qa_fetch(n=1e400)",
        "QA_FETCH(n=1)",
        "qa_ｆetch(n=1)",
        'qa_fetch(url="a\nb")',
        "qa_fetch(n=" + "1" * 5_000 + ")",
        "qa_fetch(n=" + "[" * 200_000 + ")",
        "qa_fetch(n=" + "[" * 9 + "]" * 9 + ")",
        "; ".join(["qa_fetch(n=1)"] * (MAX_CALLS + 1)),
        "qa_fetch(" + ", ".join(f"a{n}=1" for n in range(17)) + ")",
        "qa_fetch(n=1)" + " " * 300_000,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ReproError) as caught:
        parse_repro(text)
    assert len(str(caught.value)) < 100


@given(st.text(max_size=200) | st.from_regex(r"qa_[a-z]+\([a-z]=[\[{\"0-9,:}\]]*\)"))
def test_no_text_raises_anything_but_a_repro_error(text: str) -> None:
    try:
        calls = parse_repro(text)
    except ReproError:
        return
    assert parse_repro(write_repro(calls)) == calls


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", object(), {1, 2}])
def test_only_literals_are_written(value: object) -> None:
    with pytest.raises(ReproError):
        write_repro([ReproCall("qa_call", {"x": value})])


def test_nothing_of_python_is_executed_by_parsing() -> None:
    before = set(sys.modules)
    with pytest.raises(ReproError):
        parse_repro("qa_call(x=__import__('antigravity'))")
    assert "antigravity" not in set(sys.modules) - before


def _call(**args: object) -> list[ReproCall]:
    return [ReproCall("qa_call", args)]


def test_fingerprints_are_stable_across_releases() -> None:
    assert (
        fingerprint("compiler", parse_repro('qa_compile(source="enum E{}")'), "any title") == "8167777e5cc8"
    )
    assert fingerprint("compiler", [], "Compile  PANIC") == "e716e159d271"


def test_titles_count_only_without_a_repro() -> None:
    assert fingerprint("ux", _call(m="x"), "one") == fingerprint("ux", _call(m="x"), "two")
    assert fingerprint("ux", [], "one") != fingerprint("ux", [], "two")
    assert fingerprint("ux", [], "Compile  PANIC\u200b") == fingerprint("ux", [], " compile panic")
    assert fingerprint("ux", [], "one") != fingerprint("perf", [], "one")


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("qa-7f3k2m-1", "qa-zz91ab-2", True),
        ("see 0x" + "ab" * 20, "see 0x" + "cd" * 20, True),
        ("tx 0x" + "ab" * 32, "tx 0x" + "cd" * 32, True),
        ("fn  f() {\n}", "fn f() { }", True),
        ("{name}", "{name}", True),
        ("{name}", "{site}", False),
        ("enum E{}", "enum e{}", False),
        ("0061736d01", "0061736d02", False),
        ("", " ", False),
    ],
)
def test_what_differs_between_two_runs_does_not_count(one: str, two: str, same: bool) -> None:
    assert (normalise_repro(_call(x=[{"y": one}])) == normalise_repro(_call(x=[{"y": two}]))) is same


@given(st.text(max_size=200))
def test_normalising_titles_never_fails_and_ignores_case_and_space(text: str) -> None:
    assert normalise(f"  {text}\t") == normalise(text)
    normalise(text).encode()
