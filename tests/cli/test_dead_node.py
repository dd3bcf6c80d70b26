"""A profile whose node is dead: the commands that ask it say so, with the remedy, and exit 4."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PROFILE = """name = "dead"
[chain]
rpc = "http://127.0.0.1:1"
id = 31337
diamond = "0x0000000000000000000000000000000000000001"
"""
REMEDY = "check chain.rpc in the platform profile, and that the node is up"


def fleet(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (root / "platforms").mkdir(exist_ok=True)
    (root / "platforms" / "dead.toml").write_text(PROFILE)
    (root / "fleet.toml").write_text('platform = "dead"\n')
    (root / "state").mkdir(mode=0o700, exist_ok=True)
    places = {"CONFIGURATION_DIRECTORY": str(root), "STATE_DIRECTORY": str(root / "state")}
    return subprocess.run(
        [sys.executable, "-m", "fleet.cli", *words],
        env=os.environ | places,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_a_dead_node_is_said_with_its_remedy_by_each_check_that_asks_it(tmp_path: Path) -> None:
    """All checks are made, and the exit status is that of the first which fails."""
    done = fleet(tmp_path, "check")
    assert done.returncode == 4, done.stderr
    _, *parts = re.split(r"^== (\w+: \w+)$", done.stdout, flags=re.M)
    assert parts[::2] == ["config: ok", "platform: NO", "machine: NO"]
    for part in parts[3::2]:
        (row,) = [line for line in part.splitlines() if "http://127.0.0.1:1" in line and "\t" in line]
        assert REMEDY in row


def test_config_check_reads_files_and_says_that_it_did_not_ask_the_node(tmp_path: Path) -> None:
    done = fleet(tmp_path, "check", "config")
    assert done.returncode == 0
    said = "not asked: http://127.0.0.1:1 and the pages; fleet check platform asks them"
    assert done.stdout.splitlines()[-1] == said
