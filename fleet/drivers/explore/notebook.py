"""What explorers know of a platform, kept between runs: `explore/<platform>/<explorer>.json`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet.errors import FleetError
from fleet.files import read_owned, write_atomic
from sandbox import strict_json

MAX_BYTES = 8 << 20
"""A larger notebook is not written, and not read: its explorer begins again."""
_LOG = logging.getLogger("fleet.explore")


@dataclass(frozen=True, slots=True)
class Notebook:
    """Fails open: a notebook that cannot be read or written costs repeated questions, nothing else."""

    folder: Path

    def read(self, name: str) -> Mapping[str, Any]:
        """What an explorer knew; empty when there is nothing, or nothing readable."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            return {}
        try:
            found = strict_json.loads(read_owned(path, MAX_BYTES))
        except (OSError, ValueError, FleetError) as error:
            _LOG.warning("%s: ignored: %s", path, error)
            return {}
        return found if isinstance(found, dict) else {}

    def write(self, name: str, state: Mapping[str, Any]) -> None:
        """Keep what an explorer knows."""
        try:
            text = json.dumps(state, sort_keys=True).encode()
            if len(text) <= MAX_BYTES:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_atomic(self.folder / f"{name}.json", text)
        except (OSError, ValueError, TypeError) as error:
            _LOG.warning("%s: not written: %s", self.folder / name, error)
