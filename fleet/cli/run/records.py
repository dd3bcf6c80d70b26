"""`fleet runs egress` and `fleet runs verify`: what a run asked for, and whether its records hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleet.cli.console import table
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
    if "out_of_scope" not in data:
        return
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


def show_checked(rows: list[dict[str, Any]]) -> None:
    """A line for each record."""
    cells = ((row["record"], row["lines"], row["fault"] or "holds", row["note"]) for row in rows)
    table(("record", "lines", "chain", "note"), cells, empty="no records here")
