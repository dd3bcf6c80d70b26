"""`fleet check integrity`: whether the system under test is what it was before its tests."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from fleet.app.integrity import compare, take_baseline
from fleet.app.journal import open_journal
from fleet.cli.console import Json, make_app, put, run, state
from fleet.clock import SystemClock
from fleet.config import load_fleet, load_platform
from fleet.errors import ConfigError, Unreachable

app = make_app()


@app.command()
def integrity(
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Keep how it is now, instead of what was kept before.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Hold what the commands of `[integrity]` print against what they printed before the tests.

    Each of the five kinds takes `integrity.seconds` (60) at most. Exit 1 where something differs.
    """
    config, clock = load_fleet(), SystemClock()
    platform, _ = load_platform(config.platform, state())
    if not config.integrity.commands:
        raise ConfigError("[integrity] of fleet.toml states no command", remedy='files = ["…"], accounts = …')

    async def look() -> dict[str, Any] | None:
        async with await open_journal(state()) as journal:
            if baseline:
                faults = await take_baseline(config, platform, journal, clock, anew=True)
                return {
                    "baseline": sorted(config.integrity.commands),
                    "faults": faults,
                    "differs": bool(faults),
                }
            found = await compare(state(), config, platform, journal, clock)
            return asdict(found) | {"differs": found.differs, "says": found.words()} if found else None

    data = run(look)
    if data is None:
        raise Unreachable(
            f"{platform.name} has no baseline", remedy="fleet check integrity --baseline, before its tests"
        )
    faults = ", ".join(f"{name}: {why}" for name, why in data["faults"].items())
    said = faults or data.get("says") or f"kept: {', '.join(data.get('baseline', ()))}"
    put(data, as_json=as_json, text=lambda: print(said))
    if data["differs"]:
        raise typer.Exit(1)
