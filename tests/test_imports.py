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


def for_types_alone(text: str) -> set[str]:
    """The packages that a module imports under `if TYPE_CHECKING`."""
    if "TYPE_CHECKING" not in text:
        return set()
    blocks = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    return {
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


def test_no_module_of_ours_is_imported_for_types_alone() -> None:
    """A library may be: web3 and httpx are loaded late, and their types are named in signatures."""
    found = {path.relative_to(ROOT).as_posix(): for_types_alone(path.read_text()) for path in FILES}
    assert {path: names for path, names in found.items() if names & {"fleet", "sandbox"}} == {}
    assert any(found.values())


@pytest.mark.parametrize(
    ("line", "names"),
    [("from fleet.clock import Clock", {"fleet"}), ("import sandbox.http, web3", {"sandbox", "web3"})],
)
def test_an_import_for_types_is_seen(line: str, names: set[str]) -> None:
    assert for_types_alone(f"if TYPE_CHECKING:\n    {line}\n") == names
    assert for_types_alone(line) == set()
