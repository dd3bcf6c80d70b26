"""`fleet items log` on a platform whose log is a file: list, epochs, verify."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from fleet.chain.log.file_log import FileLog
from fleet.chain.signing.judge import SigningLimits
from fleet.config import load_platform
from fleet.errors import ConfigError
from fleet.store.journal import Journal
from fleet.triage.log.mirror import follow
from tests.cli_process import run_fleet
from tests.doubles.chain import DIAMOND, MemoryChain

pytestmark = pytest.mark.anyio

PROFILE = f"""
name = "filed"
log = "file:own"

[chain]
rpc = "http://127.0.0.1:9"
id = 7
diamond = "{DIAMOND}"
"""


@pytest.fixture
async def state(tmp_path: Path) -> Path:
    """A log of two entries after a clear, and its mirror."""
    (tmp_path / "devnet").mkdir()
    (tmp_path / "devnet" / "filed.toml").write_text(PROFILE)
    profile, _ = load_platform("filed", tmp_path)
    path = profile.log_file(tmp_path)
    assert path == tmp_path / "logs" / "own.jsonl"
    signer = MemoryChain(SigningLimits(rung=lambda: "observe")).signer
    log = FileLog(path, signer)
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        await log.post("before the clear")
        await follow(log, journal, name=profile.log_name)
        path.unlink()
        await log.post_many(["one", "two \x1b[31m"])
        await follow(log, journal, name=profile.log_name)
    return tmp_path


def fleet_log(state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_fleet(
        *("items", "log", *words, "--platform", "filed"),
        timeout=90,
        env=os.environ | {"STATE_DIRECTORY": str(state)},
    )


async def test_list_and_epochs(state: Path) -> None:
    now = json.loads(fleet_log(state, "list", "--json").stdout)
    assert [row["index"] for row in now] == [0, 1]
    assert now[0]["text"] == "one"
    assert "\x1b" not in now[1]["text"]
    before = json.loads(fleet_log(state, "list", "--json", "--epoch", "0").stdout)
    assert [(row["index"], row["text"]) for row in before] == [(0, "before the clear")]
    said = fleet_log(state, "list", "--epoch", "5")
    assert (said.returncode, "has no epoch 5; it has 0, 1" in said.stderr) == (2, True)


async def test_verify_says_what_differs(state: Path) -> None:
    said = fleet_log(state, "verify", "--json")
    found = json.loads(said.stdout)
    assert (said.returncode, found["differs"]) == (0, False)
    assert [(row["why"], row["entries"], row["broken_at"]) for row in found["epochs"]] == [
        ("first", 1, None),
        ("cleared", 2, None),
    ]
    assert (found["compared"]["checked"], found["compared"]["differs"]) == (2, None)
    path = state / "logs" / "own.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    said = fleet_log(state, "verify")
    assert said.returncode == 1
    assert "the log differs from index 1 on (1 entry there)" in said.stdout


def test_a_name_that_is_a_path_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "devnet").mkdir()
    (tmp_path / "devnet" / "filed.toml").write_text(PROFILE.replace("file:own", "file:../STOP"))
    with pytest.raises(ConfigError, match="log"):
        load_platform("filed", tmp_path)
