"""One run from trigger to footer, and the same last steps for a run that was killed."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from fleet.errors import ConfigError, TryAgain
from fleet.gate.budget import Budget
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Persona
from fleet.runs.call.wallet import Wallet
from fleet.runs.context import FleetContext
from fleet.runs.driver_choice import PLAYBOOK, DriverChoice, choose_driver
from fleet.runs.run import SETTLE_S, RunReport, Work, opened
from fleet.runs.settlement.lost_runs import take_back
from fleet.runs.settlement.settle import transactions
from fleet.store.rows import TRIAL, NewRun, RunRow

_BASE32 = b"abcdefghijklmnopqrstuvwxyz234567" * 8
"""Alphabet indexed by byte: each letter stands for equally many."""
_LOG = logging.getLogger("fleet.runs")


def new_run_id() -> str:
    """Eight characters that fit a DNS label: 40 random bits."""
    return secrets.token_bytes(8).translate(_BASE32).decode()


async def recover(world: FleetContext) -> list[RunReport]:
    """Finish every run that a killed process left behind; the caller holds the lock, so they are all dead.

    Findings seen but not proven are proven now, on what is left of that run's budget; nothing is exercised
    again. Runs of another platform wait until that one is opened, because their remains are not visible from
    here. On a shared journal the daemons do this once a process is dead.
    """
    await transactions(world, "")
    await forget_unbegun(world)
    for run, why in (await take_back(world)).items():
        _LOG.warning("run %s: %s", run, why)
    return [await resettle(world, row) for row in await world.source.left()]


async def forget_unbegun(world: FleetContext) -> None:
    """End runs that a person queued and a killed process never began; triggered runs wait for the daemon."""
    for row in () if world.journal.shared else await world.journal.queued_runs():
        if row.key.endswith(f":{row.run_id}"):
            await world.journal.finish(row.run_id, "cancelled", "the process ended before it began")


async def resettle(world: FleetContext, row: RunRow) -> RunReport:
    """The last steps of one abandoned run: of a dead process, or one that had to wait."""
    world = world.as_trial() if row.trigger == TRIAL else world
    persona = world.personas.get(row.persona) or _gone(row.persona)
    budget = Budget.of(persona.persona.budget, file=persona.path)
    await Wallet(world, row.run_id).inherit()
    async with opened(world, row.run_id, persona, budget) as run:
        return await run.recover(row)


def _gone(name: str) -> LoadedPersona:
    """Replaces a persona whose file is gone: it may only clean up."""
    empty = Persona.model_construct(name=name, surface="ux", tools=(), probe=(), budget=None)
    return LoadedPersona(persona=empty, body="", sha256="0" * 64, path=Path(f"{name}.md"))


async def fire(
    world: FleetContext,
    persona: LoadedPersona,
    *,
    trigger: str = "manual",
    driver: DriverChoice | None = None,
    work: Callable[[str], Awaitable[str | None]] | None = None,
) -> RunReport:
    """Start one run of a persona and complete it; exactly one outcome is recorded in any case.

    `driver` replaces the persona's own driver; `work`, given the run's id, all of its probes.
    """
    driver = driver if work else choose_driver(world.model, persona, driver)
    run = new_run_id()
    budget = Budget.of(persona.persona.budget, file=persona.path)
    queued = NewRun(
        run_id=run,
        persona=persona.persona.name,
        key=f"{persona.persona.name}@{trigger}:{run}",
        platform=world.platform.name,
        trigger=trigger,
        rung="",
        budget={str(unit): limit for unit, limit in budget.limits().items()},
    )
    await world.source.trigger(queued, hand=True)
    if not await world.source.begin(run):
        raise TryAgain(f"another daemon is running {persona.persona.name}", remedy="wait for its run")
    own = partial(work, run) if work else None
    report = await execute(world, run, persona, trigger=trigger, work=own, driver=driver)
    if report.settled:
        await world.source.done(run)
    return report


async def execute(
    world: FleetContext,
    run: str,
    persona: LoadedPersona,
    *,
    trigger: str,
    work: Work | None = None,
    driver: DriverChoice | None = None,
) -> RunReport:
    """Complete a claimed run, once. `work` replaces the persona's probes; RunOver may end it."""
    budget = Budget.of(persona.persona.budget, file=persona.path)
    async with opened(world, run, persona, budget) as open_run:
        try:
            open_run.drive.driver = PLAYBOOK if work else choose_driver(world.model, persona, driver)
        except ConfigError as error:  # it was claimed, so it ends like any other
            work = partial(_failed, error)
        return await open_run.live(trigger, work)


async def _failed(error: ConfigError) -> None:
    raise error


__all__ = [
    "SETTLE_S",
    "RunReport",
    "execute",
    "fire",
    "forget_unbegun",
    "new_run_id",
    "recover",
    "resettle",
]
