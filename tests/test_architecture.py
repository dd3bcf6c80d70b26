"""`docs/ARCHITECTURE.md` is true: its files and its names are there."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
WHAT = (
    "how a request is retried",
    "a gate rule",
    "what a person changes while runs go on",
    "what stands on the page of activity",
    "what an offer to be paid says",
    "how a tool or an agent is paid",
    "what a text says that something costs",
    "who pays for a transaction",
    "how a finding is proven",
    "how sure a run is of what it does next",
    "what of a row of accounts a proof repeats",
    "what a reorg undoes",
    "what of a contract is watched",
    "how a webhook is verified",
    "a new tool",
    "how an agent is called",
    "a format of the worklist",
    "what every output says of an item",
    "how a repro becomes a script",
    "what an expectation says in words",
    "what an item becomes, and when",
    "what a person can decide",
    "when texts say the same",
    "when an item counts as clean",
    "a new driver",
    "the CLI table of runs",
    "what a title says of a field",
    "a new oracle",
    "a new explorer",
    "which GET requests change state",
    "what a target of `fleet fuzz` is",
    "what a search keeps between rounds",
    "what a jail may reach",
    "what the purse may pay",
    "what a jail may ask the node",
    "what a call may do at worst",
    "what a run asks a person",
    "what a page in the browser shows",
    "when a folder is removed",
)


def rows(heading: str) -> list[list[str]]:
    """The cells of the one table under a heading, its head left out."""
    _, _, text = PAGE.partition(f"## {heading}\n")
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@cache
def defined(file: Path) -> frozenset[str]:
    """What a module defines at its top."""
    names = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(names)


def test_each_question_of_a_stranger_has_one_answer() -> None:
    assert tuple(row[0] for row in rows("Where to change what")) == WHAT
    assert PAGE.rstrip().splitlines()[-1].startswith("| when a folder is removed")


@pytest.mark.parametrize(("what", "file", "name"), rows("Where to change what"))
def test_where_to_change_it_is_a_file_that_defines_it(what: str, file: str, name: str) -> None:
    path = ROOT / file.strip("`")
    assert path.is_file(), what
    first = re.match(r"`([A-Za-z_]+)`", name)
    assert first is not None, what
    assert first[1] in defined(path), what


@pytest.mark.parametrize(("exception", "raised", "caught"), rows("Exceptions that steer"))
def test_a_control_exception_lives_where_the_page_says(exception: str, raised: str, caught: str) -> None:
    place = re.search(r"\(([a-z_/]+)\)", exception)
    assert place is not None, exception
    room = ROOT if place[1].startswith("sandbox") else ROOT / "fleet"
    names = set(re.findall(r"`([A-Za-z]+)`", exception))
    assert names <= defined(room / f"{place[1]}.py")
    for file in re.findall(r"`([a-z_/]+\.py)`", caught):
        assert any((top / file).is_file() for top in (ROOT, ROOT / "fleet")), file


def test_every_room_has_a_line() -> None:
    for room in sorted(path.parent for path in (ROOT / "fleet").glob("*/__init__.py")):
        assert f"`fleet/{room.name}`" in PAGE or f"`{room.name}`" in PAGE, room
    for room in sorted(path.parent for path in (ROOT / "fleet" / "runs").glob("*/__init__.py")):
        assert f"**{room.name}**" in PAGE, room


def is_builtin_error(base: ast.expr) -> bool:
    known = getattr(builtins, base.id, None) if isinstance(base, ast.Name) else None
    return isinstance(known, type) and issubclass(known, BaseException)


def test_every_exception_outside_the_tree_of_errors_stands_on_the_page() -> None:
    files = [*(ROOT / "fleet").rglob("*.py"), *(ROOT / "sandbox").rglob("*.py")]
    nodes = [n for one in files if "devnet" not in one.parts for n in ast.walk(ast.parse(one.read_text()))]
    roots = {n.name for n in nodes if isinstance(n, ast.ClassDef) and any(map(is_builtin_error, n.bases))}
    section = PAGE.partition("## Exceptions that steer\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([A-Z][A-Za-z]+)`", section))
    assert {name for name in roots if not name.startswith("_")} <= named


def prose() -> Iterator[tuple[Path, str]]:
    """What is written for people: the pages, and the docstrings of our own code."""
    for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "sandbox" / "README.md"]:
        yield page, page.read_text()
    for file in [*(ROOT / "fleet").rglob("*.py"), *(ROOT / "sandbox").rglob("*.py")]:
        if "devnet" not in file.parts:
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    yield file, ast.get_docstring(node) or ""


def test_a_file_that_a_page_or_a_docstring_names_is_there() -> None:
    rooms = ("fleet", "sandbox", "config", "tests", "bench")
    files = [f"/{one.relative_to(ROOT)}" for room in rooms for one in (ROOT / room).rglob("*.py")]
    named = {
        (str(page.relative_to(ROOT)), name)
        for page, text in prose()
        for name in re.findall(r"(?<![\w/.-])((?:[a-z_]+/)*[a-z_]+\.py)\b", text)
    }
    assert {
        (page, name) for page, name in named if not any(one.endswith(f"/{name}") for one in files)
    } == set()
