"""Help, version, examples, manual page and completion: what a stranger asks first."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from fleet import __version__, cli
from fleet.cli.man import lines
from tests.command_tree import command_of

EXAMPLES = [line for found in cli.examples().values() for line in found]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_h_is_help_everywhere(name: str) -> None:
    said = CliRunner().invoke(cli.app, [name, "-h"])
    assert said.exit_code == 0, said.output
    assert said.stdout.startswith("Usage: ")
    assert ("\n  Examples:\n" in said.stdout) >= (name in cli.examples())


@pytest.mark.parametrize("words", [[], *([name] for name in cli.COMMANDS)], ids=" ".join)
def test_no_summary_is_cut(words: list[str]) -> None:
    said = CliRunner().invoke(cli.app, [*words, "-h"], env={"COLUMNS": "80"})
    lines = said.stdout.partition("Commands:")[2].splitlines()
    assert not [line for line in lines if line.endswith("...")]
    assert all(len(line) <= 80 for line in lines)


def test_h_is_help_of_a_command_in_a_group() -> None:
    said = CliRunner().invoke(cli.app, ["runs", "list", "-h"])
    assert (said.exit_code, "--all" in said.stdout) == (0, True)


def test_the_version_is_an_option_too() -> None:
    said = CliRunner().invoke(cli.app, ["--version"])
    assert (said.exit_code, said.stdout) == (0, f"fleet {__version__}\n")


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_a_valid_command_line(example: str) -> None:
    _, *words = shlex.split(example)
    command, rest = command_of(words)
    command.make_context(words[0], rest).close()


def test_the_manual_has_every_command_option_and_exit_code() -> None:
    page = "\n".join(lines())
    for name in cli.COMMANDS:
        assert f".SS fleet {name}" in page
    assert {
        r".B 130",
        r".B 75",
        r".B \-\-watch",
        r".SS fleet runs list",
        ".SS fleet items log verify",
    } <= set(page.splitlines())
    assert "\b" not in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_manual_is_set_without_a_warning() -> None:
    done = subprocess.run(
        ["groff", "-k", "-man", "-ww", "-Tutf8"], input="\n".join(lines()), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "User Commands" in done.stdout


@pytest.mark.parametrize(
    ("shell", "asked"),
    [
        ("bash", {"COMP_WORDS": "fleet runs li", "COMP_CWORD": "2"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "fleet runs li"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "fleet runs li", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_completion_knows_the_commands_of_a_group(shell: str, asked: dict[str, str]) -> None:
    environment = {"PATH": os.environ["PATH"], "_FLEET_COMPLETE": f"complete_{shell}"} | asked
    done = subprocess.run(
        [sys.executable, "-m", "fleet.cli"], capture_output=True, text=True, env=environment, timeout=60
    )
    assert "list" in done.stdout, done
    assert "prune" not in done.stdout
    if shell != "bash":  # which shows no summaries
        assert "List the latest runs, newest first, with findings, coverage and cost." in done.stdout
