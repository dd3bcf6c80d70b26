"""A consistent copy of a SQLite journal that others may be writing to, by SQLite's online backup."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from fleet.errors import ConfigError

PAGES = 1_000
"""Pages copied at a time: writers get their turn in between."""


def copy_journal(source: Path, target: Path) -> None:
    """Write one file without a write-ahead log (mode 0600); ConfigError when the source is damaged."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    try:
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as near,
            closing(sqlite3.connect(target)) as far,
        ):
            near.backup(far, pages=PAGES)
            far.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise ConfigError(f"{source}: cannot be copied: {error}", remedy="fleet check machine") from None
