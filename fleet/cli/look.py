"""`fleet look URL|ADDRESS…`: from an address to proven findings, without any set-up."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from fleet.app import item_pages
from fleet.app.discovery.discover import NamedTargets
from fleet.app.discovery.profile import ProfileContext
from fleet.app.persona_sets import roster
from fleet.app.program import program
from fleet.app.wiring import open_world
from fleet.cli.console import DryRun, Json, make_app, note, put, refuse_if_stopped, run, state
from fleet.cli.first_look import (
    Abi,
    Contact,
    asked,
    authorised,
    check_abi,
    foreign_hosts,
    is_unchanged,
    keys,
    read_profile,
    today,
    write_profile,
)
from fleet.cli.items.worklist import show
from fleet.cli.run.run import as_data
from fleet.clock import SystemClock
from fleet.config import load_fleet
from fleet.config.files import use_state
from fleet.errors import JailError, UsageError
from fleet.events.model import Event, FindingRaised, FindingVerified, Footer, Header, ToolRequested
from fleet.files import write_atomic
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.gate.stop import LOOKS
from fleet.jail.choice import why_no_jail
from fleet.oracles.statistics import ranks
from fleet.personas.load import LoadedPersona
from fleet.runs.call.targets import Capabilities
from fleet.runs.context import FleetContext
from fleet.runs.desk.exit_codes import exit_code
from fleet.runs.run import fire, recover
from fleet.runs.survey import applicable_probes
from fleet.service.listeners import loopback
from fleet.store.rows import BLIND
from fleet.text import clean, counted, spoken
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import WorklistDocument, standing
from fleet.triage.outputs.files import written
from fleet.triage.outputs.formats import FORMATS
from fleet.triage.triage_pass import TRIAGE, pass_over
from fleet.web.site import WebPages
from fleet.web.site import shown as answering

app = make_app()

TOGETHER = ("qa-security", "qa-mcp", "qa-ux", "qa-smoke")
ALONE = "qa-perf"
"""Measures latency: nothing else of ours runs beside it, and it has the rest of the time."""
SHARE = 0.8
"""Of the time, for all before it."""
LEAST_S = 20.0
"""A run that has less time is left out."""
CALLS_PER_S, WRITES_PER_S = 40, 3
"""What a run is permitted for each second that it has: about what a quick platform answers."""
MOST_CALLS, MOST_WRITES, MOST_REPORTS = 10_000, 1_000, 100
"""What a budget holds at most (personas/model.py)."""
BEAT_S = 10.0
"""Between two lines of progress."""


@app.command()
def look(  # noqa: PLR0913  a command
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="URL|ADDRESS…",
            help="A site, an API, a node, or the address of a contract and the URL of its node.",
        ),
    ],
    minutes: Annotated[float, typer.Option(min=0.5, max=240, help="Most minutes that it may take.")] = 5.0,
    exercise: Annotated[
        bool, typer.Option("--exercise", help="May also send POST, PUT, PATCH and DELETE, and make accounts.")
    ] = False,
    yes_i_may: Annotated[
        bool, typer.Option("--yes-i-may", help="It is yours, or you have its owner's permission: do not ask.")
    ] = False,
    contact: Contact = "",
    abi: Abi = None,
    persona: Annotated[
        list[str] | None,
        typer.Option(help=f"Only this one of {', '.join((*TOGETHER, ALONE))}; may be repeated."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page there; default: the look's folder.")
    ] = None,
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Write SARIF 2.1.0 there.")] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the live pages; default: any that is free.")
    ] = 0,
    keep: Annotated[
        bool, typer.Option("--open", help="Keep the live pages after its end, until Ctrl-C.")
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Look at any site, API, contract or agent for a few minutes, and print what is proven to be wrong.

    It needs no set-up: what is there is found by asking. Exits 1 when something was found, 0 when nothing
    was, 4 when nothing answers, 5 when it may not be tested.
    """
    named, started = NamedTargets.of(targets), time.monotonic()
    folder = state() / LOOKS / named.name
    if wrong := sorted({*(persona or ())} - {*TOGETHER, ALONE}):
        raise UsageError(f"--persona {wrong[0]}", remedy=f"choose of {', '.join((*TOGETHER, ALONE))}")
    rung = Rung.EXERCISE if exercise else Rung.OBSERVE
    check_abi(abi, named)
    plan = LookPlan(named, folder, minutes, rung, tuple(persona or (*TOGETHER, ALONE)), abi)
    if dry_run:
        data = plan.as_data(run(lambda: foreign_hosts(named)))
        put(data, as_json=as_json, text=lambda: print("\n".join(f"{key}  {data[key]}" for key in data)))
        return
    refuse_if_stopped(state())
    if why := why_no_jail(load_fleet().jail):  # now, and not after the questions
        raise JailError(why)
    live = LivePages(folder, port)
    prepare(plan, yes=yes_i_may, contact=contact)
    refuse_if_stopped(folder)
    shown = run(lambda: _look(plan, started, live))
    pages = run(lambda: item_pages.pages_of(folder, shown.items))
    page = html or folder / "worklist.html"
    for path, form in {page: "html", sarif: "sarif"}.items():
        if path:
            write_atomic(path, FORMATS[form].written(shown.items, shown.document, pages), mode=0o644)
    data = shown.as_data(plan, page, time.monotonic() - started)
    put(data, as_json=as_json, text=lambda: _print(shown, plan, data["coverage"]))
    note(f"page: {near(page.absolute())}")
    if keep:
        note(f"look at it: {live.url} until Ctrl-C")
        with suppress(KeyboardInterrupt):
            run(live.stay)
    if code := shown.code:
        raise typer.Exit(code)


@dataclass(frozen=True, slots=True)
class LookPlan:
    """What a look would do. `folder` is its state directory, with its profile."""

    named: NamedTargets
    folder: Path
    minutes: float
    rung: Rung
    personas: tuple[str, ...]
    abi: Path | None = None

    @property
    def profile(self) -> Path:
        return self.folder / "platforms" / f"{self.named.name}.toml"

    def as_data(self, foreign: Sequence[str]) -> dict[str, Any]:
        """As JSON; `foreign` are the hosts for which a person's word is needed."""
        return {
            "hosts": sorted({one.authority for one in self.named.origins}),
            "address": self.named.address,
            "needs_permission": list(foreign),
            "personas": list(self.personas),
            "minutes": self.minutes,
            "rung": str(self.rung),
            "state": str(self.folder),
            "profile": str(self.profile),
        }


def prepare(plan: LookPlan, *, yes: bool, contact: str) -> None:
    """Ask what is there, and make the look's state directory the one of this process."""
    earlier = read_profile(plan.profile)
    foreign = run(lambda: foreign_hosts(plan.named))
    word = authorised(foreign, earlier, yes=yes, contact=contact)
    jail = load_fleet().jail.model_dump(exclude_defaults=True)
    if is_unchanged(plan.profile):
        context = ProfileContext(
            name=plan.named.name,
            command="fleet look",
            day=today(),
            authorisation=word,
            gentle=bool(foreign),
            exercise=plan.rung is Rung.EXERCISE,
            abi=str(plan.abi.absolute()) if plan.abi else "",
        )
        write_profile(plan.profile, asked(plan.named, word), context)
    else:
        note(f"the profile was changed by hand, and stands: {near(plan.profile)}")
        if plan.abi and earlier and not earlier.chain.abi:
            note(f"it names no abi: write abi = {json.dumps(str(plan.abi.absolute()))} below its diamond")
        if plan.rung is Rung.EXERCISE and earlier and not earlier.web.act_paths:
            note("it names no act_paths: --exercise can write nothing there")
    lines = [f"platform = {json.dumps(plan.named.name)}", *(["[jail]"] if jail else [])]
    lines += [f"{key} = {json.dumps(value)}" for key, value in jail.items()]
    write_atomic(plan.folder / "fleet.toml", "\n".join([*lines, ""]).encode())
    use_state(plan.folder)
    if profile := read_profile(plan.profile):
        keys(profile, plan.folder)
    write_dial(plan.folder, plan.rung, "one look", "fleet look", SystemClock())
    note(f"profile: {near(plan.profile)}")


class LivePages:
    """The pages of a look while it goes on, and at the same address afterwards."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._line = loopback(port)
        self.url = f"http://127.0.0.1:{self._line.getsockname()[1]}/"
        self._pages = WebPages(folder)

    def __call__(self, event: Event) -> None:
        self._pages.run(event)

    def answering(self) -> AbstractAsyncContextManager[None]:
        return answering(self._pages, roster()[0], self._line.dup())

    async def stay(self) -> None:
        async with self.answering():
            await anyio.sleep_forever()


class LookProgress:
    """A reader of every run's stream: what is proven, when it is, and a line of figures now and then."""

    def __init__(self, started: float) -> None:
        self._started, self._last = started, time.monotonic()
        self._titles: dict[str, str] = {}
        self._calls = self._proven = 0
        self._persona: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        now = time.monotonic()
        match event:
            case Header():
                self._persona[event.run] = event.persona
                self._tell(f"{event.persona}: asking", now)
            case ToolRequested():
                self._calls += 1
            case FindingRaised():
                self._titles[event.fingerprint] = event.title
            case FindingVerified(state="confirmed"):
                self._proven += 1
                title = self._titles.get(event.fingerprint, event.fingerprint)
                self._tell(f"proven {event.confirmed}/{event.tries}  {title}", now)
            case Footer():
                end = event.outcome if event.outcome == "done" else f"{spoken(event.outcome)}: {event.detail}"
                self._tell(f"{self._persona.get(event.run, event.run)}: {end}", now)
        if now - self._last >= BEAT_S:
            seen = f"{len(self._titles)} seen, {self._proven} proven"
            self._tell(f"{counted(self._calls, 'call')}, {seen}", now)

    def _tell(self, words: str, now: float) -> None:
        self._last = now
        note(f"  {clock(now - self._started)}  {clean(words, 200)}")


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a look found, and what each of its runs looked at."""

    items: tuple[WorklistItem, ...]
    document: WorklistDocument
    runs: tuple[Mapping[str, Any], ...]
    left_out: tuple[str, ...]

    @property
    def code(self) -> int:
        """1 for a finding, 4 for silence; else what kept the runs from looking, if none of them looked."""
        codes = [exit_code(one) for one in self.runs]
        if any(item.rank and item.trusted for item in self.items):
            return 1
        if 4 in codes:
            return 4
        return 0 if {0, 75} & {*codes} else max(codes, default=75)

    def as_data(self, plan: LookPlan, page: Path, seconds: float) -> dict[str, Any]:
        """The JSON document of `fleet look --json`."""
        runs = [
            {key: one[key] for key in ("run", "persona", "outcome", "detail", "calls", "coverage")}
            for one in self.runs
        ]
        return {
            "platform": plan.named.name,
            "state": str(plan.folder),
            "profile": str(plan.profile),
            "rung": str(plan.rung),
            "items": [asdict(item) for item in self.items],
            "runs": runs,
            "coverage": coverage(self.runs, self.left_out, plan),
            "page": str(page),
            "seconds": round(seconds, 1),
        }


async def _look(plan: LookPlan, started: float, live: LivePages) -> Shown:
    personas, errors = roster()
    if errors:
        raise errors[0]
    note(f"live: {live.url}")
    world_of = partial(open_world, plan.folder, personas=personas, platform=plan.named.name)
    watch = (LookProgress(started), live)
    async with live.answering(), world_of(watch=watch, alone=True, patient=True) as world:
        for old in await recover(world):
            note(f"  recovered run {old.run} of {old.persona}: {old.detail}")
        runs, left_out = await _fire_all(world, personas, plan, started + plan.minutes * 60)
        await pass_over(world, personas[TRIAGE])
    document = written(plan.folder) or WorklistDocument()
    items = tuple(item for item in document.items if item.rank)
    return Shown(items, document, tuple(runs), left_out)


async def _fire_all(
    world: FleetContext, personas: Mapping[str, LoadedPersona], plan: LookPlan, end: float
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The reports of those that apply; those that measure latency run last, alone. And who had no time."""
    rows = applicable_probes(personas, Capabilities(world.platform, None))
    applies = {
        row["persona"]
        for row in rows
        if row["applicable"] or (personas[row["persona"]].persona.explore and not row["idle"])
    }
    found = list[dict[str, Any]]()

    async def one(name: str, seconds: float) -> None:
        found.append(as_data(await fire(world, bounded(personas[name], seconds), trigger="look")))

    limit = anyio.CapacityLimiter(world.config.concurrency)
    measures = ALONE in plan.personas and not ranks.missing()
    until = end - (end - time.monotonic()) * (1 - SHARE if measures else 0)

    async def in_turn(name: str) -> None:
        async with limit:
            await one(name, max(until - time.monotonic(), LEAST_S))

    async with anyio.create_task_group() as group:
        for name in TOGETHER:
            if name in plan.personas and name in applies:
                group.start_soon(in_turn, name)
    if ALONE not in plan.personas:
        return found, ()
    if (rest := end - time.monotonic()) < LEAST_S:
        return found, (ALONE,)
    await one(ALONE, rest)
    return found, ()


def bounded(persona: LoadedPersona, seconds: float) -> LoadedPersona:
    """The persona with at most this time, which is the limit of a look, and without a model."""
    one = persona.persona
    assert one.budget is not None
    limits = {
        "wall": f"{int(seconds)}s",
        "calls": max(one.budget.calls, min(MOST_CALLS, int(CALLS_PER_S * seconds))),
        "writes": one.budget.writes and max(one.budget.writes, min(MOST_WRITES, int(WRITES_PER_S * seconds))),
        "reports": one.budget.reports and MOST_REPORTS,
    }
    budget = one.budget.model_copy(update=limits)
    return replace(persona, persona=one.model_copy(update={"budget": budget, "driver": "playbook"}))


def coverage(runs: Sequence[Mapping[str, Any]], left_out: Sequence[str], plan: LookPlan) -> str:
    """One paragraph: what was looked at, as whom, what was not, and what would change that."""
    groups = [one["coverage"] for one in runs]
    calls = sum(one["calls"] for one in runs)
    as_whom = {row["part"]: row["accounts"] for one in groups for row in one.get("as_whom", ())}
    probes = sum(len(one.get("looked", ())) for one in groups)
    names = ", ".join(str(one["persona"]) for one in runs if one.get("outcome") != BLIND)
    told = [f"Looked at by {names}: {counted(calls, 'call')}, {counted(probes, 'remembered question')}."]
    observed = plan.rung is Rung.OBSERVE
    if as_whom:
        told.append(f"Asked as a visitor, and on {counted(len(as_whom), 'path')} as accounts.")
    else:
        told.append(
            "Asked as a visitor alone. Where people log in, name two accounts of yours, `one` and `other`, "
            f"under [accounts] in {near(plan.profile)}{', and add --exercise' if observed else ''}."
        )
    if observed:
        told.append("Nothing was written: --exercise would try what writes, and make accounts where it may.")
    if any(one.get("outcome") == "stopped" for one in runs):
        told.append("It was stopped before its time was over.")
    cut = [f"{row['part']}: {row['reason']}" for one in groups for row in one.get("left", ()) if row["cut"]]
    closed = [f"{row['probe']}: {row['reason']}" for one in groups for row in one.get("unexplored", ())]
    cut += [f"{name}: its time was over" for name in left_out]
    if cut or closed:
        told.append(f"Not looked at: {'; '.join(dict.fromkeys([*closed, *cut]))}.")
    if cut:
        told.append(f"More time would change that: --minutes {plan.minutes * 3:.0f}.")
    return clean(" ".join(told), 4_000)


def near(path: Path) -> str:
    """A path as this shell's user would write it."""
    here = path.is_relative_to(Path.cwd())
    return shlex.quote(str(path.relative_to(Path.cwd()) if here else path))


def _print(shown: Shown, plan: LookPlan, paragraph: str) -> None:
    print()
    if shown.items:
        show([asdict(item) | {"state": standing(item)} for item in shown.items])
    else:
        print("Nothing was proven to be wrong.")
    print(f"\n{paragraph}")
    first = shown.items[0].fingerprint if shown.items else ""
    words = f"items show {first}" if first else "runs list --all"
    print(f"\n{program()} --state {near(plan.folder)} {words}")
