"""`fleet check`: whether configuration, platform and machine are as a run needs them; each alone, or all."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from fleet.cli.console import Json, make_app, put, run
from fleet.config import FleetConfig, Platform
from fleet.config.json_schema import schema
from fleet.errors import FleetError, Unreachable
from fleet.text import clean

Checked = tuple[dict[str, Any], Callable[[], None]]
"""What a check saw, and what prints it."""

app = make_app(
    group=True,
    default="all",
    lazy={
        "config": ("check.config", "Read every file the fleet would read, and report errors; no network."),
        "platform": ("check.platform", "Look at what a platform offers, and list what can run there."),
        "posture": ("check.posture", "Show what the watch of the contracts saw; announce a change to it."),
        "scope": ("check.scope", "Show who signed profile and personas, and what they lack; sign them."),
        "integrity": ("check.integrity", "Is the system under test what it was before its tests?"),
        "machine": ("check.machine", "Try the jail, chain, pages, keys, balances, journal, disk, clock …"),
    },
)


@app.callback()
def _group() -> None:
    """Check configuration, platform and machine: all of them, or one."""


@app.command("all")
def check_all(
    platform: Annotated[
        str | None, typer.Option(help="Profile to check; default: the configured one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check configuration, platform and machine one after the other; what `fleet check` alone does.

    Each is checked also where one before it fails; the exit status is that of the first that fails.
    """
    from fleet.cli.check import config, machine  # all that a run needs
    from fleet.cli.check import platform as platforms

    def configured() -> Checked:
        data, text = config.configuration(platform)
        return data, lambda: print(text)

    def surveyed() -> Checked:
        data = platforms.surveyed(platform)
        return data, lambda: platforms.print_survey(data)

    def examined() -> Checked:
        data = machine.examined(run(lambda: machine.examine(platform)))
        return data, lambda: machine.print_checks(data)

    found: dict[str, Any] = {}
    code = 0
    for name, check in (("config", configured), ("platform", surveyed), ("machine", examined)):
        try:
            found[name], text = check()
            failed = 0 if found[name]["ok"] else Unreachable.exit_code
        except FleetError as error:
            failed, said, remedy = error.exit_code, clean(str(error)), clean(error.remedy)
            found[name] = {"ok": False, "error": said, "remedy": remedy}
            text = partial(print, f"{said}\n  try: {remedy}" if remedy else said)
        code = code or failed
        if not as_json:
            print(f"== {name}: {'NO' if failed else 'ok'}", flush=True)
            text()
    put({"ok": not code, **found}, as_json=as_json, text=lambda: None)
    if code:
        raise typer.Exit(code)


@app.command(name="schema")
def show_schema(
    platform: Annotated[
        bool, typer.Option("--platform", help="Print the schema of a platform profile instead of fleet.toml.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of fleet.toml or of a platform profile, for editors."""
    data = schema(Platform if platform else FleetConfig)
    put(data, as_json=as_json, text=lambda: print(json.dumps(data, indent=2)))
