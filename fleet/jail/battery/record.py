"""The dated record of the escape battery in the state directory, and whether it still counts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fleet import __version__
from fleet.config import JailSection
from fleet.files import read_bounded, write_atomic
from fleet.jail.choice import backend

RECORD = "fence.json"
FRESH = timedelta(days=30)
"""A record counts for this long: kernels and engines are updated below a fleet that stays the same."""
NEVER = "the escape battery was not run here yet: fleet check machine --fence"
_RECORD_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class FenceRecord:
    """By the names of docs/safety.md. `weaker` is listed with its reason there, `failed` is a leak, and
    `untried` is what no jail could be made for."""

    at: str
    version: str
    kernel: str
    backend: str
    held: tuple[str, ...] = ()
    weaker: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    untried: Mapping[str, str] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return bool(self.held) and not self.failed and not self.untried

    def words(self) -> str:
        """In one line for a person."""
        counts = [f"{len(self.held)} attempts held"]
        counts += [f"{len(self.weaker)} weaker ({', '.join(self.weaker)})"] if self.weaker else []
        rows = [("LEAKS", self.failed), ("not tried", self.untried)]
        counts += [f"{word} {name}: {seen}" for word, found in rows for name, seen in found.items()]
        return (
            f"{'; '.join(counts)} ({self.at[:10]}, {self.backend}, Linux {self.kernel}, fleet {self.version})"
        )


def save(state: Path, record: FenceRecord) -> None:
    write_atomic(state / RECORD, json.dumps(asdict(record), indent=1).encode() + b"\n")


def read_record(state: Path) -> FenceRecord | None:
    """The newest record, None where the battery never ran here or its record cannot be read."""
    try:
        data = json.loads(read_bounded(state / RECORD, _RECORD_BYTES, mark="drop"))
        return FenceRecord(**data)
    except (OSError, ValueError, TypeError):
        return None


def jails_of(config: JailSection) -> str:
    """The backend in words, with an engine's runtime if one is set."""
    return f"{backend(config)} {config.runtime}".strip()


def outdated(record: FenceRecord, config: JailSection, now: datetime) -> str:
    """Why the battery has to run again, "" while the record counts."""
    here = {
        "fleet": (record.version, __version__),
        "kernel": (record.kernel, os.uname().release),
        "backend": (record.backend, jails_of(config)),
    }
    changed = [f"of {name} {then}, here is {today}" for name, (then, today) in here.items() if then != today]
    age = now - datetime.fromisoformat(record.at).astimezone(UTC)
    if age > FRESH:
        changed.insert(0, f"{age.days} days old")
    return (
        f"the escape battery's record is {', '.join(changed)}: fleet check machine --fence" if changed else ""
    )
