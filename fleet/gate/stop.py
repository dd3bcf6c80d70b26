"""STOP: anything at that path pauses everything. It is sticky; only a person's command removes it.

A person sets it, a signed webhook of the operator's, or the fleet itself when one of its fences failed.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from fleet.clock import Clock, iso, iso_ms
from fleet.errors import ConfigError, Refused
from fleet.files import read_bounded, write_atomic

STOP = "STOP"
LOOKS = "looks"
"""Folder of a state directory with those of `fleet look`: its STOP pauses them too."""
Fence = Literal["jail", "battery", "egress record"]
CHECKS: dict[Fence, str] = {
    "jail": "every line of `fleet check machine` on the jail holds",
    "battery": "every line of the escape battery holds on this kernel and backend",
    "egress record": "the folder `runs` of the state directory can be written by the fleet's user alone",
}
"""What a person checks before the fleet goes on after a fence has failed."""


@dataclass(frozen=True, slots=True)
class StopReading:
    """Everything is paused; `why` is a line for a person (untrusted text: clean before showing).

    `since` is the time of the file (ISO, UTC), "" when there is none; `check` is what to check before
    resuming, when a fence of the fleet's own failed.
    """

    why: str
    since: str = ""
    check: str = ""


def stopped(state: Path) -> StopReading | None:
    """A fresh look; None only when the state directory can be searched and holds no STOP of any kind, and
    neither does the one that it is a look's of.

    Never raises and never opens the file: a FIFO, a directory or a dangling link is a STOP too.
    A state directory that is missing or cannot be searched counts as STOP, because STOP cannot be ruled out.
    """
    if found := _stopped_here(state):
        return found
    try:
        looks = state.absolute().parent
    except OSError as error:
        return StopReading(f"the state directory cannot be searched: {error}")
    if looks.name != LOOKS:
        return None
    above = _stopped_here(looks.parent)
    return replace(above, why=f"{above.why} (in {looks.parent})") if above else None


def _stopped_here(state: Path) -> StopReading | None:
    """The STOP of this directory alone."""
    path = state / STOP
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None if os.path.isdir(state) else StopReading("the state directory is missing")
    except (OSError, ValueError) as error:
        return StopReading(f"the state directory cannot be searched: {error}")
    try:
        since = iso_ms(datetime.fromtimestamp(found.st_mtime, UTC))
    except (ValueError, OverflowError, OSError):  # a year that no calendar has
        since = ""
    reason, check = _reason(path)
    return StopReading(f"STOP is set{reason}", since, check)


def stop(state: Path, who: str, why: str, clock: Clock, *, check: str = "") -> StopReading:
    """Pause everything; ConfigError when it cannot be written.

    An existing STOP is left as it is, unless there is something to `check` that it does not ask for.
    """
    if (found := _stopped_here(state)) and os.path.isdir(state):
        if not check or found.check:
            return found
        why = f"{why}; before that {found.why}"
    note = {"who": who, "when": iso(clock.now()), "why": why}
    text = json.dumps(note | ({"check": check} if check else {}))
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(state / STOP, text.encode() + b"\n")
    except OSError as error:
        raise ConfigError(
            f"{state / STOP}: cannot be written: {error.strerror}",
            remedy="make the state directory writable, or stop the daemon",
        ) from None
    return stopped(state) or StopReading(why)


def fence_failed(state: Path, fence: Fence, why: str, clock: Clock) -> StopReading:
    """Pause everything because a fence does not hold; a person checks it before the fleet goes on."""
    return stop(state, f"the fleet, whose {fence} failed", why, clock, check=CHECKS[fence])


def resume(state: Path, why: str = "") -> bool:
    """Remove STOP, for a person who asked for it: True if it existed. ConfigError for a directory.

    Refused without a reason after a fence has failed: the person says what was checked.
    """
    path = state / STOP
    if (found := _stopped_here(state)) and found.check and not why:
        raise Refused(
            f"a fence of the fleet failed: {found.why}",
            rule="stop",
            remedy='check that, then say so: fleet resume --reason "what was checked"',
        )
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", remedy="remove it by hand") from None
    return True


def _reason(path: Path) -> tuple[str, str]:
    """The reason in the file, if it is a small regular file, and what to check before resuming; neither
    affects the decision."""
    try:
        text = read_bounded(path, 4096, mark="drop").decode("utf-8", "replace").strip()
    except OSError:
        return "", ""
    if not text:
        return "", ""
    try:
        note: Any = json.loads(text)
        check = str(note.get("check", ""))
        todo = f"; before `fleet resume` check that {check}" if check else ""
        return f": {note['why']} ({note['who']}, {note['when']}){todo}", check
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return f": {text[:200]}", ""
