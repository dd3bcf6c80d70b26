"""`fleet runs egress` and `fleet runs verify`: what a run asked for, and whether its records hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fleet.broker.egress_record import EGRESS
from fleet.cli.console import table
from fleet.events.chain import Place, verify
from fleet.events.daemon_events import FEED
from fleet.runs.call.decision_file import NAME, OLDER
from fleet.runs.call.sealed import TRAJECTORY, sealed_at_end
from fleet.store.journal import Journal
from fleet.text import clean, counted

COLUMNS = ("at", "call", "verb", "host", "path", "address", "rule", "status", "sent", "received", "ms")


def show_asked(data: Mapping[str, Any]) -> None:
    """The requests, then their sums, then the answer to the question that an officer asks."""
    shown = [{**row, "path": row.get("path", row.get("what", ""))} for row in data["rows"]]
    table(COLUMNS, ([row.get(name, "") for name in COLUMNS] for row in shown), empty="no such request")
    for line in sums(data["hosts"]):
        print(line)
    by_rule = ", ".join(f"{count} by {rule}" for rule, count in sorted(data["refused"].items()))
    print(clean(f"{counted(data['requests'], 'request')}; refused: {by_rule or 'none'}"))
    asked = counted(data["out_of_scope"], "request was", "requests were") + " asked for, and refused"
    print(f"out of scope: {asked if data['out_of_scope'] else 'nothing was asked for'}")


def sums(hosts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """A line for each host that was asked."""
    for host, of in sorted(hosts.items()):
        refusals = f", {of['refused']} refused" if of["refused"] else ""
        kilobytes = f"{of['sent'] / 1e3:.1f} kB sent, {of['received'] / 1e3:.1f} kB received"
        yield clean(
            f"asked {host or '(no host)'}: {counted(of['requests'], 'request')}{refusals}, {kilobytes}"
        )


def show_left(rows: Sequence[Mapping[str, Any]]) -> None:
    """A line for each act, with what it made."""
    cells = (
        [row["run"], row["at"], row["what"], row["where"], row["state"], _made(row), row["why"]]
        for row in rows
    )
    heads = ("run", "at", "what", "where", "state", "made", "why")
    table(heads, cells, empty="nothing was left behind")


def _made(row: Mapping[str, Any]) -> str:
    counts = (f"{count} x {what}" for what, count in row["requests"].items())
    return row["made"] or ", ".join(row["things"] or counts)


def show_questions(rows: Sequence[Mapping[str, Any]]) -> None:
    """A line for each question, with its answers."""
    heads = ("question", "state", "run", "asked", "until", "impact", "what", "answers")
    cells = (
        [
            row["ident"],
            row["state"],
            row["run"],
            row["asked"],
            row["until"],
            row["level"],
            row["what"],
            _said(row),
        ]
        for row in rows
    )
    table(heads, cells, empty="nothing waits for a person")


def _said(row: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{one['who']} {'yes' if one['approve'] else 'no'}: {one['why']}" for one in row["answers"]
    )


@dataclass(frozen=True, slots=True)
class CheckedRecord:
    """What a record's chain says; `fault` is "" while it holds."""

    record: str
    lines: int
    chained: int
    fault: str
    note: str


async def checked(state: Path, journal: Journal | None, run: str) -> list[dict[str, Any]]:
    """The records of one run, or with "" of all runs here, of decisions and of the daemon."""
    found = []
    folders = [state / "runs" / run] if run else sorted(state.glob("runs/*"))
    for folder in folders:
        sealed = await sealed_at_end(journal, folder.name) if journal is not None else {}
        if folder.is_dir():
            found += [
                _checked(state, folder / name, sealed=sealed.get(name)) for name in (TRAJECTORY, EGRESS)
            ]
    if not run:
        found.append(_checked(state, state / NAME, rotated=state / OLDER))
        found.append(_checked(state, state / FEED, rotated=(state / FEED).with_suffix(".1.jsonl")))
    return [asdict(one) for one in found if one is not None]


def _checked(
    state: Path, path: Path, *, rotated: Path | None = None, sealed: Place | None = None
) -> CheckedRecord | None:
    """One record; None where there is none and none was."""
    name = str(path.relative_to(state))
    try:
        said = verify(path, rotated=rotated, sealed=sealed)
    except FileNotFoundError:
        gone = "" if sealed is None or not sealed.lines else f"it is missing: {sealed.lines} lines"
        return CheckedRecord(name, 0, 0, gone, "") if gone else None
    except OSError as error:
        return CheckedRecord(name, 0, 0, f"it cannot be read: {error.strerror}", "")
    note = said.note
    if not said.chained and said.lines:
        note = "its writer was of a version that did not chain: nothing can be said of it"
    elif sealed is None and not note and path.parent != state:
        note = "the run has not ended: its end is not in the journal yet"
    return CheckedRecord(name, said.lines, said.chained, said.fault, note)


def show_checked(rows: list[dict[str, Any]]) -> None:
    """A line for each record."""
    cells = ((row["record"], row["lines"], row["fault"] or "holds", row["note"]) for row in rows)
    table(("record", "lines", "chain", "note"), cells, empty="no records here")
