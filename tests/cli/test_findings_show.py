"""`fleet items show` of a finding whose evidence is here: what decides, and all of it, in 80 columns."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from fleet.app.item_view import ItemView
from fleet.cli.items.item_view import lines_of
from fleet.findings.repro import ReproCall, write_repro
from fleet.store.rows import FindingRow
from fleet.triage.items.life import Stage
from fleet.triage.outputs.item_page import Picture, item_page
from fleet.triage.outputs.repro_shell import ShellPlace
from tests.cli.test_worklist_command import AT, own

NOW = datetime(2026, 11, 28, tzinfo=UTC)
PLACE = ShellPlace(site="http://site.test", proxy="http://proxy.test", state="/state")
CALLED = {"target": "moss", "message": "hi"}
RESULT = {"status": 200, "reply": "", "turns": 11, "text": "\x1b[2Jhidden", "headers": {}, "charged": 0}
TITLE = "An agent takes too many turns for a task: moss takes 11"


def view(*, steps: Any = None, expect: str = "result.turns < 11", **data: Any) -> ItemView:
    probe = {"expect": expect, "finding": "it takes 11 turns; at most 10 were expected", "kind": ""}
    row = FindingRow(
        run_id="r1",
        fingerprint="a" * 12,
        probe="p",
        persona="qa-x",
        surface="ux",
        severity="low",
        title=TITLE,
        repro=write_repro([ReproCall("qa_call", CALLED)]),
        evidence="b" * 64,
        confirmed=3,
        tries=3,
        at=AT,
        data={"probe": probe, "seen": "a call of moss: turns 11"} | data,
    )
    bundle = {
        "steps": steps or [{"tool": "qa_call", "args": CALLED, "result": RESULT}],
        "load": "load 1.0 on 2 cores",
    }
    page = item_page(row.title, row.repro, PLACE, row=row, bundle=bundle)
    return ItemView(row=row, posted=row, page=page, bundle=bundle)


def test_expected_and_observed_stand_side_by_side_and_nothing_else_of_the_answer() -> None:
    lines = lines_of(view(fields=["reply"]), now=NOW)
    assert lines[:2] == [f"low  ux  {TITLE}", "found by qa-x in run r1, raised 3/3"]
    begin = lines.index("Observed: a call of moss: turns 11")
    assert lines[begin - 3 : begin + 4] == [
        "What is wrong: it takes 11 turns; at most 10 were expected",
        "Where: agent moss at http://proxy.test",
        "Expected: At most 10.",
        "Observed: a call of moss: turns 11",
        "  field  expected      observed",
        "  turns  less than 11  11",
        "  reply                none",
    ]
    assert "hidden" not in "\n".join(lines)
    assert "Whole request and answer: --evidence" in lines


def test_how_it_was_proven_says_tries_load_and_evidence() -> None:
    text = " ".join(one.strip() for one in lines_of(view(), now=NOW))
    assert "Shown in 3 of 3 tries, each in a fresh jail. The machine then: load 1.0 on 2 cores." in text
    assert "b" * 64 in text


def test_what_it_is_compared_with_stands_beside_it() -> None:
    steps = [
        {
            "tool": "qa_fetch",
            "args": {"url": "http://site.test/"},
            "result": {"status": 200, "allow_origin": ""},
        },
        {
            "tool": "qa_fetch",
            "args": {"url": "http://site.test/", "origin": "https://evil.test"},
            "result": {"status": 200, "allow_origin": "https://evil.test"},
        },
    ]
    shown = view(steps=steps, fields=["allow_origin"], oracle="foreign-origin").page.fields
    assert [(one.name, one.observed, one.compared) for one in shown] == [
        ("allow origin", "https://evil.test", "none")
    ]


def test_without_a_profile_the_place_is_that_of_the_evidence() -> None:
    row, bundle = (
        view().row,
        {"steps": [{"tool": "qa_fetch", "args": {"url": "http://a.test/x"}, "result": {}}]},
    )
    repro = write_repro([ReproCall("qa_fetch", {"url": "{site}/x"})])
    assert item_page(TITLE, repro, ShellPlace(), row=row, bundle=bundle).where == ("GET http://a.test/x",)
    assert item_page(TITLE, repro, PLACE, row=row, bundle=bundle).where == ("GET http://site.test/x",)


def test_all_of_the_evidence_is_shown_when_asked() -> None:
    lines = lines_of(view(), now=NOW, whole=True)
    assert lines[lines.index("  a call of moss") :] == [
        "  a call of moss",
        "    status: 200",
        "    turns: 11",
        "    text: hidden",
        "    charged: 0",
    ]


def test_the_page_has_whole_request_and_answer_cleaned_and_cut() -> None:
    steps = [
        {
            "tool": "qa_fetch",
            "args": {"url": "http://site.test/x", "method": "POST", "headers": {"a": "b"}, "body": "x=1"},
            "result": {"status": 500, "headers": {"server": "x"}, "text": "\x1b[2Jline\n" + "y" * 9_000},
        }
    ]
    (one,) = view(steps=steps).page.exchanges
    assert one.request == "POST http://site.test/x\na: b\n\nx=1"
    assert one.response.startswith("HTTP 500\nserver: x\n\nline\nyyy")
    assert len(one.response) == 2_000


def test_no_line_is_wider_than_a_terminal_and_no_time_is_said_twice() -> None:
    item = own(
        1,
        TITLE + " and " + "x" * 200,
        first_seen=AT,
        last_seen=AT,
        since=AT,
        stages=(Stage("new", AT, "qa-ux"), Stage("confirmed", AT, "3 of 3")),
        why="severity " * 40,
        reason="because " * 30,
    )
    shown = view(fields=["reply", "text", "status", "headers"])
    assert shown.row is not None
    runs = tuple(replace(shown.row, run_id=f"r{n}", at=AT) for n in range(12))
    picture = Picture(name="plot", type="image/png", data="")
    for width in (80, 120):
        lines = lines_of(
            replace(shown, item=item, runs=runs, page=replace(shown.page, pictures=(picture,))),
            now=NOW,
            width=width,
            whole=True,
        )
        assert max(map(len, lines)) <= width
        assert "\n".join(lines).count("2026-11-21 22:51") == 1


def test_no_value_is_spelled_as_python_does() -> None:
    values = {
        "a": True,
        "b": ["x", "y"],
        "c": {"k": None},
        "d": 1.0,
        "e": None,
        "f": 10**16,
        "charged": 10**16,
    }
    steps = [{"tool": "qa_call", "args": CALLED, "result": values}]
    page = view(steps=steps, fields=list(values), expect="true").page
    assert {one.name: one.observed for one in page.fields} == {
        "a": "yes",
        "b": "x, y",
        "c": "k: none",
        "d": "1",
        "e": "none",
        "f": "10000000000000000",
        "charged": "0.01 credits",
    }
    text = "\n".join(lines_of(view(steps=steps, fields=list(values), expect="true"), now=NOW, whole=True))
    assert not any(word in text for word in ("True", "None", "['", "{'"))


def test_the_json_has_the_same_page() -> None:
    page = json.loads(json.dumps(view().data()))["page"]
    assert page["fields"] == [{"name": "turns", "expected": "less than 11", "observed": "11", "compared": ""}]
    assert page["script"].splitlines()[0] == "#!/usr/bin/env bash"
    assert page["script"].splitlines()[-1] == """fleet call 'qa_call(message="hi", target="moss")'"""
    assert set(page) == {
        *("kind", "wrong", "where", "expected", "observed", "fields", "why", "fix", "references"),
        *("script", "exchanges", "proof", "pictures"),
    }
