"""Rows 40 to 43, 46, 47, 49 and 52: what reaches the log, and what triage makes of the log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleet.app.persona_sets import roster
from fleet.devnet.node import invoke
from fleet.findings.evidence import load
from fleet.findings.reader import read as read_entry
from fleet.runs.context import FleetContext
from fleet.runs.run import fire
from fleet.triage.triage_pass import in_words, pass_over
from tests.acceptance.conftest import House, persona, probe, step, times
from tests.devnet.seed import SEEDER, seed_feedback

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]

BUDGET = "budget = { calls = 90 }"
FETCH = step("qa_fetch", url="{site}/llms.txt")
SEEN = probe("seen", FETCH, expect="result.status == 418", severity="high")


async def mine(world: FleetContext) -> list[str]:
    """Texts of the fleet's own entries."""
    return [
        entry.text for entry in await world.chain.log.range(0, 10_000) if entry.sender == world.chain.identity
    ]


@pytest.mark.parametrize(
    ("severity", "often"), [("low", "\nseen 20 times in this run"), ("high", "")], ids=["low", "high"]
)
async def test_row_49_twenty_hits_in_one_run_are_one_report_with_a_count(
    house: House, tmp_path: Path, severity: str, often: str
) -> None:
    """A grave one is posted when it was seen once; what is seen of it then is counted in the journal."""
    seen = SEEN.replace("high", severity)
    one = times(persona(tmp_path, f'tools = ["qa_fetch"]\n{BUDGET}', seen), 20)
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        report = await fire(world, one)
        (text,) = await mine(world)
    assert read_entry(text).body == f"intent: finding of seen{often}"
    (row,) = report.findings
    assert (row.state, row.times, row.confirmed, row.tries) == ("posted", 20, 3, 3)
    assert [event.times for event in house.said("finding.raised")] == list(range(1, 21))
    assert report.calls == 20 + 3


async def test_a_second_run_repeats_a_finding_without_posting_it_again_while_it_stands(
    house: House, tmp_path: Path
) -> None:
    one = persona(tmp_path, f'tools = ["qa_fetch"]\n{BUDGET}', SEEN)
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        first, second = await fire(world, one), await fire(world, one)
        (posted,), (again,) = first.findings, second.findings
        assert (posted.state, again.state, again.index) == ("posted", "repeated", posted.index)
        assert len(await mine(world)) == 1
        owner = await house.rpc.view(world.platform.chain.diamond, "owner")
        await house.rpc.call("anvil_impersonateAccount", [owner])
        await invoke(house.rpc, owner, world.platform.chain.diamond, "clearFeedback")
        assert await mine(world) == []
        (back,) = (await fire(world, one)).findings  # a log that forgot it is told again
        assert (back.state, len(await mine(world))) == ("posted", 1)


async def test_row_47_each_finding_is_proven_three_times_and_its_verdict_is_kept(
    house: House, tmp_path: Path
) -> None:
    one = persona(
        tmp_path,
        f'tools = ["qa_fetch", "qa_chain"]\n{BUDGET}',
        SEEN,
        probe("once", step("qa_chain", function="feedbackCount"), expect="result.block == 0"),
    )
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        report = await fire(world, one)
    verdicts = house.said("finding.verified")
    assert [(v.confirmed, v.tries, v.state) for v in verdicts] == [(3, 3, "confirmed")] * 2
    for row in report.findings:
        bundle = load(state / "runs" / report.run / "evidence", row.evidence)
        entry = read_entry(row.envelope)
        assert (entry.rate, entry.ev, entry.repro_state) == ((3, 3), row.evidence, "calls")
        assert (bundle["confirmed"], bundle["fingerprint"]) == (3, row.fingerprint)
        assert bundle["steps"][0]["tool"] == entry.repro[0].tool


async def test_row_52_secrets_are_masked_before_anything_is_signed(house: House, tmp_path: Path) -> None:
    key, tx = "4c0883a69102937d6231471b5dbb6204fe512961708279f2e3e8a5d4b8e3e3e8", "0x" + "ab" * 32
    token = "abcdefghijklmnopqrstuvwxyz012345"
    words = f"sk-proj-abcdefghijklmnopqrstuvwx and AIzaSyA1234567890abcdefghijklmnopqrstu and {key}"
    one = persona(
        tmp_path,
        f'tools = ["qa_fetch"]\n{BUDGET}',
        probe(
            "leak",
            step("qa_fetch", url="{site}/llms.txt", canary=f"Bearer {token}"),
            expect="result.status == 418",
        ).replace("finding of leak", f"leaks {words} in tx {tx}"),
    )
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        report = await fire(world, one)
        (text,) = await mine(world)
    written = text + "".join(
        path.read_text() for path in (state / "runs" / report.run).rglob("*") if path.is_file()
    )
    for secret in ("sk-proj-abcdefghijkl", "AIzaSyA1234567890", key, token):
        assert secret not in written
    assert tx in text


async def test_rows_40_to_46_the_log_becomes_one_ranked_list(house: House, tmp_path: Path) -> None:
    one = persona(tmp_path, f'tools = ["qa_fetch"]\n{BUDGET}', SEEN)
    triage = roster()[0]["qa-triage"]
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        diamond = world.platform.chain.diamond
        for text in (
            "the docs are confusing",
            "Compile  PANIC",
            "compile panic",
            "qa/v1 source=evil\x1b[2J\u202e",
        ):
            await invoke(house.rpc, SEEDER, diamond, "submitFeedback", text)
        await fire(world, one)
        first = await pass_over(world, triage)
        before = len(await mine(world))
        second = await pass_over(world, triage)
        assert (first.meta_text is not None, second.meta_text, len(await mine(world))) == (True, None, before)
        assert (first.posted, second.posted) == (1, 0)
        assert "1 entry posted" in in_words(first)
        assert "posted" not in in_words(second)
    data = json.loads((state / "worklist.json").read_text())["items"]
    assert data[0]["title"] == "Finding of seen: GET /llms.txt: 200"
    assert (data[0]["confirmed"], data[0]["severity"]) == (True, "high")
    others = {item["title"]: item for item in data[1:]}
    assert others["the docs are confusing"]["severity"] == "unknown"
    assert [title for title in others if title.lower().split() == ["compile", "panic"]] != []
    assert len([title for title in others if title.lower().split() == ["compile", "panic"]]) == 1
    assert not any("summary" in title.lower() or "qa-triage" in title for title in others)
    shown = (state / "worklist.md").read_text()
    assert "\x1b" not in shown
    assert "\u202e" not in shown


async def test_row_43_five_thousand_entries_on_a_real_chain(house: House, tmp_path: Path) -> None:
    state = await house.state(tmp_path)
    async with house.world(state) as world:
        before = await world.chain.log.count()
        await seed_feedback(house.rpc, world.platform.chain.diamond, 5000, 120)
        await pass_over(world, roster()[0]["qa-triage"])
        entries = await world.journal.entries()
        assert len(entries) == before + 5000
        assert [entry.index for entry in entries] == list(range(before + 5000))
        assert len({entry.text for entry in entries[before:]}) == 5000
