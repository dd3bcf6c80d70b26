"""`fleet check config`: the start-up path minus its side effects."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.app.bootstrap import SPOOL, image
from fleet.app.persona_sets import roster
from fleet.cli.console import Json, make_app, note, put, run, state
from fleet.config import JailSection, Platform, load_fleet, load_platform
from fleet.config.parts import in_short
from fleet.drivers.model.factory import model_driver
from fleet.errors import ConfigError
from fleet.gate.dial import DIAL, read_dial
from fleet.jail.choice import open_jail
from fleet.jail.toolcheck import try_programs
from fleet.runs.fuzz_start import read_start
from fleet.store.location import shown, store_place
from fleet.text import counted
from fleet.triggers.chain.invariants import invariants_of
from fleet.triggers.hooks.secret import hook_secrets, sink_secret
from fleet.triggers.hooks.webhook import unfired

app = make_app()


@app.command()
def config(
    platform: Annotated[
        str | None, typer.Option(help="Check this profile instead of the configured one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read every file the fleet would read, try the compiler in a jail, report errors; no network.

    A service starts after this check although its node is down, and reports the outage: whether the node and
    the pages answer is the question of `fleet check platform` and `fleet check machine` (exit 4).
    """
    data, text = configuration(platform)
    put(data, as_json=as_json, text=lambda: print(text))


def configuration(platform: str | None) -> tuple[dict[str, Any], str]:
    """What was read, as data and in words; ConfigError for what is wrong."""
    config = load_fleet()
    profile, path = load_platform(platform or config.platform, state())
    read_start(profile.compiler, path)
    try:
        invariants_of(profile.watch, profile.chain.diamond)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}", remedy=error.remedy) from None
    found, errors = roster()
    if errors:
        raise errors[0]
    for name in config.hooks:
        hook_secrets(config, name, state())
    for name in config.sinks:
        sink_secret(config, name, state())
    for persona in found.values():
        for skip in unfired(persona.persona, config.hooks):
            note(f"{skip.persona}: {skip.reason}")
    for remark in profile.web.addresses.remarks():
        note(f"web.ranges: {remark}")
    model_driver(config, state())
    dial = read_dial(state() / DIAL)
    if not dial.trusted and os.path.lexists(state() / DIAL):
        raise ConfigError(
            f"{state() / DIAL}: {dial.why}; the fleet runs at {dial.rung}",
            remedy=f"check who can write there, then: fleet dial {dial.rung}",
        )
    data: dict[str, Any] = {
        "ok": True,
        "platform": profile.name,
        "profile": str(path),
        "journal": shown(store_place(config.store, state())),
        "model": config.model.name if config.model else "",
        "personas": sorted(found),
        "programs": run(lambda: _tried(config.jail, profile, path)),
    }
    by = data["model"] or "their playbooks (no model configured)"
    text = f"ok: {profile.name} ({path}), {counted(len(found), 'persona')} driven by {by}"
    text += f"\n{in_short(profile)}"
    for name, seen in data["programs"].items():
        text += f"\n{name}: {seen}"
    asked = " and ".join(filter(None, (profile.chain.rpc, "the pages")))
    text += f"\nnot asked: {asked}; fleet check platform asks them"
    return data, text


async def _tried(section: JailSection, profile: Platform, path: Path) -> dict[str, str]:
    """Result of trying the platform's programs in a jail, by name; ConfigError for one that fails."""
    spool = state() / SPOOL
    spool.mkdir(mode=0o700, exist_ok=True)
    make = partial(open_jail, section, pool=0, spool=spool)
    tried = await try_programs(image(profile, path), profile.compiler.program, make)
    for one in tried:
        if not one.ok and one.jailed:
            raise ConfigError(
                f"{path}: compiler.{'command' if one.name == 'compiler' else one.name}: {one.seen}",
                remedy="fleet check machine; its paths are paths inside the jail, where `root` is /opt/tc",
            )
    return {one.name: one.seen if one.jailed else f"not checked: {one.seen}" for one in tried}
