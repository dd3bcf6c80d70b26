"""`fleet up` with nothing replaced but the clock on the wall: it reads a step, in seconds, from a file."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path

from fleet.app.bootstrap import Options
from fleet.cli.console import run
from fleet.cli.operate.up import stay
from fleet.clock import SystemClock
from fleet.files import state_dir
from fleet.service.logs import configure


class SteppedClock(SystemClock):
    """The real clock, set wrong by what the file says now."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=float(self._path.read_text("ascii")))


if __name__ == "__main__":
    configure()
    folder, step = map(Path, sys.argv[1:])
    options = Options(state_dir(), (folder,), grace_s=20.0, clock=SteppedClock(step))
    run(lambda: stay(options))
