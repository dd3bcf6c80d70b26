from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.findings.envelope import read
from fleet.findings.repro import ReproCall

DESIGN = (
    'qa/v1 source=qa-fuzz sev=high surface=rustlite\ncompile panics\nrepro: qa_compile(source="enum E{}")'
)


@pytest.mark.parametrize(
    ("text", "grammar", "title"),
    [
        (DESIGN, "design", "compile panics"),
        ("qa/v1 source=x v1.0.0: it broke", "shipped", "it broke"),
        (
            "qa/v1 source=x v0.22: source=y sev=high: still the body",
            "shipped",
            "source=y sev=high: still the body",
        ),
        ("qa/v1 v2 noise source=x: body", "shipped", "body"),
        ("qa/v1 source=x sev=2 the face is blank", "sop", "the face is blank"),
        ("qa/v1 source=x sev=high\nthe face is blank", "sop", "the face is blank"),
        (
            "qa/v1 source=x sev=high surface=ux fp=0123456789ab\nv2 thing: broken",
            "canonical",
            "v2 thing: broken",
        ),
        ("qa/v1 v=1 source=x sev=high surface=ux fp=0123456789ab\ntitle", "canonical", "title"),
        # the three upstream negatives
        ("qa/v1 source=x v1.0.0:   ", "free", "qa/v1 source=x v1.0.0:"),
        ("qa/v1 no source or colon", "free", "qa/v1 no source or colon"),
        ("qa/v1 source=x vNOTVERSION: body", "free", "qa/v1 source=x vNOTVERSION: body"),
        # nothing is half-believed
        (
            "qa/v1 source=x source=y sev=high surface=ux\nt",
            "free",
            "qa/v1 source=x source=y sev=high surface=ux",
        ),
        ("qa/v1 source=x sev=urgent surface=ux\nt", "free", "qa/v1 source=x sev=urgent surface=ux"),
        (
            "qa/v1 source=x sev=high surface=ux fp=nope\nt",
            "free",
            "qa/v1 source=x sev=high surface=ux fp=nope",
        ),
        (
            "qa/v1 source=x sev=high surface=ux rate=4/3\nt",
            "free",
            "qa/v1 source=x sev=high surface=ux rate=4/3",
        ),
        (
            "qa/v1 source=x sev=high surface=ux rate=3/0\nt",
            "free",
            "qa/v1 source=x sev=high surface=ux rate=3/0",
        ),
        ("qa/v1 source=x sev=high surface=ux", "free", "qa/v1 source=x sev=high surface=ux"),
        ("qa/v1\tsource=x sev=high surface=ux\nt", "free", "qa/v1 source=x sev=high surface=ux"),
        (" " + DESIGN, "free", "qa/v1 source=qa-fuzz sev=high surface=rustlite"),
        ("The button does nothing!", "free", "The button does nothing!"),
        ("qa/v1 source= v1.0: body", "free", "qa/v1 source= v1.0: body"),
        ("qa/v1 source=<b> v1.0: body", "free", "qa/v1 source=<b> v1.0: body"),
        ("qa/v1 source=x " + "y " * 600 + "v1.0: body", "free", "qa/v1 source=x " + "y " * 111 + "…"),
        ("\n\n", "free", "(empty)"),
        ("", "free", "(empty)"),
    ],
)
def test_grammars(text: str, grammar: str, title: str) -> None:
    entry = read(text)
    assert (entry.grammar, entry.title) == (grammar, title)
    if grammar == "free":
        assert (entry.source, entry.severity, entry.repro, entry.fp) == ("", "unknown", (), "")


def test_design_entries_keep_their_repro() -> None:
    entry = read(DESIGN)
    assert (entry.severity, entry.surface, entry.body) == ("high", "rustlite", "")
    assert (entry.repro, entry.repro_state) == ((ReproCall("qa_compile", {"source": "enum E{}"}),), "calls")


def test_a_sop_entry_may_be_one_long_line() -> None:
    entry = read("qa/v1 source=x sev=high " + "word " * 400)
    assert (entry.grammar, entry.severity, len(entry.title)) == ("sop", "high", 238)


def test_only_the_last_line_of_a_canonical_entry_is_its_repro() -> None:
    head = "qa/v1 source=x sev=high surface=ux fp=0123456789ab\ntitle\nrepro: qa_x(a=1)"
    assert read(head).repro_state == "calls"
    assert (read(f"{head}\nmore").repro_state, read(f"{head}\nmore").body) == (
        "none",
        "repro: qa_x(a=1)\nmore",
    )


def test_a_severity_by_number_says_nothing_we_know() -> None:
    assert read("qa/v1 source=x sev=1 text").severity == "unknown"
    assert read("qa/v1 source=x sev=critical text").severity == "critical"


def test_shipped_and_free_entries_never_have_a_repro() -> None:
    for text in ("qa/v1 source=x v1.0: t\nrepro: qa_x(a=1)", "hello\nrepro: qa_x(a=1)"):
        assert read(text).repro_state == "none"


def test_a_planted_positional_repro_is_not_runnable() -> None:
    entry = read('qa/v1 source=x sev=high surface=ux\nt\nrepro: qa_release("real")')
    assert (entry.repro, entry.repro_state) == ((), "invalid")


@pytest.mark.parametrize(
    "text",
    [
        "qa/v1 source=" + "a" * 1_000_000 + " sev=high surface=ux\nt",
        "qa/v1 source=x " + "y" * 1_000_000 + " v1.0: body",
        "qa/v1 " + "source=x " * 100_000,
        "qa/v1 source=x sev=high " + "\n" * 50_000_000,
        "\x1b" * 1_000_000,
        "[" * 1_000_000,
    ],
)
def test_oversize_is_free_and_quick(text: str) -> None:
    entry = read(text)
    assert entry.grammar == "free"
    assert len(entry.title.encode()) <= 240


def test_what_is_shown_is_clean() -> None:
    entry = read("qa/v1 source=x sev=high surface=ux\n\x1b[31mred\u202e\x00 ![a](http://e)\n<b>\n\ud800")
    assert entry.title == "red\ufffd ![a](http://e)"
    assert entry.body == "<b>\n\ufffd"


@given(
    st.text(max_size=300)
    | st.from_regex(r"qa/v1 (source=[a-z ]{0,4}|sev=[a-z0-9]{0,4}|v1: |\n|repro:|: ){0,8}.{0,30}")
)
def test_reading_never_fails_and_never_returns_raw_text(text: str) -> None:
    entry = read(text)
    assert entry.title
    for shown in (entry.title, entry.source, entry.surface, entry.version, entry.run):
        assert shown.isprintable()
    assert entry.body.replace("\n", "").isprintable()
