"""What a person may do on a page: decisions and brakes of the command line, recorded as done by `page`."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import cast

import anyio
from anyio import to_thread

from fleet.app.answers import answer_question as told
from fleet.app.authority import require_authority
from fleet.app.decided import decision_of, end_of, read_board, record
from fleet.app.halts import record_halt
from fleet.app.journal import open_journal
from fleet.clock import SystemClock, iso
from fleet.config import load_fleet, load_platform
from fleet.errors import FleetError, TryAgain, UsageError
from fleet.gate.stop import resume, stop, stopped
from fleet.runs.call.halt import Halt
from fleet.runs.call.questions import pause_run
from fleet.service.ingress import AskForRun
from fleet.service.notify.shown import dismiss
from fleet.severity import SEVERITIES
from fleet.store.rows import DecisionKind, DecisionRow
from fleet.text import line

_LOG = logging.getLogger("fleet.web")
DECISIONS = frozenset({"dismiss", "snooze", "reopen", "undo", "release", "severity", "merge", "split"})
"""What a page can decide of an item."""
VERIFY_S = 20.0
"""For a comparison with the log."""


def who() -> str:
    """Who is recorded: a person with the token of this machine's page."""
    return f"page@{socket.gethostname()}"


async def decide(
    state: Path, kind: str, fingerprint: str, form: Mapping[str, str]
) -> tuple[DecisionRow, bool]:
    """Record a decision about an item, and whether the list shows it already. UsageError."""
    reason = line(form.get("reason", ""), 400)
    if kind not in DECISIONS:
        raise UsageError(f"{kind[:40]!r} cannot be decided here", remedy="fleet items --help")
    if not reason:
        raise UsageError("a decision needs a reason", remedy="write why, for the next reader")
    until = end_of(form.get("for", ""), "") if kind in ("dismiss", "snooze") else ""
    if kind == "snooze" and not until:
        raise UsageError("a snooze ends", remedy="choose how long, or dismiss the item")
    level, other = form.get("level", ""), form.get("other", "").strip()
    if kind == "severity" and level not in SEVERITIES:
        raise UsageError(f"{level[:40]!r} is not a severity", remedy=f"choose one of {', '.join(SEVERITIES)}")
    if kind == "merge" and not other:
        raise UsageError("a merge needs the other item", remedy="enter its fingerprint, or the first digits")
    wanted = DecisionRow(
        item="",
        kind=cast(DecisionKind, kind),
        reason=reason,
        who=who(),
        at="",
        until=until,
        severity=level if kind == "severity" else "",
        other=other[:64] if kind == "merge" else "",
        undoes=form.get("decision", "") if kind == "undo" else "",
    )
    board = await read_board(state)
    subject = board.subject(form.get("part", "") if kind == "split" else fingerprint)
    if subject.finding is not None and kind not in ("release", "undo"):
        raise UsageError(f"{subject.item} is not on the list yet", remedy=f"fleet items show {subject.item}")
    made, _ = decision_of(board, subject, wanted)
    await record(state, made, subject.title)
    return made, await _listed(state, board.platform)


async def _listed(state: Path, platform: str) -> bool:
    """Write the list anew, in a thread with a loop of its own: the daemon goes on meanwhile."""
    from fleet.app.reading import triage_again  # web3, which no other page needs

    try:
        await to_thread.run_sync(partial(anyio.run, triage_again, state, platform))
    except FleetError as error:
        _LOG.warning("the list is not written anew: %s", error)
        return False
    return True


async def cancel(state: Path, run: str, form: Mapping[str, str]) -> None:
    """Ask for the end of a run: it stops calling within a second. UsageError for one that is over."""
    if not (reason := line(form.get("reason", ""), 400)):
        raise UsageError("a cancellation needs a reason", remedy="write why, for the next reader")
    async with await open_journal(state) as journal:
        if not await journal.ask_cancel(run, f"cancelled by {who()}: {reason}"):
            raise UsageError(f"run {run[:40]} is over, or is not known here", remedy="look at the runs")


async def pause(state: Path, run: str, form: Mapping[str, str]) -> None:
    """Pause a run before its next call. UsageError for one that is not running."""
    if not (reason := line(form.get("reason", ""), 400)):
        raise UsageError("a pause needs a reason", remedy="write why, for the next reader")
    async with await open_journal(state) as journal:
        row = await journal.run(run)
        if row.state != "running":
            raise UsageError(f"run {run[:40]} is not running", remedy="look at the runs")
        await pause_run(journal, row, who(), reason, SystemClock())


async def answer_question(state: Path, ident: str, verdict: str, form: Mapping[str, str]) -> None:
    """Answer what a run asks. UsageError for a question that is not open, or without a reason."""
    if verdict not in ("approve", "deny"):
        raise UsageError(f"{verdict[:20]!r} is no answer", remedy="approve or deny")
    why = line(form.get("reason", ""), 400)
    await told(state, ident, approve=verdict == "approve", who=who(), why=why)


async def dismiss_notice(state: Path, ident: str) -> None:
    """Take a notice off the pages, recorded with who and when. UsageError for one that is not shown."""
    async with await open_journal(state) as journal:
        if not await dismiss(journal, ident, who(), iso(SystemClock().now())):
            raise UsageError(f"no open notice {ident[:40]}", remedy="look at the notices")


async def start(ask: AskForRun | None, form: Mapping[str, str], **wish: str) -> str:
    """Queue a run of the daemon, once for each form that was shown; its id. TryAgain, UsageError."""
    if ask is None:
        raise TryAgain("no daemon is ready to run it", remedy="fleet up; then send the form again")
    answer = await ask(json.dumps({"ident": form.get("ident", ""), **wish}).encode())
    if answer.status < 300:
        return str(answer.body["runs"][0]["run"])
    why = str(answer.body.get("error", "it was not accepted"))
    raise (UsageError if answer.status < 429 else TryAgain)(why, remedy="load the page again")


async def verify(state: Path) -> list[str]:
    """Compare the mirror with itself and with the log, in a thread with a loop of its own; lines of what that
    showed. ConfigError, UsageError."""
    from fleet.app.log_check import lines_of, verified  # web3, which no other page needs

    profile, _ = load_platform(load_fleet().platform, state)
    return lines_of(await to_thread.run_sync(partial(anyio.run, verified, profile, state, VERIFY_S)))


async def stop_all(state: Path, form: Mapping[str, str]) -> None:
    """Set STOP at once, then record it."""
    reason = line(form.get("reason", ""), 400)
    before = stopped(state)
    stop(state, who(), reason, SystemClock())
    if before is None:
        await record_halt(state, Halt("stop", who(), reason))


async def let_go_on(state: Path, form: Mapping[str, str]) -> None:
    """Record who lets the fleet go on, then remove STOP. UsageError without a reason."""
    if not (reason := line(form.get("reason", ""), 400)):
        raise UsageError("going on needs a reason", remedy="write what was checked")
    require_authority(state, who())
    if (found := stopped(state)) is not None:
        await record_halt(state, Halt("resume", who(), reason, stopped=line(found.why, 400)))
    resume(state, reason)
