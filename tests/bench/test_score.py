"""Counting by rules: recall, precision and titles; the report; the personas without their own probes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bench.findings import __main__ as bench_main
from bench.findings import reach
from bench.findings.__main__ import arguments, numbers
from bench.findings.fleet_rounds import FinderOutcome
from bench.findings.reduced_personas import without_own_probes
from bench.findings.report import data_of, markdown
from bench.findings.rules import EffectRule, EvidenceCall, Posted, answered, contains, like
from bench.findings.score import judged, tallied
from bench.findings.targets import Examined, Wanted, chosen, devnet
from fleet.app.persona_sets import roster
from fleet.devnet.defects import ALL_IDS
from tests.platforms.stand import Stand

ABOUT = {"command": "python -m bench.findings", "commit": "abc", "notes": ["a peer was left out"]}


def page(path: str, status: int, text: str = "") -> EvidenceCall:
    return EvidenceCall("qa_fetch", {"url": f"http://127.0.0.1:1{path}"}, {"status": status, "text": text})


def item(title: str, *calls: EvidenceCall) -> Posted:
    return Posted(title=title, calls=calls)


@asynccontextmanager
async def nowhere(folder: Path) -> AsyncIterator[Stand]:
    raise AssertionError("it is not started")
    yield


BROKEN = Wanted("server-error", EffectRule(answered("/a/{id}", 500), r"\b500\b"), "a breaks")
LEAKS = Wanted("trace-leak", EffectRule(contains("/b", "Traceback"), "trace"), "b leaks")
TARGET = Examined("seed 9.0", "generated", (BROKEN, LEAKS), nowhere)
CLEAN = Examined("seed 9 clean", "clean", (), nowhere)


def test_an_item_counts_by_its_evidence_alone() -> None:
    outcome = FinderOutcome(
        items=[
            item("GET /a/1 answers 500", page("/a/1", 500)),
            item("all is well", page("/a/2?x=y", 500)),
            item("GET /a/1 answers 500", page("/a/1", 200)),
            item("another place", page("/c", 500)),
        ]
    )
    result = judged(TARGET, "fleet", outcome)
    assert result.found == {"server-error"}
    assert (result.true, result.titled) == (2, 1)
    assert result.false == ("GET /a/1 answers 500", "another place")


def test_what_is_found_twice_counts_once_and_a_clean_target_has_only_false_items() -> None:
    both = item("a trace at 500", page("/a/1", 500), page("/b", 404, "Traceback (most recent call last)"))
    results = [
        judged(TARGET, "fleet", FinderOutcome(items=[both, both], calls=7, seconds=2.0, first_s=1.5)),
        judged(CLEAN, "fleet", FinderOutcome(items=[both])),
        judged(TARGET, "random", FinderOutcome(troubles=["it ended"])),
    ]
    data = {key: tally.as_data() for key, tally in tallied(results).items()}
    fleet = data["fleet", "generated"]
    assert (fleet["found"], fleet["recall"], fleet["precision"], fleet["titles_true"]) == (2, 1.0, 1.0, 1.0)
    assert (fleet["calls"], fleet["first_proof_s"]) == (7, 1.5)
    clean = data["fleet", "clean"]
    assert (clean["recall"], clean["precision"], clean["false"]) == (
        None,
        0.0,
        ["seed 9 clean: a trace at 500"],
    )
    assert data["random", "generated"]["missed"] == [
        "seed 9.0: server-error: a breaks",
        "seed 9.0: trace-leak: b leaks",
    ]


def test_the_report_has_a_row_for_each_finder_and_class_and_the_union_of_peers() -> None:
    shown = item("a 500", page("/a/1", 500))
    results = [
        judged(TARGET, "fleet", FinderOutcome(items=[shown])),
        judged(TARGET, "wapiti", FinderOutcome(items=[item("x", page("/b", 200, "Traceback"))])),
    ]
    text = markdown(results, ABOUT)
    assert "| fleet | generated (1) | 2 | 1 | 50 % | 50 % | 1 | 100 % | 100 % | - | - | 0 s |" in text
    assert "| server-error | 1/1 | 0/1 |" in text
    assert "with 2 defects: the fleet found 1, wapiti together 1." in text
    assert "- a peer was left out" in text
    assert [row["finder"] for row in data_of(results, ABOUT)["results"]] == ["fleet", "wapiti"]


def test_what_no_tool_reaches_is_told_apart() -> None:
    far = Wanted("far", EffectRule(answered("/far", 500), ""), "far away", reachable=False)
    target = Examined("seed 9.1", "generated", (BROKEN, far), nowhere)
    missed = judged(target, "fleet", FinderOutcome(items=[item("a 500", page("/a/1", 500))]))
    data = tallied([missed])["fleet", "generated"].as_data()
    assert (data["recall"], data["reachable"], data["recall_of_reachable"]) == (0.5, 1, 1.0)
    assert data["missed"] == ["seed 9.1: far: far away (beyond the tools)"]


def test_an_argument_makes_a_switch_reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reach.reachable("")
    monkeypatch.setattr(
        reach, "arguments", lambda: {"agent": {"target", "message", "unsigned"}, "chain": {"args"}}
    )
    assert not any(reach.reachable(one) for one in (reach.HEADER, reach.TOKEN, reach.SELECTOR))
    monkeypatch.setattr(
        reach, "arguments", lambda: {"web": {"headers"}, "agent": {"token"}, "chain": {"selector"}}
    )
    assert all(reach.reachable(one) for one in (reach.HEADER, reach.TOKEN, reach.SELECTOR))


class Nothing:
    """A finder that is never asked."""

    async def observe(self, folder: Path, stand: Stand) -> FinderOutcome:
        raise AssertionError("it was asked")


@pytest.mark.anyio
async def test_a_platform_that_does_not_start_is_tried_again_and_is_not_taken_for_a_clean_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_main, "RESULTS", tmp_path / "findings.json")
    result = await bench_main.looked_at(CLEAN, "fleet", Nothing(), tmp_path)
    assert [one.partition(":")[0] for one in result.outcome.troubles] == ["attempt 1", "attempt 2"]
    assert bench_main.publish([result], arguments(["--peers", "none"])) == 1
    assert bench_main.publish([judged(CLEAN, "fleet", FinderOutcome())], arguments(["--peers", "none"])) == 0


def test_paths_match_by_template() -> None:
    assert like("/a/{id}")("/a/7")
    assert like("/")("/")
    assert not like("/a/{id}")("/a/7/b")
    assert not like("/a/{id}")("/a")


def test_the_devnet_is_judged_by_its_defects_own_effects() -> None:
    target = devnet()
    assert {one.name for one in target.wanted} == ALL_IDS
    shown = item("x", EvidenceCall("qa_fetch", {"url": "http://h/api/persona?name=docs"}, {"status": 405}))
    result = judged(target, "fleet", FinderOutcome(items=[shown]))
    assert result.found == {"method-405"}
    data = tallied([result])["fleet", "devnet"].as_data()
    assert (data["precision"], data["titles_true"]) == (1.0, None)


def test_options() -> None:
    assert numbers("4,7-9") == [4, 7, 8, 9]
    options = arguments(["--seeds", "3", "--targets", "generated,clean"])
    names = [one.name for one in chosen(options.targets.split(","), options.seeds, options.groups)]
    assert names[0] == "seed 3.0"
    assert names[-1] == "seed 3 clean"
    with pytest.raises(SystemExit):
        arguments(["--targets", "nonsense"])


def test_personas_without_their_own_probes_are_valid_and_have_lost_nothing_else(tmp_path: Path) -> None:
    shipped, _ = roster()
    left, errors = roster(without_own_probes(tmp_path / "personas"))
    assert errors == []
    for name, one in shipped.items():
        kept = [probe for probe in one.persona.probe if probe.id not in ALL_IDS]
        assert list(left[name].persona.probe) == kept
        assert left[name].persona.tools == one.persona.tools
