"""`fleet config check`: the start-up path minus its side effects."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fleet.cli.roster import roster
from fleet.cli.shell import Json, put, state
from fleet.config import load_fleet, load_platform

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def _group() -> None:
    """Check the configuration."""


@app.command()
def check(
    platform: Annotated[
        str | None, typer.Option(help="Check this profile instead of the configured one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read every file the fleet would read and say what is wrong; touches no network."""
    config = load_fleet()
    profile, path = load_platform(platform or config.platform, state())
    found, errors = roster()
    if errors:
        raise errors[0]
    data: dict[str, Any] = {
        "ok": True,
        "platform": profile.name,
        "profile": str(path),
        "personas": sorted(found),
    }
    put(data, as_json=as_json, text=lambda: print(f"ok: {profile.name} ({path}), {len(found)} personas"))
