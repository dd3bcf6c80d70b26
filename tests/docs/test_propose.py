"""docs/propose.md: its configuration is valid, its commands exist, and each test that it names is there."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest

from fleet.config import FleetConfig
from fleet.drivers.desk import Reserved
from fleet.files import ROOT
from fleet.fix.fixers.command import CommandFixer
from tests.command_tree import command_of

PAGE = (ROOT / "docs/propose.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```\n", PAGE, re.M | re.S)
LINES = [line for kind, text in BLOCKS if not kind for line in text.splitlines() if line.startswith("fleet ")]
EXAMPLE = (ROOT / "config/fleet.toml").read_text("utf-8")


@pytest.mark.parametrize("line", LINES)
def test_each_command_and_option_exists(line: str) -> None:
    _, *words = shlex.split(line)
    found, rest = command_of(words)
    with found.make_context(words[0], rest) as context:
        assert context.params, "its words are read as the command reads them"


def test_the_configuration_of_the_page_is_valid() -> None:
    config = FleetConfig.model_validate(
        tomllib.loads("\n".join(text for kind, text in BLOCKS if kind == "toml"))
    )
    assert config.repositories["compiler"].github is not None
    assert CommandFixer(config.propose, _NoBudget()).name == "command"


def test_the_commented_examples_of_the_shipped_file_are_valid() -> None:
    start = EXAMPLE.index("# [propose]")
    lines = [line.removeprefix("# ") for line in EXAMPLE[start:].splitlines()]
    tables = tomllib.loads("\n".join(line for line in lines if re.match(r"\[|\w+ = ", line)))
    config = FleetConfig.model_validate(tables)
    assert config.propose.fixer == "command"
    assert list(config.repositories) == ["compiler"]


def test_each_test_that_the_page_names_is_there() -> None:
    named = re.findall(r"`(tests/[a-z_/]+\.py)::(test_\w+)`", PAGE)
    assert len(named) > 14
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not re.search(rf"^(?:async )?def {test}\(", (ROOT / file).read_text("utf-8"), re.M)
    ]
    assert missing == []


class _NoBudget:
    def seconds(self) -> float:
        raise AssertionError

    async def reserve(self, tokens: int) -> Reserved:
        raise AssertionError
