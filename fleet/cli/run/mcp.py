"""`fleet mcp PERSONA`: an outside agent drives one run over MCP on stdio."""

from __future__ import annotations

from typing import Annotated

import typer

from fleet.app.persona_sets import one, roster
from fleet.app.wiring import open_world
from fleet.cli.console import make_app, note, run, state
from fleet.cli.detach import outlive
from fleet.cli.progress import Progress
from fleet.errors import ConfigError, Refused, UsageError
from fleet.gate.stop import stopped
from fleet.personas.load import LoadedPersona
from fleet.runs.driver_choice import DriverChoice
from fleet.runs.lifecycle import RunReport, fire, recover
from fleet.text import clean, counted

app = make_app()

PATIENCE = 30
"""Turns without news that end a run: each call of an agent is a turn, and agents look around first."""


@app.command()
def mcp(
    persona: Annotated[str, typer.Argument(help="Persona whose grant, budget and probes the agent gets.")],
    platform: Annotated[
        str | None, typer.Option(help="Profile to run against; default: the configured one.")
    ] = None,
) -> None:
    """Serve a persona's gated tools over MCP on stdio, as one run that ends when the agent hangs up."""
    try:
        from fleet.drivers.mcp import McpDriver, own_stdio
    except ImportError:
        raise ConfigError("the MCP SDK is not installed", remedy="pip install 'qa-fleet[mcp]'") from None
    chosen, folder = one(persona), state()
    if pause := stopped(folder):
        raise Refused(f"everything is paused: {clean(pause.why)}", rule="stop", remedy="fleet resume")
    outlive()
    with own_stdio() as (agent, answers):
        driver = McpDriver(agent, answers)
        choice = DriverChoice(name="mcp", drive=driver, explores=True, patience=PATIENCE)
        report = run(lambda: _serve(chosen, platform, choice))
    note(f"{report.outcome} {report.detail}: {counted(len(report.findings), 'finding')}, run {report.run}")
    if driver.fault:
        raise UsageError(driver.fault, remedy="send each message on one line, shorter than that")
    if any(row.state in ("posted", "repeated", "confirmed") for row in report.findings):
        raise typer.Exit(1)


async def _serve(persona: LoadedPersona, platform: str | None, choice: DriverChoice) -> RunReport:
    personas, _ = roster()
    async with open_world(state(), personas=personas, platform=platform, watch=(Progress(),)) as world:
        for old in await recover(world):
            note(f"{'recovered' if old.settled else 'could not settle'} run {old.run}: {old.outcome}")
        return await fire(world, persona, trigger="mcp", driver=choice)
