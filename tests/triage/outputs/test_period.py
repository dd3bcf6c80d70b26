"""The report of a period: its figures, made again by hand, and text of strangers that stays text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from fleet.cli import report
from fleet.cli.operate import dial
from fleet.findings.kinds import kinds
from fleet.store.journal import Journal
from fleet.store.rows import DecisionRow, FindingRow, NewRun, RunRow
from fleet.triage.items.life import Stage
from fleet.triage.outputs.document import WorklistHeader
from fleet.triage.outputs.files import save
from fleet.triage.outputs.period import PeriodFacts, period, period_html, period_text
from tests.triage.outputs.test_formats import OWN, item

SINCE, UNTIL = "2026-11-01T00:00:00Z", "2026-11-27T00:00:00Z"
BEFORE, AFTER = "2026-10-01T00:00:00Z", "2026-11-10T00:00:00Z"
XSS = "Script injection: GET {site}/?q=<script>alert(1)</script>"


def own(number: int, title: str, **more: Any) -> Any:
    plain = OWN | {"severity": "high", "first_seen": AFTER, "since": AFTER, "regression": False}
    made = item(
        number, title, **plain | {"trusted": True, "state": "confirmed", "fingerprint": f"{number:012x}"}
    )
    return replace(made, **more)


ITEMS = (
    own(1, XSS),
    own(2, "Secret is public: GET {site}/key", severity="critical", first_seen=BEFORE),
    own(3, "SQL injection: GET {site}/a", state="verified-fixed", first_seen=BEFORE, since=AFTER),
    own(4, "SQL injection: GET {site}/b", state="verified-fixed", first_seen=BEFORE, since=BEFORE),
)


def ran(persona: str, outcome: str) -> RunRow:
    row = NewRun(run_id="r", persona=persona, key="k", platform="p", trigger="t", rung="", budget={})
    return RunRow(
        **{name: getattr(row, name) for name in row.__dataclass_fields__},
        state="ended",
        created=AFTER,
        outcome=outcome,
    )


def posted(number: int, title: str) -> FindingRow:
    return FindingRow(run_id="r", fingerprint=f"{number:012x}", state="posted", title=title, at=AFTER)


def decided(kind: Any, number: int, name: str, at: str = AFTER, undoes: str = "") -> DecisionRow:
    return DecisionRow(
        item=f"{number:012x}", kind=kind, reason="x", who="ann", at=at, platform="p", name=name, undoes=undoes
    )


FACTS = PeriodFacts(
    platform="p",
    version="1",
    since=SINCE,
    until=UNTIL,
    items=ITEMS,
    runs=(ran("qa-web", "done"), ran("qa-chain", "failed")),
    tools={"qa-web": ("qa_fetch",), "qa-chain": ("qa_chain",)},
    findings=(posted(1, XSS), posted(9, "SQL injection: GET {site}/c"), posted(8, "x")),
    decisions=(
        decided("dismiss", 9, "a"),
        decided("dismiss", 8, "b"),
        decided("undo", 8, "c", undoes="b"),
        decided("dismiss", 7, "d", at=BEFORE),
    ),
    untested=({"persona": "", "part": "chain", "reason": "not configured <b>"},),
    audit={"drawn": 4, "overturned": 1},
)


def test_each_figure_can_be_made_again_by_hand() -> None:
    data = period(FACTS)
    assert data["posture"] == "at risk: 2 grave findings open of 2"
    assert data["trend"] == {"open_before": 2, "open_now": 2, "is": "stable"}
    assert (data["open"]["critical"], data["open"]["high"], data["open"]["low"]) == (1, 1, 0)
    assert [one["fingerprint"] for one in data["new"]] == [f"{1:012x}"]
    assert [one["fingerprint"] for one in data["fixed"]] == [f"{3:012x}"]
    assert data["runs"] == {"count": 2, "outcomes": {"done": 1, "failed": 1}}
    wrong = data["false_positives"]
    assert (wrong["dismissed"], wrong["posted"], wrong["rate"]) == (1, 3, 0.3333)
    assert wrong["by_kind"] == {"other": 0.0, "reflected-script": 0.0, "sql-injection": 1.0}
    assert (wrong["grave_rate"], wrong["exceeds_target"]) == (0.0, False)
    assert [one["severity"] for one in data["findings"]] == ["critical", "high"]
    assert data["findings"][1]["impact"].startswith("A link to the page runs")
    assert "lower bound" in wrong["method"]


@pytest.mark.parametrize(
    ("confirmed", "tries", "evidence", "repro", "sure"),
    [
        (3, 3, "e" * 64, 'qa_fetch(url="x")', (100, "confirmed")),
        (3, 3, "e" * 64, 'qa_fetch(url="x"); qa_fetch(url="y")', (95, "confirmed")),
        (2, 3, "e" * 64, 'qa_fetch(url="x")', (80, "high")),
        (3, 3, "", 'qa_fetch(url="x")', (85, "high")),
        (1, 3, "", "", (35, "low")),
    ],
)
def test_how_sure_a_finding_is_can_be_made_again_by_hand(
    confirmed: int, tries: int, evidence: str, repro: str, sure: tuple[int, str]
) -> None:
    row = replace(posted(1, XSS), confirmed=confirmed, tries=tries, evidence=evidence, data={"oracle": "o"})
    item = replace(ITEMS[0], repro=repro, evidence="f" * 64)
    facts = replace(FACTS, items=(item,), proofs={item.fingerprint: row})
    [found] = period(facts)["findings"]
    assert (found["confidence"], found["confidence_grade"]) == sure
    assert sum(found["confidence_parts"].values()) == sure[0]
    came = found["provenance"]
    assert (came["run"], came["oracle"], came["evidence"]) == ("r", "o", evidence)
    assert came["check"] == "fleet runs verify r"
    assert f"{sure[0]} % ({sure[1]}" in period_html(period(facts)).decode()
    [unknown] = period(replace(facts, proofs={}))["findings"]
    assert unknown["provenance"] == {"entry": item.entry, "evidence": "f" * 64}


def test_a_defect_is_followed_over_the_cycles() -> None:
    days = [f"2026-11-{day:02}T00:00:00Z" for day in range(2, 10)]
    runs = [replace(ran("qa-web", "done"), run_id=f"r{n}", ended=at) for n, at in enumerate(days)]
    steps: tuple[tuple[Any, int], ...] = (("confirmed", 1), ("verified-fixed", 3), ("regression", 5))
    stages = tuple(Stage(state, days[n], "x") for state, n in steps)
    item = replace(ITEMS[0], state="regression", first_seen=days[1], stages=stages)
    facts = replace(FACTS, items=(item,), runs=(*runs, ran("qa-web", "failed")), cycles=7)
    words = [
        next((name for name in ("new", "persistent", "remediated", "regressed") if one[name]), "")
        for one in period(facts)["cycles"]
    ]
    assert words == ["new", "persistent", "remediated", "", "regressed", "persistent", "persistent"]
    assert [one["run"] for one in period(replace(facts, cycles=1))["cycles"]] == [
        "r3",
        "r4",
        "r5",
        "r6",
        "r7",
    ]
    assert any(line.startswith("cycle     r7 until") for line in period_text(period(facts)))


def test_every_kind_is_shown_healthy_or_not_asked_and_why() -> None:
    by_kind = {one["kind"]: one for one in period(FACTS)["coverage"]}
    assert by_kind.keys() == kinds().keys()
    assert (by_kind["reflected-script"]["status"], by_kind["reflected-script"]["open"]) == ("shown", 1)
    assert by_kind["reflected-script"]["cwe"] == ["CWE-79"]
    assert by_kind["sql-injection"]["status"] == "healthy"
    unasked = [one for one in by_kind.values() if one["subject"] == "chain"]
    assert {one["status"] for one in unasked} == {"not asked"}  # its only run failed
    assert all("qa_chain" in one["why"] or "qa_publish" in one["why"] for one in unasked)


def test_what_a_run_left_out_is_partial_and_no_healthy_kind() -> None:
    left = ({"persona": "qa-web", "part": "probes", "reason": "its time was over"},)
    by_kind = {one["kind"]: one for one in period(replace(FACTS, untested=left))["coverage"]}
    assert (by_kind["sql-injection"]["status"], by_kind["reflected-script"]["status"]) == ("partial", "shown")
    assert "left something out" in by_kind["sql-injection"]["why"]


def test_a_remedy_has_its_effort_and_its_priority_or_says_that_none_is_known() -> None:
    other = own(5, "Something nobody named: GET {site}/x")
    found = {one["fingerprint"]: one for one in period(replace(FACTS, items=(*ITEMS, other)))["findings"]}
    known, unknown = found[f"{1:012x}"], found[f"{5:012x}"]
    assert (known["remedy"], known["effort"]) == (kinds()["reflected-script"].fix, "moderate")
    assert unknown["remedy"].startswith("No specific remedy is known for it")
    assert ("https://" in unknown["remedy"], unknown["effort"]) == (True, "unknown")
    assert [found[f"{n:012x}"]["priority"] for n in (1, 2, 5)] == [ITEMS[0].rank, ITEMS[1].rank, other.rank]
    assert {one.effort for one in kinds().values()} == {"quick win", "moderate", "significant"}


def test_the_timeline_has_what_was_agreed_what_was_done_and_every_interruption() -> None:
    stops = [
        {"at": "2026-11-12T10:00:00Z", "act": "resume", "who": "ann", "why": "fine"},
        {"at": "2026-11-12T09:30:00Z", "act": "stop", "who": "eve", "why": "a leak"},
        {"at": "2026-11-12T09:40:00Z", "act": "stop", "who": "bob", "why": "again"},
        {"at": "2026-11-26T23:00:00Z", "act": "stop", "who": "eve", "why": "for good"},
    ]
    outages = [{"since": BEFORE, "until": "2026-11-01T00:05:00Z", "targets": "site"}]
    agreed = ("2026-11-02T00:00:00Z", "2026-11-20T00:00:00Z")
    made = replace(FACTS, interventions=stops, outages=outages, agreed=agreed)
    data = period(made)["timeline"]
    assert data["agreed"] == {"begin": agreed[0], "end": agreed[1]}
    assert data["actual"] == {"begin": AFTER, "end": AFTER}
    assert [(one["minutes"], one["cause"]) for one in data["interruptions"]] == [
        (5, "outage of site"),
        (30, "stopped by eve: a leak"),
        (60, "stopped by eve: for good"),
    ]
    rows = period(made)["coverage"]
    whole = sum(one["status"] in ("shown", "healthy") for one in rows)
    assert data["completed_percent"] == round(100 * whole / len(rows)) < 100
    text = list(period_text(period(made)))
    assert "agreed    2026-11-02 00:00 to 2026-11-20 00:00" in text
    assert "paused    2026-11-12 09:30 for 30 minutes: stopped by eve: a leak" in text
    page = period_html(period(made)).decode()
    assert "for 30 minutes: <bdi>stopped by eve: a leak</bdi>" in page
    assert period(replace(FACTS, runs=()))["timeline"]["actual"] == {"begin": "", "end": ""}


def test_a_report_says_how_what_is_missed_is_measured() -> None:
    data = period(FACTS)
    assert "before each release" in data["missed"]
    assert any(data["missed"] in line for line in period_text(data))
    assert data["missed"] in period_html(data).decode()
    page = (Path(__file__).parents[3] / "docs/bench/unseen-platforms.md").read_text()
    assert "By class" in page


def test_too_many_wrong_grave_findings_stand_in_the_first_sentence() -> None:
    found = tuple(replace(one, severity="critical") for one in FACTS.findings)
    data = period(replace(FACTS, findings=found))
    assert data["false_positives"]["grave_rate"] == 0.3333
    assert data["posture"].endswith("false positives of grave findings exceed the published target")


@pytest.mark.parametrize(
    ("change", "trend"),
    [
        ({"items": ITEMS[:1]}, "degrading"),
        ({"items": ITEMS[2:3]}, "improving"),
        ({"items": ITEMS[1:2]}, "stable"),
        ({"items": ()}, "stable"),
    ],
)
def test_the_trend_is_that_of_the_weights(change: dict[str, Any], trend: str) -> None:
    assert period(replace(FACTS, **change))["trend"]["is"] == trend


def test_text_of_strangers_stays_text() -> None:
    page = period_html(period(FACTS)).decode()
    assert "<script" not in page
    assert "&lt;script&gt;alert" in page
    assert "not configured &lt;b&gt;" in page
    assert any("at risk" in line for line in period_text(period(FACTS)))


def test_the_command_reads_journal_and_worklist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))

    async def journal() -> None:
        async with await Journal.open(tmp_path / "fleet.db"):
            pass

    anyio.run(journal)
    save(tmp_path, ITEMS, WorklistHeader(platform="devnet"))
    moved = CliRunner().invoke(dial.app, ["exercise", "--reason", "a drill"])
    assert moved.exit_code == 0, moved.output
    done = CliRunner().invoke(report.app, ["--since", "2026-10-15", "--json"])
    data = json.loads(done.stdout)
    assert data["posture"].startswith("at risk: 2")
    [move] = data["interventions"]
    assert (move["act"], move["why"]) == ("dial observe to exercise", "a drill")
    assert CliRunner().invoke(report.app, ["--html"]).stdout.startswith("<!DOCTYPE html>")
    assert "posture   at risk" in CliRunner().invoke(report.app, []).stdout
