"""The tree of commands: short enough to learn, old names still work, and every text names what exists."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from fleet import cli
from fleet.files import ROOT
from tests.command_tree import ROOT as ROOT_GROUP

SPOKEN = re.compile(
    r"(?:[`\"'(:;,$·]|^|\b(?:or|run|try|then)) *(?:\.venv/bin/)?fleet(?: --demo| --state [^\s`]+)? ([a-z]+)"
    r"(?: ([a-z]+))?(?![\w.])",
    re.M,
)
CODE = re.compile(r"^```\w*\n(?:.*\n)*?```$|`[^`\n]*`|\"[^\"\n]*\"", re.M)
"""Where a text means a command: code in Markdown, a string of Python or TOML."""
OLD = re.compile(
    rf"(?<![\w/.-])fleet (?:--demo )?({'|'.join(sorted(cli.ALIASES, reverse=True))})\b(?![-.:/])"
)


def texts() -> Iterator[tuple[str, str]]:
    """Files that tell a person a command; decisions and the change log are of their time."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        told = name.endswith((".md", ".py", ".toml", ".json", ".yaml", ".service", ".jinja", "Makefile"))
        if (
            told
            and not name.startswith(("docs/decisions/", "tests/", "CHANGELOG"))
            and (ROOT / name).is_file()
        ):
            yield name, (ROOT / name).read_text("utf-8")


def test_the_list_of_commands_is_short_and_has_headings() -> None:
    said = CliRunner().invoke(cli.app, [])
    assert said.exit_code == 0
    assert re.findall(r"^(\w+):$", said.stdout, re.M) == ["Options", *cli.HEADINGS]
    shown = re.findall(r"^  ([a-z]+) {2,}\S", said.stdout, re.M)
    assert (len(shown) <= 20, shown) == (True, [name for found in cli.HEADINGS.values() for name in found])
    assert said.stdout == CliRunner().invoke(cli.app, ["--help"]).stdout


@pytest.mark.parametrize(("old", "new"), cli.ALIASES.items())
def test_an_old_name_works_and_says_the_new_one_on_standard_error(old: str, new: str) -> None:
    said = CliRunner().invoke(cli.app, [*old.split(), "--help"])
    assert (said.exit_code, said.stderr) == (0, f"fleet: `fleet {old}` is now `fleet {new}`\n")
    assert said.stdout.startswith("Usage: fleet ")
    assert f"Usage: fleet {new} " in said.stdout


def test_a_program_that_uses_an_old_name_gets_no_note() -> None:
    said = CliRunner().invoke(cli.app, ["tools", "qa_fetch", "--json"])
    assert (said.exit_code, said.stderr, said.stdout[:1]) == (0, "", "{")


def test_every_command_that_a_text_names_exists_and_is_not_an_old_name() -> None:
    old, unknown = [], []
    inside = {name: getattr(one.loaded(), "commands", {}) for name, one in ROOT_GROUP.commands.items()}
    for name, text in texts():
        old += [f"{name}: {found[0]}" for found in OLD.finditer(text)]
        for code in CODE.findall(text):
            for first, second in SPOKEN.findall(code):
                if first not in inside or (inside[first] and second and second not in inside[first]):
                    unknown.append(f"{name}: fleet {first} {second}")
    assert (old, unknown) == ([], [])
