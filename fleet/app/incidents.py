"""The case of an incident: a STOP that the fleet set because a fence or a boundary did not hold.

Under a signed scope each has a file, `incidents/<id>.toml` in the state directory, which a person fills in.
Until it is whole nothing goes on; the dial is lowered to `observe` and stays there for seven days, until
another person than who managed the incident permits more (docs/operate.md, "Incidents").
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated

import tomli_w
from pydantic import AwareDatetime, StringConstraints, ValidationError

from fleet.clock import Clock, iso
from fleet.config.section import Section
from fleet.errors import ConfigError
from fleet.files import read_bounded, write_atomic
from fleet.gate.dial import DIAL, read_dial, write_dial
from fleet.gate.model import Rung
from fleet.gate.stop import StopReading
from fleet.jail.battery.record import read_record
from fleet.runs.call.decision_file import Decision, DecisionFile
from fleet.text import line

INCIDENTS = "incidents"
COOLING = timedelta(days=7)
LARGEST = 64 << 10
Text = Annotated[str, StringConstraints(max_length=2_000)]


class CorrectiveAction(Section):
    """What was done about one root cause."""

    cause: Text = ""
    action: Text = ""
    owner: Text = ""
    due: date | None = None
    done: Text = ""
    """What shows that it was done: a ticket, a commit, a difference of configuration."""
    shown: Text = ""
    """What shows that it helps: a test, a line of a log, who looked."""


class IncidentCase(Section):
    """One case. What is empty is still to be said."""

    at: str
    """When it was stopped (ISO, UTC): it names the case."""
    what: Text = ""
    """Why, in the fleet's words."""
    detected_by: Text = ""
    affected: Text = ""
    """Systems and data."""
    factors: Text = ""
    """What contributed."""
    cause: Text = ""
    """The primary root cause."""
    causes: tuple[Text, ...] = ()
    """Root causes that contributed."""
    actions: tuple[CorrectiveAction, ...] = ()
    manager: Text = ""
    """Who managed it, by login."""
    before: Rung = Rung.OBSERVE
    """The rung until then."""
    after: Rung = Rung.OBSERVE
    lowered_at: AwareDatetime
    lowered_by: Text = ""
    """Who decided that, or why it was kept."""
    reported: Text = ""
    """When the report went to who ordered the tests, and how."""
    approved: Text = ""
    """Who of them permitted that the tests go on, and when."""
    reauthorised: Text = ""
    """Who permits the rung from before, by login: not the manager."""


_NEEDED = (
    *("detected_by", "affected", "factors", "cause", "causes", "actions"),
    *("manager", "lowered_by", "reported", "approved"),
)


def case_file(state: Path, found: StopReading) -> Path:
    """The case of a STOP, by its time."""
    return state / INCIDENTS / f"{found.since.replace(':', '-')}.toml"


def open_case(state: Path, found: StopReading, clock: Clock) -> Path:
    """Make the case of this STOP where there is none, and lower the dial."""
    path = case_file(state, found)
    if not path.exists():
        rung = read_dial(state / DIAL).rung
        if rung is not Rung.OBSERVE:
            write_dial(state, Rung.OBSERVE, f"incident {path.stem}", "the fleet", clock)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        case = {
            "at": found.since,
            "what": line(found.why, 2_000),
            "before": str(rung),
            "after": str(Rung.OBSERVE),
            "lowered_at": iso(clock.now()),
            **dict.fromkeys(_NEEDED, ""),
            "reauthorised": "",
            "causes": [],
            "actions": [dict.fromkeys(("cause", "action", "owner", "done", "shown"), "")],
        }
        write_atomic(path, f"{tomli_w.dumps(case)}# due = 2026-12-01\n".encode())
        one = Decision(
            f"an incident: {found.why}",
            "go on, or stop and inquire",
            f"case {path.stem}, and the dial from {rung} to {Rung.OBSERVE}",
            found.check,
            f"complete {INCIDENTS}/{path.name}, then fleet resume --reason",
            charter="docs/operate.md, Incidents",
        )
        DecisionFile(state, clock).record(one, run="none", turn=0)
    return path


def read_case(path: Path) -> IncidentCase:
    """ConfigError for one that cannot be read."""
    try:
        return IncidentCase.model_validate(tomllib.loads(read_bounded(path, LARGEST, mark="refuse").decode()))
    except (OSError, ValueError, ValidationError) as error:
        raise ConfigError(f"{path}: {error}", remedy="correct it, or take it from a backup") from None


def lacking(state: Path, path: Path) -> list[str]:
    """What a case still lacks before tests go on, controls that are not shown to hold again among it."""
    case = read_case(path)
    found = [name for name in _NEEDED if not getattr(case, name)]
    for number, one in enumerate(case.actions, start=1):
        empty = (name for name in CorrectiveAction.model_fields if not getattr(one, name))
        found += [f"actions[{number}].{name}" for name in empty]
    named = {one.cause for one in case.actions}
    causes = (one for one in (case.cause, *case.causes) if one and one not in named)
    found += [f"an action about {one!r}" for one in causes]
    record = read_record(state)
    if record is None or not record.holds or record.at < case.at:
        found.append("a record of the escape battery that holds, made since (`fleet check machine --fence`)")
    return found


def barred(state: Path, rung: Rung, who: str, now: datetime) -> str:
    """Why the dial may not be raised to a rung after an incident; "" where it may."""
    for case in _cases(state):
        if case.after.height >= rung.height:
            continue
        until = case.lowered_at.astimezone(UTC) + COOLING
        if now < until:
            return f"the dial was lowered after the incident of {case.at}: not before {iso(until)}"
        if not case.reauthorised:
            return f"not permitted again since the incident of {case.at} (reauthorised)"
        name = who.partition("@")[0]
        if case.reauthorised == case.manager or name == case.manager:
            return f"who managed the incident of {case.at} does not permit it (reauthorised)"
    return ""


def lowered_by(state: Path, rung: Rung) -> str:
    """The incidents after which the dial was lowered below a rung, for the record of a move; "" for none."""
    lower = (one for one in _cases(state) if one.after.height < rung.height)
    return ", ".join(one.at for one in lower)


def _cases(state: Path) -> Iterator[IncidentCase]:
    for path in sorted((state / INCIDENTS).glob("*.toml")):
        yield read_case(path)
