"""`fleet items`: what to fix first, and why; in the formats of other tools, as a digest, made again."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

import typer

from fleet.app import item_pages
from fleet.app.journal import from_journal
from fleet.app.outages import line_of, open_outages
from fleet.cli.completion import completed_from
from fleet.cli.console import DryRun, Json, few_digits, note, put, run, state, table
from fleet.cli.items import fresh
from fleet.clock import iso
from fleet.errors import Unreachable, UsageError
from fleet.severity import WEIGHTS
from fleet.store.journal import Journal
from fleet.text import clean, counted
from fleet.triage.items.rank import SURFACES
from fleet.triage.items.unproven import BACK, beside, proving, unproven
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import ListedOutage, WorklistDocument, as_of, audited, standing
from fleet.triage.outputs.files import written
from fleet.triage.outputs.formats import FORMATS
from fleet.triage.outputs.selection import DAY, STATES, Selection, moment

SCREEN = 18
"""Items on a terminal unless `--limit` says otherwise: with the lines around them they fit 24 lines."""
FEW = 4
"""Lines on a terminal of what is on its way to the list, and of what is not proven, at most each."""
COLUMNS = {
    "#": "rank",
    "severity": "severity",
    "surface": "surface",
    "finding": "title",
    "count": "count",
    "state": "state",
    "score": "score",
    "fingerprint": "fingerprint",
}
"""Heading and field; the score, which only the order needs, is left out on a terminal."""

New = Annotated[bool, typer.Option("--new", help="Only items first seen, or back, since WHEN or in a day.")]
Since = Annotated[
    str, typer.Option(metavar="WHEN", help="Changed or seen since: 6h, 1d, 2w, a date or an ISO time.")
]
Severity = Annotated[
    list[str] | None,
    typer.Option(help="Only this severity; may be repeated.", autocompletion=completed_from(WEIGHTS)),
]
Surface = Annotated[
    list[str] | None,
    typer.Option(help="Only this surface; may be repeated.", autocompletion=completed_from(SURFACES)),
]
State = Annotated[
    str,
    typer.Option(
        "--state",
        help="open, fixed, dismissed, snoozed or all.",
        autocompletion=completed_from(STATES),
    ),
]
Text = Annotated[str, typer.Option("-q", "--query", metavar="TEXT", help="Only items with all these words.")]
Limit = Annotated[int | None, typer.Option(min=0, help="At most N items; 0 for all.")]
Offline = Annotated[bool, typer.Option("--offline", help="Do not compare the list with the log first.")]
AsDigest = Annotated[bool, typer.Option("--digest", help="Print the digest since WHEN or a day.")]
ExitCode = Annotated[bool, typer.Option("--exit-code", help="Exit 1 if an open item of ours is listed.")]


def _with_formats(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each format of the table, after `--json`."""
    asked = [*inspect.signature(command, eval_str=True).parameters.values()][:-1]
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=False,
            annotation=Annotated[bool, typer.Option(f"--{name}", help=one.says)],
        )
        for name, one in FORMATS.items()
    ]
    place = 1 + next(at for at, one in enumerate(asked) if one.name == "as_json")
    asked[place:place] = options
    command.__annotations__ = {one.name: one.annotation for one in asked}
    command.__signature__ = inspect.Signature(asked)  # type: ignore[attr-defined]
    return command


@_with_formats
def list_items(  # noqa: PLR0913  a command
    new: New = False,
    since: Since = "",
    severity: Severity = None,
    surface: Surface = None,
    query: Text = "",
    of_state: State = "",
    limit: Limit = None,
    as_json: Json = False,
    as_digest: AsDigest = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of worklist.json.")] = False,
    exit_code: ExitCode = False,
    offline: Offline = False,
    **formats: bool,
) -> None:
    """Show the ranked worklist, brought up to date with the log first; open items unless `--state` says more.

    With --json a list of items: the fields of `items` in docs/reference/worklist.schema.json. When the log
    cannot be read, a format for programs prints nothing and exits 4, and so does --exit-code.
    """
    wishes = {"json": as_json and not as_digest, **formats, "digest": as_digest, "schema": schema}
    chosen = [name for name, on in wishes.items() if on]
    if len(alone := chosen + ["exit-code"] * (exit_code and (as_digest or schema))) > 1:
        raise UsageError(f"--{' and --'.join(alone)}: choose one", remedy="fleet items --help")
    if schema:
        from fleet.triage.outputs import json_file  # pydantic, which no other output of this list needs

        _write(json_file.dump(json_file.schema()))
        return
    now, made = datetime.now(UTC), FORMATS.get(chosen[0]) if chosen else None
    wanted = Selection(
        state=of_state or ("all" if as_digest else made.state if made else "open"),
        new=new and not as_digest,
        since=moment(since or (DAY if new or as_digest else ""), now) if since or new or as_digest else "",
        severities=tuple(severity or ()),
        surfaces=tuple(surface or ()),
        text=query,
    )
    shown, unread = _current(offline=offline, program=bool(chosen) and (not as_digest or as_json))
    if as_digest:
        _digest(shown, wanted, as_json=as_json)
        return
    older = run(lambda: fresh.earlier_items(state())) if of_state == "all" else ()
    items = wanted.of((*shown.items, *shown.closed, *older))
    most = limit if limit is not None else _room(shown, screen=not chosen)
    listed = items[:most] if most else items
    if made:
        pages = run(lambda: item_pages.pages_of(state(), listed)) if made.paged else {}
        _write(made.written(listed, shown, pages))
    else:
        data = [asdict(item) for item in listed]
        old = offline or unread is not None
        put(data, as_json=as_json, text=lambda: _print(listed, shown, old, left=len(items) - len(listed)))
    if exit_code and unread is not None:
        raise unread
    if exit_code and any(item.rank and item.trusted for item in listed):
        raise typer.Exit(1)


def digest(since: Since = DAY, offline: Offline = False, as_json: Json = False) -> None:
    """Print what is new, fixed, back and still open since WHEN."""
    shown, _ = _current(offline=offline, program=as_json)
    _digest(shown, Selection(state="all", since=moment(since, datetime.now(UTC))), as_json=as_json)


def rebuild(dry_run: DryRun = False, as_json: Json = False) -> None:
    """Make mirror, items and worklist again from the log and from what was decided; posts nothing."""
    from fleet.cli.items import rebuild  # loads the libraries of the chain

    data = run(lambda: rebuild.rebuilt(state(), dry_run=dry_run))
    put(data, as_json=as_json, text=lambda: print(clean(rebuild.in_words(data))))


def show(items: Sequence[dict[str, Any]]) -> None:
    """The list as a table; on a terminal each item on one line, its title as long as may be."""
    columns = COLUMNS
    if sys.stdout.isatty():
        columns = {name: key for name, key in COLUMNS.items() if name not in ("score", "fingerprint")}
        columns |= {"item": "fingerprint"}
        few = few_digits(item["fingerprint"] for item in items)
        items = [item | {"fingerprint": item["fingerprint"][:few]} for item in items]
    rows = ([item[key] for key in columns.values()] for item in items)
    table(tuple(columns), rows, empty="nothing to do", one_line="finding")


def _current(*, offline: bool, program: bool) -> tuple[WorklistDocument, Unreachable | None]:
    """The list with what the journal knows besides, and why it may be older than the log, if so.

    Without a list nothing is known, and a `program` cannot tell an old one from a new one: Unreachable.
    """
    late = None if offline else run(lambda: fresh.refresh(state()))
    found = written(state())
    document = found or WorklistDocument()
    shown = run(lambda: from_journal(state(), partial(_known, document), document))
    unread = Unreachable(f"the log was not read: {late}", remedy=late.remedy) if late else None
    if found is None and not program:
        print("\n".join(_beside(shown)), end="\n" if _beside(shown) else "")
    if found is None:
        raise unread or Unreachable("there is no worklist yet", remedy="fleet run qa-triage writes one")
    if unread and program:
        old = f"--offline prints the list {as_of(found.as_of)}"
        raise Unreachable(str(unread), remedy="; ".join(filter(None, (unread.remedy, old))))
    if unread:
        note(f"the list may be older than the log: {late}")
    return shown, unread


async def _known(document: WorklistDocument, journal: Journal) -> WorklistDocument:
    """The document with open outages and what is not on the list yet, as the journal has them now."""
    outages = tuple(
        ListedOutage(**one | {"targets": tuple(one["targets"])}) for one in await open_outages(journal)
    )
    decisions = await journal.decisions(document.platform)
    now = datetime.now(UTC)
    rows = await journal.on_their_way(iso(now - BACK))
    items, entries = document.items, document.as_of.entries
    left, seen = (beside(of(rows, decisions, now), items, entries) for of in (unproven, proving))
    return replace(document, outages=outages, unproven=left, proving=seen)


def _digest(shown: WorklistDocument, wanted: Selection, *, as_json: bool) -> None:
    from fleet.triage.outputs import digest as digests

    items = replace(wanted, since="").of((*shown.items, *shown.closed))
    made = digests.daily_digest(items, shown, wanted.since)
    text = digests.digest_markdown(made, terminal=sys.stdout.isatty())
    _write(digests.digest_json(made) if as_json else text)


def _write(data: bytes) -> None:
    """Bytes of a file on stdout, whatever the terminal's encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _room(shown: WorklistDocument, *, screen: bool) -> int:
    """How many items a terminal has lines for; 0, which is all, for what is no terminal."""
    return max(SCREEN - len(_beside(shown)), 1) if screen and sys.stdout.isatty() else 0


def _beside(shown: WorklistDocument) -> list[str]:
    """A line each for what is not in the ranked list; on a terminal only for the gravest."""
    lines = [f"outage    {line_of(asdict(outage))}" for outage in shown.outages]
    for word, rows in (("proving   ", shown.proving), ("unproven  ", shown.unproven)):
        most = FEW if sys.stdout.isatty() else len(rows)
        lines += [
            clean(f"{word}{one.severity}  {one.title}  ({one.fingerprint}, run {one.run}: {one.why})")
            for one in rows[:most]
        ]
        lines += [f"{word}{len(rows) - most} more: fleet status --json"] if len(rows) > most else []
    lines += [f"audit     {audited(shown.audit)}"] if shown.audit.drawn else []
    left = counted(shown.strangers_left, "entry", "entries")
    return lines + [f"strangers {left} beyond their share not listed"] * bool(shown.strangers_left)


def _print(items: Sequence[WorklistItem], shown: WorklistDocument, unread: bool, *, left: int) -> None:
    old = fresh.age(shown.as_of.at, datetime.now(UTC))
    words = ", ".join(part for part in (old, "log not read" if unread else "") if part)
    print("\n".join([f"{as_of(shown.as_of)}{f' ({words})' if words else ''}", *_beside(shown)]))
    show([asdict(item) | {"state": standing(item)} for item in items])
    if left:
        note(f"{left} more: --limit 0 shows all")
