"""The composition root: wires the rooms to each other."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from fleet.app.account_secrets import account_secrets
from fleet.app.bootstrap import Bootstrap, fenced
from fleet.app.ownership import require_owned
from fleet.broker.broker import EgressPolicy
from fleet.broker.known_names import NAMES, KnownNames
from fleet.broker.listener import listening
from fleet.broker.pace import SharedTurns
from fleet.broker.service_egress import ServiceEgress
from fleet.chain.keys import load_key, shown_certificate
from fleet.chain.log.choice import MutedLog, log_of
from fleet.chain.log.own_entries import OwnEntries
from fleet.chain.names import Names
from fleet.chain.node.abi_file import read_functions
from fleet.chain.node.rpc import Rpc
from fleet.chain.signing.judge import SigningLimits
from fleet.chain.signing.never import NeverList
from fleet.chain.signing.signer import JournalledTx, Keys, Signer
from fleet.chain.signing.sponsor import SponsoredKeys, Stipends
from fleet.clock import Clock, SystemClock
from fleet.config import FleetConfig, LiveConfig, Platform, SinkSection, key_file
from fleet.config.files import beside
from fleet.drivers.model.factory import model_key
from fleet.errors import ConfigError, Unreachable
from fleet.events.sinks import sinking
from fleet.events.stream import Reader
from fleet.events.tracing import tracing
from fleet.findings.redact import Redactor
from fleet.findings.withheld import withheld
from fleet.gate.dial import DIAL, rung_word
from fleet.gate.gate import rung_now
from fleet.gate.risk import RISK, CumulativeRisk
from fleet.gate.steering import left_out, steered_share
from fleet.http_client import RECORD
from fleet.jail.process import own_start
from fleet.personas.load import LoadedPersona
from fleet.runs.checks import checks_of, why_not_started
from fleet.runs.context import ChainSide, FleetContext, way_out
from fleet.runs.driver_choice import configured_model
from fleet.runs.fuzz_start import read_start
from fleet.runs.signals import Signals
from fleet.runs.signed_scope import note_refused, require_signed
from fleet.runs.target_health import TargetHealth
from fleet.store.dispatch.source import Embedded, Owner, Source
from fleet.store.journal import Journal
from fleet.store.location import store_place
from fleet.triggers.hooks.secret import SinkSeal

PACE = "pace"
"""Folder with the next turn at each host."""
PATIENCE_S = 20.0
"""Seconds that a daemon waits for a restarting database server."""


def fences(state: Path, never: NeverList, platform: Platform) -> SigningLimits:
    """The signer's limits, read at every signature: dial, STOP and never-list."""
    return SigningLimits(
        rung=partial(rung_now, state),
        never=never,
        stipend_wei=platform.sponsor.max_wei,
        may_sponsor=platform.sponsor.mode == "sponsored",
        token=platform.chain.token,
        log=platform.log_contract,
        agent=platform.agent.agent if platform.agent else None,
        payments=platform.payments,
    )


@asynccontextmanager
async def open_world(  # noqa: PLR0913  the composition root
    state: Path,
    *,
    personas: Mapping[str, LoadedPersona],
    platform: str | None = None,
    watch: tuple[Reader, ...] = (),
    alone: bool = False,
    patient: bool = False,
    posts: bool = True,
    apart: bool = False,
) -> AsyncIterator[FleetContext]:
    """Open everything that a run needs, in order: configuration, target, journal, jail.

    Holds the state directory's lock. `alone`: the journal is a file there, regardless of configuration.
    `patient`: leave a silent node to the run, which can detect an outage. `posts`: without it, nothing is
    written to the log. `apart`: beside a daemon, with lock, journal, budget, dial (so at observe) and runs of
    its own, and without keys. Raises ConfigError, UsageError, Unreachable, WrongTarget, JailError, TryAgain.
    """
    alone = alone or apart
    async with (
        fenced(state, platform, apart=apart) as fence,
        wired(fence, personas=personas, watch=watch, alone=alone, patient=patient, posts=posts) as world,
    ):
        yield world


@asynccontextmanager
async def wired(  # noqa: PLR0913  the composition root
    fence: Bootstrap,
    *,
    personas: Mapping[str, LoadedPersona],
    watch: tuple[Reader, ...] = (),
    clock: Clock | None = None,
    alone: bool = False,
    patient: bool = False,
    posts: bool = True,
) -> AsyncIterator[FleetContext]:
    """Wire the rest of a world; waits for the jail's self-check."""
    state, home, config, profile = fence.state, fence.home, fence.config, fence.platform
    signs = home == state
    live, signals, clock = LiveConfig(config), Signals(), clock or SystemClock()
    with _refusal_noted(home, profile.name):
        require_signed(config, profile, fence.profile, personas, state)
    async with AsyncExitStack() as stack:
        asked = ServiceEgress(state, clock=clock)
        stack.callback(asked.close)
        stack.callback(RECORD.set, None)
        RECORD.set(asked.began)
        keys = Keys(
            identity=load_key(key_file(config, "identity", state)) if signs and profile.signs else None,
            sponsor=load_key(key_file(config, "sponsor", state)) if signs and profile.chain.diamond else None,
            purse=load_key(key_file(config, "purse", state))
            if signs and profile.payments.resources
            else None,
        )
        rpc = await stack.enter_async_context(Rpc(profile.chain.rpc))
        try:
            await rpc.check_target(profile)
        except Unreachable as error:
            if not (patient and error.how):
                raise
        word, found = partial(rung_word, state / DIAL), signals.leftovers.set
        place = state / "fleet.db" if alone else store_place(config.store, state)
        journal, source = await stack.enter_async_context(
            at_work(
                place, profile.name, stalled_s=config.store.stalled_s, clock=clock, rung=word, found=found
            )
        )
        tier, never = await fence.proven(), NeverList(live.never)
        accounts = account_secrets(profile, home)
        redactor = _redactor(
            keys, profile, model_key(config, home), *(one["secret"] for one in accounts.values())
        )
        asked.mask = redactor.text
        sinks = {} if alone else config.sinks
        readers = await stack.enter_async_context(_readers(config, sinks, redactor, state, clock))
        waits = {*profile.escalation.pauses, *profile.escalation.stops}
        names = KnownNames(home / NAMES, holds="drift" in waits)
        tx, rung = JournalledTx(journal), partial(rung_now, state)
        closed = profile.schedule.watch(clock)
        policy = replace(
            EgressPolicy.of(profile, SharedTurns(home / PACE)),
            never=never,
            rung=rung,
            closed=closed,
            owned_only=bool(config.authority.signers),
            known=names,
            left_out=partial(left_out, state),
            share=partial(steered_share, state, profile.web.share),
        )
        with _refusal_noted(home, profile.name):
            await require_owned(config, profile, policy, journal, clock)
        signer = Signer(rpc, profile.chain, tx, keys=keys, fences=fences(state, never, profile))
        functions = read_functions(beside(fence.profile, abi)) if (abi := profile.chain.abi) else {}
        tried = partial(why_not_started, fence.shown, profile.compiler.program, fence.other_jail)
        yield FleetContext(
            state=state,
            live=live,
            signals=signals,
            platform=profile,
            health=TargetHealth(profile.limits.feeds),
            journal=journal,
            source=source,
            jail=fence.jail,
            tier=tier,
            chain=_chain_side(fence, rpc, signer, posts=posts),
            redactor=redactor,
            clock=clock,
            egress=partial(way_out, policy),
            names=names,
            risk=CumulativeRisk.read(await journal.get(RISK + profile.name)),
            listener=await stack.enter_async_context(listening(profile, clock)),
            personas=personas,
            watch=(*watch, *readers, signals.noted),
            model=configured_model(config, home),
            accounts=accounts,
            checks=checks_of(rpc, profile, tier, tried, functions),
            search_start=partial(read_start, profile.compiler, fence.profile),
            functions=functions,
        )


@contextmanager
def _refusal_noted(home: Path, platform: str) -> Iterator[None]:
    """A scope that is refused stands in DECISIONS.md."""
    try:
        yield
    except ConfigError as error:
        note_refused(home, platform, error)
        raise


def _redactor(keys: Keys, profile: Platform, *secrets: str | None) -> Redactor:
    """Masks every secret of this process, and on a log what the profile withholds."""
    held = [key.reveal() for key in (keys.identity, keys.sponsor, keys.purse) if key]
    return Redactor(filter(None, (*held, *secrets)), hides=withheld(profile))


def _chain_side(fence: Bootstrap, rpc: Rpc, signer: Signer, *, posts: bool) -> ChainSide:
    identity, log = signer.author, log_of(fence.platform, fence.home, rpc, signer)
    return ChainSide(
        signer=signer,
        sponsor=(SponsoredKeys if fence.platform.sponsor.mode == "sponsored" else Stipends)(rpc, signer),
        names=Names(rpc, fence.platform.chain.diamond),
        log=log if posts else MutedLog(log),
        identity=identity,
        own=OwnEntries(frozenset({identity.lower(), *map(str.lower, fence.config.trusted)})),
    )


@asynccontextmanager
async def _readers(
    config: FleetConfig, sinks: Mapping[str, SinkSection], redactor: Redactor, state: Path, clock: Clock
) -> AsyncIterator[tuple[Reader, ...]]:
    """Readers that export a run's events, masked: spans and sinks."""
    seal = SinkSeal(config, sinks, state, clock)
    for one in sinks.values():
        shown_certificate(one.certificate_file)
    async with (
        tracing(config.otel, mask=redactor.text) as exported,
        sinking(sinks, seal=seal, mask=redactor.value) as sent,
    ):
        yield (*exported, *sent)


@asynccontextmanager
async def at_work(
    place: Path | str,
    platform: str,
    *,
    stalled_s: float,
    clock: Clock | None = None,
    rung: Callable[[], str] = str,
    found: Callable[[], object] = bool,
) -> AsyncIterator[tuple[Journal, Source]]:
    """The journal of a process that executes runs, and the source of its runs.

    `rung` is called at each claim; `found` as in Dispatcher.
    """
    if isinstance(place, Path):
        async with await Journal.open(place, clock=clock, keeper="") as journal:
            yield journal, Embedded(journal, platform, Owner(os.getpid(), own_start()), rung=rung)
        return
    owner = Owner(os.getpid(), own_start(), f"{socket.gethostname()}-{secrets.token_hex(4)}")
    async with await Journal.open(place, clock=clock, busy_s=PATIENCE_S, keeper=owner.daemon) as journal:
        from fleet.store.dispatch.dispatcher import (
            Dispatcher,  # from the extra `postgres`, which the journal requires
        )

        made = Dispatcher(place, journal, platform, owner, stalled_s=stalled_s, rung=rung, found=found)
        async with made.open() as source:
            yield journal, source
