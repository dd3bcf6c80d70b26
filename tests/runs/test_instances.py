"""One defect met several ways is one finding: which sighting leads it, and what it keeps of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fleet.findings.envelope import read
from fleet.findings.recurrence import key_of, read_recurrence
from fleet.personas.model import Step
from fleet.runs.proof.attempt import Attempt
from fleet.runs.proof.item_figures import count, count_shown
from fleet.runs.proof.item_questions import ItemQuestion
from fleet.store.rows import FindingRow, ItemRow
from tests.runs.table import RUN, Table, look, persona, seated
from tests.runs.test_desk import ANY

pytestmark = pytest.mark.anyio
EVIL = "https://evil.test"
TRACE = 'Traceback (most recent call last):\n  File "/srv/app/clock.py", line 88, in stamp\nValueError: bad'


async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
    """A host that allows every origin, below /a with credentials; /b breaks."""
    path = str(args["url"]).rpartition("/")[2]
    trusting = {"access-control-allow-credentials": "true"} if path.startswith("a") else {}
    origin = args.get("origin", "")
    if path.startswith("b"):
        return {"ok": False, "status": 500, "text": TRACE, "content_type": "text/plain"}
    return {"ok": True, "status": 200, "text": "", "allow_origin": origin, "headers": trusting}


async def met(table: Table, *urls: Mapping[str, str], trusted: bool = True) -> FindingRow:
    steps = tuple(Step(tool="qa_fetch", args=dict(args)) for args in urls)
    results = [await answer(step.tool, dict(step.args)) for step in steps]
    await table.drive.runner.look_at_answers(steps, results, trusted=trusted, minimal=True)
    return (await table.world.journal.findings(RUN))[0]


def origin(page: str) -> Sequence[Mapping[str, str]]:
    return {"url": page}, {"url": page, "origin": EVIL}


async def test_the_graver_sighting_leads_and_the_other_is_an_instance(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("x")), hand=ANY, answer=answer) as table:
        first = await met(table, *origin("{site}/c"))
        graver = await met(table, *origin("{site}/a"))
        milder = await met(table, *origin("{site}/d"))
    assert (first.severity, graver.severity, milder.severity) == ("medium", "high", "high")
    assert "/a" in milder.title
    assert "{site}/a" in milder.repro
    assert [(one["where"], one["times"]) for one in milder.data["places"]] == [
        ("{site}/c", 1),
        ("{site}/d", 1),
    ]
    assert milder.times == 3


async def test_what_is_proven_already_and_seen_graver_is_proven_as_the_graver_one(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("x")), hand=ANY, answer=answer) as table:
        first = await met(table, *origin("{site}/c"))
        await table.drive.runner.prove_raised()
        for _ in range(2):
            await met(table, *origin("{site}/a"))
        await met(table, *origin("{site}/d"))
        await table.drive.runner.prove_raised()
        milder, graver = await table.world.journal.findings(RUN)
    assert [(one.severity, one.state, one.times) for one in (milder, graver)] == [
        ("medium", "confirmed", 4),
        ("high", "confirmed", 2),
    ]
    assert read(graver.envelope).former[0] == first.fingerprint
    assert "/a" in graver.title


async def test_what_an_earlier_version_left_is_proven_by_its_signature_and_worded_anew(
    tmp_path: Path,
) -> None:
    async with seated(tmp_path, persona(look("x")), hand=ANY, answer=answer) as table:
        row = await met(table, *origin("{site}/c"))
        old = {"title": "allow_origin 'x'", "data": {**row.data, "seen": "allow_origin 'x'", "left_by": "r0"}}
        await table.world.journal.set_finding(RUN, row.fingerprint, **old)
        await table.drive.runner.prove_raised()
        (proven,) = await table.world.journal.findings(RUN)
    assert (proven.state, proven.title, proven.data["seen"]) == ("confirmed", row.title, row.data["seen"])
    assert read(proven.envelope).title == row.title


async def test_what_no_person_needs_to_review_leads_what_one_does(tmp_path: Path) -> None:
    """A lying driver that saw it first must not hold it back from the log."""
    for order in ((False, True), (True, False)):
        folder = tmp_path / str(order[0])
        folder.mkdir()
        async with seated(folder, persona(look("x")), hand=ANY, answer=answer) as table:
            for number, trusted in enumerate(order):
                row = await met(table, {"url": f"{{site}}/b{number}"}, trusted=trusted)
        assert "claim" not in row.data
        assert f"/b{order.index(True)}" in row.repro


async def test_the_entry_has_its_former_names_and_its_places(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("x")), hand=ANY, answer=answer) as table:
        for page in ("{site}/c", "{site}/a", "{site}/a/deep", "{site}/c"):
            await met(table, *origin(page))
        await table.drive.runner.prove_raised()
        (row,) = await table.world.journal.findings(RUN)
    entry = read(row.envelope)
    assert row.state == "confirmed"
    assert entry.former == row.names[1:]
    assert len(entry.former) == 1  # version 2 had one name for all of them
    assert [(one.where, one.times) for one in entry.also] == [("{site}/c", 2), ("{site}/a/deep", 1)]
    assert all(one.first <= one.last for one in entry.also)


async def test_names_of_version_2_are_gathered_from_all_ways(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("x")), hand=ANY, answer=answer) as table:
        for page, sent in (("{site}/c", EVIL), ("{site}/d", "null")):
            row = await met(table, {"url": page}, {"url": page, "origin": sent})
    assert len(set(row.names)) == 3


async def test_an_item_of_an_older_entry_is_shown_and_counted_by_its_older_name(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("x")), hand=ANY, answer=answer) as table:
        world, journal = table.world, table.world.journal
        row = await met(table, *origin("{site}/c"))
        (older,) = row.names[1:]
        item = ItemRow(
            fingerprint=older,
            state="confirmed",
            severity="medium",
            surface="security",
            title="t",
            persona="qa-x",
            repro="",
            names=(older,),
            trusted=True,
        )
        steps = tuple(Step(tool="qa_fetch", args=dict(args)) for args in origin("{site}/c"))
        probe = look("x").model_copy(update={"steps": steps, "expect": "true"})
        asked = tuple({"tool": step.tool, "args": dict(step.args)} for step in steps)
        results = tuple([await answer(step.tool, dict(step.args)) for step in steps])
        seen = Attempt(state="healthy", asked=asked, results=results)
        shown = ItemQuestion(item=item, probe=probe).shown(seen, table.drive.runner.facts)
        assert shown is not None
        assert shown.fingerprint == row.fingerprint
        await count(world, older, lambda before: before.shown("2026-11-20T10:00:00Z", "older"))
        await table.drive.runner.prove_raised()
        await count_shown(world, RUN)
        figures = [
            read_recurrence(await journal.get(key_of(world.platform.name, name))) for name in row.names
        ]
    assert [one.runs for one in figures] == [1, 2]
