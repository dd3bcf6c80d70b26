"""Try the devnet's compiler and loader in a jail of whatever Python runs this; one JSON object out.

`python -m tests.jail.toolcheck`, with the packages of another Python on the path: what a jail needs of them
has no compiled code.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path

from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.locate import find_interpreter
from fleet.jail.model import Image
from fleet.jail.toolcheck import ToolTrial, try_programs
from sandbox.programs.program import Program

COMPILER = Path(__file__).parents[2] / "fleet" / "devnet" / "compiler"
RUSTLITE = ("{python}", "-I", "-S", "-B", "/opt/tc/rustlite")
GOOD = Program(command=RUSTLITE, loader=(*RUSTLITE, "--entry"), sample="fn frame(t: i32) -> i32 { t + 1 }")


def tried(program: Program, root: Path = COMPILER) -> tuple[ToolTrial, ...]:
    """What a check of these programs says."""
    with tempfile.TemporaryDirectory(prefix="spool-") as spool:
        make = partial(BwrapJail, pool=0, spool=Path(spool))
        return asyncio.run(try_programs(Image(mounts=((root, "tc"),)), program, make))


if __name__ == "__main__":
    lines = [asdict(one) for one in tried(GOOD)]
    print(
        json.dumps(
            {"version": sys.version.split()[0], "library": find_interpreter().library_path, "tried": lines}
        )
    )
