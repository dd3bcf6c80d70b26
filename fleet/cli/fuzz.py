"""`fleet fuzz TARGET`: search one program for inputs that break it, and prove what is found."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from fleet.app.lock import only_one
from fleet.cli.console import DryRun, Json, make_app, note, put, refuse_if_stopped, run, table
from fleet.cli.console import state as state_folder
from fleet.config import load_fleet
from fleet.config.target import FuzzTarget, load_target, target_names
from fleet.drivers.explore.notebook import Notebook
from fleet.errors import Unreachable
from fleet.files import state_dir
from fleet.fuzzing.campaign import Campaign
from fleet.gate.stop import stopped
from fleet.jail.choice import open_jail, reap
from fleet.jail.model import Image
from fleet.jail.selfcheck import require
from fleet.runs.fuzz import FuzzSearch
from fleet.runs.fuzz_start import read_start, target_image, works
from fleet.text import counted

app = make_app()

INTERRUPTED = 130
LOOK_S = 0.5
"""Seconds between two looks at STOP."""
NOTES = "campaign"
_COLUMNS = ("class", "size", "confirmed", "title", "repro")


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzOptions:
    """What one invocation was asked for; `folder` is the state directory."""

    target: FuzzTarget
    file: Path
    folder: Path
    minutes: float
    seed: int
    jobs: int
    by_clock: bool
    fresh: bool

    @property
    def own(self) -> Path:
        """Where the search on this target keeps what it knows."""
        return self.folder / "fuzz" / self.target.name

    def plan(self) -> dict[str, Any]:
        """What would be done."""
        program = self.target.compiler.program
        return {
            "target": self.target.name,
            "file": str(self.file),
            "compiler": " ".join(program.command),
            "loader": " ".join(program.loader),
            "warm": program.warm,
            "minutes": self.minutes,
            "seed": self.seed,
            "jobs": self.jobs,
            "by_clock": self.by_clock,
            "corpus": str(self.own),
        }


def completed(incomplete: str) -> list[str]:
    """Targets and platforms for shell completion."""
    return [name for name in target_names(state_dir()) if name.startswith(incomplete)]


@app.command()
def fuzz(  # noqa: PLR0913  a command
    target: Annotated[
        str, typer.Argument(help="A target, a target's file, or a platform.", autocompletion=completed)
    ],
    minutes: Annotated[
        float,
        typer.Option(min=0.05, max=1440, help="How long to search; on a busy machine up to 3 times as long."),
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="The same inputs for the same seed.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, max=16, help="Jails at once, each with its own seed.")] = 1,
    by_clock: Annotated[
        bool, typer.Option("--by-clock", help="Take no longer on a busy machine, and find less there.")
    ] = False,
    state: Annotated[
        Path | None, typer.Option(help="Keep what was learned here; default: the state directory.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin without what earlier searches learned.")
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Search a compiler or decoder for inputs that break it; each defect is confirmed in fresh jails.

    Posts nothing and touches no chain. Exits 1 when it found something.
    """
    folder = state.absolute() if state else state_folder()
    chosen, file = load_target(target, folder)
    options = FuzzOptions(
        target=chosen,
        file=file,
        folder=folder,
        minutes=minutes,
        seed=seed,
        jobs=jobs,
        by_clock=by_clock,
        fresh=fresh,
    )
    image = target_image(chosen, file)
    if dry_run:
        plan = options.plan()
        put(plan, as_json=as_json, text=lambda: print("\n".join(f"{key}  {plan[key]}" for key in plan)))
        return
    options.own.mkdir(mode=0o700, parents=True, exist_ok=True)
    refuse_if_stopped(folder)
    with only_one(options.own):
        search, why = run(lambda: _searched(options, image))
    data = _data(search, options)
    left = _lost(data)

    put(data, as_json=as_json, text=lambda: _print(data, left))
    if why == "interrupted":
        raise typer.Exit(INTERRUPTED)
    refuse_if_stopped(folder)
    if data["defects"]:
        raise typer.Exit(1)
    if left:
        raise Unreachable(
            f"{chosen.name}: not a clean end: {left}", remedy="look at what the program does to its parent"
        )


def _print(data: dict[str, Any], left: str) -> None:
    rows = [
        (one["class"], one["size"], f"{one['confirmed']}/{one['tries']}", one["title"], one["repro"])
        for one in data["defects"]
    ]
    table(_COLUMNS, rows, empty=f"no defect was shown; {left}" if left else "no defects")
    sys.stdout.flush()
    note(
        f"{data['target']}: {data['executions']} executions in {data['seconds']} s,"
        f" {data['accepted']} accepted, {counted(len(rows), 'defect')},"
        f" {counted(data['unshown'], 'claim')} that no look showed" + (f", {left}" if left else "")
    )


async def _searched(options: FuzzOptions, image: Image) -> tuple[FuzzSearch, str]:
    """Search until the time is over or a person stops it; what was found, and why it ended."""
    spool = options.own / "jails"
    spool.mkdir(mode=0o700, exist_ok=True)
    section = load_fleet().jail
    await reap(section, spool)
    notebook = Notebook(options.own)
    campaign = Campaign.of({} if options.fresh else notebook.read(NOTES))
    start = read_start(options.target.compiler, options.file)
    campaign.start_from("compiler", start.sources)
    make = partial(open_jail, section, pool=0, spool=spool)
    jail = make(image)
    progress = _Progress(anyio.current_time())
    search = FuzzSearch(
        program=options.target.compiler.program,
        jail=jail,
        campaign=campaign,
        seed=options.seed,
        grammar=start.grammar,
        by_clock=options.by_clock,
    )
    search.told = lambda: progress(search)
    ended = ["time"]
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_watch, options.folder, group.cancel_scope, ended)
            require(await jail.probe())
            await works(options.target, image, make)
            await search.run(options.minutes * 60, options.jobs)
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await jail.aclose()
            notebook.write(NOTES, campaign.state())
    return search, ended[0]


async def _watch(folder: Path, scope: anyio.CancelScope, ended: list[str]) -> None:
    """Cancel the search when a person stops it: Ctrl-C, SIGTERM, or the STOP file."""

    async def until_stopped() -> None:
        while not stopped(folder):  # noqa: ASYNC110 -- a file has no event
            await anyio.sleep(LOOK_S)
        ended[0] = "stopped"
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(until_stopped)
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                ended[0] = "interrupted"
                scope.cancel()
                return


@dataclass(slots=True)
class _Progress:
    """One line for each round, on stderr."""

    started: float
    rounds: int = 0
    trouble: str = ""

    def __call__(self, search: FuzzSearch) -> None:
        if search.trouble != self.trouble:
            self.trouble = search.trouble
            note(f"a round did not work: {self.trouble}")
        if search.rounds == self.rounds:
            return
        self.rounds = search.rounds
        elapsed = anyio.current_time() - self.started
        share = 100 * search.accepted / search.executions if search.executions else 0.0
        rate = search.executions / search.seconds if search.seconds else 0.0
        note(
            f"{elapsed:.0f} s: {search.executions} executions, {rate:.0f}/s, {share:.0f} % accepted,"
            f" {counted(search.behaviours, 'behaviour')}, {counted(len(search.defects), 'defect')}"
        )


def _data(search: FuzzSearch, options: FuzzOptions) -> dict[str, Any]:
    return {
        "target": options.target.name,
        "seed": options.seed,
        "rounds": search.rounds,
        "executions": search.executions,
        "accepted": search.accepted,
        "lost": search.lost,
        "failed_rounds": search.failed,
        "undecided": search.undecided,
        "behaviours": search.behaviours,
        "seconds": round(search.seconds, 1),
        "runner": sorted(search.ways),
        "unshown": search.unshown,
        "defects": [one.as_data() for one in search.defects],
    }


def _lost(data: dict[str, Any]) -> str:
    """What has no result, in words; "" for nothing."""
    counts = [("execution", data["lost"]), ("round", data["failed_rounds"])]
    left = [f"{counted(count, word)} without a result" for word, count in counts if count]
    if data["undecided"]:
        left.append(f"{counted(data['undecided'], 'claim')} of which no look could tell anything")
    return " and ".join(left)
