"""The battery as the product runs it, and without a fence: `python -m tests.jail.driver local [ID ...]`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fleet.jail.battery.attempts import tried
from fleet.jail.battery.yard import Backend
from fleet.jail.model import Image, Jail
from tests.doubles.jail import LocalJail


class NoFence(Backend):
    """Processes of this user: what a probe must be able to do where nothing holds it."""

    def open(self, image: Image, spool: Path, work: Path | None = None) -> Jail:
        return LocalJail(image)


if __name__ == "__main__":
    word, *names = sys.argv[1:]
    print(json.dumps(tried(NoFence("local") if word == "local" else Backend(*word.split(" ")), names)))
