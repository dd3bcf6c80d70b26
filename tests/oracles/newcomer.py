"""A run in a house with one more oracle: prints what it made of a page, as JSON.

python -m tests.oracles.newcomer FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from fleet.drivers.desk import Question
from fleet.personas.model import Step
from tests.runs.table import RUN, persona, seated, well
from tests.runs.test_desk import ANY


async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
    return await well(tool, args) | {"status": 418}


async def main(folder: Path) -> None:
    question = Question((Step(tool="qa_fetch", args={"url": "{site}/pot"}),))
    async with seated(folder, persona(), hand=ANY, answer=answer) as table:
        async with table.desk.turn() as turn:
            await turn.pose([question])
        await table.drive.runner.prove_raised()
        rows = await table.world.journal.findings(RUN)
        learned = [one.oracle for one in table.world.learned.all()]
    print(json.dumps({"found": [[row.title, row.state, row.severity] for row in rows], "learned": learned}))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
