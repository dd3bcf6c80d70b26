"""`fleet call CALLS`: the calls of a repro, made once by this fleet and printed with their answers."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.app.persona_sets import roster
from fleet.app.wiring import open_world
from fleet.cli.console import DryRun, Json, make_app, note, put, run, state
from fleet.cli.personas.try_probe import undisturbed
from fleet.cli.progress import Progress
from fleet.errors import Refused, TryAgain, UsageError
from fleet.findings.expected import seen
from fleet.findings.repro import MAX_CHARS, ReproCall, ReproError, parse_repro
from fleet.findings.sighting import lead
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.model import Rung
from fleet.personas.load import LoadedPersona
from fleet.personas.model import BudgetSection, Persona, Probe, Step
from fleet.runs.call.guest_protocol import bad_args
from fleet.runs.run import ask
from fleet.text import clean, suggestion
from sandbox.spec import Effect
from sandbox.tools import TOOLS

app = make_app()
NAME = "qa-call"
"""The persona of these runs; it has no file."""
WRITES = 8
"""Transactions that one acting call may take: a name, its approval, its records."""
LONG = 4_000
"""Characters of a value on a terminal; `--json` has all of it."""


@app.command()
def call(
    calls: Annotated[
        str,
        typer.Argument(help="Calls as in a repro: TOOL(NAME=VALUE); - reads them from stdin."),
    ],
    platform: Annotated[
        str | None, typer.Option("--platform", help="Profile to call; default: the configured one.")
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Make the calls of a repro once, in their order, and print what was answered.

    Like every call of the fleet they pass gate, dial, budget and jail; what they answer is not judged, posted
    or counted. Placeholders and names are those of one run.
    """
    asked = _read(sys.stdin.read(MAX_CHARS + 1) if calls == "-" else calls)
    acts = [one for one in asked if TOOLS[one.tool].effect_of(one.args) is Effect.ACT]
    rung = read_dial(state() / DIAL).rung
    if dry_run:
        needs = str(Rung.EXERCISE if acts else Rung.OBSERVE)
        planned = [{"tool": one.tool, "args": dict(one.args)} for one in asked]
        data: dict[str, Any] = {"calls": planned, "needs": needs, "dial": str(rung)}
        put(data, as_json=as_json, text=lambda: print("\n".join(_planned(asked, data))))
        return
    if acts and rung.height < Rung.EXERCISE.height:
        raise Refused(
            f"{acts[0].tool} acts, and needs the rung {Rung.EXERCISE}: the dial is at {rung}",
            rule="dial",
            remedy=f'fleet dial {Rung.EXERCISE} --reason "…"',
        )
    undisturbed(state())
    persona = _persona(asked, len(acts))

    async def asking() -> dict[str, Any]:
        async with open_world(
            state(), personas=roster()[0], platform=platform, watch=(Progress(),), patient=True, posts=False
        ) as world:
            note(f"platform {world.platform.name}: these calls are not judged, posted or counted")
            report, made = await ask(world, persona)
            fields = world.redactor.fields
            return {
                "run": report.run,
                "outcome": report.outcome,
                "detail": report.detail,
                "denied": made.denied,
                "calls": [
                    {"tool": one["tool"], "args": fields(one["args"]), "result": fields(got)}
                    for one, got in zip(made.calls, made.results, strict=True)
                ],
                "answered": made.state == "healthy",
            }

    done = run(asking)
    put(done, as_json=as_json, text=lambda: print("\n".join(_answered(done))))
    if done["denied"]:
        raise Refused(done["detail"], rule=done["denied"])
    if not done["answered"]:
        raise TryAgain(f"{done['outcome']}: {done['detail'] or 'not every call was answered'}")


def _read(text: str) -> tuple[ReproCall, ...]:
    """The calls of a text; UsageError if it is not a repro, or names an unknown tool or argument."""
    try:
        asked = parse_repro(text.strip())
    except ReproError as error:
        remedy = "write tool(name=value), values as JSON: fleet personas tools lists the arguments"
        raise UsageError(f"not calls: {error}", remedy=remedy) from None
    for one in asked:
        if one.tool not in TOOLS:
            raise UsageError(
                f"no tool {one.tool!r}{suggestion(one.tool, TOOLS)}", remedy="fleet personas tools lists them"
            )
        if TOOLS[one.tool].effect is Effect.REPORT:
            raise UsageError(f"{one.tool} posts to the log: a repro has no such call", remedy="leave it out")
        if why := bad_args(TOOLS[one.tool], one.args):
            raise UsageError(f"{one.tool}: {why}", remedy=f"fleet personas tools {one.tool}")
    return asked


def _persona(asked: tuple[ReproCall, ...], acts: int) -> LoadedPersona:
    """A persona of these calls, which may do nothing else."""
    probe = Probe(
        id="call",
        severity="info",
        steps=tuple(Step(tool=one.tool, args=dict(one.args)) for one in asked),
        expect="true",
        finding="a person's calls",
    )
    persona = Persona(
        name=NAME,
        surface="ux",
        tools=tuple(dict.fromkeys(one.tool for one in asked)),
        driver="playbook",
        budget=BudgetSection(
            calls=sum(TOOLS[one.tool].cost.calls for one in asked),
            writes=acts * WRITES,
            reports=0,
        ),
        probe=(probe,),
    )
    digest = hashlib.sha256(probe.model_dump_json().encode()).hexdigest()
    return LoadedPersona(persona=persona, body="", sha256=digest, path=Path(f"{NAME}.md"))


def _planned(asked: tuple[ReproCall, ...], data: dict[str, Any]) -> list[str]:
    lines = [clean(lead(one.tool, one.args), 500) for one in asked]
    return [*lines, f"needs the rung {data['needs']}; the dial is at {data['dial']}"]


def _answered(done: dict[str, Any]) -> list[str]:
    """Each call, and every field of its answer that says something."""
    lines = []
    for one in done["calls"]:
        lines.append(clean(lead(one["tool"], one["args"]), 500))
        for name, value in one["result"].items():
            if value is False or value not in ("", 0, None, [], {}, ()):
                lines.append(
                    clean(f"  {name}: {value if isinstance(value, str) else seen(name, value)}", LONG)
                )
    return lines
