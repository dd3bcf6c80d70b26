"""Ten tasks of an operator, by page and by command; docs/operate.md has them as a table.

A step on the page is one act: `follow` a link, `open` what is folded, `write` why, `press` a button. They
begin at the first page, unlocked: the token is entered once in twelve hours. A step of commands is a command.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperatorTask:
    """What an operator wants, the steps of both ways, and a text that both show then. ITEM is the item's
    fingerprint, RUN the run's id."""

    name: str
    page: tuple[str, ...]
    commands: tuple[str, ...]
    shows: str = ""

    def row(self) -> str:
        """Of the table in Markdown."""
        acts = ", ".join(f"*{one.partition(' ')[0]}* {one.partition(' ')[2]}" for one in self.page)
        page = f"{len(self.page)}: {acts}" if acts else "0: the first page says it"
        commands = ", ".join(f"`fleet {one}`" for one in self.commands)
        return f"| {self.name} | {page} | {len(self.commands)}: {commands} |"


TO_ITEM = ("follow critical", "follow Secret is public")
LIST = "items list --severity critical"

TASKS = (
    OperatorTask("find the critical item", TO_ITEM[:1], (LIST,), "Secret is public: GET / shows"),
    OperatorTask(
        "see its request", (*TO_ITEM, "open Whole requests and answers"), (LIST, "items show ITEM"), "SITE/"
    ),
    OperatorTask(
        "dismiss it with a reason",
        (*TO_ITEM, "open Dismiss", "write by design", "press Dismiss"),
        (LIST, "items dismiss ITEM --reason 'by design'"),
        "dismissed",
    ),
    OperatorTask("undo that", ("press Undo",), ("items undo ITEM --reason 'it is not'",)),
    OperatorTask(
        "stop everything",
        ("open STOP", "write a leak", "press Stop everything now"),
        ("stop --reason 'a leak'",),
    ),
    OperatorTask(
        "see why a persona was refused", ("follow Personas",), ("status",), "surface: Input should be"
    ),
    OperatorTask("see when qa-perf runs", (), ("personas list",), "qa-perf"),
    OperatorTask("see what the day before cost", (), ("status",), "41 calls"),
    OperatorTask("see what was never asked", ("follow Platform", "open never asked"), ("report",), "UNASKED"),
    OperatorTask(
        "ask again what a run asked",
        ("follow Runs", "follow RUN", "press Replay"),
        ("runs list", "runs replay RUN"),
    ),
)
HEAD = "| what | steps by page | steps by command |\n|---|---|---|"


def table() -> str:
    """All of them, in Markdown."""
    return "\n".join((HEAD, *(one.row() for one in TASKS)))
