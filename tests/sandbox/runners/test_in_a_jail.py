"""Rounds in a real jail: answers to innocent inputs between hostile ones, and nothing left at the end."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import End, Image
from sandbox.programs.program import Program, WarmStart
from tests.sandbox.runners.programs import HERE, PYTHON, native, node

pytestmark = [pytest.mark.anyio, pytest.mark.jail]
HOSTILE = ("daemon", "parent", "descriptors", "litter", "files everywhere", "segfault", "flood", "loop")


async def round_of(program: Program, spool: Path, mounts: tuple[tuple[Path, str], ...] = ()) -> Any:
    inputs = [word for hostile in HOSTILE for word in (hostile, "hello", "error")]
    image = Image(mounts=((HERE, "targets"), *mounts), guest="targets.guest")
    jail = BwrapJail(image, pool=0, spool=spool)
    line = json.dumps({"program": asdict(program), "inputs": inputs, "cpu_s": 0.3})
    try:
        outcome = await jail.call(line.encode() + b"\n", deadline_s=60, resources="fuzz")
    finally:
        await jail.aclose()
    assert (outcome.end, outcome.code, outcome.stderr) == (End.EXITED, 0, b"")
    return json.loads(outcome.stdout)


async def innocents_are_right(program: Program, spool: Path, **words: Any) -> None:
    found = await round_of(program, spool, **words)
    assert found["name"] == program.warm
    assert found["said"][1::3] == [["accepted", 0, "out:hello"]] * len(HOSTILE)
    assert found["said"][2::3] == [["clean_error", 1, ""]] * len(HOSTILE)
    assert [found["said"][3 * at][:2] for at in (5, 6, 7)] == [["crash", -11], ["crash", -9], ["hang", -9]]
    assert (found["left"], found["processes"]) == ([], [])


@pytest.mark.parametrize("way", [WarmStart.SPAWN, WarmStart.PYTHON])
async def test_a_python_program(way: WarmStart, tmp_path: Path) -> None:
    inside = replace(
        PYTHON,
        command=("{python}", "-B", "/opt/targets/target.py"),
        environment={"PYTHONPATH": "/opt/targets"},
        warm=way.value,
    )
    await innocents_are_right(inside, tmp_path)


async def test_a_native_program(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    (tmp_path / "native").mkdir()
    built = replace(native(tmp_path / "native"), command=("/opt/native/target",))
    mounts = ((tmp_path / "native", "native"),)
    await innocents_are_right(built, tmp_path / "spool", mounts=mounts)


async def test_a_node_program(tmp_path: Path) -> None:
    found = node()
    if not found.command[0].startswith("/usr/"):
        pytest.skip("Node is outside of what a jail sees")
    command = (*found.command[:-1], "/opt/targets/cold.js")
    inside = replace(found, command=command, warm_entry="/opt/targets/adapter.js")
    await innocents_are_right(inside, tmp_path)
