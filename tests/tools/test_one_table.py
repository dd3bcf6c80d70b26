"""What is known of a tool stands in its spec: adding one is one file and one line, and no other table."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fleet.oracles.table import ORACLES
from sandbox.spec import Effect
from sandbox.tools import NAMES, TOOLS

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
EXCEPTIONS = {
    "runs/call/targets.py": "the repro of an outage is a call that anyone may make, decided there",
    "runs/outage/watch.py": "it looks at a site through gate and jail, with the tool for pages",
    "cli/personas/personas.py": "the text of a new persona file",
    "triage/outputs/repro_shell.py": "what of a repro can be written as curl",
    "runs/call/session.py": "whether a host answers is asked at its first page",
    "fix/publish/body.py": "a draft shows the fetch of a page as a command line",
    "runs/fuzz.py": "a search by hand is calls of the tool that searches",
    "app/tool_reference.py": "worked examples of the classes of impact, for the reference",
    "fuzzing/suspects.py": "a suspect is looked at by single calls of the compiler's tool",
}
"""Modules of fleet/ that name a tool in their code, each with its reason; none of them tabulates tools."""
FOLDERS = ("devnet", "oracles")
"""The platform under test; and examples of what each oracle judges. What explorers ask is calls, too."""
NAMED = re.compile(rf"\b(?:{'|'.join(NAMES)})\b")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a run made of the added tool, in a process of its own, with a real jail."""
    house = tmp_path_factory.mktemp("house")
    shutil.copytree(ROOT / "sandbox", house / "sandbox", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "qa_letters.py", house / "sandbox" / "tools")
    table = house / "sandbox" / "tools" / "__init__.py"
    before = table.read_text("utf-8")
    after = before.replace('"qa_report",', '"qa_report", "qa_letters",')
    assert sum(a != b for a, b in zip(before.splitlines(), after.splitlines(), strict=True)) == 1
    table.write_text(after, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "tests.tools.newcomer", str(house)],
        cwd=house,
        capture_output=True,
        text=True,
        timeout=100,
        stdin=subprocess.DEVNULL,
        env=dict(os.environ) | {"PYTHONPATH": f"{house}{os.pathsep}{ROOT}"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.jail
def test_a_new_tool_runs_in_a_jail_and_its_result_is_redacted_by_its_spec(made: Any) -> None:
    answer = made["answer"]
    assert (answer["ok"], answer["letters"], answer["grade"]) == (True, 3, "many"), answer
    assert answer["aside"] == "[redacted:not-public]"
    assert made["spent"] == 10  # two looks and three proofs, two calls each


@pytest.mark.jail
def test_a_new_tool_is_scoped_by_its_spec(made: Any) -> None:
    assert made["denied"] == ["qa_letters: url: not a host of this platform"]
    assert made["target"] == "site"


@pytest.mark.jail
def test_a_new_tool_is_offered_in_its_group_and_every_probe_of_it_is_accounted_for(made: Any) -> None:
    assert made["groups"] == {"letters": ["qa_letters"]}
    group, parameters = made["offer"]
    assert (group, sorted(parameters["properties"])) == ("letters", ["letter", "url"])
    refused = {
        "probe": "foreign",
        "reason": "qa_letters: scope: qa_letters: url: not a host of this platform",
    }
    assert made["coverage"] == {
        "looked": [{"probe": "many", "reason": ""}, {"probe": "few", "reason": ""}],
        "not_applicable": [],
        "refused": [refused],
        "could_not": [],
        "undecided": [],
        "unexplored": [],
        "left": [],
        "as_whom": [],
    }
    assert made["missing"] == "the profile names no faces"


@pytest.mark.jail
def test_a_finding_of_a_new_tool_is_worded_by_its_spec_and_a_replay_knows_what_varies(made: Any) -> None:
    assert made["titles"] == ["Finding of few: counting in /plum the letter u: few"]
    assert made["compared"] == ["same"]


@cache
def naming() -> dict[Path, ast.Module]:
    """The modules of fleet/ that have the beginning of a tool's name somewhere."""
    texts = ((path, path.read_text("utf-8")) for path in (ROOT / "fleet").rglob("*.py"))
    return {path: ast.parse(text) for path, text in texts if "qa_" in text}


def literals(tree: ast.Module) -> Iterator[str]:
    """Every string in a module's code, the texts that only document it aside."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def test_no_module_of_the_fleet_names_a_tool_but_for_a_reason() -> None:
    found = set()
    for path, tree in naming().items():
        where = path.relative_to(ROOT / "fleet")
        if where.parts[0] in FOLDERS or where.parts[:2] == ("drivers", "explore"):
            continue
        if any(NAMED.search(text) for text in literals(tree)):
            found.add(str(where))
    assert found == set(EXCEPTIONS)


def test_no_module_of_the_fleet_tabulates_tools() -> None:
    tabulated = []
    for path, tree in naming().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Dict | ast.Set | ast.List | ast.Tuple):
                continue
            keys = node.keys if isinstance(node, ast.Dict) else node.elts
            names = [key.value for key in keys if isinstance(key, ast.Constant)]
            if any(isinstance(name, str) and name in TOOLS for name in names):
                tabulated.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert tabulated == []


@pytest.mark.parametrize("name", NAMES)
def test_every_spec_says_what_the_fleet_asks_of_it(name: str) -> None:
    spec = TOOLS[name]
    assert spec.group
    assert spec.points_at is not None
    assert (spec.acts_on is not None) == (spec.effect is Effect.ACT)
    assert set(spec.judged_as) <= {word for one in ORACLES for word in one.judges}
    assert spec.reaches in ("", "node", "proxy")
    assert spec.in_build in ("", "compiler", "service")
    assert not spec.modes or [mode.given for mode in spec.modes].index("") == len(spec.modes) - 1
    results = {field.name for field in fields(spec.result)}
    arguments = {field.name for field in fields(spec.args)}
    assert spec.volatile <= results
    assert {spec.ends_in} - {""} <= results
    assert {spec.acts_on or "", spec.mints, *(spec.points_at or {})} - {""} <= arguments
    assert spec.public <= arguments | results
