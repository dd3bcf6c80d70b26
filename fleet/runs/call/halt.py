"""Who stopped the fleet and who let it go on, and why: in DECISIONS.md and in the journal."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Literal, NamedTuple

from fleet.clock import Clock, iso_ms
from fleet.runs.call.decision_file import Decision, DecisionFile
from fleet.store.journal import Journal
from fleet.text import line

HALTS = "halt:"
"""Prefix of the facts, each followed by its time, so that they sort; a webhook's by its delivery."""

DIALS = "dial:"
"""The same of moves of the dial by command."""


class Halt(NamedTuple):
    """One stop or resume; `stopped` is what a resume lifted, in words."""

    act: Literal["stop", "resume"]
    who: str
    why: str
    when: str = ""
    stopped: str = ""


def note_halt(state: Path, clock: Clock, halt: Halt) -> None:
    """Write it into DECISIONS.md."""
    stops = halt.act == "stop"
    one = Decision(
        f"{halt.who} {'stops the fleet' if stops else 'lets the fleet go on'}",
        "go on, or stop everything" if stops else f"stay stopped, or go on: {halt.stopped}",
        "everything stops" if stops else "STOP is removed",
        halt.why or "no reason was given",
        "fleet resume --reason" if stops else "fleet stop --reason",
        charter="the operator's",
    )
    DecisionFile(state, clock).record(one, run="none", turn=0)


async def journal_halt(journal: Journal, clock: Clock, halt: Halt) -> None:
    """Keep it in the journal, which no rotation removes."""
    when = iso_ms(clock.now())
    known = {name: line(text, 500) for name, text in halt._asdict().items()}
    await journal.put(f"{HALTS}{when}", json.dumps(known | {"when": when}))


async def resume_after(journal: Journal, since: str) -> Halt | None:
    """The newest resume by a command on this host after a time (ISO); STOP is of one host, the journal may
    be of several."""
    for text in reversed((await journal.facts(HALTS)).values()):
        halt = Halt(**json.loads(text))
        if halt.act == "resume" and halt.who.endswith(f"@{socket.gethostname()}"):
            return halt if halt.when >= since else None
    return None
