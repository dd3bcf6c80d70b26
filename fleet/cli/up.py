"""`fleet up`: the resident service. Triggers fire personas until a signal says that it is enough."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from fleet.chain.ports import Role
from fleet.chain.rpc import Rpc
from fleet.cli.daemon import open_world
from fleet.cli.dial import show as show_dial
from fleet.cli.pass_over import pass_over
from fleet.cli.roster import FOLDER, load, roster
from fleet.cli.shell import DryRun, Json, make_app, note, put, run, state, table
from fleet.clock import Clock, SystemClock
from fleet.config import FleetConfig, load_fleet, load_platform
from fleet.errors import FleetError, Unreachable, UsageError
from fleet.events.feed import Feed
from fleet.events.live import Hub
from fleet.gate.budget import day_limits
from fleet.personas.load import LoadedPersona
from fleet.runs.drive import drivers
from fleet.runs.queue import Queue
from fleet.runs.world import World
from fleet.service.daemon import Daemon
from fleet.service.doors import Doors
from fleet.service.follow import Followers
from fleet.service.health import listeners, serve
from fleet.service.logs import configure, log_daemon, log_run, mask_with
from fleet.service.metrics import Tally
from fleet.service.notify import Notifier
from fleet.service.roll import Roll
from fleet.service.triggers import Triggers
from fleet.store import ballast
from fleet.triggers.hook_secret import hook_secrets

app = make_app()
_LOG = logging.getLogger("fleet.service")
GRACE_S = 20.0
FIRST_S, LONGEST_S = 1.0, 60.0
"""Pauses between attempts to reach a chain that does not answer at the start."""


@app.command()
def up(
    platform: Annotated[
        str | None, typer.Option(help="Profile to run against; default the configured one.")
    ] = None,
    personas: Annotated[Path, typer.Option(help="Folder of persona files, followed while it runs.")] = FOLDER,
    grace: Annotated[
        float, typer.Option(min=0, max=3600, help="Seconds that runs may go on after the first SIGTERM.")
    ] = GRACE_S,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Health pages on 127.0.0.1 too, not only fleet.sock.")
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Stay, and run every persona when it is due; SIGTERM drains, SIGHUP reloads the configuration."""
    if not personas.is_dir():
        raise UsageError(f"{personas}: not a folder", remedy="name a folder of persona files")
    if dry_run:
        plan = planned(personas, platform)
        put(plan, as_json=as_json, text=lambda: _print(plan))
        return
    configure()
    run(lambda: stay(Options(state(), personas.absolute(), platform, grace, port)))


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line said."""

    state: Path
    folder: Path
    platform: str | None = None
    grace_s: float = GRACE_S
    port: int | None = None
    clock: Clock = field(default_factory=SystemClock)
    """Not of the command line: a soak sets it wrong."""


def planned(folder: Path, platform: str | None) -> dict[str, Any]:
    """What would run, and why what would not."""
    config = load_fleet()
    profile, path = load_platform(platform or config.platform, state())
    found, errors = roster(folder)
    rows = [{"persona": name, "triggers": "; ".join(_words(one))} for name, one in sorted(found.items())]
    return {
        "platform": profile.name,
        "profile": str(path),
        "dial": show_dial()["rung"],
        "personas": rows,
        "refused": [str(error) for error in errors],
    }


def _words(one: LoadedPersona) -> list[str]:
    return [
        " ".join(f"{key} {value}" for key, value in trigger.model_dump(exclude_none=True).items())
        for trigger in one.persona.triggers
    ] or ["by hand only"]


def _print(plan: dict[str, Any]) -> None:
    print(f"platform  {plan['platform']}  dial {plan['dial']}")
    table(("persona", "triggers"), ([row["persona"], row["triggers"]] for row in plan["personas"]))
    for reason in plan["refused"]:
        note(f"refused: {reason}")


async def stay(options: Options) -> None:
    """Start as soon as chain and disk allow it: a node that is down at boot is no reason to give up."""
    notifier, pause = Notifier(), FIRST_S
    while True:
        opened: list[World] = []
        try:
            await _serve(options, notifier, opened.append)
        except FleetError as error:
            waits = "" if opened else _may_pass(error, options.state)
            if not waits:
                raise
            _LOG.warning("waiting for %s: %s", waits, error)
            notifier.say(f"EXTEND_TIMEOUT_USEC={int((LONGEST_S + 60) * 1e6)}")
            notifier.status(f"waiting for {waits}")
            await anyio.sleep(pause)
            pause = min(pause * 2, LONGEST_S)
        else:
            return


def _may_pass(error: FleetError, state: Path) -> str:
    """What a daemon that cannot start waits for, or ""; on a full disk the ballast is given up first."""
    if ballast.relieve(state) or os.strerror(errno.ENOSPC) in str(error):
        return "room on the disk"
    return "the chain" if isinstance(error, Unreachable) and error.retryable else ""


async def _serve(options: Options, notifier: Notifier, opened: Callable[[World], None]) -> None:
    found: dict[str, LoadedPersona] = {}

    async def gather() -> None:
        good, _ = await anyio.to_thread.run_sync(roster, options.folder)  # whoever follows it tells bad files
        found.update(good)

    _open_secrets(load_fleet(), options.state)
    tally, hub = Tally(), Hub()
    async with (
        open_world(
            options.state,
            personas=found,
            platform=options.platform,
            watch=(tally.run, log_run, hub),
            meanwhile=gather,
            clock=options.clock,
        ) as world,
        Rpc(world.platform.chain.rpc) as rpc,
    ):
        opened(world)
        mask_with(world.redactor)
        feed = Feed(options.state / "events.jsonl", clock=world.clock, readers=(tally.daemon, log_daemon))
        try:
            daemon = make(options, world, rpc, found, feed, notifier, tally)
            lines = listeners(options.state, options.port)
            doors = ways_in(daemon)
            followers = Followers(hub, options.state)
            pages = partial(serve, daemon.vitals, options.state, lines, doors, followers=followers)
            daemon.more = (("the health pages", pages),)
            await daemon.serve()
        finally:
            feed.close()


def make(
    options: Options, world: World, rpc: Rpc, personas: dict[str, LoadedPersona], feed: Feed,
    notifier: Notifier, tally: Tally,
) -> Daemon:  # fmt: skip
    """The daemon over an opened world, without its health pages."""
    queue = Queue(
        world.journal, world.platform.name, personas, feed, enqueue=world.source.trigger,
        enqueue_all=world.source.trigger_all,
        day=lambda: day_limits(daemon.world.config.budget), drivers=drivers(world),
    )  # fmt: skip
    sponsor = world.signer.address(Role.SPONSOR)
    triggers = Triggers(
        queue, world.journal, rpc, world.platform, sponsor, world.state, world.clock,
        fire_all=queue.fire_all, hooks=lambda: daemon.world.config.hooks,
    )  # fmt: skip

    def reread() -> FleetConfig:
        config = load_fleet()
        load_platform(options.platform or config.platform, world.state)
        _open_secrets(config, world.state)
        return config

    daemon = Daemon(
        world=world,
        personas=personas,
        feed=feed,
        queue=queue,
        triggers=triggers,
        roll=Roll(options.folder, personas, load, triggers, feed),
        triage=_triage,
        reread=reread,
        grace_s=options.grace_s,
        notifier=notifier,
        tally=tally,
    )
    return daemon


def _open_secrets(config: FleetConfig, state: Path) -> None:
    """A webhook that could never answer is told before it is asked: ConfigError."""
    for name in config.hooks:
        hook_secrets(config, name, state)


def ways_in(daemon: Daemon) -> Doors:
    """What may be put into its queue from outside, by its configuration as it is at that moment."""
    world = daemon.world
    return Doors(
        queue=daemon.queue,
        book=world.journal,
        platform=world.platform.name,
        personas=daemon.personas,
        config=lambda: daemon.world.config,
        subscribers=daemon.triggers.subscribers,
        state=world.state,
        clock=world.clock,
    )


async def _triage(world: World, persona: LoadedPersona) -> str:
    result = await pass_over(world, persona)
    return f"{len(result.items)} items" + ("" if result.changed else ", as before")
