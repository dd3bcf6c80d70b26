"""A desk over a real journal, gate and files; a jail that answers what a test says, and a log in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from fleet.app.wiring import at_work
from fleet.broker.listener import Listener
from fleet.chain.log.own_entries import OwnEntries
from fleet.chain.ports import Role
from fleet.chain.signing.judge import SigningLimits
from fleet.clock import SystemClock
from fleet.config import ChainSection, FleetConfig, LiveConfig, Platform, WebSection
from fleet.config.scope import HostSection
from fleet.events.model import Event, Header
from fleet.events.stream import Stream
from fleet.events.trajectory import TrajectoryFile
from fleet.findings.redact import Redactor
from fleet.gate.budget import Budget, Ledger
from fleet.gate.dial import write_dial
from fleet.gate.gate import Gate, Rate
from fleet.gate.model import Rung
from fleet.gate.scope import Scope
from fleet.gate.stop import stop
from fleet.jail.model import Egress, End, Jail, Outcome, Tier
from fleet.personas.load import LoadedPersona
from fleet.personas.model import BudgetSection, Persona, PolicySection, Probe, Step
from fleet.runs.call.decision_file import DecisionFile
from fleet.runs.call.decisions import DecisionRecorder
from fleet.runs.call.session import RunSession
from fleet.runs.call.wallet import Wallet
from fleet.runs.checks import Checks, answers, unchecked, untried
from fleet.runs.context import ChainSide, FleetContext, MakeEgress, RunContext
from fleet.runs.desk.desk import RunDesk
from fleet.runs.drive import Drive
from fleet.runs.driver_choice import PLAYBOOK, DriverChoice
from fleet.runs.proof.probe_runner import ProbeRunner
from fleet.runs.run_time import RunTime
from fleet.store.rows import TRIAL, NewRun
from sandbox.chain.contract import VIEWS
from sandbox.spec import PROTOCOL
from sandbox.tools import TOOLS
from tests.doubles.chain import MemoryChain

Answer = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""`(tool, args)` to the result that its jail prints."""

RUN = "abcdefgh"
CALLS: Any = {"model": "m", "auth_scope": "paper", "route": ""}
PLATFORM = Platform(
    name="paper",
    chain=ChainSection(rpc="http://127.0.0.1:9", id=7, diamond="0x" + "11" * 20),
    web=WebSection(site="http://site", face="http://{name}.face/", proxy="http://proxy", **CALLS),
    hosts={name: HostSection(criticality="non-production") for name in ("site", "proxy", "*.face")},
    call_targets=("claude",),
)


async def well(tool: str, args: dict[str, Any]) -> dict[str, Any]:
    """All is well, whatever was asked."""
    return {"ok": True, "status": 200, "text": f"hello {args}"} if tool == "qa_fetch" else {"ok": True}


class PaperJail:
    """Counts what is called in it, and answers with what the test says."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.accounts: list[tuple[str, dict[str, Any]]] = []
        """By tool, the accounts of the platform that its guest was given."""

    async def probe(self) -> Tier:
        return Tier(backend="paper", tier="none", ok=True, checks=())

    async def call(
        self, request: bytes, *, deadline_s: float, egress: Egress | None = None, resources: str = ""
    ) -> Outcome:
        asked = json.loads(request)
        lines = []
        self.accounts.append((asked["tool"], asked["ctx"]["accounts"]))
        for number, args in enumerate([one["args"] for one in asked.get("calls", ())] or [asked["args"]]):
            self.calls.append((asked["tool"], args))
            said = await self.answer(asked["tool"], args)
            place = {"call": number} if "calls" in asked else {}
            lines.append(json.dumps({"v": PROTOCOL, **place, "result": said}).encode() + b"\n")
        return Outcome(end=End.EXITED, code=0, stdout=b"".join(lines), stderr=b"", seconds=0.0)

    async def cool(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


def look(id_: str, expect: str = "result.status == 200", tool: str = "qa_fetch", **args: Any) -> Probe:
    """A probe of one step, of its own."""
    return Probe(
        id=id_,
        severity="low",
        expect=expect,
        finding=f"finding of {id_}",
        steps=(Step(tool=tool, args=args or {"url": "{site}/" + id_}),),
    )


def persona(
    *probes: Probe,
    tools: Sequence[str] = ("qa_fetch",),
    policy: PolicySection | None = None,
    tokens: int = 0,
    calls: int = 500,
    writes: int = 50,
    driver: Any = "auto",
) -> LoadedPersona:
    """A persona of the test, as its file would be loaded."""
    budget = BudgetSection(calls=calls, writes=writes, wall="1m", tokens=tokens)
    one = Persona(
        name="qa-paper",
        surface="ux",
        summary="a test",
        tools=tuple(tools),
        budget=budget,
        driver=driver,
        policy=policy or PolicySection(),
        probe=probes,
    )
    return LoadedPersona(persona=one, body="You test.", sha256="0" * 64, path=Path("qa-paper.md"))


@dataclass(kw_only=True)
class Table:
    """What a test sees of a run in progress."""

    world: FleetContext
    drive: Drive
    jail: PaperJail
    events: list[Event] = field(default_factory=list)
    run: str = RUN

    @property
    def desk(self) -> RunDesk:
        return self.drive.seat()

    @property
    def folder(self) -> Path:
        return self.world.folder(self.run)

    def said(self, kind: str) -> list[Any]:
        return [event for event in self.events if event.type == kind]

    def stop(self) -> None:
        stop(self.world.state, "a test", "enough", SystemClock())

    def decisions(self) -> str:
        path = self.world.state / "DECISIONS.md"
        return path.read_text() if path.exists() else ""


@asynccontextmanager
async def seated(
    root: Path,
    one: LoadedPersona,
    *,
    answer: Answer = well,
    hand: DriverChoice = PLAYBOOK,
    rung: Rung = Rung.EXERCISE,
    turn_s: float = 0.0,
    check: Callable[[], Awaitable[None]] = unchecked,
    patience_s: float = 0.0,
    platform: Platform = PLATFORM,
    node: Callable[[float], Awaitable[str]] = answers,
    cannot_start: Callable[[], Awaitable[str]] = untried,
    real: Jail | None = None,
    egress: MakeEgress | None = None,
    rate: Rate | None = None,
    run: str = RUN,
    trial: bool = False,
    accounts: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> AsyncIterator[Table]:
    """A run of `one` that has been claimed, and not begun; `egress` is a `real` jail's only way out."""
    state = root / "state"
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_dial(state, rung, "a test", "test", SystemClock())
    async with at_work(state / "fleet.db", "paper", stalled_s=60.0) as (journal, source):
        jail, clock, events = PaperJail(answer), SystemClock(), list[Event]()
        missing, chain = cast(Any, None), MemoryChain(SigningLimits(rung=lambda: "observe"))
        identity = chain.signer.address(Role.IDENTITY)
        world = FleetContext(
            state=state,
            live=LiveConfig(FleetConfig()),
            platform=platform,
            journal=journal,
            source=source,
            jail=real or jail,
            tier=await jail.probe(),
            chain=ChainSide(
                signer=missing,
                sponsor=missing,
                names=missing,
                log=chain.log,
                identity=identity,
                own=OwnEntries(frozenset({identity.lower()})),
            ),
            redactor=Redactor(),
            clock=clock,
            egress=egress or (lambda *_: missing),
            listener=Listener("", clock),
            personas={one.persona.name: one},
            accounts=accounts,
            checks=Checks(health=check, node=node, cannot_start=cannot_start),
            spread_s=0.0,
            patience_s=patience_s,
        )
        world = world.as_trial() if trial else world
        name = one.persona.name
        await source.trigger(
            NewRun(
                run_id=run,
                persona=name,
                key=f"{name}@test:{run}",
                platform="paper",
                trigger=TRIAL if trial else "test",
                rung="",
                budget={},
            ),
            hand=True,
        )
        assert await source.begin(run)
        folder = world.folder(run)
        folder.mkdir(mode=0o700, parents=True)
        recorder = DecisionRecorder(DecisionFile(state, clock), run)
        sink = TrajectoryFile(folder / "trajectory.jsonl")
        stream = Stream(run, clock=clock, sink=sink, readers=(events.append, recorder))
        budget = Budget.of(one.persona.budget)
        ledger, scope = Ledger(journal, run, budget), Scope.of(platform, VIEWS)
        gate = Gate(
            state=state,
            run=run,
            grant=one.persona.tools,
            tools=TOOLS,
            scope=scope,
            ledger=ledger,
            clock=clock,
            deadline=clock.monotonic() + 60.0,
            rate=rate,
        )
        time = RunTime(clock)
        context = RunContext(
            fleet=world, run=run, persona=name, gate=gate, ledger=ledger, stream=stream, time=time
        )
        session = RunSession(context, wallet=Wallet(world, run, payer=ledger), history={})
        runner = ProbeRunner(world, run, one, stream, session)
        drive = Drive(
            world, one, runner, ledger, budget, scope, recorder, clock.monotonic(), hand, turn_s=turn_s
        )
        stream.emit(header(drive))
        yield Table(world=world, drive=drive, jail=jail, events=events, run=run)
        session.egress.close()
        sink.close()


def header(drive: Drive) -> Header:
    """The first record, as a run writes it."""
    return Header(
        persona="qa-paper",
        persona_sha256="0" * 64,
        platform="paper",
        chain_id=7,
        rung="exercise",
        jail="paper/none",
        budget={},
        trigger="test",
        **drive.header(),
    )
