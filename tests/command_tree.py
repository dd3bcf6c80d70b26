"""What words of a command line name, by the commands themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from fleet import cli
from fleet.cli.groups import LazyCommand

ROOT: Any = typer.main.get_command(cli.app)


def command_of(words: Sequence[str]) -> tuple[Any, list[str]]:
    """The command that these words name, and the rest of them; AssertionError for what is not one."""
    found, rest = ROOT, list(words)
    while commands := getattr(found, "commands", None):
        if rest and rest[0] in commands:
            found = commands[rest.pop(0)]
        else:
            default = getattr(found, "default", "")
            assert default, f"`fleet {' '.join(words)}` needs a command"
            taken = not rest or rest[0].startswith("-") or found.default_takes
            assert taken, f"`fleet {' '.join(words)}`: there is no {rest[0]}"
            found = commands[default]
        found = found.loaded() if isinstance(found, LazyCommand) else found
    return found, rest
