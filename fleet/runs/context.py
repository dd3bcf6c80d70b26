"""Everything a run needs, made once by the composition root and handed down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import anyio

from fleet.broker.broker import Broker, EgressPolicy, EgressRecord, TxPort
from fleet.broker.egress_record import CallEgress
from fleet.broker.known_names import KnownNames
from fleet.broker.listener import Listener
from fleet.chain.log.choice import MutedLog
from fleet.chain.log.own_entries import OwnEntries
from fleet.chain.node.abi import Function
from fleet.chain.node.digest import metadata_key
from fleet.chain.ports import FeedbackPort, NamesPort, SponsorPort
from fleet.chain.signing.never import NeverList
from fleet.chain.signing.signer import Signer
from fleet.clock import Clock
from fleet.config import FleetConfig, LiveConfig, Platform, WebSection
from fleet.drivers.session import RunOver
from fleet.drivers.template import Bindings
from fleet.events.stream import Reader, Stream
from fleet.findings.redact import Redactor
from fleet.fuzzing.inputs import SearchStart
from fleet.gate.budget import Ledger, Unit, day_limits
from fleet.gate.gate import Gate
from fleet.gate.risk import CumulativeRisk
from fleet.gate.stop import stopped
from fleet.jail.model import Egress, Jail, Tier
from fleet.personas.learned import LearnedProbes
from fleet.personas.load import LoadedPersona
from fleet.runs.checks import Checks
from fleet.runs.driver_choice import DriverChoice
from fleet.runs.run_time import RunTime
from fleet.runs.signals import Signals
from fleet.runs.target_health import TargetHealth
from fleet.runs.vault import Vault
from fleet.store.dispatch.source import Source
from fleet.store.journal import Journal
from fleet.text import line
from sandbox.spec import Context

PATIENCE_S = 15.0
"""Seconds to wait for a silent target within one run, from the first of its consecutive failures."""
STOP_LOOK_S = 0.5
"""Seconds between two looks for STOP while a run works or settles."""

_Result = TypeVar("_Result")


class MakeEgress(Protocol):
    """Builds the egress of one jail, for one call or several, around the run's own port to the signer; `note`
    is called with each request's record, `record` has them on disk."""

    def __call__(
        self,
        port: TxPort,
        calls: int = 1,
        note: Callable[[EgressRecord], None] | None = None,
        record: CallEgress | None = None,
        /,
    ) -> Egress: ...


def _call_url(web: WebSection, path: str) -> str:
    """URL to call agents at; "" when the profile lacks a part of it."""
    called = web.proxy and not web.unstated
    return f"{web.proxy.rstrip('/')}{path.replace('{model}', web.model)}" if called else ""


def guest_context(
    platform: Platform, run: str, keys: Mapping[str, str], deadline_s: float, lacks: tuple[str, ...] = ()
) -> Context:
    """The public facts passed to a guest."""
    web, chain, compiler, metadata = platform.web, platform.chain, platform.compiler, platform.metadata
    return Context(
        run=run,
        prefix=f"qa-{run}-",
        chain_id=chain.id,
        diamond=chain.diamond,
        token=chain.token,
        site=web.site,
        proxy=web.proxy,
        call_url=_call_url(web, web.call_path),
        stream_url=_call_url(web, web.stream_path),
        token_header=web.token_header,
        route=web.route or "",
        metadata={role: "0x" + metadata_key(name).hex() for role, name in metadata.names.items()},
        face_app=metadata.face_app,
        codes={"no_entry": compiler.no_entry_code, "too_large": compiler.too_large_code},
        keys=dict(keys),
        program=compiler.program,
        gas=platform.gas.model_dump(),
        publish_cap=compiler.publish_cap,
        deadline_s=deadline_s,
        lacks=lacks,
        agents=_agents(platform),
        network=platform.payments.network,
        asset=(platform.payments.asset or "").lower(),
        registry=platform.erc8004.identity.lower() if platform.erc8004 else "",
        validation=(platform.erc8004.validation or "").lower() if platform.erc8004 else "",
        agent=platform.erc8004.agent if platform.erc8004 else 0,
    )


def _agents(platform: Platform) -> dict[str, dict[str, str]]:
    """How agents are called that are not called through the proxy."""
    carried = platform.accounts.carried if platform.accounts else ""
    carried = carried if carried.startswith("header ") else ""
    urls = platform.agent_urls
    return {
        name: {"wire": one.wire, "url": urls[name], "model": one.model or name, "carried": carried}
        for name, one in platform.agents.items()
    }


def way_out(
    policy: EgressPolicy,
    port: TxPort,
    calls: int = 1,
    note: Callable[[EgressRecord], None] | None = None,
    record: CallEgress | None = None,
) -> Egress:
    """MakeEgress, once it has its policy."""
    impact = record.impact if record else "low"
    return Broker(policy.for_calls(calls, impact), port, note, record).egress


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSide:
    """The platform's chain, for runs. `identity` is the address that posts, `own` what it has posted."""

    signer: Signer
    sponsor: SponsorPort
    names: NamesPort
    log: FeedbackPort
    identity: str
    own: OwnEntries


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetContext:
    """One platform, one state directory, one process."""

    state: Path
    live: LiveConfig
    platform: Platform
    journal: Journal
    source: Source
    jail: Jail
    tier: Tier
    chain: ChainSide
    redactor: Redactor
    clock: Clock
    egress: MakeEgress
    listener: Listener
    personas: Mapping[str, LoadedPersona]
    signals: Signals = field(default_factory=Signals)
    in_flight: RunsInFlight = field(default_factory=lambda: RunsInFlight())
    health: TargetHealth = field(default_factory=TargetHealth)
    names: KnownNames = field(default_factory=KnownNames)
    risk: CumulativeRisk = field(default_factory=CumulativeRisk)
    watch: tuple[Reader, ...] = ()
    model: Callable[[LoadedPersona], DriverChoice] | None = None
    """Makes a model's driver, if a model is configured."""
    checks: Checks = field(default_factory=Checks)
    accounts: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """User and secret of the accounts that the profile names, by label."""
    search_start: Callable[[], SearchStart] = SearchStart
    functions: Mapping[str, Function] = field(default_factory=dict)
    """What the profile's ABI names, by selector."""
    """Reads what the profile names for a search of its compiler. ConfigError, BadGrammar."""
    spread_s: float = 2.0
    """Pause between two rounds of proofs: no finding rests on one burst of load."""
    patience_s: float = PATIENCE_S
    """Longest wait for a silent target within one run."""
    item: str = ""
    """The only item that a run of the driver `retest` asks for; "" for all."""
    trial: bool = False
    """Whether a persona's file is tried: nothing is posted, counted, learned, noted or run again."""

    @property
    def config(self) -> FleetConfig:
        """The current configuration: read it at each use, never keep a copy."""
        return self.live()

    @property
    def never(self) -> NeverList:
        """The operator's current selectors, not those at the start of a run."""
        return NeverList(self.live.never)

    def closed(self) -> str:
        """Why the platform may not be tested now, by its profile's schedule; "" when it may."""
        return self.platform.schedule.closed(self.clock.now())

    def day(self) -> Mapping[Unit, int]:
        """Daily limits of all runs together: the fleet's own, and the platform's for explorers."""
        return {**day_limits(self.config.budget), "requests": self.platform.web.requests_per_day}

    def folder(self, run: str) -> Path:
        """`runs/<id>/`: trajectory, keys, evidence."""
        return self.state / "runs" / run

    def as_trial(self) -> FleetContext:
        """The same, for a run that tries a persona's file."""
        return replace(self, trial=True, chain=replace(self.chain, log=MutedLog(self.chain.log)))

    @property
    def learned(self) -> LearnedProbes:
        """Questions that showed a defect of this platform, asked again by later runs."""
        return LearnedProbes(self.state / "learned" / self.platform.name)

    @property
    def vault(self) -> Vault:
        """What runs found and only the holder of a key reads."""
        keep = self.config.keep
        return Vault(self.state, keep.sealed_for, self.clock, second=keep.second_for, escrow=keep.escrow)

    def bindings(self, run: str, name: str) -> Bindings:
        web = self.platform.web
        targets = self.platform.targets
        return Bindings(
            run=run,
            name=name,
            site=web.site,
            proxy=web.proxy,
            face=web.face,
            listener=self.listener.url,
            targets=targets,
        )

    def context(
        self, run: str, keys: Mapping[str, str], deadline_s: float, lacks: tuple[str, ...] = ()
    ) -> Context:
        """The public facts passed to a guest of this run."""
        return guest_context(self.platform, run, keys, deadline_s, lacks)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """An open run: its gate, the ledger that pays for its signatures, and its event stream."""

    fleet: FleetContext
    run: str
    persona: str
    gate: Gate
    ledger: Ledger
    stream: Stream
    time: RunTime

    async def can_post(self, unit: Literal["reports", "closing"], kept: int = 0) -> bool:
        """Whether one more report of this kind fits the budgets of run and day; `kept` are left then."""
        return (await self.ledger.left())[unit] > kept

    async def has_paid(self, unit: Literal["reports", "closing"]) -> bool:
        """Whether the run itself has spent all its reports of this kind, regardless of the day."""
        return await self.ledger.own_left(unit) == 0


class RunsInFlight:
    """The open runs of this process, and the reasons of cancelled ones."""

    def __init__(self) -> None:
        self._open: dict[str, RunContext] = {}
        self._cancelled: dict[str, str] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._open)

    def get(self, run: str) -> RunContext | None:
        """The run if it is open."""
        return self._open.get(run)

    @contextmanager
    def hold(self, context: RunContext) -> Iterator[None]:
        """Keep the run open while the block runs."""
        self._open[context.run] = context
        try:
            yield
        finally:
            self._open.pop(context.run, None)
            self.forget(context.run)

    def cancel(self, run: str, why: str) -> None:
        """Record the reason, also for a run that is not open yet."""
        self._cancelled[run] = why

    def why(self, run: str) -> str:
        """Why it was cancelled; "" when it was not, or when the whole process is stopping."""
        return self._cancelled.get(run, "")

    def forget(self, run: str) -> None:
        """Discard the reason of a run that ended."""
        self._cancelled.pop(run, None)


async def until_stopped(
    state: Path, work: Callable[[], Awaitable[_Result]], closed: Callable[[], str] = str
) -> _Result:
    """The result of the work. RunOver `stopped` once STOP is set, `window_closed` once the platform may no
    longer be tested: what is in flight is cancelled."""
    found: list[tuple[str, str]] = []

    async def watch(scope: anyio.CancelScope) -> None:
        while not (pause := stopped(state)) and not closed():  # noqa: ASYNC110 -- a file has no event
            await anyio.sleep(STOP_LOOK_S)
        found.append(("stopped", pause.why) if pause else ("window_closed", closed()))
        scope.cancel()

    with anyio.CancelScope() as scope:
        watching = asyncio.ensure_future(watch(scope))
        try:
            return await work()
        except asyncio.CancelledError:
            if not scope.cancel_called:
                raise
            # else it is STOP's, which a future that others wait for as well does not say any more
        finally:
            watching.cancel()
    outcome, why = found[0]
    raise RunOver(outcome, line(why, 500))
