"""`fleet check scope`: what the authority signed, what it must say, and a signature."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.app.network_map import network_map, own_routes
from fleet.app.persona_sets import roster
from fleet.broker.known_names import NAMES, known_names
from fleet.chain.keys import load_key
from fleet.cli.console import DryRun, Json, make_app, note, put, state, who
from fleet.clock import SystemClock, iso
from fleet.config import load_fleet, load_platform
from fleet.errors import ConfigError
from fleet.runs.call.decision_file import Decision, DecisionFile
from fleet.runs.providers import uses
from fleet.runs.signed_scope import current, missing, read_signatures, require_signed, sign
from fleet.text import clean

app = make_app()


@app.command()
def scope(
    profile: Annotated[
        str | None, typer.Argument(help="Profile to look at; default the configured one.")
    ] = None,
    sign_with: Annotated[
        Path | None, typer.Option("--sign", help="Sign it with the key in this file (hex, or a keystore).")
    ] = None,
    by: Annotated[str, typer.Option(help="Who signs, by name and role.")] = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Show who signed profile and personas, and what rules of engagement must say and it does not.

    With `[authority] signers` in fleet.toml nothing runs unless each of them signed what is there.
    Exit 3 when it is not signed as it must be.
    """
    config, (platform, path) = load_fleet(), load_platform(profile or load_fleet().platform, state())
    personas = roster()[0]
    if sign_with is not None and not dry_run:
        clock = SystemClock()
        at, name = iso(clock.now()), by or who()
        sign(platform, path, current(path, personas), load_key(sign_with), name, at)
        decision = Decision(
            f"{name} signs the scope of {platform.name}",
            "leave it unsigned, or sign it",
            f"profile {current(path, personas).profile[:12]} and {len(personas)} personas",
            "the authority's word",
            f"remove {path.with_suffix('.sig').name}",
            charter="the authority's",
        )
        DecisionFile(state(), clock).record(decision, run="none", turn=0)
    fault = ""
    try:
        require_signed(config, platform, path, personas, state())
    except ConfigError as error:
        fault = str(error)
    found = read_signatures(path)
    data: dict[str, Any] = {
        "profile": str(path),
        "required": list(config.authority.signers),
        "signatures": [one.model_dump() for one in found.signatures] if found else [],
        "missing": missing(platform),
        "providers": [
            one.model_dump(mode="json") | {"name": name, "keys": keys}
            for name, keys in uses(config, platform, state()).items()
            for one in (platform.providers[name],)
        ],
        "network": network_map(platform, known_names(state() / NAMES), own_routes()),
        "fault": fault,
    }

    def text() -> None:
        for one in data["signatures"]:
            print(clean(f"signed by {one['by']} ({one['signer']}) at {one['at']}"))
        for lacking in data["missing"]:
            print(clean(f"missing   {lacking}"))
        for one in data["providers"]:
            gets = f"{', '.join(one['sends'])} by {', '.join(one['keys']) or 'nothing'}"
            print(
                clean(
                    f"provider  {one['name']}: {one['decision']} by {one['by']} on {one['on']}, gets {gets}"
                )
            )
        for segment, hosts in data["network"]["segments"].items():
            print(clean(f"segment   {segment}: {', '.join(hosts)}"))
        for network in data["network"]["beside"]:
            print(clean(f"beside    {network}: reached by a route of this machine, and not dialled"))
        if not data["required"]:
            print("no signature is required: [authority] signers in fleet.toml is empty")
        print(clean(fault) if fault else "the scope is as it must be")

    if sign_with is not None and dry_run:
        note("nothing is signed by --dry-run")
    put(data, as_json=as_json, text=text)
    if fault:
        raise typer.Exit(3)
