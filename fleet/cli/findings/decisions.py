"""Records a decision of the command line, publishes it, and says so."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace

from fleet.app.decided import Board, Subject, words_of, write_down
from fleet.app.journal import known_journal, open_journal
from fleet.app.lock import holder
from fleet.cli.console import few_digits, note, put, run, state
from fleet.cli.operate.status_page import minute
from fleet.clock import SystemClock, iso
from fleet.config import load_fleet, load_platform
from fleet.errors import ConfigError, FleetError, UsageError
from fleet.store.rows import QUEUED, DecisionRow
from fleet.text import clean
from fleet.triage.items.decisions import fold


def _platform(name: str | None) -> str:
    """The platform's name; a configured one need not be described here as long as nothing is posted."""
    if name is not None:
        return load_platform(name, state())[0].name
    try:
        return load_platform(load_fleet().platform, state())[0].name
    except UsageError:
        return load_fleet().platform


async def board_of(platform: str | None) -> Board:
    journal = await known_journal(state())
    if journal is None:
        raise UsageError("no item or finding on this machine", remedy="fleet findings list")
    async with journal:
        return await Board.read(journal, _platform(platform), state())


def decide(
    digits: str, wanted: DecisionRow, publish: bool, platform: str | None, dry_run: bool, as_json: bool
) -> None:
    board = run(lambda: board_of(platform))
    subject = board.subject(digits)
    made, new = _made(board, subject, wanted)
    if not dry_run:
        made = replace(made, entry=QUEUED) if publish and made.entry < 0 else made
        run(lambda: _record(made))
        write_down(state(), made, subject.title)
        refresh(board.platform)
    if publish and not dry_run:
        (made,) = run(lambda: post(board, [made]))
    hidden = fold([*board.decisions, made]).hiding(subject.names, iso(SystemClock().now()))
    data = asdict(made) | {"title": subject.title, "recorded": not dry_run, "new": new}
    data["hidden_by"] = hidden.name if hidden else ""
    undone = next((one for one in board.decisions if one.name == made.undoes), None)
    lines = [_said(made, dry_run=dry_run), *_besides(made, undone, hidden)]
    put(data, as_json=as_json, text=lambda: print("\n".join(map(clean, lines))))


def _made(board: Board, subject: Subject, wanted: DecisionRow) -> tuple[DecisionRow, bool]:
    """The decision to record, and whether it is a new one."""
    if subject.finding is not None and subject.finding.state == "dropped":
        raise UsageError(
            f"finding {subject.item} is dropped: it needs no decision", remedy="fleet findings list"
        )
    item = subject.chosen if wanted.kind == "split" else subject.item
    other = board.subject(wanted.other).item if wanted.other else ""
    if other == item:
        raise UsageError(f"{item} is the item itself", remedy="name another item")
    full = replace(wanted, item=item, other=other, undoes="", platform=board.platform)
    if (begun := board.unfinished(subject, board.made(full))) is not None:
        return begun, False
    if wanted.kind == "undo":
        target = board.latest(subject, wanted.undoes.lower())
        full = replace(full, item=target.item, undoes=target.name)
    return board.made(full), True


async def _record(made: DecisionRow) -> None:
    async with await open_journal(state()) as journal:
        await journal.add_decision(made)


async def post(board: Board, left: list[DecisionRow]) -> list[DecisionRow]:
    from fleet.app.publisher import open_publisher  # loads what signs, which no other command here needs

    subjects = {one.chosen: (one.surface, one.title) for one in board.subjects}
    try:
        async with open_publisher(state(), platform=board.platform) as publisher:
            return await publisher.publish(left, subjects)
    except FleetError:
        note("it is recorded, and not on the log yet: `fleet findings publish` posts it once that is mended")
        raise


def refresh(platform: str) -> None:
    """The worklist files with the decision, from the mirror; a running fleet's next pass does that itself."""
    if holder(state()):
        return
    try:
        run(lambda: _look_again(platform))
    except FleetError as error:
        note(f"the worklist shows it after the next triage pass, fleet run qa-triage: {error}")


async def _look_again(platform: str) -> None:
    from fleet.app.reading import reading_world  # imports web3, which other decisions do not need
    from fleet.triage.triage_pass import TRIAGE, pass_over

    async with reading_world(state(), platform, ask=False) as world:
        if TRIAGE not in world.personas:
            raise ConfigError(f"no persona named {TRIAGE}", remedy="fleet personas list")
        await pass_over(world, world.personas[TRIAGE], post=False, ask=False)


def _said(made: DecisionRow, *, dry_run: bool) -> str:
    term = f" ({_term(made)})" if made.kind in ("dismiss", "snooze") else ""
    where = f", entry {made.entry} of the log" if made.entry >= 0 else ""
    verb = "would be recorded" if dry_run else "is recorded"
    return f"item {made.item}: {words_of(made)}{term} {verb} (decision {made.name}{where})"


def _term(one: DecisionRow) -> str:
    return f"until {one.until}" if one.until else "until it is undone"


def _besides(made: DecisionRow, undone: DecisionRow | None, hidden: DecisionRow | None) -> list[str]:
    """What an undo takes back, and what still keeps the item off the list."""
    lines = []
    if undone is not None:
        lines.append(f"it takes back: {words_of(undone)} by {undone.who}, {undone.at}: {undone.reason}")
    if hidden is not None and hidden.name != made.name:
        word = "dismissed" if hidden.kind == "dismiss" else "snoozed"
        back = f"fleet findings undo {made.item} --decision {hidden.name}"
        lines += [
            f"the item is still {word} {_term(hidden)}, by {hidden.who}, {hidden.at}: {hidden.reason}",
            f"  to list it again: {back}, or fleet findings reopen {made.item}",
        ]
    elif undone is not None and undone.kind in ("dismiss", "snooze"):
        lines.append("the item is on the list again")
    return lines


def rows_of(shown: Sequence[DecisionRow], standing: Collection[str]) -> list[tuple[object, ...]]:
    """Cells of a list; on a terminal only as many digits of a name as tell them apart, and minutes."""
    names = [name for one in shown for name in (one.name, one.item, one.other, one.undoes) if name]
    few = few_digits(names) if sys.stdout.isatty() else None
    return [_row(one, one.name in standing, few) for one in shown]


def _row(one: DecisionRow, stands: bool, few: int | None) -> tuple[object, ...]:
    at, end = (one.at, one.until) if few is None else (minute(one.at), minute(one.until))
    until = f" until {end}" if end else ""
    left = "to be posted" if one.entry == QUEUED else "no"
    where = f"entry {one.entry}" if one.entry >= 0 else left
    cut = replace(one, other=one.other[:few], undoes=one.undoes[:few])
    what = f"{words_of(cut)}{until}{'' if stands else ' (undone)'}"
    return one.name[:few], one.item[:few], what, at, one.who, one.reason, where
