"""Serves a desk in memory over MCP on stdio and writes down what became of it: arguments `OUT TURNS`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio

from fleet.drivers.doubles import MemoryDesk
from fleet.drivers.mcp import McpDriver, own_stdio
from fleet.drivers.session import RunOver


def main() -> None:
    out, turns = Path(sys.argv[1]), int(sys.argv[2])
    desk = MemoryDesk(max_turns=turns)
    with own_stdio() as (agent, answers):
        print("this must not reach the wire")
        driver = McpDriver(agent, answers)
        try:
            ended = anyio.run(driver, desk)
        except RunOver as over:
            ended = str(over)
    said = {
        "ended": ended,
        "fault": driver.fault,
        "asked": [[tool, args] for _, tool, args in desk.asked],
        "turns": len(desk.turns),
        "most": max((len(turn.proposed) for turn in desk.turns), default=0),
    }
    out.write_text(json.dumps(said))


if __name__ == "__main__":
    main()
