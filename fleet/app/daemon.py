"""The resident service: everything that `fleet up` needs once the jail's self-check is running."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio
from anyio import to_thread
from starlette.routing import Route

from fleet.app.asset_check import revalidate
from fleet.app.backup import dump_on_stop, sum_of
from fleet.app.bootstrap import Bootstrap, Options
from fleet.app.incidents import open_case
from fleet.app.integrity import CannotLook, take_baseline, watch_end
from fleet.app.ownership import unowned
from fleet.app.persona_sets import load, roster
from fleet.app.sbom import altered
from fleet.app.wiring import wired
from fleet.broker.egress_policy import EgressPolicy
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import Role
from fleet.clock import rest
from fleet.config import FleetConfig, Platform, load_platform
from fleet.drivers.expect_check import ExpectationCache
from fleet.errors import ConfigError, FleetError
from fleet.events.daemon_events import FEED, DaemonEvent, Feed, FeedReader, StateSealed
from fleet.events.live import Hub
from fleet.events.model import Event
from fleet.events.stream import Reader
from fleet.fix.fix_pass import Fixing
from fleet.fix.parts import FixParts
from fleet.gate.stop import stopped
from fleet.personas.load import LoadedPersona
from fleet.runs.call.questions import pause_all
from fleet.runs.call.targets import Capabilities
from fleet.runs.context import FleetContext
from fleet.runs.driver_choice import drivers
from fleet.runs.executor import Executor
from fleet.runs.janitor import Janitor
from fleet.runs.queue import Queue
from fleet.runs.signed_scope import require_persona
from fleet.runs.survey import why_idle
from fleet.service.daemon import Daemon, see_through
from fleet.service.follow import Followers
from fleet.service.health import DaemonHealth, PersonaStanding
from fleet.service.http_server import facts, serve
from fleet.service.ingress import AskForRun, Ingress
from fleet.service.listeners import listeners
from fleet.service.log_events import log_daemon, log_run
from fleet.service.logs import mask_with
from fleet.service.metrics import Tally
from fleet.service.persona_watcher import PersonaWatcher
from fleet.service.proposal_watch import ProposalWatch
from fleet.service.readiness import Notifier, Readiness
from fleet.service.reload import check_secrets, load_config
from fleet.service.triggers import Side, Triggers

DUMP_LOOK_S = 5.0
"""Seconds between two looks whether there is a STOP without a sealed copy of the state."""
DUMP_WAIT_S = 20.0
"""Longest wait for the ends of runs that STOP ended, so that the copy has them."""
DUMPED = "dumped:"
"""Prefix of the facts with the SHA-256 of each copy."""
_LOG = logging.getLogger("fleet.service")


class PagesPort(Protocol):
    """The pages for people, made above: they read what happens, and answer at their addresses."""

    def run(self, event: Event) -> None: ...
    def daemon(self, event: DaemonEvent) -> None: ...
    def routes(
        self,
        facts: Callable[[], Awaitable[Mapping[str, Any]]],
        personas: Mapping[str, LoadedPersona],
        ask: AskForRun,
    ) -> Sequence[Route]: ...


async def reside(
    options: Options,
    fence: Bootstrap,
    notifier: Notifier,
    opened: Callable[[], None],
    pages: PagesPort | None = None,
) -> bool:
    """Serve until a signal; call `opened` once start-up is complete. True if it is to start again."""
    check_secrets(fence.config, options.state)
    good = partial(roster, *options.folders, bad_expectation=_compiled(options).check)
    found, _ = await anyio.to_thread.run_sync(good)  # the folders' watcher reports bad files
    tally, hub = Tally(), Hub()
    watch: list[Reader] = [tally.run, log_run, hub]
    readers: list[FeedReader] = [tally.daemon, log_daemon]
    if pages is not None:
        watch.append(pages.run)
        readers.append(pages.daemon)
    async with (
        wired(fence, personas=found, watch=tuple(watch), clock=options.clock) as world,
        Rpc(world.platform.chain.rpc) as rpc,
    ):
        opened()
        mask_with(world.redactor.text)
        feed = Feed(options.state / FEED, clock=world.clock, readers=readers)
        parts = (world.config, world.platform, world.journal, world.clock)
        for name, why in (await take_baseline(*parts)).items():
            _LOG.error("no baseline of %s: %s", name, why)
        if why := await _inventory(world):
            raise ConfigError(why, remedy="mend [integrity] assets of fleet.toml")
        daemon = make(options, world, rpc, found, feed, notifier, tally, hub=hub, pages=pages)
        try:
            await daemon.serve()
        finally:
            feed.close()
        return daemon.again


def make(  # noqa: PLR0913  the composition root
    options: Options,
    world: FleetContext,
    rpc: Rpc,
    personas: dict[str, LoadedPersona],
    feed: Feed,
    notifier: Notifier,
    tally: Tally,
    *,
    hub: Hub | None = None,
    pages: PagesPort | None = None,
    more: Sequence[Side] = (),
) -> Daemon:
    """The daemon of an opened world; with a `hub`, also its health pages and ingress, and the `pages`."""
    queue = _queue(world, personas, feed)
    fixing = Fixing.of(world, _fix_parts)
    triggers = Triggers(
        queue,
        world.journal,
        rpc,
        world.platform,
        world.chain.signer.address(Role.SPONSOR),
        world.state,
        world.clock,
        emit=feed.publish,
        fire_all=queue.fire_all,
        hooks=world.live.hooks,
        item_waits=fixing.waits,
        log_entries=None if world.platform.logs_on_diamond else world.chain.log.count,
    )
    readiness = Readiness(notifier, world.clock)
    run = partial(see_through, world, fixing)
    executor = Executor(world, personas, run, feed, ended=triggers.ended, beat=readiness.beat)
    loaded = partial(load, bad_expectation=_compiled(options).check)

    def check(path: Path) -> LoadedPersona:
        _, profile = load_platform(world.platform.name, options.state)
        return require_persona(world.config, world.platform, profile, loaded(path))

    copies = SealedCopies(world, feed)
    after = partial(watch_end, world.state, world.config, world.platform, world.journal, world.clock)
    sides = (("proposals", ProposalWatch(fixing.upkeep).run), ("dumps", copies.run), ("integrity", after))
    more = (*more, *sides)
    roll = PersonaWatcher(options.folders, personas, check, triggers, feed)
    standing = PersonaStanding(personas, roll.refused, triggers.upcoming)
    health = DaemonHealth(world, executor, standing, tally, readiness)
    if hub is not None:
        lines, followers = listeners(options.state, options.port), Followers(hub, options.state)
        doors = ways_in(world, queue, triggers, personas)
        rooms: Sequence[Route] = ()
        if pages is not None:

            async def known() -> Mapping[str, Any]:
                return facts(await health.snapshot(), options.page)

            rooms = pages.routes(known, personas, doors.ask)
        answer = partial(serve, health, options.state, lines, doors, followers=followers)
        more = (*more, ("the pages", partial(answer, pages=rooms, page=options.page)))
    return Daemon(
        world=world,
        personas=personas,
        feed=feed,
        queue=queue,
        triggers=triggers,
        roll=roll,
        executor=executor,
        janitor=Janitor(world, executor, feed, ended=triggers.ended),
        health=health,
        readiness=readiness,
        notifier=notifier,
        load_config=partial(load_config, options.platform, world.state, world.platform),
        grace_s=options.grace_s,
        more=more,
        boundaries={
            "the program": _program_fault,
            "sealed copies": copies.fault,
            "who owns the hosts": partial(_unowned, world),
            "the inventory": partial(_inventory, world),
        },
        page=options.page,
        open_case=lambda found: open_case(world.state, found, world.clock),
    )


async def _program_fault() -> str:
    """Which files of the installation are not as its wheel had them; "" for none, and in a checkout."""
    found = await to_thread.run_sync(altered)
    return f"not as the wheel had it: {', '.join(found[:5])}" if found else ""


async def _unowned(world: FleetContext) -> str:
    """Which hosts of a signed scope do not show any more who owns them; "" for none."""
    policy = EgressPolicy.of(world.platform)
    hosts = await unowned(world.config, world.platform, policy, world.journal, world.clock)
    return f"nobody has shown to own {', '.join(hosts)}" if hosts else ""


async def _inventory(world: FleetContext) -> str:
    """Why the scope could not be held against the inventory; "" when it was."""
    try:
        await revalidate(world.state, world.config, world.platform, world.journal, world.clock)
    except (CannotLook, ConfigError, OSError, ValueError) as error:
        return f"the inventory cannot be asked: {error}"
    return ""


def _queue(world: FleetContext, personas: dict[str, LoadedPersona], feed: Feed) -> Queue:
    return Queue(
        world.journal,
        world.platform.name,
        personas,
        feed,
        source=world.source,
        day=world.day,
        drivers=drivers(world.model),
        signals=world.signals,
        idle=partial(why_idle, capabilities=Capabilities(world.platform)),
    )


def _fix_parts(config: FleetConfig, platform: Platform, state: Path) -> FixParts:
    from fleet.app.fix_parts import fix_parts  # 40 ms and 3 MB that only the rung `propose` needs

    return fix_parts(config, platform, state)


def _compiled(options: Options) -> ExpectationCache:
    return ExpectationCache(options.state / "expectations")


def ways_in(
    world: FleetContext, queue: Queue, triggers: Triggers, personas: dict[str, LoadedPersona]
) -> Ingress:
    """The ingress: what outsiders may queue under the current configuration."""
    return Ingress(
        queue=queue,
        book=world.journal,
        platform=world.platform.name,
        personas=personas,
        config=world.live,
        subscribers=triggers.subscribers,
        state=world.state,
        clock=world.clock,
        pause=partial(pause_all, world.journal),
    )


class SealedCopies:
    """Seals a copy of the state after every STOP, and looks whether the copies are as they were sealed."""

    def __init__(self, world: FleetContext, feed: Feed) -> None:
        self._world, self._feed = world, feed
        self._stop, self._looked = "", 0

    async def run(self) -> None:
        """Until cancelled; what hinders a copy is logged, and tried again."""
        while True:
            try:
                await self.look()
            except (FleetError, OSError) as error:
                _LOG.error("no sealed copy of the state: %s", error)
            await anyio.sleep(rest(DUMP_LOOK_S))

    async def look(self) -> None:
        """Seal a copy if a STOP has none, with the ends of the runs that it stopped; keep its hash in the
        journal and in the chained record of the daemon."""
        world = self._world
        found = stopped(world.state)
        if found is None or found.since == self._stop:
            return
        with anyio.move_on_after(DUMP_WAIT_S):
            while any(world.in_flight):  # noqa: ASYNC110 -- looked at for seconds, after a STOP
                await anyio.sleep(0.2)
        make = partial(dump_on_stop, world.state, world.config, world.clock, self._stop)
        self._stop, copy = await to_thread.run_sync(anyio.run, make)
        if copy is not None:
            total = await to_thread.run_sync(sum_of, copy)
            await world.journal.put(f"{DUMPED}{copy.name}", total)
            self._feed.publish(StateSealed(file=copy.name, sha256=total))

    async def fault(self) -> str:
        """Which copy is not as it was sealed; one is read each time, in turn.
        A person may have moved some away."""
        sums = await self._world.journal.facts(DUMPED)
        folder = self._world.state / self._world.config.keep.dumps
        here = sorted(path for path in folder.glob("*.sealed") if f"{DUMPED}{path.name}" in sums)
        if not here:
            return ""
        self._looked += 1
        path = here[self._looked % len(here)]
        same = await to_thread.run_sync(sum_of, path) == sums[f"{DUMPED}{path.name}"]
        return "" if same else f"{path.name} is not as it was sealed"
