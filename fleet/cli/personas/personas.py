"""`fleet personas`: list, check, scaffold, learned probes, publish."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.app.persona_sets import one, roster, surroundings
from fleet.cli.console import DryRun, Json, make_app, note, put, put_rows, run, state
from fleet.cli.daemon_page import daemon_of, page
from fleet.cli.personas.try_probe import try_file
from fleet.clock import clock_time, iso
from fleet.config import load_fleet, load_platform
from fleet.config.files import own_personas, persona_dirs
from fleet.config.json_schema import schema
from fleet.errors import ConfigError, Refused, UsageError
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.model import Rung
from fleet.personas.check import Surroundings
from fleet.personas.learned import LearnedProbes
from fleet.personas.model import Persona
from fleet.text import clean, spoken

app = make_app(
    group=True,
    lazy={
        "tools": ("personas.tools", "Show what a probe may call, and what it answers."),
        "mcp": ("run.mcp", "Serve a persona's gated, jailed tools to an outside agent over MCP."),
    },
)
LATEST = 200
"""Runs among which each persona's last one is looked for."""

SCAFFOLD = """+++
name = "{name}"
surface = "ux"
summary = "What this specialist looks for."
tools = ["qa_fetch"]                  # what they answer: fleet personas tools qa_fetch
triggers = [{{ every = "6h" }}]
budget = {{ calls = 40, wall = "5m" }}

[[probe]]
id = "accessible-page"
severity = "medium"
# On the devnet this finds a defect once `url` is "{{target:settings}}".
steps = [{{ tool = "qa_fetch", args = {{ url = "{{site}}/" }} }}]
expect = "result.status == 200 && size(result.a11y) == 0"
finding = "a page fails accessibility rules; none was expected to fail"
+++
You are {name}. Say here what to look for, what counts as proof, and what never to do.
"""
"""A small valid persona."""
SHOWN = ("file", "line", "column", "key", "reason", "remedy")
"""What is shown of an error."""


@app.callback()
def _group() -> None:
    """List, check, try, scaffold or publish personas; show their tools; list or forget learned probes."""


@app.command("list")
def list_personas(as_json: Json = False) -> None:
    """List every persona that can run, how its last run ended, and when a running daemon starts it next.

    Next is a time in UTC, or what starts it.

    From: shipped, or your configuration or state folder, whose file replaces a shipped one of its name.
    """
    found, errors = roster()
    from fleet.app.journal import from_journal  # SQLAlchemy, which `check` does without
    from fleet.app.status import LAST_RUN, of_last_runs
    from fleet.store.journal import Journal

    async def last_runs(journal: Journal) -> dict[str, dict[str, Any]]:
        ended: dict[str, dict[str, Any]] = {}
        for row in await journal.runs(LATEST):
            if row.state == "ended":
                ended.setdefault(row.persona, {"last": row.outcome, "undecided": []})
        for probe in await of_last_runs(journal, LAST_RUN["undecided"]):
            last = ended.setdefault(probe["persona"], {"last": "", "undecided": []})
            last["undecided"].append(probe)
        return ended

    none: dict[str, dict[str, Any]] = {}
    ended = run(lambda: from_journal(state(), last_runs, none))
    for last in ended.values():
        if wrong := len(last["undecided"]):
            last["last"] = f"{last['last']}, {wrong} undecided".lstrip(", ")
    upcoming = page(state(), "/readyz").get("next", {}) if daemon_of(state()) else {}
    for error in errors:
        note(f"not loaded: {error}")
    places = {folder: name for name, folder in persona_dirs(state()).items()}
    data: list[dict[str, Any]] = [
        {
            "name": name,
            "from": places[loaded.path.parent],
            "file": str(loaded.path),
            "surface": loaded.persona.surface,
            "probes": len(loaded.persona.probe),
            "tools": list(loaded.persona.tools),
            "starts": loaded.persona.starts,
            "next": clean(str(upcoming.get(name, ""))),
            "summary": loaded.persona.summary,
            **ended.get(name, {"last": "", "undecided": []}),
        }
        for name, loaded in sorted(found.items())
    ]
    columns = ("name", "from", "surface", "probes", "last", "next", "summary")
    now = iso(datetime.now(UTC))
    starts = [clock_time(one["next"], now) if one["next"] else one["starts"] or "by hand" for one in data]
    shown = [
        one | {"next": start, "last": spoken(one["last"])} for one, start in zip(data, starts, strict=True)
    ]
    put_rows(data if as_json else shown, columns, as_json=as_json)


app.command("try")(try_file)


@app.command()
def check(
    path: Annotated[
        Path | None, typer.Argument(help="A file or a folder; default: all that `list` shows.")
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option("--platform", help="Whose hosts and targets count; default: the configured profile."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check persona files: each error names file, line, column, key and remedy.

    Expectations are checked against the types of what the tools answer: fleet personas tools NAME.
    """
    around = Surroundings()
    try:
        around = surroundings(load_platform(platform or load_fleet().platform, state())[0])
    except (ConfigError, UsageError) as error:
        if platform:
            raise
        note(f"hosts and targets were not checked: {error}")
    found, refused = roster(*((path,) if path else ()), around=around)
    errors = [one for error in refused for one in (error, *error.others)]
    data: dict[str, Any] = {
        "ok": not errors,
        "personas": sorted(found),
        "errors": [{key: getattr(error, key) for key in SHOWN} for error in errors],
    }

    def text() -> None:
        for name in sorted(found):
            print(f"ok  {name}")
        for error in errors:
            where = ":".join([error.file, *(str(number) for number in (error.line, error.column) if number)])
            print(clean(f"BAD {where}: {error.key + ': ' if error.key else ''}{error.reason}", 1000))
            if error.remedy:
                print(clean(f"    try: {error.remedy}", 1000))

    put(data, as_json=as_json, text=text)
    if errors:
        raise typer.Exit(3)


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="qa-<word>")],
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Write a small valid persona to start from; never overwrites a file, or replaces a persona."""
    if not name.startswith("qa-") or not name.replace("-", "").isalnum() or not name.islower():
        raise UsageError(f"{name!r} is not a persona name", remedy="use qa-<word>, lower case")
    path = own_personas() / f"{name}.md"
    for there in (*(folder / path.name for folder in persona_dirs(state()).values()), path):
        if os.path.lexists(there):
            remedy = "choose another name, or edit that file"
            raise UsageError(
                f"{there} exists", remedy=remedy if there == path else f"{remedy}, or a copy in {path.parent}"
            )
    text = SCAFFOLD.format(name=name)
    if not dry_run:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        note(f"wrote {path}: try it with fleet personas try {path}")
    data = {"file": str(path), "written": not dry_run, "text": text}
    put(data, as_json=as_json, text=lambda: print(text, end="") if dry_run else None)


@app.command(name="schema")
def show_schema(as_json: Json = False) -> None:
    """Print the JSON Schema of a persona file's front matter, for editors."""
    data = schema(Persona)
    put(data, as_json=as_json, text=lambda: print(json.dumps(data, indent=2)))


Profile = Annotated[str | None, typer.Option("--platform", help="Profile; default: the configured one.")]


@app.command()
def learned(platform: Profile = None, as_json: Json = False) -> None:
    """List the learned probes: questions of explorers that showed a defect, asked again by every run."""
    found = _learned(platform)
    data = [one.model_dump(mode="json") for one in found.all()]
    columns = ("fingerprint", "persona", "oracle", "at", "title")
    put_rows(data, columns, as_json=as_json, empty="nothing learned yet")


@app.command()
def forget(
    fingerprint: Annotated[str, typer.Argument(help="Fingerprint of a learned probe, or its first digits.")],
    platform: Profile = None,
    as_json: Json = False,
) -> None:
    """Remove a learned probe: later runs do not ask it any more."""
    gone = _learned(platform).forget(fingerprint)
    note(f"forgot {gone.fingerprint}: {gone.title}")
    put(gone.model_dump(mode="json"), as_json=as_json, text=lambda: None)


def _learned(platform: str | None) -> LearnedProbes:
    name = load_platform(platform or load_fleet().platform, state())[0].name
    return LearnedProbes(state() / "learned" / name)


@app.command()
def publish(
    name: Annotated[str, typer.Argument(help="Persona to publish.")],
    platform: Annotated[
        str | None, typer.Option(help="Profile to publish on; default: the configured one.")
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Write a persona's text on chain, as the persona of the agent with its name.

    The agent belongs to the fleet's identity; a free name is registered first.
    """
    text = one(name).body.strip()
    if dry_run:
        note(f"would write {len(text.encode())} bytes to the persona metadata of agent {name}")
        return
    rung = read_dial(state() / DIAL).rung
    if rung.height < Rung.EXERCISE.height:
        raise Refused(f"the dial is at {rung}", rule="dial", remedy='fleet dial exercise --reason "…"')
    from fleet.app.operator import open_operator  # half of the time of `check`

    async def write() -> dict[str, Any]:
        async with open_operator(state(), platform=platform) as operator:
            if not (key := operator.platform.metadata.persona):
                raise ConfigError(
                    f"platform {operator.platform.name}: metadata.persona is not stated",
                    remedy="name the metadata key that holds an agent's persona in the profile's [metadata]",
                )
            token_id = await operator.own(name)
            tx = await operator.set_metadata(token_id, key, text.encode())
        return {"tx": tx, "bytes": len(text.encode()), "id": token_id}

    data = run(write)
    put(
        data,
        as_json=as_json,
        text=lambda: print(f"published {name}: {data['bytes']} bytes, agent {data['id']}"),
    )
