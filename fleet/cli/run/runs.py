"""`fleet runs …`: list, show, follow, replay, pause, cancel and prune runs; their records, what they ask."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import typer

from fleet.app.answers import answer_question as told
from fleet.app.journal import known_journal
from fleet.app.run_records import asked_by, latest, recorded
from fleet.cli.console import DryRun, Json, make_app, note, put, run, state, table, who
from fleet.cli.run import records
from fleet.cli.run.follow import tail
from fleet.clock import SystemClock
from fleet.config import FleetConfig, load_fleet, load_platform
from fleet.errors import UsageError
from fleet.events.model import TurnUsage
from fleet.events.recorded import LOOK_S, Recording, UnknownRecord
from fleet.events.timeline import used, words
from fleet.runs.call.questions import pause_run, question_rows, questions
from fleet.runs.call.sealed import checked
from fleet.runs.retention import choose, look, tidy
from fleet.runs.settlement.left import LEFT, left_there
from fleet.store.journal import Journal
from fleet.store.tables.units import USD, number
from fleet.text import clean, counted, spoken

app = make_app(
    group=True,
    lazy={
        "vault": ("run.vault", "List, open or destroy the credentials that runs found."),
        "steer": ("run.steer", "Show or change what runs in flight ask, within the profile."),
    },
)
PIPED = ("run", "persona", "state", "outcome", "trigger", "created", "ended", "detail")
NARROW = 13
"""Characters of a persona's name on a terminal."""
Run = Annotated[str, typer.Argument(help="Id of a run, as shown by `fleet runs list`.")]


@app.callback()
def _group() -> None:
    """List, show, follow, replay, pause, cancel, prune or verify runs; answer what they ask."""


@app.command("list")
def list_runs(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Look at the latest N runs.")] = 20,
    everything: Annotated[
        bool, typer.Option("--all", help="Show routine runs too: nothing found, nothing wrong.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the latest runs, newest first, with findings, coverage and cost.

    `found` counts the proven findings, behind a `+` those that are not proven; `looked` the probes that a run
    looked at, of those that apply. --json has all runs, with `routine`.
    """
    rows = run(lambda: latest(state(), limit))
    put(rows, as_json=as_json, text=lambda: show_list(rows, everything=everything))


@app.command()
def show(run_id: Run, as_json: Json = False) -> None:
    """Show one run: its row, findings, spending, effects, what it left out, and events."""

    async def known() -> dict[str, Any]:
        async with await _journal() as journal:
            return await recorded(state(), journal, run_id)

    data = run(known)
    put(data, as_json=as_json, text=lambda: _print(data))


@app.command()
def egress(
    run_id: Annotated[str, typer.Argument(help="Id of a run; default: what the service itself asked.")] = "",
    refused: Annotated[bool, typer.Option("--refused", help="Only what was refused.")] = False,
    as_json: Json = False,
) -> None:
    """Show what a run's jails asked for, request by request: was anything out of scope ever asked for?

    The broker writes it, outside the jails, before a request leaves; what it cannot write does not leave.
    Without a run: what the service itself asked of node, log, receivers, model and publisher, lately."""

    async def known() -> None:
        async with await _journal() as journal:
            await journal.run(run_id)  # UsageError for an unknown run

    if run_id:
        run(known)
    data = asked_by(state(), run_id, only_refused=refused)
    put(data, as_json=as_json, text=lambda: records.show_asked(data))


@app.command()
def left(
    run_id: Annotated[str, typer.Argument(help="Id of a run; default: every run in the journal.")] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="What was removed, and what was refused, as well.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what runs made on the platform's pages and what is still there: accounts, posts, uploads.

    Each act is in the journal before it is made, so this is the same after a kill."""

    async def look() -> list[dict[str, Any]]:
        async with await _journal() as journal:
            if run_id:
                await journal.run(run_id)  # UsageError for an unknown run
            return left_there(await journal.effects(run_id or None, ["page"]), everything=everything)

    rows = run(look)
    put(rows, as_json=as_json, text=lambda: records.show_left(rows))


@app.command()
def verify(
    run_id: Annotated[str, typer.Argument(help="Id of a run; default: every record here.")] = "",
    as_json: Json = False,
) -> None:
    """Check the hash chain of a run's records, or of all runs, DECISIONS.md, events.jsonl and egress.jsonl.

    Each line says the hash of those before it, and the journal knows where the records of an ended run end.
    Exit status 1 when a line was changed, dropped, moved or cut off."""

    async def check() -> list[dict[str, Any]]:
        journal = await known_journal(state())
        if journal is None:
            return await checked(state(), None, run_id)
        async with journal:
            if run_id:
                await journal.run(run_id)  # UsageError for an unknown run
            return await checked(state(), journal, run_id)

    rows = run(check)
    put(rows, as_json=as_json, text=lambda: records.show_checked(rows))
    if any(row["fault"] for row in rows):
        raise typer.Exit(1)


@app.command()
def follow(run_id: Run, as_json: Json = False) -> None:
    """Show a run's events, from the first until it ends; with --json one JSON line per event."""

    async def until_ended() -> None:
        over = anyio.Event()

        async def watch() -> None:
            async with await _journal() as journal:
                while (await journal.run(run_id)).state != "ended":  # noqa: ASYNC110 -- of another process
                    await anyio.sleep(LOOK_S)
            over.set()

        async with await _journal() as journal:
            await journal.run(run_id)  # UsageError for an unknown run
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await tail(_trajectory(run_id), as_json=as_json, still=over)
            tasks.cancel_scope.cancel()

    run(until_ended)


@app.command()
def replay(
    run_id: Run,
    platform: Annotated[
        str | None, typer.Option(help="Profile to ask; default: the one of that run.")
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Repeat the calls of a run as a new run; exits 1 when an answer differs, 75 when one is missing."""
    from fleet.cli.run import replay as again  # opens a world, which no other command here does

    path = _trajectory(run_id)
    if not path.is_file():
        raise UsageError(f"no trajectory for run {run_id!r}", remedy="fleet runs list")
    if dry_run:
        plan = again.planned(path)
        put(plan, as_json=as_json, text=lambda: again.show_plan(plan))
        return
    data = run(lambda: again.replay(path, platform))
    put(data, as_json=as_json, text=lambda: again.show(data))
    if data["unseen"]:
        note(f"{counted(data['unseen'], 'call')} could not be compared")
    if code := again.exit_code(data):
        raise typer.Exit(code)


@app.command()
def cancel(
    run_id: Run,
    reason: Annotated[str, typer.Option(help="Reason, recorded with the run's outcome.")] = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Cancel a run: it stops calling within a second; its clean-up still runs."""

    async def ask() -> dict[str, Any]:
        async with await _journal() as journal:
            row = await journal.run(run_id)
            if row.state in ("ended", "settling"):
                raise UsageError(f"run {run_id} is {row.state}: it cannot be cancelled")
            if not dry_run:
                await journal.ask_cancel(run_id, f"cancelled by {who()}" + (f": {reason}" if reason else ""))
            return {"run": row.run_id, "state": row.state, "asked": not dry_run}

    data = run(ask)
    words = "would be cancelled" if dry_run else "will be cancelled"
    put(data, as_json=as_json, text=lambda: print(f"run {data['run']} ({data['state']}) {words}"))


@app.command()
def pause(
    run_id: Run,
    reason: Annotated[str, typer.Option(help="Reason, recorded.")],
    as_json: Json = False,
) -> None:
    """Pause a run before its next call: it keeps its place and its time until `fleet runs answer`.

    Without an answer within four hours everything is stopped, as by `fleet stop`."""

    async def ask() -> dict[str, Any]:
        async with await _journal() as journal:
            row = await journal.run(run_id)
            if row.state != "running":
                raise UsageError(f"run {run_id} is {row.state}: only a running one is paused")
            ident = await pause_run(journal, row, who(), reason, SystemClock())
            return {"run": row.run_id, "question": ident}

    data = run(ask)
    put(
        data,
        as_json=as_json,
        text=lambda: print(
            f"run {data['run']} waits: fleet runs answer {data['question']} approve --reason …"
        ),
    )


@app.command("questions")
def show_questions(
    everything: Annotated[bool, typer.Option("--all", help="Those that are answered as well.")] = False,
    as_json: Json = False,
) -> None:
    """List what runs ask a person, and wait for: what, why, and until when."""

    async def look_() -> list[dict[str, Any]]:
        async with await _journal() as journal:
            rows = question_rows(await questions(journal), datetime.now(UTC))
            return [row for row in rows if everything or row["state"] == "open"]

    rows = run(look_)
    put(rows, as_json=as_json, text=lambda: records.show_questions(rows))


@app.command("answer")
def answer(
    question: Annotated[str, typer.Argument(help="Id of a question, as shown by `fleet runs questions`.")],
    verdict: Annotated[
        Literal["approve", "deny"], typer.Argument(help="`approve`: the run goes on; `deny`: it does not.")
    ],
    reason: Annotated[str, typer.Option(help="Reason, recorded.")],
    as_json: Json = False,
) -> None:
    """Answer what a run asks. Denied, an act is refused; after anything else the run ends."""

    async def tell() -> dict[str, Any]:
        approve = verdict == "approve"
        return asdict(await told(state(), question, approve=approve, who=who(), why=reason))

    data = run(tell)
    words_ = "waits for a second person" if data["state"] == "open" else data["state"]
    put(data, as_json=as_json, text=lambda: print(f"question {data['ident']}: {words_}"))


@app.command()
def prune(
    days: Annotated[
        int | None, typer.Option(min=1, help="Keep runs of the last N days; default: keep.days.")
    ] = None,
    megabytes: Annotated[
        int | None, typer.Option(min=1, help="Keep at most N megabytes; default: keep.megabytes.")
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Remove the folders of old runs now, as the daemon does every hour.

    Keeps what is still owed, and the evidence of findings on the log."""
    asked = {key: value for key, value in (("days", days), ("megabytes", megabytes)) if value is not None}
    config = load_fleet()
    keep = config.keep.model_copy(update=asked)
    if 0 < keep.days < keep.record_days:
        raise UsageError(
            f"--days {keep.days} would remove records before keep.record_days = {keep.record_days}",
            remedy="lower keep.record_days in fleet.toml, or keep more days",
        )

    async def remove() -> list[dict[str, Any]]:
        async with await _journal() as journal:
            now, engaged = datetime.now(UTC), _engaged(config)
            if dry_run:
                gone = choose(await look(state(), journal), keep, now, engaged)
            else:
                gone, stuck = await tidy(state(), journal, keep, now, engaged)
                if stuck:
                    raise stuck[0]
        return [asdict(one) for one in gone]

    def text() -> None:
        if rows:
            cells = (
                [row["run"], row["ended"], row["bytes"], "records stay" if row["records_stay"] else ""]
                for row in rows
            )
            table(("run", "ended", "bytes", ""), cells)
        words = "would be removed" if dry_run else "removed"
        print(f"{counted(len(rows), 'run')} {words}, {sum(row['bytes'] for row in rows) / 1e6:.1f} MB")

    rows = run(remove)
    put({"dry_run": dry_run, **keep.model_dump(), "runs": rows}, as_json=as_json, text=text)


def _engaged(config: FleetConfig) -> datetime | None:
    """The end of the tests that the profile states; None without one, or without a profile."""
    with suppress(UsageError):
        return load_platform(config.platform, state())[0].schedule.end
    return None


async def _journal() -> Journal:
    journal = await known_journal(state())
    if journal is None:
        raise UsageError("no journal yet", remedy="fleet run PERSONA, or fleet up")
    return journal


def _trajectory(run_id: str) -> Path:
    return state() / "runs" / run_id / "trajectory.jsonl"


def _print(data: dict[str, Any]) -> None:
    row = data["run"]
    said = f"{row['run']}  {row['persona']}  {row['state']}  {spoken(row['outcome'])}  {row['detail']}"
    print(clean(said.rstrip()))
    print(clean(f"trigger {row['trigger']}  key {row['key']}"))
    print("spent " + (", ".join(f"{amount} {unit}" for unit, amount in data["spent"].items()) or "nothing"))
    if data["usage"]:
        print(clean(f"used {used(TurnUsage(**data['usage']))}"))
    columns = ("fingerprint", "state", "severity", "surface", "title")
    table(columns, ([one[c] for c in columns] for one in data["findings"]), empty="no findings")
    table(("kind", "ref", "state"), (list(one.values()) for one in data["effects"]), empty="no effects")
    show_left_out(data["coverage"])
    for line in records.sums(data["egress"]):
        print(line)
    if there := sum(one["kind"] == "page" and one["state"] in LEFT for one in data["effects"]):
        print(f"left on the platform by {counted(there, 'act')}: fleet runs left {row['run']}")
    print(f"timeline: {len(data['events'])} records, {data['turns']} turns")
    for record in Recording(_trajectory(row["run"])):
        at = "" if isinstance(record, UnknownRecord) else record.at[11:19]
        print(clean(f"  {at:8} {words(record)}", 700))
    refusals = ", ".join(f"{count} by {rule}" for rule, count in data["refusals"].items())
    if refusals:
        print(clean(f"refused: {refusals}"))
    for key, what in (("unknown", "records of an unknown kind"), ("too_long", "lines too long to read")):
        if data[key]:
            print(f"{data[key]} {what}")
    if data["torn"]:
        print("the last record is torn: its writer was killed, or is still writing")
    if not data["events"] and data["run"]["state"] == "ended":
        print("no trajectory here: the run never began, ran on another host, or was pruned (keep.days)")
    if data["events"] and not data["closed"]:
        print("no footer yet: the run continues, or the next start closes it")
    note(f"{counted(len(data['events']), 'event')}: {_trajectory(data['run']['run'])}")


def show_list(rows: Sequence[dict[str, Any]], *, everything: bool) -> None:
    """A row of one line each on a terminal; in a pipe all columns, with the times and reasons whole."""
    shown = [row for row in rows if everything or not row["routine"]]
    empty = "nothing found, nothing wrong" if rows else "no runs yet"
    if sys.stdout.isatty():
        heads = ("run", "persona", "created", "found", "looked", "calls", "usd", "outcome")
        table(heads, [_short(row) for row in shown], empty=empty, one_line="outcome")
    else:
        cells = [[*(row[name] for name in (*PIPED, "findings", "unproven")), *_cost(row)] for row in shown]
        table((*PIPED, "findings", "unproven", "looked", "calls", "usd"), cells, empty=empty)
    if len(shown) < len(rows):
        note(f"{len(rows) - len(shown)} routine runs are not shown: --all")


def show_left_out(coverage: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """A line for each probe, or other part of a platform, that a run did not look at, and why; then what it
    looked at as an account: all else was as a visitor."""
    for word in ("undecided", "not_applicable", "refused", "could_not", "unexplored"):
        for row in coverage.get(word, ()):
            print(clean(f"  {word.replace('_', ' ')}  {row['probe']}: {row['reason']}", 300))
    for row in coverage.get("left", ()):
        print(clean(f"  left  {row['part']}: {row['reason']}", 500))
    for count, whom in ((2, "as two accounts"), (1, "as one account")):
        if parts := [row["part"] for row in coverage.get("as_whom", ()) if row["accounts"] == count]:
            print(clean(f"  {whom}  {', '.join(parts)}", 500))


def _short(row: dict[str, Any]) -> list[object]:
    at = row["created"][5:16].replace("T", " ")
    outcome = spoken(row["outcome"] or row["state"])
    detail = f": {row['detail']}" if row["detail"] else ""
    found = f"{row['findings']}+{row['unproven']}" if row["unproven"] else row["findings"]
    return [row["run"], clean(row["persona"], NARROW), at, found, *_cost(row), f"{outcome}{detail}"]


def _cost(row: dict[str, Any]) -> list[object]:
    """Coverage, calls and money."""
    looked = "-" if row["looked"] is None else f"{row['looked']}/{row['applicable']}"
    usd = row["spent"].get(USD)
    return [looked, row["spent"].get("calls", 0), number(USD, usd) if usd else "-"]
