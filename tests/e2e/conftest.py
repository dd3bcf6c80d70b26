"""The command line as a user runs it: a process, a state directory, an exit code."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.signing.tx import parse
from tests.cli_process import run_fleet

LONG = pytest.mark.skipif("E2E_FULL" not in os.environ, reason="most of a minute for one more case: make e2e")


@dataclass(frozen=True)
class Said:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Fleet = Callable[..., Said]


def command(state: Path, **more: str) -> Fleet:
    """Runs `fleet …` over one state directory, with an environment that holds nothing else of ours."""

    def fleet(
        *words: str, timeout: float = 300, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Said:
        environment = {"PATH": os.environ["PATH"], "HOME": str(state), "STATE_DIRECTORY": str(state)}
        environment["QA_FLEET_EXPLORE"] = "false"
        environment |= env or {}
        environment |= more
        done = run_fleet(*words, timeout=timeout, env=environment, cwd=cwd)
        return Said(done.returncode, done.stdout, done.stderr)

    return fleet


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def fleet(state: Path) -> Fleet:
    return command(state)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory that the tests of one module share."""
    path = tmp_path_factory.mktemp("shared") / "state"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture(scope="module")
def devnet(shared: Path) -> Iterator[Fleet]:
    """`fleet` over a state directory with a devnet up, defects and all."""
    fleet = command(shared)
    up = fleet("devnet", "up", "--json")
    assert up.code == 0, up.err
    yield fleet
    down = fleet("devnet", "down")
    assert down.code == 0, down.err


def processes_of(state: Path) -> list[str]:
    """Command lines of every process that names this state directory, ours excepted."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if str(state) in line:
                found.append(line)
    return found


def signed(state: Path) -> set[str]:
    """Names of the functions of every transaction that was ever signed over this state; "" a transfer."""
    with sqlite3.connect(state / "demo" / "fleet.db") as db:
        raws = [
            raw for (raw,) in db.execute("select json_extract(data, '$.raw') from effects where kind = 'tx'")
        ]
    names = {function.selector: name for name, function in FUNCTIONS.items()}
    return {names.get(parse(bytes.fromhex(raw))[0].data[:4], "") for raw in raws}
