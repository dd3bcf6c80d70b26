"""The fleet on containers, from outside. Its demo takes minutes: it runs when it is asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.dockerd import DockerEngine
from tests.e2e.conftest import command, processes_of

pytestmark = [pytest.mark.devnet, pytest.mark.jail, pytest.mark.docker, pytest.mark.timeout(600)]


def backends(state: Path) -> set[str]:
    """What the header of each run's record says of its jail."""
    headers = (path.read_text().partition("\n")[0] for path in state.glob("demo/runs/*/trajectory.jsonl"))
    return {json.loads(header)["jail"] for header in headers}


@pytest.mark.skipif(
    not os.environ.get("DOCKER_FULL"), reason="a demo on containers takes minutes: make docker"
)
def test_it_finds_every_seeded_defect_on_containers(dockerd: DockerEngine, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    fleet = command(state, QA_FLEET_JAIL=f'{{ backend = "docker", socket = "{dockerd.socket}" }}')
    said = fleet("demo", "--json", timeout=500)
    assert said.code == 0, said.err
    assert said.data["defects_seeded"] == said.data["defects_found"] == 21
    assert (said.data["missed"], said.data["false_findings"]) == ([], 0)
    assert (said.data["names_leaked"], said.data["jails_left"]) == (0, 0)
    assert backends(state) == {"docker/standard"}
    assert processes_of(state) == []
    client = dockerd.client()
    try:
        assert client.containers.list(all=True) == []
    finally:
        client.close()


def test_doctor_shows_the_engine_and_what_is_weaker(dockerd: DockerEngine, tmp_path: Path) -> None:
    fleet = command(tmp_path, QA_FLEET_JAIL=f'{{ backend = "docker", socket = "{dockerd.socket}" }}')
    rows = {row["check"]: row for row in fleet("check", "machine", "--json").data["checks"]}
    assert (rows["jail"]["ok"], rows["jail"]["seen"]) == (True, "docker, standard")
    assert rows["jail: later system calls"]["ok"]
    assert "root on this machine" in rows["jail: engine"]["seen"]
    assert rows["jail: containers"]["seen"].startswith("0 of living fleets")


@pytest.mark.skipif(
    not os.environ.get("DOCKER_FULL"), reason="what it says is tested in process (tests/jail/test_choice.py)"
)
def test_doctor_says_why_before_it_tries(tmp_path: Path) -> None:
    fleet = command(tmp_path, QA_FLEET_JAIL=f'{{ backend = "docker", socket = "unix://{tmp_path}/none" }}')
    rows = {row["check"]: row for row in fleet("check", "machine", "--json").data["checks"]}
    assert not rows["jail"]["ok"]
    assert rows["jail"]["seen"].startswith("no Docker engine answers at")
    assert 'backend = "bubblewrap"' in rows["jail"]["seen"]
