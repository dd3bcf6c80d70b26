"""What a run asked for is on record and its records hold; what cannot be recorded stops the fleet."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.app.run_records import asked_by
from fleet.events.model import Event, Footer, ToolRequested
from fleet.events.trajectory import read
from fleet.findings.evidence import load
from fleet.gate.stop import resume, stopped
from fleet.runs.call.sealed import checked
from fleet.runs.run import fire
from tests.acceptance.conftest import House, persona, probe, step

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]

FRONT = 'tools = ["qa_fetch", "qa_chain"]\nbudget = { calls = 60, writes = 20 }'
PAGE, VIEW = step("qa_fetch", url="{site}/llms.txt"), step("qa_chain", function="feedbackCount")


async def test_what_left_is_on_record_in_report_evidence_and_journal_and_without_a_record_nothing_leaves(
    house: House, tmp_path: Path
) -> None:
    one = persona(
        tmp_path,
        FRONT,
        probe("seen", PAGE, expect="result.status == 418"),
        probe("read", VIEW, expect="result.ok"),
    )
    state = await house.state(tmp_path)
    spoilt = False

    def spoil(event: Event) -> None:
        if spoilt and isinstance(event, ToolRequested):
            (state / "runs" / event.run / "egress.jsonl").mkdir(exist_ok=True)

    async with house.world(state, one, watch=spoil) as world:
        report = await fire(world, one)
        rows = await checked(state, world.journal, report.run)
        assert [(row["record"].rpartition("/")[2], row["fault"], row["note"]) for row in rows] == [
            ("trajectory.jsonl", "", ""),
            ("egress.jsonl", "", ""),
        ]
        assert all(row["chained"] == row["lines"] > 0 for row in rows)
        data = asked_by(state, report.run, only_refused=False)
        site = house.devnet.url.partition("//")[2]
        assert {(row["host"], row["path"]) for row in data["rows"] if "path" in row} == {(site, "/llms.txt")}
        assert {row["what"] for row in data["rows"] if row["verb"] == "RPC"} >= {"eth_call"}
        calls = {event.call for event in house.said("tool.requested")}
        assert {row["call"] for row in data["rows"]} <= calls
        assert (data["out_of_scope"], data["refused"]) == (0, {})
        folder = world.folder(report.run)
        (footer,) = [event for event in read(folder / "trajectory.jsonl") if isinstance(event, Footer)]
        assert {host: of.model_dump() for host, of in footer.egress.items()} == data["hosts"]
        (evidence,) = (folder / "evidence").glob("*.json")
        bundle = load(folder / "evidence", evidence.stem)
        assert 0 < bundle["record"]["trajectory"]["lines"] < rows[0]["lines"]
        assert len(bundle["record"]["egress"]["sha256"]) == 64

        text = (folder / "egress.jsonl").read_bytes()
        (folder / "egress.jsonl").write_bytes(text[: text.rindex(b"\n", 0, -1) + 1])
        assert "missing at its end: 1" in (await checked(state, world.journal, report.run))[1]["fault"]
        (folder / "egress.jsonl").unlink()
        assert "it is missing" in (await checked(state, world.journal, report.run))[1]["fault"]

        spoilt = True
        last = await fire(world, one)
        assert last.outcome == "stopped", last.detail
        assert "egress record failed" in str(stopped(state))
        assert not (await world.journal.effects(last.run, ["tx"]))
    answers = [event.result for event in house.said("tool.responded") if event.run == last.run]
    assert [answer["error_class"] for answer in answers] == ["refused"]
    assert resume(state, "the folder is whole again")
