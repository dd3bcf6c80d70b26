"""The escape battery against the real jail, as root and as an ordinary user, and against no jail at all."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import sysconfig
from contextlib import ExitStack
from pathlib import Path

import pytest

from fleet.jail.battery.probes.battery import ALL
from fleet.jail.battery.scenarios import SCENARIOS
from fleet.jail.jail_spec import Staging

pytestmark = pytest.mark.jail

USER = 64_999
ROOT = Path(__file__).parents[2]
SITE = Path(sysconfig.get_path("purelib"))
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
WAYS = ("forks", "bwrap")
"""How bubblewrap's jails are made: forked, as those of runs are, or each from nothing."""
CALLERS = ("root", "user") if os.geteuid() == 0 else ("user",)
OPEN_WITHOUT_A_JAIL = (
    "F01",
    "F11",
    "F16",
    "K05",
    "K09",
    "K10",
    "K13",
    "K14",
    "L02",
    "N01",
    "N05",
    "N06",
    "P01",
    "P05",
    "R03",
    "R10-core",
)
"""Harmless probes that must escape from the double: a battery that cannot fail proves nothing."""

Report = dict[str, tuple[bool, str]]


def start(stack: ExitStack, caller: str, *arguments: str, python: str = "") -> subprocess.Popen[str]:
    """Start the driver as root, or as a user who can reach neither root's Python nor its checkout."""
    environment = {"PATH": "/usr/bin:/bin", "QA_CANARY": secrets.token_hex(8)}
    words = ["-m", "tests.jail.driver", *arguments]
    if caller == "root" or os.geteuid() != 0:
        command = [python or sys.executable, *words]
        environment["PYTHONPATH"] = f"{ROOT}:{SITE}"
        return kept(
            stack, subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        )
    sources = [(ROOT, "repo"), (SITE, "site"), (Path(sys.base_prefix), "py")]
    staging = Staging([(path.resolve(), name, False) for path, name in sources], owner=0)
    stack.callback(staging.close)
    environment |= {"PYTHONPATH": "/run/repo:/run/site", "LD_LIBRARY_PATH": "/run/py/lib"}
    process = staging.submit(
        lambda: subprocess.Popen(
            [python or f"/run/py/bin/{VERSION}", *words],
            cwd="/run/repo",
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            user=USER,
            group=USER,
            extra_groups=[],
        )
    ).result()
    return kept(stack, process)


def kept(stack: ExitStack, process: subprocess.Popen[str]) -> subprocess.Popen[str]:
    """The process, which ends with the stack also when nobody came to finish it."""
    stack.enter_context(process)  # closes its pipe and waits
    stack.callback(process.kill)
    return process


def finish(process: subprocess.Popen[str]) -> Report:
    output, _ = process.communicate(timeout=110)
    assert process.returncode == 0
    return {name: (held, seen) for name, (held, seen) in json.loads(output).items()}


@pytest.fixture(scope="module")
def reports() -> dict[tuple[str, str], Report]:
    found: dict[tuple[str, str], Report] = {}
    for way in WAYS:
        with ExitStack() as stack:
            running = {caller: start(stack, caller, way) for caller in CALLERS}
            found |= {(way, caller): finish(process) for caller, process in running.items()}
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("name", [*ALL, *SCENARIOS])
def test_the_fence_holds(reports: dict[tuple[str, str], Report], way: str, caller: str, name: str) -> None:
    held, seen = reports[way, caller][name]
    assert held, seen


def test_the_battery_fails_without_a_fence() -> None:
    with ExitStack() as stack:
        report = finish(start(stack, "user", "local", *OPEN_WITHOUT_A_JAIL))
    assert {name for name, (held, _) in report.items() if held} == set()
    assert set(report) == set(OPEN_WITHOUT_A_JAIL)


@pytest.mark.skipif(not Path("/usr/bin", VERSION).exists(), reason=f"the system has no {VERSION}")
@pytest.mark.parametrize("caller", CALLERS)
def test_an_interpreter_of_the_system_does_as_well(caller: str) -> None:
    with ExitStack() as stack:
        report = finish(start(stack, caller, "bwrap", "W01", "P06", "K13", python=f"/usr/bin/{VERSION}"))
    assert {name: held for name, (held, _) in report.items()} == {"W01": True, "P06": True, "K13": True}
