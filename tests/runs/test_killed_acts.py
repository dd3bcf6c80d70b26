"""`kill -9` beside each step of an act on a page: what reached the server is in the ledger, once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not os.environ.get("CRASH_FULL"), reason="ten processes: make crash")
def test_an_act_is_in_the_ledger_once_wherever_its_process_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.runs.killed_acts", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    trials = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, len(trials)) == (0, 10), done.stderr[-2000:]
    assert [one["status"] for one in trials] == [signal.SIGKILL] * 9 + [0]
    assert [one["asked"] for one in trials] == [0] * 4 + [1] * 6
    assert [one["lines"] for one in trials] == [[]] * 3 + [["cut"]] * 2 + [[""]] * 5
    assert [one["effects"] for one in trials] == [[], ["failed"], ["failed"], *[["done"]] * 7]
    assert {one["fault"] for one in trials} == {""}
