"""A run of a persona that is granted `qa_letters`, in a process whose table of tools has it: what came of it.

python -m tests.tools.newcomer FOLDER
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from fleet.config import WebSection
from fleet.drivers.compare import compare
from fleet.drivers.replay import recorded
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import Image
from fleet.personas.needs import needs_of
from fleet.runs.call.targets import Capabilities
from fleet.runs.desk.coverage import coverage
from fleet.runs.desk.offers import offers
from tests.runs.table import PLATFORM, RUN, Table, look, persona, seated

TOOL = "qa_letters"
PROBES = (
    look("many", "result.grade == 'many'", TOOL, url="{site}/banana"),
    look("few", "result.grade == 'many'", TOOL, url="{site}/plum", letter="u"),
    look("foreign", "result.ok", TOOL, url="http://elsewhere/banana"),
)


def judged(table: Table, folder: Path) -> dict[str, Any]:
    """What each room made of the tool."""
    was = recorded(folder / "trajectory.jsonl")
    session = table.drive.runner.session
    again = replace(
        was,
        calls=tuple(
            replace(call, call_id=f"replay-{call.number}", result={**(call.result or {}), "clock": 1.0})
            for call in was.calls
        ),
    )
    bare = PLATFORM.model_copy(update={"web": WebSection(site="http://site")})
    return {
        "groups": table.said("header")[0].groups,
        "denied": [event.reason for event in table.said("gate.denied")],
        "answer": next(event.result for event in table.said("tool.responded")),
        "titles": sorted({event.title for event in table.said("finding.raised")}),
        "target": session.contacts.of(TOOL, {"url": "http://site/banana"}),
        "offer": next(
            (one.group, one.parameters) for one in offers([TOOL], session.breaker) if one.name == TOOL
        ),
        "coverage": coverage(folder, RUN, "done"),
        "missing": Capabilities(bare).missing(needs_of(PROBES[0])),
        "compared": sorted({row.state for row in compare(was, again)}),
    }


async def main(root: Path) -> dict[str, Any]:
    jail = BwrapJail(Image(), pool=0, spool=root)
    try:
        one = persona(*PROBES, tools=(TOOL,))
        async with seated(root / "desk", one, real=jail) as table:
            await table.drive()
            left = (await table.drive.ledger.left())["calls"]
            return judged(table, table.folder) | {"spent": 500 - left}
    finally:
        await jail.aclose()


if __name__ == "__main__":
    print(json.dumps(anyio.run(main, Path(sys.argv[1]))))
