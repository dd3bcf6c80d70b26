"""The command line: one file per command, imported only when it is called."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from fleet import __version__
from fleet.cli.summaries import SummaryGroup
from fleet.errors import FleetError, UsageError
from fleet.text import clean

COMMANDS = {
    "demo": "Run the whole fleet once on the bundled platform, and print the worklist.",
    "look": "Look at any site, API, contract or agent, and print what is proven to be wrong.",
    "init": "Write the profile of a platform, and its keys, by asking what is there.",
    "up": "Run the resident service: fire every persona when it is due.",
    "run": "Fire one persona now.",
    "call": "Make the calls of a repro once, through gate and jail.",
    "mcp": "Serve a persona's gated, jailed tools to an outside agent over MCP.",
    "dial": "Show or set the autonomy dial.",
    "stop": "Pause everything immediately, until `resume`.",
    "resume": "Remove the STOP file, and record why.",
    "status": "Show on one screen what is new, what is broken and what it cost.",
    "runs": "List, show, follow, replay, cancel or prune runs.",
    "hook": "List webhooks, create a secret, send a delivery.",
    "notify": "Test notifications; silence an event for a while.",
    "backup": "Write a backup of the state directory.",
    "restore": "Check a backup, or restore the state directory from it.",
    "personas": "List, check, scaffold or publish personas.",
    "tools": "Show what a probe may call, and what it answers.",
    "fuzz": "Search one compiler or decoder for inputs that break it.",
    "worklist": "Show the ranked worklist.",
    "report": "Report on a period: posture, trend, coverage, interruptions, cost.",
    "propose": "Propose a fix of one item as a draft pull request.",
    "proposals": "List, show or withdraw proposals of fixes.",
    "findings": "Show findings and their evidence; decide about items; adopt a claim.",
    "log": "Read the on-chain feedback log.",
    "devnet": "Start, stop or describe the bundled local chain and platform.",
    "doctor": "Check jail, chain, pages, programs, keys, balances, journal, disk, clock, personas.",
    "config": "Check the configuration.",
    "platform": "Look at what a platform offers, and what can run there.",
    "service": "Write, remove or show the systemd unit.",
    "man": "Print the manual page, for `man -l -`.",
    "version": "Print the version.",
}
"""Name and summary of each command."""

MODULES = {
    "up": "operate.up",
    "run": "run.run",
    "mcp": "run.mcp",
    "dial": "operate.dial",
    "stop": "operate.stop",
    "resume": "operate.resume",
    "status": "operate.status",
    "runs": "run.runs",
    "hook": "operate.hook",
    "notify": "operate.notify",
    "backup": "operate.backup",
    "restore": "operate.restore",
    "personas": "personas.personas",
    "tools": "personas.tools",
    "worklist": "worklist.worklist",
    "findings": "findings.findings",
    "doctor": "operate.doctor",
    "config": "operate.config",
    "platform": "operate.platform",
    "service": "operate.service",
}
"""Where the `app` of a command is, in `fleet.cli`; of any other in the module of its name."""


def module_of(command: str) -> str:
    """The module whose `app` is this command."""
    return f"fleet.cli.{MODULES.get(command, command)}"


@contextmanager
def at_once() -> Iterator[None]:
    """Pause the collector during a burst of imports: it takes a third of their time and frees nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class _LazyCommand(TyperCommand):
    """A command whose module is imported when it is called: `--help` stays fast."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:  # noqa: ANN401  click's own signature
        return self.loaded().make_context(info_name, args, parent=parent, **extra)

    def loaded(self) -> Any:  # noqa: ANN401  click's own signature
        """The command itself, with its examples."""
        with at_once():
            module = import_module(module_of(str(self.name)))
        command = typer.main.get_command(module.app)
        if lines := examples().get(str(self.name)):
            command.epilog = "\b\nExamples:\n" + "\n".join(f"  {one}" for one in lines)
        return command


@cache
def examples() -> dict[str, list[str]]:
    """Lines for the help of commands, by name."""
    found: dict[str, list[str]] = json.loads((Path(__file__).parent / "examples.json").read_text("utf-8"))
    return found


class _Group(SummaryGroup):
    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401  click's own signature
        super().__init__(**attributes)
        self.commands = {name: _LazyCommand(name=name, help=summary) for name, summary in COMMANDS.items()}


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    name="fleet",
    context_settings={"help_option_names": ["-h", "--help"]},
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
    if state:
        from fleet.config.files import use_state

        if not Path(state).is_dir():
            raise UsageError(f"{state} is not a folder", remedy="ls .qa-fleet/looks")
        use_state(Path(state))
    if demo:
        from fleet.config.files import demo_dir, state_dir  # pydantic, which `--help` does without

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
