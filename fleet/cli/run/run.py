"""`fleet run PERSONA`: fire one persona now."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.app.fix_parts import fix_parts
from fleet.app.lock import held, holder
from fleet.app.persona_sets import one, roster
from fleet.app.wiring import open_world
from fleet.chain.node.facets import offered
from fleet.chain.node.rpc import Rpc
from fleet.cli.console import (
    DryRun,
    Json,
    make_app,
    note,
    put,
    put_rows,
    refuse_if_stopped,
    run,
    state,
    table,
)
from fleet.cli.daemon_page import daemon_of
from fleet.cli.progress import Progress
from fleet.cli.run.follow import followed
from fleet.cli.run.remote import outcome
from fleet.cli.run.remote import queue as ask_for
from fleet.cli.run.runs import show_left_out
from fleet.config import load_fleet, load_platform
from fleet.config.parts import in_short
from fleet.errors import ConfigError, FleetError, TryAgain, Unreachable, UsageError
from fleet.events.stream import Reader
from fleet.fix.fix_pass import Fixing
from fleet.fix.remains import clear_remains
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.model import Rung
from fleet.personas.load import LoadedPersona
from fleet.personas.needs import needs_of
from fleet.runs.call.targets import Capabilities
from fleet.runs.context import FleetContext
from fleet.runs.desk.exit_codes import exit_code
from fleet.runs.proof.grades import graded
from fleet.runs.queue import FIX, TRIAGE
from fleet.runs.run import RunReport, fire, recover
from fleet.runs.survey import why_idle
from fleet.severity import weight
from fleet.store.rows import TRIAL, fields_of
from fleet.text import clean, counted, spoken
from sandbox.spec import Effect
from sandbox.tools import TOOLS

WAIT_S = 0.5
"""Between two looks at whether the state directory is free."""

PLAN = ("persona", "probe", "severity", "tools", "would run")


class IdlePersona(UsageError):
    """A persona of which nothing applies to the platform."""


app = make_app()
Wait = Annotated[
    bool,
    typer.Option(
        "--wait",
        help="Wait until another command (such as fleet propose) has ended, and run then; with --queue"
        " wait until the run has ended.",
    ),
]


@app.command()
def run_persona(  # noqa: PLR0913  a command
    persona: Annotated[str, typer.Argument(help="Name of a persona, such as qa-smoke.")] = "",
    every: Annotated[
        bool,
        typer.Option("--all", help="Fire every persona that applies here, one after another, triage last."),
    ] = False,
    platform: Annotated[
        str | None, typer.Option(help="Profile to run against; default: the configured one.")
    ] = None,
    queue: Annotated[
        bool, typer.Option("--queue", help="Queue the run for the resident daemon, ahead of waiting runs.")
    ] = False,
    wait: Wait = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Show every event; with --json one JSON line per event, then the report."
        ),
    ] = False,
    probe: Annotated[str, typer.Option("--probe", help="Only this probe, and no explorer.")] = "",
    no_post: Annotated[bool, typer.Option("--no-post", help="Write nothing to the log.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Fire one persona now, or all. Exits 1 when it found something, 0 when everything that applies was
    looked at and is healthy."""
    folder = state()
    if every is bool(persona) or (every and (probe or follow)):
        remedy = "fleet run PERSONA; or fleet run --all, without --probe and --follow"
        raise UsageError("which persona is to run", remedy=remedy)
    if follow and queue:
        raise UsageError("--follow works only for a run in this process", remedy="fleet runs follow RUN")
    if queue and (probe or no_post):
        raise UsageError(
            "--probe and --no-post work only for a run in this process", remedy="run without --queue"
        )
    names = in_order(roster()[0]) if every else [persona]
    if dry_run:
        plans = _plans(names, probe, platform, folder)
        rows = [{"persona": name, **row} if every else row for name, plan in plans for row in plan]
        put_rows(rows, PLAN if every else PLAN[1:], as_json=as_json)
        return
    refuse_if_stopped(folder)
    if queue:
        wishes = [{"persona": name, "platform": platform or ""} for name in names]
        said = [ask_for(folder, wish, f"fleet run {wish['persona']}") for wish in wishes]
        said = [run(partial(outcome, folder, one["run"])) for one in said] if wait else said
    else:
        if daemon := daemon_of(folder):
            raise TryAgain(
                f"the daemon (pid {daemon}) is running here",
                remedy=f"fleet run {'--all' if every else persona} --queue",
            )
        if wait:
            _wait_for(folder)
        chosen = [one(name).only(probe) for name in names]
        said = _fired(chosen, platform, every=every, posts=not no_post, follow=follow, as_json=as_json)
    put({"runs": said} if every else said[0], as_json=as_json, text=lambda: _show(said, every=every))
    codes = [0 if data.get("queued") else exit_code(data) for data in said]
    if code := 1 if 1 in codes else max(codes, default=0):
        raise typer.Exit(code)


def in_order(personas: Mapping[str, LoadedPersona]) -> list[str]:
    """All that looks, by name, and then triage; what proposes fixes is not fired with the others."""
    drivers = {name: loaded.persona.driver for name, loaded in personas.items()}
    return sorted(
        (name for name, driver in drivers.items() if driver != FIX), key=lambda n: (drivers[n] == TRIAGE, n)
    )


def _fired(
    chosen: list[LoadedPersona],
    platform: str | None,
    *,
    every: bool,
    posts: bool,
    follow: bool,
    as_json: bool,
) -> list[dict[str, Any]]:
    """Each in turn; of several, one that has nothing to look at here is named and left out."""

    async def fire_it(persona: LoadedPersona) -> dict[str, Any]:
        if not follow:
            return await fire_one(persona, platform, posts)
        async with followed(as_json=as_json) as live:
            return await fire_one(persona, platform, posts, live)

    said = []
    for persona in chosen:
        if every and persona.persona.driver == TRIAGE and not posts:
            continue
        try:
            said.append({"persona": persona.persona.name, **run(partial(fire_it, persona))})
        except IdlePersona as idle:
            if not every:
                raise
            note(str(idle))
        refuse_if_stopped(state())
    return said


def _plans(
    names: list[str], probe: str, platform: str | None, folder: Path
) -> list[tuple[str, list[dict[str, Any]]]]:
    rung = read_dial(folder / DIAL).rung
    return [(name, run(partial(_planned, one(name).only(probe), platform, rung))) for name in names]


def _show(said: list[dict[str, Any]], *, every: bool) -> None:
    for data in said:
        if every and not data.get("queued"):
            print(f"\n{data['persona']}")
        show_report(data)


def _wait_for(folder: Path) -> None:
    """Wait for the command that holds the state directory; Refused when everything is paused meanwhile."""
    if holder(folder):
        note(f"waiting: {held(folder)}")
    while holder(folder) and not daemon_of(folder):
        time.sleep(WAIT_S)
    refuse_if_stopped(folder)


async def _planned(persona: LoadedPersona, platform: str | None, rung: Rung) -> list[dict[str, Any]]:
    """The plan, given what the platform offers: reads the diamond's loupe and nothing else."""
    try:
        profile, _ = load_platform(platform or load_fleet().platform, state())
    except (ConfigError, UsageError) as error:
        if platform:
            raise
        note(f"{clean(str(error))}: what the platform offers is unknown")
        return planned(persona, rung, None)
    selectors = None
    try:
        if profile.chain.diamond:
            async with Rpc(profile.chain.rpc) as rpc:
                selectors = await offered(rpc, profile.chain.diamond)
    except Unreachable as error:
        note(f"{clean(str(error))}: what the diamond offers is unknown")
    return planned(persona, rung, Capabilities(profile, selectors))


def planned(persona: LoadedPersona, rung: Rung, capabilities: Capabilities | None) -> list[dict[str, Any]]:
    """Each probe, whether it applies to the platform, and whether the dial would permit all of its calls."""
    rows, words = [], {True: "yes", False: f"no: the dial is at {rung}"}
    for probe in persona.persona.probe:
        tools = [step.tool for step in probe.steps]
        acts = any(TOOLS[step.tool].effect_of(step.args) is Effect.ACT for step in probe.steps)
        allowed = not acts or rung.height >= Rung.EXERCISE.height
        missing = capabilities.missing(needs_of(probe)) if capabilities else ""
        rows.append(
            {
                "probe": probe.id,
                "severity": probe.severity,
                "tools": " ".join(tools),
                "would run": f"not applicable: {missing}" if missing else words[allowed],
            }
        )
    return rows


async def fire_one(
    persona: LoadedPersona,
    platform: str | None,
    posts: bool = True,
    watch: Reader | None = None,
    *,
    trial: bool = False,
    apart: bool = False,
) -> dict[str, Any]:
    """Run one persona in this process; without `posts`, nothing is written to the log. A `trial` counts
    nowhere; one that is `apart` runs beside a daemon."""
    personas, _ = roster()
    watching = (watch or Progress(),)
    if not posts and persona.persona.driver in (TRIAGE, FIX):
        raise UsageError(
            f"the driver {persona.persona.driver} is of no use without posting", remedy="fleet items"
        )
    async with open_world(
        state(), personas=personas, platform=platform, watch=watching, patient=True, posts=posts, apart=apart
    ) as world:
        note(f"platform {world.platform.name}: {in_short(world.platform)}")
        if why := why_idle(persona.persona, Capabilities(world.platform)):
            raise IdlePersona(f"{persona.persona.name}: {why}", remedy="fleet check platform")
        if posts:
            await recovered(world)  # what an earlier run still owes the log
        else:
            note("this run posts nothing")
        if persona.persona.driver == TRIAGE:
            return {
                "run": "",
                "outcome": "done",
                "detail": await Fixing.of(world, fix_parts).triage(persona),
                "findings": [],
                "calls": 0,
            }
        fixing = Fixing.of(world, fix_parts)
        fixes = persona.persona.driver == FIX
        work = fixing.fix if fixes else None
        if trial:
            report = await fire(world.as_trial(), persona, trigger=TRIAL, work=work)
        else:
            report = await fire(world, persona, work=work)
        data = as_data(report)
        for row in data["findings"] if not posts else ():
            row["why_not_filed"] = "this run posts nothing"
        return data


async def recovered(world: FleetContext) -> None:
    """Settle earlier runs and their proposals; the run itself reports a node that does not answer."""
    await clear_remains(world.state)
    try:
        for old in await recover(world):
            word = "recovered" if old.settled else "could not settle"
            note(f"{word} run {old.run} of {old.persona}: {spoken(old.outcome)}, {old.detail}")
        for line in await Fixing.of(world, fix_parts).upkeep.settle():
            note(line)
    except Unreachable as error:
        if not error.how:
            raise
        note(f"clean-up of earlier runs waits: {error}")


def as_data(report: RunReport) -> dict[str, Any]:
    """A report as JSON."""
    if not report.settled:
        raise FleetError(
            f"run {report.run} is not settled: {report.detail}", remedy="run it again: clean-up resumes first"
        )
    findings = []
    for row in sorted(report.findings, key=lambda one: -weight(one.severity)):
        grade = graded(row)
        findings.append(fields_of(row) | {"grade": grade.grade, "why_not_filed": grade.why})
    return asdict(report) | {"findings": findings}


def show_report(data: dict[str, Any]) -> None:
    """How a run ended, what it left out, and its findings."""
    if data.get("queued"):
        print(f"queued run {data['run']} of {data['persona']}")
        return
    print(clean(f"{spoken(data['outcome'])} {data['detail']}".rstrip()))
    show_left_out(data.get("coverage", {}))
    if there := data.get("left", ()):
        print(f"left on the platform by {counted(len(there), 'act')}: fleet runs left {data['run']}")
    columns = ("fingerprint", "state", "severity", "surface", "confirmed", "title")
    empty = "no findings"  # and one may have been missed by a probe that could not be decided
    if wrong := len(data.get("coverage", {}).get("undecided", ())):
        remedy = "correct the expectation (fleet personas check, fleet personas try FILE)"
        empty = f"{counted(wrong, 'probe')} undecided: {remedy}"
    table(columns, ([row[c] for c in columns] for row in data["findings"]), empty=empty)
    for row in data["findings"]:
        if row.get("why_not_filed"):
            print(clean(f"  not filed  {row['fingerprint']}: {row['grade']}: {row['why_not_filed']}", 300))
