"""The composition root: the one place where rooms are wired to each other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

from fleet.app.bootstrap import Bootstrap, fenced
from fleet.app.journal import at_work
from fleet.broker.broker import Broker, EgressPolicy, TxPort
from fleet.chain.facets import offered
from fleet.chain.feedback import FeedbackLog
from fleet.chain.judge import SigningLimits, Spend
from fleet.chain.keys import load_key
from fleet.chain.names import Names
from fleet.chain.policy import NeverList
from fleet.chain.ports import Role, TxRequest
from fleet.chain.rpc import Rpc
from fleet.chain.signer import Keys, Signer
from fleet.chain.sponsor import Sponsor
from fleet.clock import Clock, SystemClock
from fleet.config import FleetConfig, Platform, key_file
from fleet.drivers.model.factory import model_driver, model_key
from fleet.drivers.model.prices import cost
from fleet.errors import RpcError, Unreachable
from fleet.events.model import TurnUsage
from fleet.events.sinks import sinking
from fleet.events.stream import Reader
from fleet.events.tracing import tracing
from fleet.findings.redact import Redactor
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.gate import STOPPED
from fleet.gate.stop import stopped
from fleet.jail.model import Egress, Tier
from fleet.jail.selfcheck import require
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext, MakeEgress
from fleet.runs.driver_choice import DriverChoice
from fleet.store.journal import Journal
from fleet.store.location import store_place
from fleet.triggers.hook import headers
from fleet.triggers.hook_secret import sink_secret


class JournalledTx:
    """The signer's journal: a transaction is an effect like any other."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def intend_tx(self, run: str, purpose: str, tx_hash: str, raw: bytes, meta: dict[str, Any]) -> int:
        return await self._journal.intend(run, "tx", tx_hash, meta | {"purpose": purpose, "raw": raw.hex()})

    async def still_open(self, effect_id: int) -> None:
        await self._journal.still_open(effect_id)

    async def unmined(self, run: str) -> list[bytes]:
        tried = await self._journal.effects(run, ["tx"], ["open", "failed"])
        mine = [
            one.data for one in tried if one.data.get("role") == Role.IDENTITY and "status" not in one.data
        ]
        return [bytes.fromhex(data["raw"]) for data in mine]

    async def tx_done(self, effect_id: int, status: str, data: dict[str, Any]) -> None:
        await self._journal.resolve(effect_id, "done" if status == "done" else "failed", data)


def fences(state: Path, never: NeverList, platform: Platform, spend: Spend | None) -> SigningLimits:
    """The signer's questions at every signature: the current dial, STOP and never-list."""
    return SigningLimits(
        rung=lambda: STOPPED if stopped(state) else read_dial(state / DIAL).rung.value,
        spend=spend,
        never=never,
        stipend_wei=platform.sponsor.max_wei,
        token=platform.chain.token,
    )


@asynccontextmanager
async def open_world(
    state: Path,
    *,
    personas: Mapping[str, LoadedPersona],
    platform: str | None = None,
    watch: tuple[Reader, ...] = (),
    alone: bool = False,
    patient: bool = False,
) -> AsyncIterator[FleetContext]:
    """Everything a run needs, in the order in which it can fail: configuration, target, journal, jail.

    Holds the state directory's lock. `alone`: the journal is a file there, regardless of configuration.
    `patient`: leave a node that does not answer to the run, which can detect an outage. Raises
    ConfigError, UsageError, Unreachable, WrongTarget, JailError, TryAgain.
    """
    async with (
        fenced(state, platform) as fence,
        wired(fence, personas=personas, watch=watch, alone=alone, patient=patient) as world,
    ):
        yield world


@asynccontextmanager
async def wired(
    fence: Bootstrap,
    *,
    personas: Mapping[str, LoadedPersona],
    watch: tuple[Reader, ...] = (),
    clock: Clock | None = None,
    alone: bool = False,
    patient: bool = False,
) -> AsyncIterator[FleetContext]:
    """The rest of a world, once its jail has passed its self-check."""
    state, config, profile = fence.state, fence.config, fence.platform
    never = NeverList(config.never)
    async with AsyncExitStack() as stack:
        identity = load_key(key_file(config, "identity", state))
        sponsor = load_key(key_file(config, "sponsor", state))
        rpc = await stack.enter_async_context(Rpc(profile.chain.rpc))
        await _target(rpc, profile, patient=patient)
        place = state / "fleet.db" if alone else store_place(config.store, state)
        journal, source = await stack.enter_async_context(
            at_work(
                place,
                profile.name,
                stalled_s=config.store.stalled_s,
                clock=clock,
                rung=lambda: read_dial(state / DIAL).rung.value,
            )
        )
        tier = await fence.proven()
        signer = Signer(
            rpc,
            profile.chain,
            JournalledTx(journal),
            keys=Keys(identity=identity, sponsor=sponsor),
            fences=fences(state, never, profile, lambda request: _spend(world, request)),
        )
        redactor = Redactor(filter(None, (identity.reveal(), sponsor.reveal(), model_key(config, state))))
        exported = await stack.enter_async_context(tracing(config.otel, mask=redactor.text))
        sinks = {} if alone else config.sinks
        seal = _seal(config, sinks, state, clock or SystemClock())
        sent = await stack.enter_async_context(sinking(sinks, seal=seal, mask=redactor.value))
        world = FleetContext(
            state=state,
            config=config,
            platform=profile,
            journal=journal,
            source=source,
            jail=fence.jail,
            tier=tier,
            signer=signer,
            sponsor=Sponsor(rpc, signer),
            names=Names(rpc, profile.chain.diamond),
            log=FeedbackLog(
                rpc, profile.chain.diamond, profile.gas, signer, confirmations=profile.chain.confirmations
            ),
            identity=signer.address(Role.IDENTITY),
            redactor=redactor,
            clock=clock or SystemClock(),
            egress=_ways_out(profile, never),
            never=never,
            personas=personas,
            watch=(*watch, *exported, *sent),
            model=_model(config, state),
            check=lambda: _check(rpc, profile, tier),
            offered=lambda: offered(rpc, profile.chain.diamond),
            node=partial(_ask, profile.chain.rpc),
            cannot_start=fence.cannot_start,
        )
        yield world


async def _target(rpc: Rpc, profile: Platform, *, patient: bool) -> None:
    """Check that the chain is the configured one; if patient, leave a silent node to the run."""
    try:
        await rpc.check_target(profile)
    except Unreachable as error:
        if not (patient and error.how):
            raise


def _ways_out(profile: Platform, never: NeverList) -> MakeEgress:
    policy = replace(EgressPolicy.of(profile), never=never)

    def egress(port: TxPort) -> Egress:
        return Broker(policy, port).egress

    return egress


def _seal(
    config: FleetConfig, sinks: Iterable[str], state: Path, clock: Clock
) -> Callable[[str, bytes], dict[str, str]]:
    """Sign a body for a sink; ConfigError when its secret is unusable."""
    for name in sinks:
        sink_secret(config, name, state)

    def seal(name: str, body: bytes) -> dict[str, str]:
        now = int(clock.now().timestamp())
        return headers(sink_secret(config, name, state), token_hex(16), now, body)

    return seal


def _model(config: FleetConfig, state: Path) -> Callable[[LoadedPersona], DriverChoice] | None:
    """The configured model, None without one. ConfigError for what would fail later."""
    section, make = config.model, model_driver(config, state)
    if section is None or make is None:
        return None

    def price(usage: TurnUsage) -> Decimal | None:
        return cost(section.prices, usage)

    return lambda _: DriverChoice(name="model", drive=make(), model=section.name, price=price, explores=True)


async def _ask(url: str, deadline_s: float) -> str:
    """Send one request to the node on a new connection; return the failure, or ""."""
    async with Rpc(url, timeout_s=deadline_s) as rpc:
        try:
            await rpc.call("eth_chainId")
        except Unreachable as error:
            return error.how
        except RpcError:
            pass  # an answer
        return ""


async def _check(rpc: Rpc, profile: Platform, tier: Tier) -> None:
    """The health check before each run: the configured chain, and a jail."""
    await rpc.check_target(profile)
    require(tier)


async def _spend(world: FleetContext, request: TxRequest) -> None:
    """Charge a signature to its run: a tool's write, a report, or nothing (stipend, operator action)."""
    if request.role is Role.THROWAWAY:
        await world.charge(request.run, "writes")
    elif request.role is Role.IDENTITY and request.run:
        await world.charge(request.run, "reports")
