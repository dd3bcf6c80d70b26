"""docs/operate.md: its commands exist with these options; each metric and exit code has its line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import typer

from fleet import errors
from fleet.cli import COMMANDS
from fleet.config import EVENTS, ROOT

PAGE = (ROOT / "docs/operate.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```\n", PAGE, re.M | re.S)
LINES = [line for block in BLOCKS if not block[0] for line in block[1].splitlines()]
SPOKEN = sorted(set(re.findall(r"`fleet ([a-z]+(?: [a-z]+)?)[^`]*`", PAGE)))


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """The command that these words name, and the rest of them."""
    name, *rest = words
    assert name in COMMANDS
    found: Any = typer.main.get_command(import_module(f"fleet.cli.{name}").app)
    while rest and getattr(found, "commands", None):
        found = found.commands[rest.pop(0)]
    assert not getattr(found, "commands", None) or found.invoke_without_command, f"{name} needs a command"
    return found, rest


def test_the_page_has_commands() -> None:
    assert len(LINES) > 25


@pytest.mark.parametrize("line", LINES)
def test_each_command_and_option_exists(line: str) -> None:
    first, *words = shlex.split(line)
    assert first == "fleet"
    found, rest = command_of(words)
    options = {name: one for one in found.params for name in one.opts if name.startswith("-")}
    taken = []
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            taken.append(word)
        elif not options[word].is_flag:
            rest.pop(0)
    arguments = [one for one in found.params if one.param_type_name == "argument"]
    assert sum(one.required for one in arguments) <= len(taken) <= len(arguments)


@pytest.mark.parametrize("words", SPOKEN)
def test_each_command_in_a_sentence_exists(words: str) -> None:
    command_of(words.split())


def test_each_metric_has_a_line() -> None:
    source = (ROOT / "fleet/service/exposition.py").read_text("utf-8")
    rows = re.findall(r"^\| (`[^|]*) \|", PAGE, re.M)
    documented = {name for row in rows for name in re.findall(r"`(fleet_[a-z_]+)`", row)}
    assert set(re.findall(r'"(fleet_[a-z_]+)"', source)) - documented == set()


def test_each_exit_code_has_a_line() -> None:
    def codes(kind: type[errors.FleetError]) -> Iterator[int]:
        yield kind.exit_code
        for one in kind.__subclasses__():
            yield from codes(one)

    documented = set(map(int, re.findall(r"^\| (\d+) \|", PAGE, re.M)))
    assert {0, 130, 143, *codes(errors.FleetError)} == documented


def test_each_event_of_a_notification_has_a_line() -> None:
    rows = re.findall(r"^\| (`[^|]*) \|", PAGE, re.M)
    assert set(EVENTS) <= {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}


def test_the_contributors_page_names_targets_and_files_that_exist() -> None:
    page, makefile = ((ROOT / name).read_text("utf-8") for name in ("CONTRIBUTING.md", "Makefile"))
    for target in re.findall(r"`make ([a-z-]+)`", page):
        assert re.search(rf"^{target}:", makefile, re.M), target
    for path in re.findall(r"`((?:fleet|sandbox|tests|docs|personas)/[a-z_/.]*)`", page):
        assert (ROOT / path).exists(), path
