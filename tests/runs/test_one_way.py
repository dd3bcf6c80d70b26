"""The rooms of a run call downwards: what a port would hide, import-linter does not see."""

from __future__ import annotations

import ast
from pathlib import Path

import fleet.runs

ROOMS = ("desk", "proof", "call", "settlement", "outage")


def test_no_room_of_a_run_declares_a_port_for_whoever_called_it() -> None:
    """What a room needs of the one above it is given with the call, and what follows is returned."""
    ports = []
    for room in ROOMS:
        files = sorted((Path(fleet.runs.__file__).parent / room).glob("*.py"))
        assert len(files) > 3, room
        for file in files:
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(b) for b in node.bases):
                    ports.append(f"{room}/{file.name}: {node.name}")
    assert ports == []
