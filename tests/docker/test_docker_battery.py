"""The escape battery against containers of a real engine: every probe holds, or is listed as weaker."""

from __future__ import annotations

import os
import re
import tomllib
from contextlib import ExitStack
from pathlib import Path

import pytest

from fleet.jail.battery.probes.battery import ALL
from fleet.jail.battery.report import WEAKER_FILE
from fleet.jail.battery.scenarios import SCENARIOS
from tests.docker.jails import containers, volumes
from tests.docker.members import start_member, why_no_member
from tests.dockerd import DockerEngine, running_engine, why_no_engine
from tests.jail.test_battery import finish, start

pytestmark = [pytest.mark.jail, pytest.mark.docker]

TIMES = int(os.environ.get("DOCKER_BATTERIES", "1"))
"""The long form runs the whole battery often on one engine: what is left behind adds up."""
_LISTED = tomllib.loads(WEAKER_FILE.read_text())
WEAKER, MEMBERS = _LISTED["docker"], _LISTED["docker"] | _LISTED.get("docker-user", {})
WHOLE = bool(os.environ.get("DOCKER_FULL"))
SHORT = ("F12", "J01 I02", "N09", "R02-crowd", "R08", "T01 P10", "T04")
"""Of what only the host can see: where an engine has another part in it than bubblewrap."""
NAMES = [*ALL, *(SCENARIOS if WHOLE else SHORT)]


def test_the_fence_holds_or_is_listed_as_weaker(dockerd: DockerEngine) -> None:
    """One test, so that one worker runs it once; what fails is named with what was seen."""
    before = dockerd.processes()
    for _ in range(TIMES):
        with ExitStack() as stack:
            report = finish(start(stack, "root", f"docker {dockerd.socket}", *NAMES))
        assert set(report) == set(NAMES)
        assert {name: seen for name, (held, seen) in report.items() if not held and name not in WEAKER} == {}
        again = [name for name in WEAKER if name in report and report[name][0]]
        assert again == [], "these hold: take them from fleet/jail/battery/weaker.toml"
        for name in WEAKER:
            assert re.fullmatch(WEAKER[name]["seen"], report[name][1]), (name, report[name])
    assert dockerd.processes() == before
    assert (containers(dockerd), volumes(dockerd)) == ([], [])


@pytest.mark.skipif(not WHOLE, reason="the battery a second time: make docker")
def test_it_holds_for_a_fleet_of_an_ordinary_user(dockerd: DockerEngine) -> None:
    if why := why_no_member(dockerd):
        pytest.skip(why)
    names = [name for name in NAMES if name != "T04"]  # it kills the engine's own process, which is of root
    with ExitStack() as stack:
        report = finish(start_member(stack, dockerd, *names))
    assert set(report) == set(names)
    assert {name: seen for name, (held, seen) in report.items() if not held and name not in MEMBERS} == {}
    for name, listed in MEMBERS.items():
        assert not report[name][0], f"{name} holds: take it from fleet/jail/battery/weaker.toml"
        assert re.fullmatch(listed["seen"], report[name][1]), (name, report[name])
    assert (containers(dockerd), volumes(dockerd)) == ([], [])


def test_the_list_names_probes() -> None:
    assert {*WEAKER, *MEMBERS} <= {*ALL, *SCENARIOS}


def test_a_stopped_engine_leaves_nothing() -> None:
    """The fixture itself: what it started, its mounts and its folder are gone."""
    if why := why_no_engine():
        pytest.skip(why)
    with running_engine() as engine:
        assert engine.pid in engine.processes()
    assert engine.processes() == []
    assert not engine.folder.exists()
    assert str(engine.folder) not in Path("/proc/self/mountinfo").read_text()
