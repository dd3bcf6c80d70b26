"""The token of a publisher: read from its private file for each use, so that a new one counts at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from fleet.chain.keys import read_private
from fleet.errors import FixError

REMEDY = "write a fine-grained token with contents and pull requests read-write to it, mode 0600"
_TOKEN = re.compile(rb"[A-Za-z0-9._-]{16,1024}")


@dataclass(frozen=True, slots=True)
class TokenFile:
    """Where a token lies; the token itself is in no field, so no representation shows it."""

    path: Path

    def read(self) -> str:
        """ConfigError for a missing or open file, FixError for what is not a token."""
        token = read_private(self.path).strip()
        if not _TOKEN.fullmatch(token):
            raise FixError(f"{self.path}: not a token", remedy=REMEDY)
        return token.decode()
