"""`fleet init [URL…]`: a profile and keys that stay, written by asking what is there."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fleet.app.discovery.discover import NamedTargets
from fleet.app.discovery.profile import ProfileContext, profile_text
from fleet.app.persona_sets import one
from fleet.app.program import program
from fleet.chain.node.rpc import Rpc
from fleet.cli.check.machine import examine
from fleet.cli.console import DryRun, Json, make_app, put, run, state, table
from fleet.cli.first_look import (
    Abi,
    Contact,
    asked,
    authorised,
    check_abi,
    foreign_hosts,
    keys,
    read_profile,
    today,
    write_profile,
)
from fleet.cli.init_log import CHOICES, chosen_log
from fleet.cli.run.run import planned
from fleet.config import Platform, config_dirs, load_fleet, parse
from fleet.errors import UsageError
from fleet.files import disk_errors, write_new
from fleet.gate.dial import DIAL, read_dial
from fleet.runs.call.targets import Capabilities
from fleet.text import clean, counted

app = make_app()

FIRST = "qa-security"
"""The persona of the dry run."""


@app.command()
def init(  # noqa: PLR0913  a command
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[URL|ADDRESS…]", help="What is tested; without it, it is asked."),
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the profile; default: the host's.")] = "",
    log: Annotated[
        str,
        typer.Option(
            metavar=CHOICES,
            help="Where findings are posted: a file of the state directory, a new contract on a development"
            " chain, a contract that takes them, or an ERC-8004 Reputation registry.",
        ),
    ] = "",
    agent: Annotated[
        int | None, typer.Option(min=0, metavar="ID", help="The platform's agent in an ERC-8004 registry.")
    ] = None,
    abi: Abi = None,
    yes: Annotated[bool, typer.Option("--yes", help="Take every default, and ask nothing.")] = False,
    yes_i_may: Annotated[
        bool, typer.Option("--yes-i-may", help="It is yours, or you have its owner's permission: do not ask.")
    ] = False,
    contact: Contact = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Write the profile of a platform, and its keys, by asking what is there; nothing is overwritten.

    Ends with `check machine`, a dry run, and the commands to go on with. Exits 4 when it has something to put
    right, or when nothing answers.
    """
    answers = Answers(by_default=yes or as_json or not (sys.stdin.isatty() and sys.stderr.isatty()))
    words = targets or answers.ask("What is tested? A URL, host:port, or an address and its node", "").split()
    if not words:
        raise UsageError("name what is tested", remedy="fleet init https://HOST")
    named = NamedTargets.of(words)
    check_abi(abi, named)
    name = name or answers.ask("Name of the profile", named.name)
    profile = config_dirs()[0] / "platforms" / f"{name}.toml"
    earlier = read_profile(profile)
    if dry_run:
        data = {
            "profile": str(profile),
            "exists": earlier is not None,
            "hosts": sorted({one.authority for one in named.origins}),
        }
        put(data, as_json=as_json, text=lambda: print("\n".join(f"{key}  {data[key]}" for key in data)))
        return
    done = list[str]()
    if earlier is None:
        wanted = AskedProfile(name, profile, log, agent, abi, contact, yes_i_may)
        earlier = new_profile(named, wanted, answers)
        done.append(f"profile  {profile}  written")
    else:
        done.append(f"profile  {profile}  is there already, and stands")
        if abi and not earlier.chain.abi:
            done.append(f"abi      write abi = {json.dumps(str(abi.absolute()))} below its diamond")
    done += [*fleet_file(name), *keys(earlier, state())]
    finish(name, earlier, done, as_json=as_json)


@dataclass(frozen=True, slots=True)
class Answers:
    """Asks on a terminal; elsewhere, and with `--yes`, each answer is the default."""

    by_default: bool

    def ask(self, question: str, default: str) -> str:
        """One answer."""
        if self.by_default:
            return default
        return str(typer.prompt(question, default=default or None, err=True)).strip()


@dataclass(frozen=True, slots=True)
class AskedProfile:
    """What the command line says of a profile that is to be written to `path`."""

    name: str
    path: Path
    log: str
    agent: int | None
    abi: Path | None
    contact: str
    yes_i_may: bool


def new_profile(named: NamedTargets, wanted: AskedProfile, answers: Answers) -> Platform:
    """Ask what is there and write it down; WrongTarget when the log that was named is none."""
    foreign = run(lambda: foreign_hosts(named))
    word = authorised(foreign, None, yes=wanted.yes_i_may, contact=wanted.contact)
    found = asked(named, word)
    log = wanted.log or answers.ask("Where are findings posted? file, deploy, or contract:ADDRESS", "file")
    chosen = run(lambda: chosen_log(log, found, wanted.agent))
    context = ProfileContext(
        name=wanted.name,
        command="fleet init",
        day=today(),
        authorisation=word,
        gentle=bool(foreign),
        log=chosen.log,
        agent=chosen.agent,
        abi=str(wanted.abi.absolute()) if wanted.abi else "",
    )
    platform = parse(Platform, profile_text(found, context), file=str(wanted.path))

    async def checked() -> None:
        async with Rpc(platform.chain.rpc) as rpc:
            await rpc.check_target(platform)

    run(checked)
    write_profile(wanted.path, found, context)
    return platform


def fleet_file(name: str) -> list[str]:
    """Name the profile in `fleet.toml` where there is none; one line on what was done."""
    path = config_dirs()[0] / "fleet.toml"
    if not path.exists():
        with disk_errors(path):
            write_new(path, f"platform = {json.dumps(name)}\n".encode())
        return [f"fleet    {path}  written"]
    if (configured := load_fleet().platform) == name:
        return [f"fleet    {path}  names it already"]
    return [
        f"fleet    {path}  names {configured}: platform = {json.dumps(name)} there would make it this one"
    ]


def finish(name: str, platform: Platform, done: list[str], *, as_json: bool) -> None:
    """What was written, what `check machine` sees, what a run would ask, and the commands to go on with."""
    checks = run(lambda: examine(name))
    plan = planned(one(FIRST), read_dial(state() / DIAL).rung, Capabilities(platform, None))
    applies = sum(row["would run"] == "yes" for row in plan)
    fleet, of = program(), "" if load_fleet().platform == name else f" --platform {name}"
    commands = [f"{fleet} run {FIRST}{of}", f"{fleet} items", f"{fleet} up{of}"]
    data = {
        "profile": name,
        "done": done,
        "checks": [{"check": check, "ok": good, "seen": seen} for check, good, seen in checks],
        "plan": plan,
        "next": commands,
    }

    def text() -> None:
        print("\n".join(map(clean, done)))
        print("\ncheck machine:")
        wrong = [(check, "NO", seen) for check, good, seen in checks if not good]
        table(("check", "ok", "seen"), wrong or [("all", "ok", counted(len(checks), "check"))])
        print(f"\n{FIRST} would ask {applies} of its {counted(len(plan), 'probe')}, then explore.")
        for command, what in zip(
            commands, ("find something", "show what was found", "keep looking"), strict=True
        ):
            print(f"{command:<60}  # {what}")

    put(data, as_json=as_json, text=text)
    if not all(good for _, good, _ in checks):
        raise typer.Exit(4)
