"""What import-linter does not see: imports that only a type checker makes, which would hide a circle."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GENERATED = {"_parser.py"}
FILES = [
    path
    for room in ("fleet", "sandbox")
    for path in (ROOT / room).rglob("*.py")
    if path.name not in GENERATED
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_imported_for_types_alone(path: Path) -> None:
    names = {
        alias.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "typing"
        for alias in node.names
    }
    assert "TYPE_CHECKING" not in names
