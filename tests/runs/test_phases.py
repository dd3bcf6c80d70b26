"""The phases of a run are on record, each before anything of it is done."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from fleet.events.timeline import words
from tests.runs.table import look, persona, seated

pytestmark = pytest.mark.anyio


async def broken(tool: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"ok": True, "status": 500 if "bad" in args["url"] else 200, "text": "hello"}


async def test_each_phase_begins_on_record_before_anything_of_it_is_done(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("good"), look("bad")), answer=broken) as table:
        await table.drive()
        phases = table.said("phase.changed")
        assert [(one.before, one.after) for one in phases][:4] == [
            ("initialization", "reconnaissance"),
            ("reconnaissance", "enumeration"),
            ("enumeration", "identification"),
            ("identification", "exploitation"),
        ]
        assert {("exploitation", "reporting"), ("reporting", "identification")} <= {
            (one.before, one.after) for one in phases
        }
        for before, after in itertools.pairwise(phases):
            assert before.after == after.before
        assert all(one.why and one.rung == "exercise" for one in phases)
        [raised] = table.said("finding.raised")
        proving = next(one for one in phases if one.after == "exploitation")
        assert raised.fingerprint in proving.why
        assert words(phases[0]).startswith("phase initialization -> reconnaissance: whether")
        order = [one.type for one in table.events]
        calls = [at for at, kind in enumerate(order) if kind == "tool.requested"]
        at = table.events.index(proving)
        assert any(one > at for one in calls)  # it is reproduced after that, and not before
        assert table.events.index(raised) < at


async def test_a_phase_that_goes_on_is_said_once(tmp_path: Path) -> None:
    async with seated(tmp_path, persona()) as table:
        session = table.drive.runner.session
        for phase in ("reconnaissance", "reconnaissance", "abort"):
            session.enter(phase, "a\x1b[31mreason")
        found = [(one.before, one.after, one.why) for one in table.said("phase.changed")]
        assert [one[:2] for one in found] == [
            ("initialization", "reconnaissance"),
            ("reconnaissance", "abort"),
        ]
        assert "\x1b" not in found[0][2]
