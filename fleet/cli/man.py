"""`fleet man`: the manual page, made from the commands themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from fleet import __version__, cli
from fleet.cli.console import make_app
from fleet.cli.groups import LazyCommand
from fleet.text import clean

app = make_app()


@app.command()
def man() -> None:
    """Print the manual page. To read it: fleet man | man -l -"""
    print("\n".join(lines()))


def lines() -> Iterator[str]:
    """The page in the language of man(7)."""
    told = json.loads((Path(__file__).parent / "manual.json").read_text("utf-8"))
    root = typer.main.get_command(cli.app)
    yield f'.TH FLEET 1 "" "qa-fleet {__version__}" "User Commands"'
    yield from (".SH NAME", rf"fleet \- {_text(root.help or '')}")
    yield from (".SH SYNOPSIS", r".B fleet", r"[\-h] [\-\-version] \fICOMMAND\fR [\fIARGUMENTS\fR]")
    yield ".SH COMMANDS"
    for name, lazy in root.commands.items():  # type: ignore[attr-defined]
        yield from _command(f"fleet {name}", lazy.loaded())
    for head, table in (("EXIT STATUS", told["exit"]), ("ENVIRONMENT", told["environment"])):
        yield f".SH {head}"
        for key, words in table.items():
            yield from (".TP", rf".B {_text(key)}", _text(words))
    yield ".SH EXAMPLES"
    yield from _verbatim(line for found in cli.examples().values() for line in found)
    yield from (".SH COMPLETION", "For bash, zsh and fish:")
    yield from _verbatim(told["completion"])


def _command(name: str, command: Any) -> Iterator[str]:  # noqa: ANN401  click's command, untyped
    """A command with its options, then those of its group."""
    params = [param for param in command.params if param.name != "help"]
    words = [f"{param.name}".upper() for param in params if param.param_type_name == "argument"]
    yield f".SS {_text(' '.join([name, *words]))}"
    yield _text((command.help or "").replace("\b", ""))
    for param in params:
        if param.param_type_name == "option" and not getattr(param, "hidden", False):
            yield from (".TP", rf".B {_text(', '.join(param.opts))}", _text(param.help or ""))
    for below, inner in getattr(command, "commands", {}).items():
        yield from _command(f"{name} {below}", inner.loaded() if isinstance(inner, LazyCommand) else inner)


def _verbatim(found: Iterable[str]) -> Iterator[str]:
    yield ".nf"
    yield from map(_text, found)
    yield ".fi"


def _text(words: str) -> str:
    """One line that begins no request: backslashes, hyphens, and a dot or quote at its start escaped."""
    line = " ".join(clean(words, newlines=True).split()).replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{line}" if line.startswith((".", "'")) else line
