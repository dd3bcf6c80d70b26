"""A search of a program that fights back ends in time, says nothing forged, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import Image
from fleet.runs.call.guest_protocol import answer, request_line
from sandbox.programs.program import Program
from sandbox.spec import Context
from sandbox.tools import TOOLS

pytestmark = [
    pytest.mark.jail,
    pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc here for a hostile program"),
]

SEARCH, SINGLE = TOOLS["qa_fuzz"], TOOLS["qa_compile"]
SECONDS = 2.0
LATEST_S = 45.0
"""Of a round of SECONDS seconds, whatever the program does, on a machine that is busy."""
CONTEXT = Context(
    run="r",
    prefix="qa-r-",
    deadline_s=40.0,
    program=Program(command=("/opt/tc/target",), sample="x", output="text"),
)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("target")
    source = Path(__file__).with_name("hostile_target.c")
    subprocess.run(["gcc", "-O1", "-w", "-o", folder / "target", source], check=True, timeout=60)
    folder.chmod(0o755)
    return folder


def attacked(target: Path, spool: Path, word: str) -> tuple[dict[str, Any], float, dict[str, Any]]:
    """What a search said after this attack, how long it took; and a single call in the next jail."""

    async def calls() -> tuple[dict[str, Any], float, dict[str, Any]]:
        jail = BwrapJail(Image(mounts=((target, "tc"),)), pool=0, spool=spool)
        try:
            args = {"seconds": SECONDS, "executions": 40, "corpus": [word]}
            line = request_line(SEARCH, args, CONTEXT)
            outcome = await jail.call(line, deadline_s=LATEST_S, resources=SEARCH.resources)
            after = await jail.call(request_line(SINGLE, {"source": "y"}, CONTEXT), deadline_s=30)
            return answer(SEARCH, outcome), outcome.seconds, answer(SINGLE, after)
        finally:
            await jail.aclose()

    return asyncio.run(calls())


@pytest.mark.parametrize("word", ["forge", "parent", "everyone", "bomb", "fill", "flood", "hog", "stop"])
def test_a_search_holds(target: Path, tmp_path: Path, word: str) -> None:
    said, seconds, after = attacked(target, tmp_path, word)
    assert seconds < LATEST_S
    assert said.get("runner", "") != "forged"
    assert said["ok"] or said["error_class"] in ("internal", "timeout", "cannot_start", "disk_full"), said
    if said["ok"]:
        assert said["runner"].startswith("spawn")
        assert said["executions"] >= 4  # the sample, and the attack
    assert (after["outcome"], after["size"]) == ("accepted", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_search_of_a_peaceful_program_says_what_it_did(target: Path, tmp_path: Path) -> None:
    said, _, _ = attacked(target, tmp_path, "word")
    assert (said["ok"], said["defects"]) == (True, [])
