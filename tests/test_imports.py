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
def test_no_module_of_ours_is_imported_for_types_alone(path: Path) -> None:
    """A library may be: web3 and httpx are loaded late, and their types are named in signatures."""
    blocks = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    imported = {
        name.split(".")[0]
        for block in blocks
        for node in ast.walk(block)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "fleet"]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not imported & {"fleet", "sandbox"}
