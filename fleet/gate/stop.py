"""STOP: anything at that path pauses everything. It is sticky; only a person's command removes it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fleet.clock import Clock, iso
from fleet.errors import ConfigError
from fleet.files import read_bounded, write_atomic

STOP = "STOP"


@dataclass(frozen=True, slots=True)
class StopReading:
    """Everything is paused; `why` is a line for a person (untrusted text: clean before showing).

    `since` is the time of the file (ISO, UTC), "" when there is none.
    """

    why: str
    since: str = ""


def stopped(state: Path) -> StopReading | None:
    """A fresh look; None only when the state directory can be searched and holds no STOP of any kind.

    Never raises and never opens the file: a FIFO, a directory or a dangling link is a STOP too.
    A state directory that is missing or cannot be searched counts as STOP, because STOP cannot be ruled out.
    """
    path = state / STOP
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None if os.path.isdir(state) else StopReading("the state directory is missing")
    except (OSError, ValueError) as error:
        return StopReading(f"the state directory cannot be searched: {error}")
    try:
        since = iso(datetime.fromtimestamp(found.st_mtime, UTC))
    except (ValueError, OverflowError, OSError):  # a year that no calendar has
        since = ""
    return StopReading(f"STOP is set{_reason(path)}", since)


def stop(state: Path, who: str, why: str, clock: Clock) -> StopReading:
    """Pause everything; an existing STOP is left as it is. ConfigError when it cannot be written."""
    if (found := stopped(state)) and os.path.isdir(state):
        return found
    text = json.dumps({"who": who, "when": iso(clock.now()), "why": why})
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(state / STOP, text.encode() + b"\n")
    except OSError as error:
        raise ConfigError(
            f"{state / STOP}: cannot be written: {error.strerror}",
            remedy="make the state directory writable, or stop the daemon",
        ) from None
    return stopped(state) or StopReading(why)


def resume(state: Path) -> bool:
    """Remove STOP, for a person who asked for it: True if it existed. ConfigError for a directory."""
    path = state / STOP
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", remedy="remove it by hand") from None
    return True


def _reason(path: Path) -> str:
    """The reason in the file, if it is a small regular file; it does not affect the decision."""
    try:
        text = read_bounded(path, 4096, mark="drop").decode("utf-8", "replace").strip()
    except OSError:
        return ""
    if not text:
        return ""
    try:
        note = json.loads(text)
        return f": {note['why']} ({note['who']}, {note['when']})"
    except (ValueError, TypeError, KeyError, RecursionError):
        return f": {text[:200]}"
