"""The explorer of MCP servers on the practice server: every defect is seen, and nothing on its clean twin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fleet.oracles.model import Facts
from fleet.oracles.table import ORACLES
from sandbox.tools import qa_mcp
from tests.drivers.mcp_visits import profile, visited, way_out
from tests.practice.harbour_mcp import DEFECTS, open_office

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
    "secret-listed": ("mcp-secret", "tool find_boat"),
    "hidden-text": ("mcp-hidden", "tool greet"),
    "orders": ("mcp-orders", "tool read_notice"),
    "origin-unchecked": ("mcp-origin", "{site}/mcp"),
    "list-changes": ("mcp-changed", "tool berth_price"),
    "trace": ("mcp-trace", "tool read_notice"),
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
}


def found_on(
    *defects: str, accounts: bool = False, acts: bool = True, wire: str = "both"
) -> set[tuple[str, str]]:
    """Oracle and place of each violation."""
    with open_office(*defects, wire=wire, protected=accounts) as office:
        office.harbour.stalls_s = 5.0
        platform = profile(office.url, accounts=accounts)
        with way_out(platform, "exercise" if acts else "observe"):
            violations, _, calls = visited(platform, acts=acts)
            assert calls > (300 if acts else 20)
            assert not {name for name, _ in office.calls} & {"clear_log"}  # its server says that it destroys
    return {(one.oracle, " ".join(one.sighting.where.values())) for one in violations}


def seen(found: set[tuple[str, str]], oracle: str, where: str) -> bool:
    return any(one == oracle and where in place for one, place in found)


@pytest.mark.parametrize(("accounts", "wire"), [(False, "both"), (True, "old")])
def test_a_clean_server_has_no_finding(accounts: bool, wire: str) -> None:
    assert found_on(accounts=accounts, wire=wire) == set()


def test_every_defect_that_leaves_a_server_standing_is_seen() -> None:
    found = found_on(*SEEN, "secret-answered", wire="old")
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
    assert len(found) == len(defects)
    assert [name for name, one in defects.items() if not seen(found, *one)] == []


def test_at_observe_what_is_listed_is_judged_and_nothing_is_called() -> None:
    found = found_on("orders", "shell", "climb-resource", acts=False)
    assert {oracle for oracle, _ in found} == {"mcp-orders", "mcp-climb"}


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
    assert {*SEEN, *APART, *WITH_ACCOUNTS, "secret-answered"} == set(DEFECTS)
