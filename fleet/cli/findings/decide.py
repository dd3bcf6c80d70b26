"""What a person decides about an item, and how it is undone: commands of `fleet findings`."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Annotated, cast, get_args

import typer

from fleet.app.decided import words_of
from fleet.cli.completion import completed_from, fingerprints
from fleet.cli.console import DryRun, Json, put, run, table, who
from fleet.cli.findings.decisions import board_of, decide, post, rows_of
from fleet.clock import SystemClock, iso
from fleet.errors import UsageError
from fleet.store.rows import QUEUED, DecisionKind, DecisionRow, LinkKind
from fleet.triage.items.decisions import fold
from fleet.triage.outputs.selection import moment

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

_FOR = re.compile(r"([1-9][0-9]{0,3})([hdw])", re.ASCII)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_SEVERITIES = ("critical", "high", "medium", "low", "info")


def fixed(
    item: Item,
    reason: Reason,
    publish: Publish = False,
    platform: Profile = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Say that an item is fixed; clean re-runs verify it, and a sighting makes it a regression."""
    decide(item, _wanted("fixed", reason), publish, platform, dry_run, as_json)


def dismiss(
    item: Item,
    reason: Reason,
    for_: For = "",
    until: Until = "",
    publish: Publish = False,
    platform: Profile = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take an item off the list until you undo it, or until a given end; or drop a driver's claim."""
    from fleet.cli.findings.claims import (  # the proof of a claim, as a run has it
        dismiss_claim,
        waiting_claim,
    )

    wanted = replace(_wanted("dismiss", reason), until=_until(for_, until))
    board = run(lambda: board_of(platform))
    claim = waiting_claim(board.subject(item))
    if claim is None:
        decide(item, wanted, publish, platform, dry_run, as_json)
    elif publish:
        raise UsageError("a driver's claim is not on the log", remedy="dismiss it without --publish")
    else:
        dismiss_claim(claim, wanted.reason, dry_run=dry_run, as_json=as_json)


def snooze(
    item: Item,
    reason: Reason,
    for_: For = "",
    until: Until = "",
    publish: Publish = False,
    platform: Profile = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take an item off the list for a while."""
    end = _until(for_, until)
    if not end:
        raise UsageError("a snooze ends", remedy="write --for 7d or --until DATE, or dismiss the item")
    decide(item, replace(_wanted("snooze", reason), until=end), publish, platform, dry_run, as_json)


def reopen(
    item: Item,
    reason: Reason,
    publish: Publish = False,
    platform: Profile = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Put an item back on the list: whatever resolved, dismissed or snoozed it until now counts no more."""
    decide(item, _wanted("reopen", reason), publish, platform, dry_run, as_json)


def severity(
    item: Item,
    level: Annotated[
        str, typer.Argument(help=", ".join(_SEVERITIES), autocompletion=completed_from(_SEVERITIES))
    ],
    reason: Reason,
    publish: Publish = False,
    platform: Profile = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Correct the severity of an item."""
    if level not in _SEVERITIES:
        raise UsageError(f"{level!r} is not a severity", remedy=f"choose one of {', '.join(_SEVERITIES)}")
    decide(item, replace(_wanted("severity", reason), severity=level), publish, platform, dry_run, as_json)


def merge(
    item: Item,
    into: Other,
    reason: Reason,
    publish: Publish = False,
    platform: Profile = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Make one item of two: the first becomes part of the second."""
    decide(item, replace(_wanted("merge", reason), other=into), publish, platform, dry_run, as_json)


def split(
    item: Item,
    reason: Reason,
    publish: Publish = False,
    platform: Profile = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take this fingerprint out of its item: it becomes an item of its own."""
    decide(item, _wanted("split", reason), publish, platform, dry_run, as_json)


def link(
    item: Item,
    kind: Annotated[
        str,
        typer.Argument(help=", ".join(get_args(LinkKind)), autocompletion=completed_from(get_args(LinkKind))),
    ],
    other: Other,
    reason: Reason,
    publish: Publish = False,
    platform: Profile = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Link an item to another one."""
    if kind not in get_args(LinkKind):
        raise UsageError(f"{kind!r} is not a link", remedy=f"choose one of {', '.join(get_args(LinkKind))}")
    wanted = replace(_wanted("link", reason), other=other, link=cast(LinkKind, kind))
    decide(item, wanted, publish, platform, dry_run, as_json)


def unlink(
    item: Item,
    other: Other,
    reason: Reason,
    publish: Publish = False,
    platform: Profile = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Remove every link between two items, a suggested one included."""
    decide(item, replace(_wanted("unlink", reason), other=other), publish, platform, dry_run, as_json)


def undo(
    item: Item,
    reason: Reason,
    decision: Annotated[
        str, typer.Option(help="Name of the decision; default: the latest that stands.")
    ] = "",
    publish: Publish = False,
    platform: Profile = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Reverse a decision about an item; undo the undo to reverse that."""
    wanted = replace(_wanted("undo", reason), undoes=decision)
    decide(item, wanted, publish, platform, dry_run, as_json)


def decisions(
    item: Annotated[str, typer.Argument(metavar="ID", help="Only about this item.")] = "",
    platform: Profile = None,
    as_json: Json = False,
) -> None:
    """List decisions: who decided what about which item, when and why, and the entry that publishes it."""
    board = run(lambda: board_of(platform))
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
    board = run(lambda: board_of(platform))
    if item:
        left = [one for one in board.about(board.subject(item)) if one.entry < 0]
    else:
        left = [one for one in board.decisions if one.entry == QUEUED]
    done = left if dry_run or not left else run(lambda: post(board, left))
    data = [asdict(one) for one in done]
    put(
        data,
        as_json=as_json,
        text=lambda: table(("decision", "item", "kind", "entry"), map(_posted, done)),
    )


COMMANDS = (fixed, dismiss, snooze, reopen, severity, merge, split, link, unlink, undo, decisions, publish)
"""The commands of this file, as `fleet findings` registers them."""


def _wanted(kind: DecisionKind, reason: str) -> DecisionRow:
    if not reason.strip():
        raise UsageError("a decision needs a reason", remedy='--reason "…"')
    return DecisionRow(item="", kind=kind, reason=reason, who=who(), at="")


def _posted(one: DecisionRow) -> tuple[object, ...]:
    return one.name, one.item, words_of(one), one.entry if one.entry >= 0 else "to be posted"


def _until(duration: str, end: str) -> str:
    """The end of what begins now (ISO); "" for what has none."""
    now = SystemClock().now()
    if duration and end:
        raise UsageError("--for and --until: choose one", remedy="write --for 30d, or --until 2027-01-31")
    if end:
        at = moment(end, now, option="--until")
        if at <= iso(now):
            raise UsageError(f"--until: {at} is over", remedy="write a time to come, such as 2027-01-31")
        return at
    if duration in ("", "ever"):
        return ""
    if (match := _FOR.fullmatch(duration)) is None:
        raise UsageError(f"{duration!r} is not a duration", remedy="write 12h, 30d, 2w or ever")
    return iso(now + int(match[1]) * _UNITS[match[2]])
