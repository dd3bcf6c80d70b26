"""kill -9 at every durable step: what was recorded is there, what was not is not, nothing is half."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.store.cluster import Cluster

DYING = Path(__file__).with_name("dying.py")
ROUNDS = 21
"""Opening, 18 writes, and one round in which nothing dies."""


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(DYING.parents[2])}


@pytest.fixture(scope="module", params=["file", "postgres"])
def rounds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Any]:
    folder = tmp_path_factory.mktemp("dying")
    places = [str(folder / f"{n}.db") for n in range(ROUNDS)]
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("cluster")
        places = [cluster.place() for _ in range(ROUNDS)]
    done = subprocess.run(
        [sys.executable, str(DYING), str(folder), *places],
        env=_env(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {line["n"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.crash
@pytest.mark.parametrize("n", range(1, ROUNDS + 1))
def test_killed_at_each_step(rounds: dict[int, Any], n: int) -> None:
    end = rounds[n]
    assert end["code"] == (-signal.SIGKILL if n < ROUNDS else 0)
    assert int(end["count"].split()[0]) == min(n, ROUNDS - 1)
    assert end["killed"] == end["clean"]


@pytest.mark.crash
def test_a_budget_is_not_reset_by_a_kill(rounds: dict[int, Any]) -> None:
    after_two_writes = rounds[6]
    assert after_two_writes["count"] == "6 budget.writes\n"
    assert after_two_writes["killed"]["spent"] == {"writes": 2}


@pytest.mark.crash
def test_a_reserve_is_kept_by_a_kill_until_it_is_settled(rounds: dict[int, Any]) -> None:
    assert (rounds[7]["count"], rounds[8]["count"]) == ("7 budget.reserve\n", "8 budget.settle\n")
    for number, tokens in ((7, 80), (8, 30)):
        killed = rounds[number]["killed"]
        assert killed["spent"] == {"writes": 2, "tokens": tokens}
        assert killed["day"] == {"": killed["spent"], "qa-x": killed["spent"]}


def test_the_room_is_cheap_to_import() -> None:
    heavy = (
        "import sys, fleet.store, fleet.store.rows, fleet.store.failpoints, fleet.gate.gate, fleet.gate.dial;"
    )
    check = heavy + "sys.exit(bool({'sqlalchemy', 'psycopg', 'web3', 'httpx'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check], env=_env(), check=False).returncode == 0


def test_a_journal_in_a_file_brings_neither_the_orm_nor_greenlets() -> None:
    check = "import sys, fleet.store.journal; sys.exit(any(m in sys.modules for m in sys.argv[1:]))"
    argv = [sys.executable, "-c", check, "sqlalchemy.orm", "greenlet"]
    assert subprocess.run(argv, env=_env(), check=False).returncode == 0
