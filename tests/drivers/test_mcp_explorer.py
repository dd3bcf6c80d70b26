"""The explorer of MCP servers on the practice server: every defect is seen, and nothing on its clean twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from fleet.devnet.surfaces.harbour import DEFECTS, open_office
from fleet.drivers.explore.agent.mcp import make
from fleet.drivers.explore.agent.mcp_values import wrong
from fleet.drivers.explore.port import ExplorerContext
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import ORACLES, judge
from sandbox.tools import qa_mcp
from tests.conftest import WHOLE
from tests.drivers.mcp_visits import profile, visited, way_out

SEEN = {
    "output-misfit": ("mcp-output", "tool berth_price"),
    "required-unchecked": ("mcp-input", "tool greet"),
    "type-unchecked": ("mcp-input", "tool greet"),
    "range-unchecked": ("mcp-input", "tool berth_price"),
    "shell": ("mcp-command", "tool tide_table"),
    "template": ("mcp-expression", "tool greet"),
    "climb": ("mcp-climb", "tool read_notice"),
    "climb-resource": ("mcp-climb", "resource harbour://notices/"),
    "sql": ("mcp-condition", "tool find_boat"),
    "secret-answered": ("mcp-secret", "tool greet"),
    "secret-listed": ("mcp-secret", "tool find_boat"),
    "hidden-text": ("mcp-hidden", "tool greet"),
    "orders": ("mcp-orders", "tool read_notice"),
    "origin-unchecked": ("mcp-origin", "{site}/mcp"),
    "list-changes": ("mcp-changed", "tool berth_price"),
    "trace": ("mcp-trace", "tool read_notice"),
    "version-unchecked": ("mcp-header", "{site}/mcp"),
}
"""By defect, which of them fit into one server: the oracle, and where."""
APART = {
    "output-missing": ("mcp-output", "tool berth_price"),
    "dies": ("mcp-ends", "tool write_log"),
    "hangs": ("mcp-hangs", "tool tide_table"),
    "stalls": ("mcp-stalls", "tool search_log"),
}
WITH_ACCOUNTS = {
    "token-ignored": ("mcp-token", "{site}/mcp"),
    "tool-without-token": ("mcp-open-tool", "tool tide_table"),
    "session-is-token": ("mcp-session", "{site}/mcp takes a caller's session for a token"),
    "range-hangs": ("mcp-hangs", "tool free_berths argument from_day"),
    "session-is-caller": ("mcp-session", "{site}/mcp takes who shows another's session for that one"),
    "draft-open": ("mcp-handle", "tool show_draft"),
    "letter-open": ("mcp-foreign-resource", "resource harbour://letters/"),
    "state-altered": ("mcp-state", "tool reserve goes on with a changed requestState"),
    "state-open": ("mcp-state", "tool reserve goes on with another caller's requestState"),
    "header-unchecked": ("mcp-header", "{site}/mcp"),
    "list-by-client": ("mcp-list-differs", "tool berth_price"),
}


def found_on(
    *defects: str, accounts: bool = False, acts: bool = True, wire: str = "both"
) -> set[tuple[str, str]]:
    """Oracle, and place and title, of each violation."""
    with open_office(*defects, wire=wire, protected=accounts) as office:
        office.harbour.stalls_s = 5.0
        platform = profile(office.url, accounts=accounts)
        most = 1_000 if defects or WHOLE else 350
        with way_out(platform, "exercise" if acts else "observe"):
            violations, _, calls = visited(platform, acts=acts, calls=most)
            assert calls > (300 if acts else 20)
            assert not {name for name, _ in office.calls} & {"clear_log"}  # its server says that it destroys
    return {(one.oracle, " ".join((*one.sighting.where.values(), one.sighting.title))) for one in violations}


def seen(found: set[tuple[str, str]], oracle: str, where: str) -> bool:
    return any(one == oracle and where in place for one, place in found)


@pytest.mark.parametrize(("accounts", "wire"), [(False, "both"), (True, "old")])
def test_a_clean_server_has_no_finding(accounts: bool, wire: str) -> None:
    assert found_on(accounts=accounts, wire=wire) == set()


def test_every_defect_that_leaves_a_server_standing_is_seen() -> None:
    found = found_on(*SEEN, wire="old")
    assert [name for name, one in SEEN.items() if not seen(found, *one)] == []
    expected = {oracle for oracle, _ in SEEN.values()}
    assert {oracle for oracle, _ in found} == expected


@pytest.mark.parametrize("defects", [APART, WITH_ACCOUNTS], ids=["without-an-answer", "with-accounts"])
def test_defects_of_silence_and_of_accounts_are_seen_and_nothing_else(
    defects: Mapping[str, tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qa_mcp, "CALL_S", 1.5)  # as a slower caller would wait longer
    monkeypatch.setattr(qa_mcp, "ALIVE_S", 0.7)
    found = found_on(*defects, accounts=defects is WITH_ACCOUNTS)
    assert [name for name, one in defects.items() if not seen(found, *one)] == []
    assert [one for one in found if not any(seen({one}, *each) for each in defects.values())] == []


def test_at_observe_what_is_listed_is_judged_and_nothing_is_called() -> None:
    found = found_on("orders", "shell", "climb-resource", acts=False)
    assert {oracle for oracle, _ in found} == {"mcp-orders", "mcp-climb"}


def test_members_of_an_object_are_asked_outside_of_their_schema_too() -> None:
    size = {"size": {"type": "integer", "maximum": 4}}
    inner = {"type": "object", "properties": size, "required": ["size"]}
    schema = {"type": "object", "properties": {"box": inner}, "required": ["box"]}
    asked = [value for _, value in wrong({"box": {"size": 1}}, schema)]
    assert asked == [{}, {"box": {}}, {"box": {"size": {"qa": 1}}}, {"box": {"size": 5}}]


def test_a_path_that_climbs_by_percent_is_one() -> None:
    climb = next(one for one in ORACLES if one.id == "mcp-climb")
    before, after = climb.example
    arguments = {"file": "..%2f..%2fetc%2fpasswd"}
    assert list(climb.judge((before, replace(after, args={**after.args, "arguments": arguments})), Facts()))


LOOP = {"$ref": "#/$defs/a"}
ODD = (
    {
        "name": "a",
        "inputSchema": LOOP | {"$defs": {"a": LOOP}},
        "outputSchema": LOOP | {"$defs": {"a": LOOP}},
    },
    {"name": "b", "inputSchema": {"properties": ["x"], "required": {"x": 1}}},
    {
        "name": "c",
        "inputSchema": {"properties": {"x": {"type": ["string", 7]}, "y": 7}, "required": ["y", 7]},
    },
    {
        "name": "d",
        "inputSchema": {"properties": {"x": {"type": "number", "minimum": "low"}}, "required": ["x"]},
    },
    {"name": "e", "inputSchema": {"properties": {"x": {"type": "string", "maxLength": -4, "pattern": "("}}}},
    {"name": "f" * 4_000, "inputSchema": None, "annotations": ["destructiveHint"]},
    {"name": ["g"]},
    "h",
)


def test_odd_definitions_are_asked_as_far_as_they_can_be_and_judged() -> None:
    platform = profile("http://127.0.0.1:9")
    ground = ExplorerContext(platform=platform, tools=frozenset({"qa_mcp"}), acts=True)
    explorer = make(ground, Random(1), {})
    (first,) = explorer.ask(48)
    odd = {"ok": True, "wire": 7, "tools": list(ODD), "resources": [7, {"uri": "x"}], "prompts": "none"}
    odd |= {
        "templates": [{"uriTemplate": "{"}, {"uriTemplate": "x://{a}/{b}"}],
        "hidden": ["", 7],
        "unlisted": {},
    }
    explorer.learn(first, [odd])
    asked = [question for _ in range(40) for question in explorer.ask(48)]
    called = {str(step.args["name"])[:1] for one in asked for step in one.steps if step.args.get("method")}
    assert called >= {"a", "b", "c", "d", "e", "f", "x"}
    answers: Sequence[Mapping[str, Any]] = (
        {"ok": True, "structured": 7, "text": None, "changed": [7], "secrets": [["x"]]},
        {"ok": False, "hung": True, "text": 7, "error": None, "code": "x"},
    )
    for question in asked:
        for answer in answers:
            seen = [
                Exchange(step.tool, step.args, odd if not step.args.get("method") else answer)
                for step in question.steps
            ]
            judge(seen, Facts())
        explorer.learn(question, answers)
    # the next run begins with what was asked least
    later = make(ground, Random(2), {**explorer.state(), "other": 7})
    (first,) = later.ask(48)
    odd["tools"] = [*ODD, {"name": "new", "inputSchema": {}}]
    later.learn(first, [odd])
    beginning = [step.args.get("name") for one in later.ask(6) for step in one.steps]
    assert set(beginning) <= {None, "new"}
    assert "new" in beginning


def test_a_condition_that_was_stored_before_is_no_difference() -> None:
    boat = next(one for one in ORACLES if one.id == "mcp-condition")
    stored = "moss' OR '1'='1\nmoss' OR '1'='2\n"
    seen = [
        replace(one, result={"ok": True, "text": stored + one.args["arguments"]["boat"]})
        for one in boat.example
    ]
    assert list(boat.judge(seen, Facts())) == []
    assert len(list(boat.judge(boat.example, Facts()))) == 1


def test_each_seeded_defect_has_its_expectation() -> None:
    assert {*SEEN, *APART, *WITH_ACCOUNTS} == set(DEFECTS)
