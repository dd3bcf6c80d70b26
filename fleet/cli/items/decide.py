"""What a person decides about an item, and how it is undone: commands of `fleet items`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, cast, get_args

import typer

from fleet.app.decided import Board, decision_of, end_of, read_board, record, words_of
from fleet.cli.completion import completed_from, fingerprints
from fleet.cli.console import DryRun, Json, few_digits, note, put, run, state, table, who
from fleet.cli.items.item_view import listed
from fleet.clock import SystemClock, iso, minute
from fleet.errors import FleetError, UsageError
from fleet.severity import SEVERITIES
from fleet.store.rows import QUEUED, DecisionKind, DecisionRow, LinkKind
from fleet.text import clean
from fleet.triage.items.decisions import fold
from fleet.triage.outputs.document import standing

Item = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Fingerprint of an item or a finding, or its first digits.",
        autocompletion=fingerprints,
    ),
]
Other = Annotated[
    str,
    typer.Argument(help="Fingerprint of the other item, or its first digits.", autocompletion=fingerprints),
]
Reason = Annotated[str, typer.Option(help="Reason, recorded with the decision.")]
Publish = Annotated[bool, typer.Option("--publish", help="Also post it on the log, as a record.")]
Profile = Annotated[str | None, typer.Option("--platform", help="Profile; default: the configured one.")]
For = Annotated[str, typer.Option("--for", help="How long: 12h, 30d, 2w, or ever.")]
Until = Annotated[str, typer.Option("--until", metavar="WHEN", help="The end: a date or an ISO time (UTC).")]


def fixed(made: DecisionRow) -> DecisionRow:
    """Say that an item is fixed; clean re-runs verify it, and a sighting makes it a regression."""
    return made


def dismiss(made: DecisionRow, for_: For = "", until: Until = "") -> DecisionRow:
    """Take an item off the list until you undo it, or until a given end; or drop a driver's claim."""
    return replace(made, until=end_of(for_, until))


def snooze(made: DecisionRow, for_: For = "", until: Until = "") -> DecisionRow:
    """Take an item off the list for a while."""
    if not (end := end_of(for_, until)):
        raise UsageError("a snooze ends", remedy="write --for 7d or --until DATE, or dismiss the item")
    return replace(made, until=end)


def reopen(made: DecisionRow) -> DecisionRow:
    """Put an item back on the list: whatever resolved, dismissed or snoozed it until now counts no more."""
    return made


def severity(
    made: DecisionRow,
    level: Annotated[
        str, typer.Argument(help=", ".join(SEVERITIES), autocompletion=completed_from(SEVERITIES))
    ],
) -> DecisionRow:
    """Correct the severity of an item."""
    if level not in SEVERITIES:
        raise UsageError(f"{level!r} is not a severity", remedy=f"choose one of {', '.join(SEVERITIES)}")
    return replace(made, severity=level)


def merge(made: DecisionRow, into: Other) -> DecisionRow:
    """Make one item of two: the first becomes part of the second."""
    return replace(made, other=into)


def split(made: DecisionRow) -> DecisionRow:
    """Take this fingerprint out of its item: it becomes an item of its own."""
    return made


def link(
    made: DecisionRow,
    kind: Annotated[
        str,
        typer.Argument(help=", ".join(get_args(LinkKind)), autocompletion=completed_from(get_args(LinkKind))),
    ],
    other: Other,
) -> DecisionRow:
    """Link an item to another one."""
    if kind not in get_args(LinkKind):
        raise UsageError(f"{kind!r} is not a link", remedy=f"choose one of {', '.join(get_args(LinkKind))}")
    return replace(made, other=other, link=cast(LinkKind, kind))


def unlink(made: DecisionRow, other: Other) -> DecisionRow:
    """Remove every link between two items, a suggested one included."""
    return replace(made, other=other)


def release(made: DecisionRow) -> DecisionRow:
    """Let a finding that `[post] hold` keeps back be posted, at the end of the next run."""
    return made


def undo(
    made: DecisionRow,
    decision: Annotated[
        str, typer.Option(help="Name of the decision; default: the latest that stands.")
    ] = "",
) -> DecisionRow:
    """Reverse a decision about an item; undo the undo to reverse that."""
    return replace(made, undoes=decision)


def decisions(
    item: Annotated[str, typer.Argument(metavar="ID", help="Only about this item.")] = "",
    platform: Profile = None,
    as_json: Json = False,
) -> None:
    """List decisions: who decided what about which item, when and why, and the entry that publishes it."""
    board = run(lambda: read_board(state(), platform))
    shown = board.about(board.subject(item)) if item else list(board.decisions)
    stand = {one.name for one in fold(board.decisions).all}
    data = [asdict(one) | {"stands": one.name in stand} for one in shown]
    columns = ("decision", "item", "kind", "at", "who", "why", "published")
    put(
        data,
        as_json=as_json,
        text=lambda: table(columns, rows_of(shown, stand), empty="no decisions"),
    )


def publish(
    item: Annotated[str, typer.Argument(metavar="ID", help="Only about this item, asked for or not.")] = "",
    platform: Profile = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Post the decisions that `--publish` left to be posted, or all of one item; each is posted once."""
    board = run(lambda: read_board(state(), platform))
    if item:
        left = [one for one in board.about(board.subject(item)) if one.entry < 0 and one.kind != "release"]
    else:
        left = [one for one in board.decisions if one.entry == QUEUED]
    done = left if dry_run or not left else run(lambda: _post(board, left))
    rows = [
        (one.name, one.item, words_of(one), one.entry if one.entry >= 0 else "to be posted") for one in done
    ]
    put(
        [asdict(one) for one in done],
        as_json=as_json,
        text=lambda: table(("decision", "item", "kind", "entry"), rows),
    )


DECISIONS: tuple[Callable[..., DecisionRow], ...] = (
    fixed,
    dismiss,
    snooze,
    reopen,
    severity,
    merge,
    split,
    link,
    unlink,
    release,
    undo,
)
"""What can be decided, by the name of the decision; each fills in what only it asks for."""


def _command(fill: Callable[..., DecisionRow]) -> Callable[..., None]:
    """The command of a decision: its own parameters, and those that all decisions have."""

    def command(
        item: Item,
        reason: Reason,
        publish: Publish = False,
        platform: Profile = None,
        dry_run: DryRun = False,
        as_json: Json = False,
        **own: Any,  # noqa: ANN401  a decision's own options
    ) -> None:
        if not reason.strip():
            raise UsageError("a decision needs a reason", remedy='--reason "…"')
        kind = cast(DecisionKind, fill.__name__)
        wanted = fill(DecisionRow(item="", kind=kind, reason=reason, who=who(), at=""), **own)
        _decide(item, wanted, publish, platform, dry_run=dry_run, as_json=as_json)

    item, reason, *common = list(inspect.signature(command, eval_str=True).parameters.values())[:-1]
    own = list(inspect.signature(fill, eval_str=True).parameters.values())[1:]
    needed = [one for one in own if one.default is one.empty]
    asked = [item, *needed, reason, *(one for one in own if one not in needed), *common]
    command.__name__, command.__doc__ = fill.__name__, fill.__doc__
    command.__annotations__ = {one.name: one.annotation for one in asked}
    command.__signature__ = inspect.Signature(asked)  # type: ignore[attr-defined]
    return command


COMMANDS: tuple[Callable[..., None], ...] = tuple(map(_command, DECISIONS))
"""A command for each decision, as `fleet items` registers them."""


def _decide(
    digits: str, wanted: DecisionRow, publish: bool, platform: str | None, *, dry_run: bool, as_json: bool
) -> None:
    board = run(lambda: read_board(state(), platform))
    subject = board.subject(digits)
    if wanted.kind == "dismiss":
        from fleet.cli.items import claims  # the proof of a claim, as a run has it

        if (claim := claims.waiting_claim(subject)) is not None:
            if publish:
                raise UsageError("a driver's claim is not on the log", remedy="dismiss it without --publish")
            claims.dismiss_claim(claim, wanted.reason, dry_run=dry_run, as_json=as_json)
            return
    if wanted.kind == "release" and publish:
        raise UsageError("a release is not for the log", remedy="release it without --publish")
    made, new = decision_of(board, subject, wanted)
    fresh = False
    if not dry_run:
        made = replace(made, entry=QUEUED) if publish and made.entry < 0 else made
        run(lambda: record(state(), made, subject.title))
        fresh = _refresh(board.platform)
    if publish and not dry_run:
        (made,) = run(lambda: _post(board, [made]))
    hidden = fold([*board.decisions, made]).hiding(subject.names, iso(SystemClock().now()))
    data = asdict(made) | {"title": subject.title, "recorded": not dry_run, "new": new}
    data["hidden_by"] = hidden.name if hidden else ""
    now = listed(state(), made.item) if fresh else None
    data["state"] = now.state if now else _hidden_state(hidden)
    undone = next((one for one in board.decisions if one.name == made.undoes), None)
    term = f" ({_term(made)})" if made.kind in ("dismiss", "snooze") else ""
    where = f", entry {made.entry} of the log" if made.entry >= 0 else ""
    verb = "would be recorded" if dry_run else "is recorded"
    head = f"item {made.item}: {words_of(made)}{term} {verb} (decision {made.name}{where})"
    lines = [head, *_notes(made, undone, hidden)]
    if now or hidden:
        place = f", number {now.rank} of the list" if now and now.rank else ""
        lines.append(f"the item is now {standing(now) if now else _hidden_state(hidden)}{place}")
    elif undone is not None and undone.kind in ("dismiss", "snooze"):
        lines.append("the item is on the list again")
    put(data, as_json=as_json, text=lambda: print("\n".join(map(clean, lines))))


async def _post(board: Board, left: list[DecisionRow]) -> list[DecisionRow]:
    from fleet.app.publisher import open_publisher  # loads what signs, which no other command here needs

    subjects = {one.chosen: (one.surface, one.title) for one in board.subjects}
    try:
        async with open_publisher(state(), platform=board.platform) as publisher:
            return await publisher.publish(left, subjects)
    except FleetError:
        note("it is recorded, and not on the log yet: `fleet items publish` posts it once that is mended")
        raise


def _refresh(platform: str) -> bool:
    """Write the list anew, and say whether that was possible."""
    from fleet.app.reading import triage_again  # imports web3, which other decisions do not need

    try:
        run(lambda: triage_again(state(), platform))
    except FleetError as error:
        note(f"the worklist shows it after the next triage pass, fleet run qa-triage: {error}")
        return False
    return True


def _term(one: DecisionRow) -> str:
    return f"until {minute(one.until)} UTC" if one.until else "until it is undone"


def _hidden_state(hidden: DecisionRow | None) -> str:
    return {"dismiss": "dismissed", "snooze": "snoozed"}[hidden.kind] if hidden else ""


def _notes(made: DecisionRow, undone: DecisionRow | None, hidden: DecisionRow | None) -> list[str]:
    """What an undo takes back, and what still keeps the item off the list."""
    lines = []
    if undone is not None:
        at = minute(undone.at)
        lines.append(f"it takes back: {words_of(undone)} by {undone.who}, {at} UTC: {undone.reason}")
    if hidden is not None and hidden.name != made.name:
        word, at = _hidden_state(hidden), minute(hidden.at)
        back = f"fleet items undo {made.item} --decision {hidden.name}"
        lines += [
            f"the item is still {word} {_term(hidden)}, by {hidden.who}, {at} UTC: {hidden.reason}",
            f"  to list it again: {back}, or fleet items reopen {made.item}",
        ]
    return lines


def rows_of(shown: Sequence[DecisionRow], standing: Collection[str]) -> list[tuple[object, ...]]:
    """Cells of a list; on a terminal only as many digits of a name as tell them apart, and minutes."""
    names = [name for one in shown for name in (one.name, one.item, one.other, one.undoes) if name]
    few = few_digits(names) if sys.stdout.isatty() else None
    rows: list[tuple[object, ...]] = []
    for one in shown:
        at, end = (one.at, one.until) if few is None else (minute(one.at), minute(one.until))
        where = f"entry {one.entry}" if one.entry >= 0 else "to be posted" if one.entry == QUEUED else "no"
        what = words_of(replace(one, other=one.other[:few], undoes=one.undoes[:few]))
        what += (f" until {end}" if end else "") + ("" if one.name in standing else " (undone)")
        rows.append((one.name[:few], one.item[:few], what, at, one.who, one.reason, where))
    return rows
