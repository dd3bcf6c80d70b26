"""The command line: commands by what a person wants, one file each, imported only when it is called."""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet import __version__
from fleet.cli.groups import LazyCommand, SummaryGroup
from fleet.errors import FleetError, UsageError
from fleet.text import clean

HEADINGS = {
    "Start": {
        "demo": "Run the whole fleet once on the bundled platform, and print the items.",
        "look": "Look at any site, API, contract or agent, and print what is wrong.",
        "init": "Write the profile of a platform, and its keys, by asking it.",
        "up": "Run the resident service: fire every persona when it is due.",
        "run": "Fire one persona, or all, now.",
    },
    "Look": {
        "status": "Show on one screen what is new, what is broken and what it cost.",
        "runs": "List, show, follow, replay, cancel or prune runs.",
        "report": "Report on a period: posture, trend, coverage, cost.",
    },
    "Decide": {
        "items": "List what to fix first; show an item; decide about it.",
        "propose": "Propose a fix of an item as a draft pull request.",
    },
    "Operate": {
        "dial": "Show or set the autonomy dial.",
        "stop": "Pause everything immediately, until `resume`.",
        "resume": "Remove the STOP file, and record why.",
        "check": "Check configuration, platform and machine.",
        "service": "The systemd unit, webhooks and notifications of the service.",
        "backup": "Write, check or restore a backup of the state directory.",
    },
    "Extend": {
        "personas": "List, check, try, scaffold or publish personas; show their tools.",
        "call": "Make the calls of a repro once, through gate and jail.",
        "fuzz": "Search one compiler or decoder for inputs that break it.",
        "devnet": "Start, stop or describe the bundled local chain and platform.",
    },
}
"""Name and summary of each command, by what a person wants; the common first."""
HIDDEN = {"man": "Print the manual page, for `man -l -`.", "version": "Print the version."}
"""Commands about the program itself, which `--help` names in its last line."""
COMMANDS = {name: summary for found in (*HEADINGS.values(), HIDDEN) for name, summary in found.items()}

MODULES = {
    "up": "operate.up",
    "run": "run.run",
    "status": "operate.status",
    "runs": "run.runs",
    "items": "items.items",
    "propose": "proposals",
    "dial": "operate.dial",
    "stop": "operate.stop",
    "resume": "operate.resume",
    "check": "check.check",
    "service": "operate.service",
    "backup": "operate.backup",
    "personas": "personas.personas",
}
"""Where the `app` of a command is, in `fleet.cli`; of any other in the module of its name."""

ALIASES = {
    "worklist": "items",
    "findings list": "items findings",
    "findings": "items",
    "log": "items log",
    "proposals": "propose",
    "config check": "check config",
    "config schema": "check schema",
    "config": "check",
    "platform check": "check platform",
    "platform": "check",
    "doctor": "check machine",
    "hook": "service hook",
    "notify": "service notify",
    "restore": "backup restore",
    "tools": "personas tools",
    "mcp": "personas mcp",
}
"""Old name and new name of commands, kept until version 0.2 (decision 91)."""


@cache
def examples() -> dict[str, list[str]]:
    """Lines for the help of commands, by name."""
    found: dict[str, list[str]] = json.loads((Path(__file__).parent / "examples.json").read_text("utf-8"))
    return found


class _Root(SummaryGroup):
    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401  click's own signature
        super().__init__(**attributes)
        under = {name: heading for heading, found in HEADINGS.items() for name in found}
        self.commands = {
            name: LazyCommand(
                name,
                MODULES.get(name, name),
                summary,
                heading=under.get(name),
                hidden=name in HIDDEN,
                examples=examples().get(name, ()),
            )
            for name, summary in COMMANDS.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401  click's own signature
        for old in (" ".join(args[:2]), args[0]):
            if new := ALIASES.get(old):
                args = [*new.split(), *args[len(old.split()) :]]
                if "--json" not in args and not ctx.resilient_parsing:
                    print(f"fleet: `fleet {old}` is now `fleet {new}`", file=sys.stderr)
                break
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Root,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    name="fleet",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="fleet COMMAND --help shows a command, fleet man | man -l - all of them.",
)


def _version(asked: bool) -> None:
    if asked:
        print(f"fleet {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  typer acts on it
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Use the state directory of the last `fleet demo`.")
    ] = False,
    state: Annotated[
        str,
        typer.Option("--state", metavar="FOLDER", help="Use this state directory, such as that of a look."),
    ] = "",
) -> None:
    """An autonomous QA fleet: every finding proven, every action bounded, every crash survivable."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit
    if state:
        from fleet.config.files import use_state

        if not Path(state).is_dir():
            raise UsageError(f"{state} is not a folder", remedy="ls .qa-fleet/looks")
        use_state(Path(state))
    if demo:
        from fleet.config.files import demo_dir  # pydantic, which `--help` does without
        from fleet.files import state_dir

        if context.invoked_subcommand == "demo":
            raise UsageError("--demo opens the last demo; it starts none", remedy="fleet demo")
        if not (folder := demo_dir(state_dir())).is_dir():
            raise UsageError(f"no demo was run here: {folder} does not exist", remedy="fleet demo")
        os.environ["STATE_DIRECTORY"] = str(folder)


def main() -> None:
    """Entry point: an expected failure prints one line and a remedy, never a traceback."""
    try:
        app(prog_name="fleet")
    except FleetError as error:
        _tell(error)
        sys.exit(error.exit_code)
    except BaseExceptionGroup as group:
        expected, rest = group.split(FleetError)
        if rest is not None or expected is None:
            raise
        first = _first(expected)
        _tell(first)
        sys.exit(first.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def _first(group: BaseExceptionGroup[FleetError]) -> FleetError:
    leaf = group.exceptions[0]
    return _first(leaf) if isinstance(leaf, BaseExceptionGroup) else leaf


def _tell(error: FleetError) -> None:
    said, remedy = clean(str(error)), clean(error.remedy)  # may quote a node or a file
    if "--json" in sys.argv:
        body = {"error": said, "kind": type(error).__name__, "remedy": remedy}
        print(json.dumps(body | {"exit_code": error.exit_code}), file=sys.stderr)
        return
    print(f"fleet: {said}", file=sys.stderr)
    if remedy:
        print(f"  try: {remedy}", file=sys.stderr)
