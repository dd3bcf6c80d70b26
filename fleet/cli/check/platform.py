"""`fleet check platform`: what a platform offers, and which parts of the fleet can run there."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.app.bootstrap import image
from fleet.app.persona_sets import roster
from fleet.cli.console import Json, make_app, note, put, run, table
from fleet.config import Platform, config_dirs, load_fleet, load_platform
from fleet.files import state_dir
from fleet.jail.choice import open_jail
from fleet.jail.toolcheck import try_programs
from fleet.runs.survey import SurveyedPart, as_data, survey
from fleet.text import line

app = make_app()


def profile_names(incomplete: str) -> list[str]:
    """Profiles for shell completion of `fleet check platform`."""
    folders = (state_dir() / "devnet", *(folder / "platforms" for folder in config_dirs()))
    names = {path.stem for folder in folders for path in folder.glob("*.toml")}
    return sorted(name for name in names if name.startswith(incomplete))


@app.command()
def platform(
    profile: Annotated[
        str | None,
        typer.Argument(help="Profile to look at; default the configured one.", autocompletion=profile_names),
    ] = None,
    as_json: Json = False,
) -> None:
    """Look at what a platform offers, and list the personas, probes and tools that can run there.

    It only reads (no key, no transaction, no paid call), so `--dry-run` is not needed. Exit 4 when a part
    that the profile names is not reached or does not match the profile.
    """
    data = surveyed(profile)
    put(data, as_json=as_json, text=lambda: print_survey(data))
    if not data["ok"]:
        raise typer.Exit(4)


def surveyed(name: str | None) -> dict[str, Any]:
    """What a platform offers, asked of it now; each part is noted as it is looked at."""
    platform, path = load_platform(name or load_fleet().platform, state_dir())
    personas, errors = roster()
    for error in errors:
        note(f"left out: {error}")
    note(f"looking at {platform.name} ({path})")
    trial = partial(_programs, platform, path)
    found = run(lambda: survey(platform, trial, lambda part: note(f"  {part.part}: {part.state}")))
    data = as_data(found, platform, personas)
    if found.selectors is None and platform.chain.diamond:
        note("the diamond's functions are unknown: assuming that all are offered")
    return data | {"profile": str(path)}


async def _programs(platform: Platform, path: Path) -> list[SurveyedPart]:
    """Try the compiler and the loader in a separate jail; our own failures are not the platform's."""
    with tempfile.TemporaryDirectory(prefix="qa-fleet-") as spool:
        make = partial(open_jail, load_fleet().jail, pool=0, spool=Path(spool))
        tried = await try_programs(image(platform, path), platform.compiler.program, make)
    return [
        SurveyedPart(one.name, "found" if one.ok else "unreachable", line(one.seen, 300)) for one in tried
    ]


def print_survey(data: dict[str, Any]) -> None:
    """The data as tables: parts, then what can run."""
    table(("part", "state", "seen"), ([row["part"], row["state"], row["seen"]] for row in data["parts"]))
    if data["functions"]:
        print(f"\nnot offered: {', '.join(data['functions']['missing']) or 'nothing that the fleet knows'}")
    rows = [("tool", row["tool"], row["reason"] or "can run") for row in data["tools"]]
    for one in data["personas"]:
        # one without probes of its own has nothing that could be missing
        some = f"{one['applicable']} of {one['probes']} probes can run"
        can = f"does not fire: {one['idle']}" if one["idle"] else some if one["probes"] else "can run"
        rows.append(("persona", one["persona"], can))
        rows += [("probe", row["probe"], f"not applicable: {row['reason']}") for row in one["not_applicable"]]
    print()
    table(("what", "name", "here"), rows)
