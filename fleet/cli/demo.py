"""`fleet demo`: the whole fleet, once, against the bundled platform."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from fleet.app.persona_sets import roster
from fleet.app.program import program
from fleet.app.wiring import open_world
from fleet.cli.console import DryRun, Json, make_app, note, put, run, state
from fleet.cli.items.worklist import show
from fleet.cli.progress import Progress
from fleet.clock import SystemClock
from fleet.config import load_fleet
from fleet.config.files import demo_dir
from fleet.devnet.defects import ALL_IDS, DEFECTS, chosen
from fleet.devnet.devnet import Devnet, check_parts
from fleet.devnet.seeded_names import SEEDED_NAMES
from fleet.errors import FleetError, JailError, Refused
from fleet.files import SHIPPED
from fleet.findings.evidence import load
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.gate.stop import STOP, stopped
from fleet.jail.choice import why_no_jail
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext
from fleet.runs.run import fire, recover
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow
from fleet.text import counted, line
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.triage_pass import pass_over

app = make_app()

TOGETHER = ("qa-smoke", "qa-security", "qa-fuzz", "qa-ux")
ALONE = ("qa-perf",)
"""Personas that measure latency: nothing else of ours runs beside them."""
MARKER = ".qa-fleet-demo"
LISTED = [
    "rank",
    "fingerprint",
    "severity",
    "surface",
    "title",
    "count",
    "confirmed",
    "repro",
    "score",
    "why",
]
"""Fields of an item in the JSON document."""


@app.command()
def demo(  # noqa: PLR0913  a command
    clean: Annotated[
        bool, typer.Option("--clean", help="Run without the seeded defects; the demo must then find nothing.")
    ] = False,
    defects: Annotated[str, typer.Option(help="Comma-separated ids of seeded defects, or all.")] = "all",
    rung: Annotated[Rung, typer.Option(help="Rung of the dial, for this devnet only.")] = Rung.EXERCISE,
    explore: Annotated[
        bool,
        typer.Option("--explore", help="Let explorers ask new questions as well; minutes instead of one."),
    ] = False,
    keep: Annotated[
        bool, typer.Option("--open", help="Then bring its platform back, and show its pages until Ctrl-C.")
    ] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of these pages.")] = 8080,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Start the bundled platform; find, prove, post and rank its defects."""
    seeded = frozenset() if clean else chosen(defects)
    started = time.monotonic()
    folder = demo_dir(state())
    if dry_run:
        plan = planned(seeded, rung, folder, explore=explore)
        put(plan, as_json=as_json, text=lambda: print("\n".join(f"{key}  {plan[key]}" for key in plan)))
        return
    for place in (state(), folder):
        if place.is_dir() and (pause := stopped(place)):
            why = f"everything is paused: {line(pause.why)} ({place / STOP})"
            raise Refused(why, rule="stop", remedy=f"STATE_DIRECTORY={place} fleet resume")
    if why := why_no_jail(load_fleet().jail):  # now, and not when a chain and a platform are running
        raise JailError(why)
    check_parts()
    summary = run(lambda: _demo(folder, seeded, rung, explore=explore))
    # our processes that still run, and jails whose record remains
    left = Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()
    jails = len(left) + len(list((folder / "jails").glob("*.jail")))
    result = summary.as_data(seeded, time.monotonic() - started, jails)
    put(result, as_json=as_json, text=lambda: print_summary(result, folder))
    if (result["missed"] and rung is not Rung.OBSERVE) or result["false_findings"] or result["names_leaked"]:
        raise typer.Exit(1)
    if keep:
        stay(port)


def stay(port: int) -> None:
    """Start the platform of the last demo again, and become the resident service with its pages."""
    again = [sys.executable, "-m", "fleet.cli", "--demo"]
    sys.stdout.flush()  # what was said would be lost with this program
    if subprocess.run([*again, "devnet", "up"], check=False).returncode:
        raise FleetError("the platform of the demo did not start again", remedy="fleet --demo devnet up")
    note(f"look at it: http://127.0.0.1:{port}/ until Ctrl-C; then {program()} --demo devnet down")
    os.execv(sys.executable, [*again, "up", "--port", str(port)])


def planned(seeded: frozenset[str], rung: Rung, folder: Path, *, explore: bool = False) -> dict[str, Any]:
    """What a demo would do, and where; it would replace that folder's content of the last demo."""
    return {
        "folder": str(folder),
        "replaces": (folder / MARKER).exists(),
        "dial": str(rung),
        "personas": [*TOGETHER, *ALONE, "qa-triage"],
        "defects": sorted(seeded),
        "explore": explore,
    }


@dataclass(slots=True)
class Summary:
    """What the demo saw, before comparison with the seeded defects."""

    findings: list[FindingRow] = field(default_factory=list)
    evidence: dict[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """The steps of the evidence by fingerprint."""
    items: tuple[WorklistItem, ...] = ()
    log_entries: int = 0
    names_minted: int = 0
    names_leaked: int = 0

    def as_data(self, seeded: frozenset[str], seconds: float, jails: int) -> dict[str, Any]:
        """The JSON document of `fleet demo --json`."""
        told = [row for row in self.findings if row.state in ("posted", "repeated")]
        shown = {  # by the effect of a defect in its evidence; none without evidence
            row.fingerprint: {
                defect.id for defect in DEFECTS if defect.shown_by(self.evidence.get(row.fingerprint, ()))
            }
            & seeded
            for row in told
        }
        found = set[str]().union(*shown.values())
        by_defect = {
            defect: [
                one.title for one in self.items if any(defect in shown.get(name, ()) for name in one.names)
            ]
            for defect in sorted(found)
        }
        posted = [row for row in self.findings if row.state == "posted"]
        return {
            "defects_seeded": len(seeded),
            "defects_found": len(found),
            "missed": sorted(seeded - found),
            "items": len(self.items),
            "doubles": {defect: titles for defect, titles in by_defect.items() if len(titles) > 1},
            "false_findings": len([row for row in told if not shown[row.fingerprint]]),
            "findings_posted": len(posted),
            "log_entries": self.log_entries,
            "names_minted": self.names_minted,
            "names_leaked": self.names_leaked,
            "jails_left": jails,
            "worklist": [{key: getattr(item, key) for key in LISTED} for item in self.items],
            "seconds": round(seconds, 1),
        }


async def _demo(folder: Path, seeded: frozenset[str], rung: Rung, *, explore: bool) -> Summary:
    await _prepare(folder)
    note(f"demo: starting a local chain and a platform with {len(seeded)} of {len(ALL_IDS)} seeded defects")
    async with Devnet(folder / "devnet", keys=folder / "keys", defects=seeded):
        write_dial(folder, rung, "the bundled devnet only", "fleet demo", SystemClock())
        note(f"demo: dial raised to {rung}, for this devnet only ({folder / 'autonomy'})")
        personas, errors = roster(SHIPPED / "personas")
        if errors:
            raise errors[0]
        if not explore:
            none = {"explore": ()}
            personas = {
                name: replace(one, persona=one.persona.model_copy(update=none))
                for name, one in personas.items()
            }
        async with open_world(
            folder, personas=personas, platform="devnet", watch=(Progress(),), alone=True
        ) as world:
            for old in await recover(world):
                note(f"demo: recovered run {old.run} of {old.persona}: {old.detail}")
            await _fire_all(world, personas)
            note("demo: reading the log back and ranking it")
            result = await pass_over(world, personas["qa-triage"])
            return await _summarise(world, result.items)


async def _prepare(folder: Path) -> None:
    """A fresh folder, unless a killed demo left runs to settle: then chain and journal are kept."""
    if folder.exists() and not (folder / MARKER).exists():
        raise FleetError(f"{folder} does not belong to a demo", remedy="move it away")
    if (folder / "fleet.db").exists():
        async with await Journal.open(folder / "fleet.db") as journal:
            if await journal.open_runs() or await journal.queued_runs():
                note("demo: continuing the demo that was interrupted")
                return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    (folder / MARKER).touch()


async def _fire_all(world: FleetContext, personas: dict[str, LoadedPersona]) -> None:
    """As many runs at a time as configured; a persona that measures latency runs alone."""
    limit = anyio.CapacityLimiter(world.config.concurrency)

    async def one(name: str) -> None:
        async with limit:
            report = await fire(world, personas[name], trigger="demo")
            if not report.settled:
                raise FleetError(
                    f"run {report.run} is not settled: {report.detail}", remedy="run fleet demo again"
                )

    async with anyio.create_task_group() as group:
        for name in TOGETHER:
            group.start_soon(one, name)
    for name in ALONE:
        await one(name)


async def _summarise(world: FleetContext, items: tuple[WorklistItem, ...]) -> Summary:
    next_id = await world.chain.names.next_id()
    standing = {one.name for one in SEEDED_NAMES}
    held = [await world.chain.names.name_of_id(token_id) for token_id in range(1, next_id)]
    findings = await world.journal.findings()
    return Summary(
        findings=findings,
        evidence={
            row.fingerprint: load(world.folder(row.run_id) / "evidence", row.evidence)["steps"]
            for row in findings
            if row.evidence
        },
        items=items,
        log_entries=await world.chain.log.count(),
        names_minted=max(0, next_id - 1 - len(standing)),
        names_leaked=len([name for name in held if name and name not in standing]),
    )


def print_summary(result: dict[str, Any], folder: Path) -> None:
    """The list, what became of what was seeded, and the commands to go on with."""
    show([item | {"state": "confirmed" if item["confirmed"] else "unproven"} for item in result["worklist"]])
    print(
        f"\n{result['defects_found']} of {result['defects_seeded']} seeded defects found, "
        f"{counted(result['findings_posted'], 'finding')} posted, {result['false_findings']} false, "
        f"{counted(result['names_minted'], 'name')} minted and {result['names_leaked']} left, "
        f"{counted(result['jails_left'], 'jail')} left, {result['seconds']:.0f} s"
    )
    if result["missed"]:
        print(f"missed: {', '.join(result['missed'])}")
    print(f"worklist: {folder / 'worklist.md'}\n")
    fleet = f"{program()} --demo"
    first = next((item["fingerprint"] for item in result["worklist"]), "")
    lines = [("items", "the list, from the demo's own state directory")]
    lines += [(f"items show {first}", "an item: its life, its repro as shell, its evidence")] * bool(first)
    lines += [
        ("runs list --all", "what each persona looked at"),
        ("devnet up", "the same chain and platform again"),
        ("run qa-smoke", "fire a persona at it"),
        ("devnet down", "stop it"),
    ]
    width = max(len(words) for words, _ in lines)
    for words, what in lines:
        print(f"{fleet} {words.ljust(width)}  # {what}")
