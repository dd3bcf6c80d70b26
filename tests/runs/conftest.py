"""An executor over a real journal and a world of which only the journal, the clock and STOP are real."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import anyio
import pytest

from fleet.app.wiring import at_work
from fleet.clock import SystemClock
from fleet.config import FleetConfig
from fleet.events.daemon_events import Feed
from fleet.personas.load import LoadedPersona
from fleet.personas.model import BudgetSection, Persona
from fleet.runs.context import FleetContext, RunsInFlight
from fleet.runs.executor import Executor
from fleet.runs.queue import Queue
from fleet.runs.signals import Signals
from fleet.store.dispatch.source import Source
from fleet.store.journal import Journal
from fleet.store.rows import RunRow
from fleet.triggers.model import Firing, Skip
from tests.doubles.chain_memory import MemoryNames, MemoryState
from tests.feed import read_feed
from tests.store.cluster import Cluster, running

STALLED_S = 2.0
DUE = datetime(2026, 11, 21, 18, tzinfo=UTC)


def persona(
    name: str,
    driver: Literal["auto", "model", "triage", "retest"] = "auto",
    budget: dict[str, Any] | None = None,
) -> LoadedPersona:
    model = Persona.model_construct(
        name=name,
        surface="ux",
        tools=(),
        probe=(),
        driver=driver,
        budget=BudgetSection.model_validate(budget or {"calls": 5}),
        triggers=(),
    )
    return LoadedPersona(persona=model, body="", sha256="0" * 64, path=Path(f"{name}.md"))


def firing(name: str, mark: str = "manual:1", due: datetime = DUE) -> Firing:
    return Firing(f"{name}@{mark}", name, "a test", due)


@dataclass
class Shop:
    """The queue and the executor of one state directory. `work` is what every run does."""

    state: Path
    place: Path | str
    journal: Journal
    source: Source
    personas: dict[str, LoadedPersona]
    feed: Feed
    work: Callable[[RunRow], Awaitable[None]]
    began: list[str] = field(default_factory=list)
    ended: list[tuple[str, str, bool]] = field(default_factory=list)
    beats: int = 0
    closed: str = ""
    signals: Signals = field(default_factory=Signals)
    chain: MemoryState = field(default_factory=MemoryState)

    def __post_init__(self) -> None:
        self.queue = Queue(
            self.journal,
            "devnet",
            self.personas,
            self.feed,
            source=self.source,
            signals=self.signals,
        )
        self.world = cast(
            FleetContext,
            SimpleNamespace(
                journal=self.journal,
                source=self.source,
                state=self.state,
                clock=SystemClock(),
                platform=SimpleNamespace(name="devnet"),
                signals=self.signals,
                in_flight=RunsInFlight(),
                closed=lambda: self.closed,
                config=FleetConfig(),
                chain=SimpleNamespace(names=MemoryNames(self.chain), log=None, identity="", signer=None),
            ),
        )
        self.executor = Executor(
            self.world,
            self.personas,
            self._execute,
            self.feed,
            ended=self._ended,
            beat=self._beat,
        )

    def limit(self, runs: int) -> None:
        """What a reload of the configuration does."""
        vars(self.world)["config"] = FleetConfig(concurrency=runs)

    async def _execute(self, row: RunRow, one: LoadedPersona) -> None:
        self.began.append(row.key)
        outcome = "cancelled"
        try:
            await self.work(row)
            outcome = "done"
        finally:
            with anyio.CancelScope(shield=True):
                await self.journal.finish(row.run_id, outcome, self.world.in_flight.why(row.run_id))

    def _ended(self, row: RunRow, *, found: bool) -> None:
        self.ended.append((row.key, row.outcome, found))

    def _beat(self) -> None:
        self.beats += 1

    def told(self, kind: str) -> list[Any]:
        return [event for event in read_feed(self.state / "events.jsonl") if event.type == kind]

    async def skips(self) -> list[Skip]:
        return [Skip(row.persona, row.key, row.reason) for row in await self.journal.skips()]


async def nothing(_row: RunRow) -> None:
    """A run that does nothing."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.fixture(params=["embedded", "shared"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where the journal is: what holds for one daemon's executor holds for one of several."""
    if request.param == "embedded":
        return tmp_path / "fleet.db"
    cluster: Cluster = request.getfixturevalue("cluster")
    return cluster.place()


@pytest.fixture
async def shop(place: Path | str, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Shop]:
    feed = Feed(tmp_path / "events.jsonl", clock=SystemClock())
    async with at_work(place, "devnet", stalled_s=STALLED_S) as (journal, source):
        personas = {name: persona(name) for name in ("qa-a", "qa-b", "qa-c", "qa-d")}
        yield Shop(tmp_path, place, journal, source, personas, feed, nothing)
    feed.close()
