"""Serves a desk in memory over MCP on stdio and writes down what became of it: arguments `OUT TURNS [GATE]`.

With a gate the run begins once that file exists; one that says `closed` is why it does not begin.
Its tool takes a moment, so that calls which are not kept apart are in it together: `together` at most.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import anyio

from fleet.drivers.mcp import conversation, own_stdio
from fleet.drivers.session import RunOver
from fleet.errors import Unreachable
from tests.doubles.drivers import LOOK, MemoryDesk, look

MOMENT_S = 0.01


class Slow:
    """A tool that counts who is in it."""

    inside = together = 0

    async def __call__(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        self.inside += 1
        self.together = max(self.together, self.inside)
        await anyio.sleep(MOMENT_S)
        self.inside -= 1
        return await look(args)


def main() -> None:
    out, turns = Path(sys.argv[1]), int(sys.argv[2])
    slow = Slow()
    desk = MemoryDesk(tools={LOOK.name: (LOOK, slow)}, max_turns=turns)

    async def served(agent: BinaryIO, answers: BinaryIO) -> tuple[str, str]:
        async with conversation(agent, answers, "You test a platform.") as driver:
            for gate in map(Path, sys.argv[3:]):
                while not gate.exists():  # noqa: ASYNC110 - another process writes it
                    await anyio.sleep(0.02)
                if gate.read_text() == "closed":
                    raise Unreachable("the node does not answer")
            try:
                ended = await driver(desk)
            except RunOver as over:
                ended = str(over)
        return ended, driver.fault

    with own_stdio() as (agent, answers):
        print("this must not reach the wire")
        try:
            ended, fault = anyio.run(served, agent, answers)
        except Unreachable as error:
            ended, fault = f"not begun: {error}", ""
    said = {
        "ended": ended,
        "fault": fault,
        "asked": [[tool, args] for _, tool, args in desk.asked],
        "turns": len(desk.turns),
        "together": slow.together,
        "most": max((len(turn.proposed) for turn in desk.turns), default=0),
    }
    out.write_text(json.dumps(said))


if __name__ == "__main__":
    main()
