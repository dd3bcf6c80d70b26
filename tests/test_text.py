from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.store.tables.units import amount
from fleet.text import MARKS, clean, counted, csv_cell, cut_bytes, line, markdown, markdown_code
from tests.triage.live_outputs import live_markdown, reader

ANY = st.text(st.characters() | st.sampled_from("\x1b\x9b[]0m\u202e\u200b\u0301\x00\ud800\n\t|`"))


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("plain", "plain"),
        ("", ""),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b2Jgone", "gone"),
        ("\x1b]8;;http://evil.test\x1b\\link\x1b]8;;\x07!", "link!"),
        ("\x1b]52;c;ZXZpbA==\x07clip", "clip"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("\x1bcreset", "reset"),
        ("\x1b", "\ufffd"),
        ("\x1b]0;never closed", "0;never closed"),
        ("a\x00b\x07c\x7fd\x85e", "a\ufffdb\ufffdc\ufffdd e"),
        ("user\u202etxt.exe\u2066", "usertxt.exe"),
        ("ze\u200bro\u00ad\ufeffwidth\u3164", "zerowidth"),
        ("tag\U000e0041\U000e007f", "tag"),
        ("variation\U000e0100\ufe0f", "variation"),
        ("lone \ud800 half", "lone \ufffd half"),
        ("private \ue000 use", "private \ufffd use"),
        ("one\ntwo\r\nthree\u2028four\tfive", "one two three four five"),
        ("wide\u00a0and\u3000wider", "wide and wider"),
        ("e\u0301\u0301\u0301\u0301\u0301x", "e\u0301\u0301\u0301x"),
        ("naïve — Ünïcödé 漢字 שלום", "naïve — Ünïcödé 漢字 שלום"),
        ("[/bold] [link=http://x]y", "[/bold] [link=http://x]y"),
    ],
)
def test_hostile_text_is_made_safe(hostile: str, shown: str) -> None:
    assert clean(hostile) == shown


def test_newlines_are_kept_by_flag() -> None:
    assert clean("a\r\nb\u2029c\vd", newlines=True) == "a\nb\nc\nd"


def test_limit_marks_what_was_cut() -> None:
    assert clean("abcdef", 4) == "abc…"
    assert clean("abcd", 4) == "abcd"
    assert clean("\u200b" * 1_000 + "abc", 10) == "…"
    assert clean("abc", 0) == ""


def test_a_very_large_entry_is_quick_and_short() -> None:
    assert clean("\x1b]" * 25_000_000, 100) == "…"
    assert len(clean("a" + "\u0301" * 5_000_000, 100)) <= 100


@given(ANY, st.integers(0, 60), st.booleans())
def test_clean_is_idempotent_and_holds_its_promises(text: str, limit: int, newlines: bool) -> None:
    shown = clean(text, limit, newlines=newlines)
    assert clean(shown, limit, newlines=newlines) == shown
    assert len(shown) <= limit
    shown.encode("utf-8")
    assert all(char.isprintable() or (newlines and char == "\n") for char in shown)


def test_every_code_point_is_shown_replaced_or_dropped() -> None:
    for code in [*range(0x20000), *range(0xE0000, 0xE1000), sys.maxunicode]:
        shown = [unicodedata.category(char) for char in clean(chr(code) * (MARKS + 1))]
        assert not {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} & set(shown), hex(code)
        assert sum(category[0] == "M" for category in shown) <= MARKS, hex(code)


@given(ANY)
def test_marks_on_one_base_are_capped(text: str) -> None:
    run = 0
    for char in clean(text):
        run = run + 1 if unicodedata.category(char)[0] == "M" else 0
        assert run <= MARKS


def test_line_has_single_spaces_and_clean_ends() -> None:
    assert line("  a \n\n  b\t ") == "a b"
    assert len(line("x " * 500, 50)) == 50


@given(st.text(), st.integers(0, 40))
def test_bytes_are_cut_on_a_character_boundary(text: str, limit: int) -> None:
    cut = cut_bytes(text, limit)
    assert len(cut.encode()) <= limit
    assert cut == text or text.startswith(cut.removesuffix("…"))


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("![x](http://evil.test/a.png)", r"\!\[x\]\(http\:\//evil\.test/a\.png\)"),
        ("<script>alert(1)</script>", r"\<script\>alert\(1\)\</script\>"),
        ("a `c` *d* _e_ f", "a `` `c` *d* _e_ `` f"),
        ("a|b `c|d` x", r"a\|b \`c\|d\` x"),
        ("see www.evil.test", "see `www.evil.test`"),
        ("GET {site}/llms.txt: 500, {proxy}/x", "GET `{site}/llms.txt`: 500, {proxy}/x"),
        ("result.has_entry of has_entry", "`result.has_entry` of has_entry"),
        ("main.rs of 1.2.3", "`main.rs` of 1.2.3"),
        ("a@b.com mailto:a@b", "`a@b.com mailto:a@b`"),
        ("//localhost/x", "`//localhost/x`"),
        ("- item", "`-` item"),
        ("1. item", "`1.` item"),
        ("# head\n# two", "`#` head `#` two"),
        ("&lt; & (a) 1 < 2 > 0!", "`&lt;` & (a) 1 < 2 > 0!"),
        ("= a = b - c", "`=` a = b - c"),
        ("  1. x", "  `1.` x"),
        ("plain: text, no fuss.", "plain: text, no fuss."),
    ],
)
def test_markdown_shows_text_as_it_is(hostile: str, shown: str) -> None:
    assert markdown(hostile) == shown


PIECES = "` `` * _ __ [x] (y) ]( ![ <b> <!-- | \\ ~~ # $ &amp; a 1. - + = > : , // @ . com www. http {{ é"
LIVELY = st.lists(st.sampled_from([*PIECES.split(), " ", "  "]), max_size=20).map("".join)


@given(LIVELY, st.sampled_from(["", "- a ", "## 1. ", "- why: "]))
def test_no_reader_of_markdown_acts_on_a_text_and_each_shows_it_whole(text: str, before: str) -> None:
    shown = markdown(text)
    assert live_markdown(f"{before}{shown}\n".encode()) == []
    if shown.strip() and before:
        tokens = [one for token in reader().parse(before + shown) for one in token.children or ()]
        told = "".join(one.content for one in tokens if one.type in ("text", "code_inline", "text_special"))
        wanted = (before.lstrip("-# ") + clean(text)).split()
        assert told.split() == wanted


@given(LIVELY)
def test_a_text_stays_in_its_cell(text: str) -> None:
    table = f"| a | b |\n|---|---|\n| {markdown(text)} | x |\n"
    tokens = [token.type for token in reader().parse(table)]
    assert (tokens.count("td_open"), tokens.count("tr_open")) == (2, 2)


def test_code_spans_cannot_be_left() -> None:
    assert markdown_code("a") == "`a`"
    assert markdown_code("a`b|c") == "``a`b\\|c``"
    assert markdown_code("``") == "``` `` ```"
    assert markdown_code("a\nb") == "`a b`"


@given(st.text("`a|", max_size=12))
def test_a_code_span_has_one_fence_longer_than_any_run_inside(text: str) -> None:
    span = markdown_code(text)
    fence = re.match("`+", span)
    assert fence is not None
    inner = span[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in inner


@pytest.mark.parametrize("formula", ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\uff1d1"])
def test_formulas_become_text(formula: str) -> None:
    assert csv_cell(formula).startswith("'")
    assert csv_cell("plain") == "plain"


def test_a_dash_for_nothing_stays_a_dash() -> None:
    assert [csv_cell(text) for text in ("-", " -", "--", "-1", "+")] == ["-", "' -", "'--", "'-1", "'+"]


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (counted(1, "file"), "1 file"),
        (counted(0, "file"), "0 files"),
        (counted(2, "entry", "entries"), "2 entries"),
        (counted(1, "entry", "entries"), "1 entry"),
        (amount("calls", 1), "1 call"),
        (amount("usd_micro", 1_000_000), "1 usd"),
    ],
)
def test_a_count_agrees_with_its_noun(said: str, wanted: str) -> None:
    assert said == wanted
