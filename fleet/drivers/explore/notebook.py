"""What explorers know of a platform, kept between runs: `explore/<platform>/<explorer>.json`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet.drivers.desk import Question
from fleet.errors import FleetError
from fleet.files import read_owned, write_atomic
from fleet.personas.model import Step
from sandbox import strict_json

MAX_BYTES = 8 << 20
"""A larger notebook is not written, and not read: its explorer begins again."""
HELD = "-held"
"""Ends the name of the file with the questions of an explorer that were not answered."""
MAX_HELD = 500
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

    def questions(self, name: str) -> list[Question]:
        """The questions of an explorer that no run came to, or that had no answer."""
        found = self.read(f"{name}{HELD}").get("questions")
        with suppress(ValueError, TypeError):
            steps = [[Step.model_validate(step) for step in one] for one in found or ()]
            return [Question(tuple(one), led="an earlier run had no answer") for one in steps if one]
        return []

    def hold(self, name: str, questions: Sequence[Question]) -> None:
        """Keep the questions of an explorer that had no answer: it may know them as asked."""
        key = f"{name}{HELD}"
        if questions or self.read(key):
            kept = questions[:MAX_HELD]
            self.write(key, {"questions": [[s.model_dump(mode="json") for s in one.steps] for one in kept]})

    def write(self, name: str, state: Mapping[str, Any]) -> None:
        """Keep what an explorer knows."""
        try:
            text = json.dumps(state, sort_keys=True).encode()
            if len(text) <= MAX_BYTES:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_atomic(self.folder / f"{name}.json", text)
        except (OSError, ValueError, TypeError) as error:
            _LOG.warning("%s: not written: %s", self.folder / name, error)
