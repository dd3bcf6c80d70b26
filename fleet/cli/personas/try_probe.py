"""`fleet personas try FILE`: one run that posts nothing, shown step by step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.app.bootstrap import trial_folder
from fleet.app.persona_sets import load
from fleet.cli.console import Json, note, put, refuse_if_stopped, run, state
from fleet.cli.daemon_page import daemon_of
from fleet.config import load_fleet, load_platform
from fleet.drivers.expect import Values, decided
from fleet.errors import Refused, TryAgain
from fleet.events.model import Event, GateDenied, ToolRequested, ToolResponded
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.model import Rung
from fleet.personas.model import Probe
from fleet.runs.desk.exit_codes import exit_code
from fleet.runs.desk.state import Plan
from fleet.text import clean

SHOWN = 160
"""Characters of a value; with --show, LONG."""
LONG = 4_000


def try_file(
    file: Annotated[Path, typer.Argument(help="A persona file.")],
    probe: Annotated[str, typer.Option("--probe", help="Only this probe; default: all of the file.")] = "",
    platform: Annotated[
        str | None, typer.Option("--platform", help="Profile to run against; default: the configured one.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Show every field, and long texts.")] = False,
    as_json: Json = False,
) -> None:
    """Run a persona file once, show how each expectation was decided, and post and count nothing.

    It runs at the dial's rung, never above it, and says which rung it needs. Beside a running daemon it has
    a lock, a journal and a budget of its own, and only looks: at observe, without keys. The two take turns
    at each host, so that together they ask no faster than one.
    """
    from fleet.app.journal import from_journal  # SQLAlchemy, and below all that a run needs:
    from fleet.cli.run.run import fire_one  # `personas check` does without

    chosen = load(file).only(probe)
    refuse_if_stopped(state())
    daemon = daemon_of(state())
    rung = Rung.OBSERVE if daemon else read_dial(state() / DIAL).rung
    for item in Plan.of(chosen.persona.probe).items:
        note(
            f"probe {item.id} needs the rung {item.rung}; {'a trial' if daemon else 'the dial'} is at {rung}"
        )
        if item.rung.height > rung.height and daemon:
            raise Refused(
                f"probe {item.id} needs the rung {item.rung}; beside a daemon a trial only looks",
                rule="dial",
                remedy="stop the daemon, name another state directory in STATE_DIRECTORY, or --probe one that"
                " only looks",
            )
        if item.rung.height > rung.height:
            remedy = f'fleet dial {item.rung} --reason "…", or --probe with one that only looks'
            raise Refused(f"probe {item.id} needs the rung {item.rung}", rule="dial", remedy=remedy)
    heard = Hearing()
    apart = bool(daemon)
    data = run(lambda: fire_one(chosen, platform, posts=False, watch=heard, trial=True, apart=apart))
    none: Mapping[str, float] = {}
    figures = run(lambda: from_journal(state(), lambda journal: journal.history(), none))
    facts = load_platform(platform or load_fleet().platform, state())[0].facts
    data["probes"] = [heard.told(each, figures, facts) for each in chosen.persona.probe]
    place = f" --state {trial_folder(state())}" if daemon else ""
    put(data, as_json=as_json, text=lambda: _print(data, LONG if show else SHOWN, place, every=show))
    if code := exit_code(data):
        raise typer.Exit(code)


def undisturbed(folder: Path) -> None:
    """Refused while everything is paused, TryAgain while a daemon runs here: no run of our own then."""
    refuse_if_stopped(folder)
    if daemon := daemon_of(folder):
        remedy = "stop it, or name another state directory in STATE_DIRECTORY"
        raise TryAgain(f"the daemon (pid {daemon}) is running here", remedy=remedy)


class Hearing:
    """A reader of a run's stream: the calls of each probe's first attempt."""

    def __init__(self) -> None:
        self._asked: dict[int, ToolRequested] = {}
        self.calls: dict[str, list[dict[str, Any]]] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, ToolRequested):
            self._asked[event.call] = event
        if isinstance(event, ToolResponded | GateDenied) and (asked := self._asked.get(event.call)):
            call: dict[str, Any] = {"tool": asked.tool, "args": asked.args}
            call |= {"result": event.result} if isinstance(event, ToolResponded) else {"denied": event.rule}
            self.calls.setdefault(asked.probe, []).append(call)

    def told(self, probe: Probe, figures: Mapping[str, float], facts: Mapping[str, Any]) -> dict[str, Any]:
        """A probe's first attempt, and how its expectation was decided."""
        calls = self.calls.get(probe.id, [])[: len(probe.steps)]
        results = [call["result"] for call in calls if "result" in call]
        parts = (
            decided(probe.expect, Values(results, figures, facts)) if len(results) == len(probe.steps) else []
        )
        return {"probe": probe.id, "calls": calls, "decided": [{"part": p, "value": v} for p, v in parts]}


def _print(data: dict[str, Any], longest: int, place: str, *, every: bool) -> None:
    from fleet.cli.run.run import show_report

    for one in data["probes"]:
        print(clean(f"probe {one['probe']}"))
        for index, call in enumerate(one["calls"]):
            print(clean(f"  call {index}: {call['tool']} {_json(call['args'])}", longest + 80))
            if "denied" in call:
                print(clean(f"    denied: {call['denied']}"))
            for name, value in call.get("result", {}).items():
                if every or value not in ("", 0, 0.0, False, None, [], {}):
                    print(clean(f"    {name} = {_json(value)}", longest))
        for part in one["decided"]:
            print(clean(f"  {part['part']}  ->  {part['value']}", longest + 80))
    show_report(data)
    print(f"nothing was posted or counted; `fleet{place} runs show {data['run']}` has what it saw")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
