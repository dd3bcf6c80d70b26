"""A full disk is said: by `fleet status`, and by /readyz and /metrics."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

from fleet.app.lock import only_one
from fleet.disk_reserve import give_up, look
from fleet.service.exposition import exposition
from fleet.service.metrics import Tally
from tests.service.test_health import READING


def status(state: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(state), "STATE_DIRECTORY": str(state)}
    words = [sys.executable, "-m", "fleet.cli", "status", "--json"]
    said = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment)
    assert said.returncode == 0, said.stderr
    return str(json.loads(said.stdout)["degraded"])


def test_status_says_so_while_a_daemon_is_at_work_that_has_nothing_kept_back(tmp_path: Path) -> None:
    assert status(tmp_path) == ""
    with only_one(tmp_path):
        assert status(tmp_path) == "the disk is full: no new run starts"
        assert look(tmp_path) == ""
        assert status(tmp_path) == ""
        give_up(tmp_path)


def test_metrics_say_so() -> None:
    full = dataclasses.replace(READING, degraded="the disk is full: 0 MiB free")
    assert b"fleet_degraded 1.0" in exposition(full, Tally())
    assert b"fleet_degraded 0.0" in exposition(READING, Tally())
