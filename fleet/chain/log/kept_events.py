"""Events of a Reputation registry that count as final, kept in a file between processes.

The hash of the last block says whether they still hold: a reader compares it with the node's before it uses
them, and reads everything anew when it differs, or when the file is missing, damaged or of another profile.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fleet.files import read_owned, write_atomic

LARGEST = 64 << 20
"""Bytes of the file; a longer history is read anew by each process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryEvent:
    """One event of the registry. `index` counts a client's feedback; without a text it is a withdrawal."""

    block: int
    place: int
    client: str
    index: int
    sender: str
    tags: tuple[str, str] = ("", "")
    text: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalEvents:
    """All events up to a block of this hash; `of` says which registry, agent, clients and first block."""

    of: str
    block: int
    hash: str
    events: tuple[RegistryEvent, ...]


_FORM = TypeAdapter(FinalEvents)


def read_events(path: Path, of: str) -> FinalEvents | None:
    """What the file holds of this; None when it holds nothing that can be used."""
    try:
        found = _FORM.validate_json(read_owned(path, LARGEST))
    except (OSError, ValidationError):
        return None
    return found if found.of == of else None


def keep_events(path: Path, final: FinalEvents) -> None:
    """Write them down; without room on the disk they are read anew next time."""
    data = _FORM.dump_json(final)
    if len(data) <= LARGEST:
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            write_atomic(path, data)
