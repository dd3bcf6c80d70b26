"""The resident service itself: everything that `fleet up` needs once the jail's self-check runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio

from fleet.app.bootstrap import Bootstrap
from fleet.app.options import Options
from fleet.app.persona_sets import load, roster
from fleet.app.triage_pass import pass_over
from fleet.app.wiring import wired
from fleet.chain.ports import Role
from fleet.chain.rpc import Rpc
from fleet.config import FleetConfig, load_fleet, load_platform
from fleet.drivers.expect import ExpectationCache
from fleet.events.daemon_events import Feed
from fleet.events.live import Hub
from fleet.gate.budget import day_limits
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext
from fleet.runs.driver_choice import drivers
from fleet.runs.queue import Queue
from fleet.service.daemon import Daemon
from fleet.service.follow import Followers
from fleet.service.http_server import listeners, serve
from fleet.service.ingress import Ingress
from fleet.service.logs import log_daemon, log_run, mask_with
from fleet.service.metrics import Tally
from fleet.service.notify import Notifier
from fleet.service.persona_watcher import PersonaWatcher
from fleet.service.triggers import Triggers
from fleet.triggers.hook_secret import hook_secrets


async def reside(options: Options, fence: Bootstrap, notifier: Notifier, opened: Callable[[], None]) -> None:
    """Serve until a signal; call `opened` once the start has nothing left to wait for."""
    _open_secrets(fence.config, options.state)
    good = partial(roster, options.folder, bad_expectation=_compiled(options).check)
    found, _ = await anyio.to_thread.run_sync(good)  # the folder's watcher reports bad files
    tally, hub = Tally(), Hub()
    async with (
        wired(fence, personas=found, watch=(tally.run, log_run, hub), clock=options.clock) as world,
        Rpc(world.platform.chain.rpc) as rpc,
    ):
        opened()
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
    options: Options,
    world: FleetContext,
    rpc: Rpc,
    personas: dict[str, LoadedPersona],
    feed: Feed,
    notifier: Notifier,
    tally: Tally,
) -> Daemon:
    """The daemon over an opened world, without its health pages."""
    queue = Queue(
        world.journal,
        world.platform.name,
        personas,
        feed,
        enqueue=world.source.trigger,
        enqueue_all=world.source.trigger_all,
        day=lambda: day_limits(daemon.world.config.budget),
        drivers=drivers(world.model),
    )
    sponsor = world.signer.address(Role.SPONSOR)
    triggers = Triggers(
        queue,
        world.journal,
        rpc,
        world.platform,
        sponsor,
        world.state,
        world.clock,
        emit=feed.tell,
        fire_all=queue.fire_all,
        hooks=lambda: daemon.world.config.hooks,
    )

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
        roll=PersonaWatcher(
            options.folder, personas, partial(load, bad_expectation=_compiled(options).check), triggers, feed
        ),
        triage=_triage,
        reread=reread,
        grace_s=options.grace_s,
        notifier=notifier,
        tally=tally,
    )
    return daemon


def _compiled(options: Options) -> ExpectationCache:
    return ExpectationCache(options.state / "expectations")


def _open_secrets(config: FleetConfig, state: Path) -> None:
    """ConfigError at start for a webhook whose secret is unusable."""
    for name in config.hooks:
        hook_secrets(config, name, state)


def ways_in(daemon: Daemon) -> Ingress:
    """What the outside may queue, by the current configuration."""
    world = daemon.world
    return Ingress(
        queue=daemon.queue,
        book=world.journal,
        platform=world.platform.name,
        personas=daemon.personas,
        config=lambda: daemon.world.config,
        subscribers=daemon.triggers.subscribers,
        state=world.state,
        clock=world.clock,
    )


async def _triage(world: FleetContext, persona: LoadedPersona) -> str:
    result = await pass_over(world, persona)
    return f"{len(result.items)} items" + ("" if result.changed else ", unchanged")
