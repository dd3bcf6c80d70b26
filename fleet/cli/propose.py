"""`fleet propose ITEM`: a fix of one item as a draft pull request, which a person merges."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from fleet.app.fix_parts import fix_parts
from fleet.app.persona_sets import one, roster
from fleet.app.proposals import permit_of
from fleet.app.reading import reading_world
from fleet.app.wiring import open_world
from fleet.cli.console import DryRun, Json, make_app, note, put, run, state, table, who
from fleet.cli.daemon_client import ask
from fleet.cli.daemon_page import daemon_of
from fleet.cli.items.item_view import listed
from fleet.cli.progress import Progress
from fleet.cli.run.run import as_data, recovered
from fleet.errors import Refused, UsageError
from fleet.fix.fix_pass import Fixing
from fleet.fix.parts import repository_for
from fleet.fix.permission.allow_git import allow_folder, command
from fleet.fix.permission.permit import say_unlike
from fleet.fix.permission.preconditions import CheckedRule
from fleet.fix.permission.preconditions import table as rules_of
from fleet.fix.proposal_row import BRANCH
from fleet.personas.load import LoadedPersona
from fleet.runs.desk.exit_codes import exit_code
from fleet.runs.run import RunReport, fire
from fleet.store.journal import Journal
from fleet.text import clean
from fleet.triage.items.worklist import WorklistItem
from fleet.triggers.items import asked_ident

PERSONA = "qa-fix"
Others = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL",
        help="What a search for the item finds (issue, pull request, commit) and is another defect. It is"
        " recorded, and keeps the item from nothing any more; may be repeated.",
    ),
]
_REFERENCE = re.compile(r"https?://[!-~]{1,400}|[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
HELD = 6
"""Exit code of a fix that the gate held: no draft was opened, and nothing is wrong with the fleet."""

app = make_app()


@app.command()
def propose(  # noqa: C901  a command: one branch for each option
    item: Annotated[str, typer.Argument(metavar="ITEM", help="Fingerprint of the item, or its beginning.")],
    platform: Annotated[str | None, typer.Option(help="Profile; default: the configured one.")] = None,
    not_a_duplicate_of: Others = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Propose a fix of one item as a draft pull request; a person merges it.

    Exits 0 with a draft, or when the tracker has the item already; 5 when it is refused, 6 when a step of the
    gate held the fix and no draft was opened.
    """
    folder = state()
    for other in not_a_duplicate_of or ():
        if not _REFERENCE.fullmatch(other):
            raise UsageError(f"{clean(other, 80)!r} is not a URL or a commit", remedy="fleet propose list")
    found = listed(folder, item)
    if found is None:
        raise UsageError(f"no item {clean(item, 40)!r} on the worklist", remedy="fleet items")
    plan = run(lambda: _plan(found, platform))
    if dry_run:
        put(plan, as_json=as_json, text=lambda: _show(plan))
        if plan["rule"]:
            raise typer.Exit(Refused.exit_code)
        return
    if plan["rule"]:
        raise Refused(f"{plan['rule']}: {plan['reason']}", rule=plan["rule"], remedy=plan["remedy"])
    if not_a_duplicate_of:

        async def record() -> None:
            async with reading_world(state(), platform, ask=False) as world:
                await say_unlike(world, found.fingerprint, not_a_duplicate_of, who())

        run(record)
    data = _queue(found.fingerprint, platform) if daemon_of(folder) else run(lambda: _made(found, platform))

    def text() -> None:  # without a table of findings: it looks for none
        if not data["outcome"]:
            print(f"queued run {data['run']}")
            return
        print(clean(f"{data['outcome']} {data['detail']}"))
        if propose_code(data) == HELD:
            note(f"no draft was opened; what was tried: fleet propose show {data['run']}")

    put(data, as_json=as_json, text=text)
    if code := propose_code(data):
        raise typer.Exit(code)


def propose_code(data: Mapping[str, Any]) -> int:
    """The exit code for a run's data with its `proposal`."""
    if data.get("queued"):
        return 0
    held = data["outcome"] == "done" and (data["proposal"] or {}).get("state") == "held"
    return HELD if held else exit_code(data)


async def _plan(item: WorklistItem, platform: str | None) -> dict[str, Any]:
    """Every precondition now, and what would be done; nothing is done, and no tracker is asked."""
    async with reading_world(state(), platform, ask=False) as world:
        facts = await permit_of(world).facts(item.fingerprint, item, named=True)
        rules = rules_of(facts)
        broken = next((one for one in rules if one.why), CheckedRule(""))
        place = repository_for(world.config, item.surface)
        remedies = {
            "token": f"to permit a push for this item, type: {command(allow_folder(), item.fingerprint)}",
            "stop": "fleet resume",
            "dial": 'fleet dial propose --reason "…"',
            "held": f"fleet items reopen {item.fingerprint}",
            "repository": "add [repositories.NAME] to fleet.toml",
            "build": f"fix this item by hand: fleet items fixed {item.fingerprint}",
            "slots": "fleet propose list",
        }
        return {
            "item": item.fingerprint,
            "title": item.title,
            "rule": broken.rule,
            "reason": broken.why,
            "remedy": remedies.get(broken.rule, f"fleet items show {item.fingerprint}"),
            "rules": [asdict(one) for one in rules],
            "repository": place[0] if place else "",
            "branch": BRANCH + item.fingerprint,
            "base": place[1].branch if place else "",
            "fixer": world.config.propose.fixer,
        }


def _show(plan: dict[str, Any]) -> None:
    rows = [(one["rule"], "no: " + one["why"] if one["why"] else "yes") for one in plan["rules"]]
    table(("precondition", "holds"), rows)
    if plan["rule"]:
        print(clean(f"would be refused, {plan['rule']}: {plan['reason']}"))
        print(clean(plan["remedy"], 1000))
        return
    what = f"a draft of branch {plan['branch']} against {plan['base']} of {plan['repository']}"
    print(clean(f"would search the tracker, fix with {plan['fixer']!r}, check, push and open {what}"))


def _queue(item: str, platform: str | None) -> dict[str, Any]:
    """Queue the run for the daemon, for this item."""
    wish = {"persona": PERSONA, "ident": asked_ident(item, secrets.token_hex(8)), "platform": platform or ""}
    said = ask(state(), "/runs", json.dumps(wish).encode()).check()
    return {"outcome": "", "queued": True, **said.body["runs"][0]}


async def _made(item: WorklistItem, platform: str | None) -> dict[str, Any]:
    async with open_world(
        state(), personas=roster()[0], platform=platform, watch=(Progress(),), patient=True
    ) as world:
        await recovered(world)
        world = replace(world, item=item.fingerprint)
        data = as_data(await fire_fix(Fixing.of(world, fix_parts), one(PERSONA)))
        return data | {"proposal": await proposal_of(world.journal, world.platform.name, data["run"])}


async def proposal_of(journal: Journal, platform: str, run: str) -> dict[str, str] | None:
    """State, place and reason of the proposal that a run began; None if it began none."""
    rows = [one for one in await journal.proposals(platform) if one.proposal_id == run]
    return {"state": rows[0].state, "ref": rows[0].ref, "why": rows[0].why} if rows else None


async def fire_fix(fixing: Fixing, persona: LoadedPersona) -> RunReport:
    """One run of a persona with the driver `fix`."""
    return await fire(fixing.world, persona, work=fixing.fix)
