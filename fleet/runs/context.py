"""Everything a run needs, made once by the composition root and handed down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from fleet.broker.broker import TxPort
from fleet.chain.metadata import metadata_key
from fleet.chain.policy import NeverList
from fleet.chain.ports import FeedbackPort, NamesPort
from fleet.chain.signer import Signer
from fleet.chain.sponsor import Sponsor
from fleet.clock import Clock
from fleet.config import FleetConfig, Platform, WebSection
from fleet.drivers.template import Bindings
from fleet.errors import BudgetExceeded
from fleet.events.stream import Reader
from fleet.findings.redact import Redactor
from fleet.gate.gate import Gate
from fleet.jail.model import Egress, Jail, Tier
from fleet.personas.load import LoadedPersona
from fleet.runs.driver_choice import DriverChoice
from fleet.store.dispatch.source import Source
from fleet.store.journal import Journal
from sandbox.spec import Context

PATIENCE_S = 15.0
"""How long a target that does not answer is waited for, from its first failure in a row, within one run."""


class MakeEgress(Protocol):
    """Builds the egress of one call around the run's own port to the signer."""

    def __call__(self, port: TxPort) -> Egress: ...


def _call_url(web: WebSection, path: str) -> str:
    """Where agents are called; "" when the profile leaves out what a call is made of."""
    called = web.proxy and not web.unstated
    return f"{web.proxy.rstrip('/')}{path.replace('{model}', web.model)}" if called else ""


def guest_context(
    platform: Platform, run: str, keys: Mapping[str, str], deadline_s: float, lacks: tuple[str, ...] = ()
) -> Context:
    """The public facts that a guest gets."""
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
        compiler=compiler.command,
        loader=compiler.loader,
        sample=compiler.sample,
        gas=platform.gas.model_dump(),
        publish_cap=compiler.publish_cap,
        deadline_s=deadline_s,
        lacks=lacks,
    )


async def answers(deadline_s: float) -> str:
    """The default: a node that always answers."""
    return ""


async def unchecked() -> None:
    """The default: no health check."""


async def unlisted() -> frozenset[str] | None:
    """The default: a diamond without a loupe, whose offers are unknown."""
    return None


async def untried() -> str:
    """The default: no check of the programs."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetContext:
    """One platform, one state directory, one process. `gates` are those of the runs in flight."""

    state: Path
    config: FleetConfig
    platform: Platform
    journal: Journal
    source: Source
    jail: Jail
    tier: Tier
    signer: Signer
    sponsor: Sponsor
    names: NamesPort
    log: FeedbackPort
    identity: str
    redactor: Redactor
    clock: Clock
    egress: MakeEgress
    personas: Mapping[str, LoadedPersona]
    gates: dict[str, Gate] = field(default_factory=dict)
    posting: dict[str, Literal["reports", "closing", "paid"]] = field(default_factory=dict)
    """The unit that pays for the report being posted; `paid`: charged before a crash, posted after it."""
    asked: dict[str, str] = field(default_factory=dict)
    """Why a run is cancelled, kept by its canceller until it has ended."""
    watch: tuple[Reader, ...] = ()
    model: Callable[[LoadedPersona], DriverChoice] | None = None
    """Makes the model driver, if a model is configured."""
    never: NeverList = field(default_factory=NeverList)
    """The operator's current selectors, whatever `config` was when a run began."""
    check: Callable[[], Awaitable[None]] = unchecked
    """The health check before work: FleetError when platform or jail is not what it was."""
    node: Callable[[float], Awaitable[str]] = answers
    """Send the node one request within N seconds; return how it failed to answer (unanswered.py), or ""."""

    offered: Callable[[], Awaitable[frozenset[str] | None]] = unlisted
    """Asks the diamond for its selectors; None when unknown. Raises Unreachable."""

    spread_s: float = 2.0
    """Pause between two rounds of proofs: no finding rests on one burst of load."""
    patience_s: float = PATIENCE_S
    """Longest wait for a silent target within one run."""

    cannot_start: Callable[[], Awaitable[str]] = untried
    """Tries the platform's compiler and loader; returns why they cannot be started here, or ""."""

    def folder(self, run: str) -> Path:
        """`runs/<id>/`: trajectory, keys, evidence."""
        return self.state / "runs" / run

    def bindings(self, run: str, name: str) -> Bindings:
        web = self.platform.web
        targets = self.platform.targets
        return Bindings(run=run, name=name, site=web.site, proxy=web.proxy, face=web.face, targets=targets)

    def context(
        self, run: str, keys: Mapping[str, str], deadline_s: float, lacks: tuple[str, ...] = ()
    ) -> Context:
        """The public facts that a guest of this run gets."""
        return guest_context(self.platform, run, keys, deadline_s, lacks)

    async def charge(self, run: str, unit: Literal["writes", "reports"]) -> None:
        """Charge the run before a counted signature; BudgetExceeded when the budget is spent."""
        gate = self.gates.get(run)
        if gate is None:
            raise BudgetExceeded(f"run {run} is not open", remedy="")
        if unit == "writes":
            await gate.write_spend("writes")
        elif (paid_by := self.posting.get(run, "reports")) != "paid":
            await gate.write_spend(paid_by)

    async def can_post(self, run: str, unit: Literal["reports", "closing"]) -> bool:
        """Whether one more report of this kind is within every budget: the run's and the day's."""
        return (await self.gates[run].left())[unit] > 0

    async def has_paid(self, run: str, unit: Literal["reports", "closing"]) -> bool:
        """Whether the run itself has spent all its reports of this kind, regardless of the day."""
        return await self.gates[run].own_left(unit) == 0
