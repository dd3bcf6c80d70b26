"""The unit under a real systemd: one boot in a container, looked at from every side.

The watchdog is shortened to 8 s and the pause before a restart to 1 s; all else is as it is installed.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.systemd import rig

pytestmark = [pytest.mark.systemd, pytest.mark.jail, pytest.mark.devnet, pytest.mark.timeout(1500)]

Facts = dict[str, Any]


@pytest.fixture(scope="module")
def booted() -> rig.Booted:
    if reason := rig.missing():
        pytest.skip(reason)
    with rig.root() as folder:
        rig.furnish(folder)
        return rig.boot(folder)


@pytest.fixture
def facts(booted: rig.Booted) -> Facts:
    return booted.facts


def test_every_step_was_taken(booted: rig.Booted) -> None:
    assert "failed" not in booted.facts, booted.facts["failed"] + booted.facts["journal"][-3000:]
    print({"boot": round(booted.seconds, 1), **booted.facts["seconds"]})


def test_it_installs_itself_and_makes_its_user(facts: Facts) -> None:
    got = facts["install"]
    assert (got["done"]["code"], got["users"]["code"], got["mode"]) == (0, 0, "0o644")
    assert {"scope": "system", "state": "current", "unit": "/etc/systemd/system/qa-fleet.service"} in got[
        "show"
    ]


@pytest.mark.parametrize("where", ["doctor", "hidden"])
def test_jails_hold_under_the_hardened_unit(facts: Facts, where: str) -> None:
    report = facts[where]["report"]
    assert [check for check in report["checks"] if not check["ok"]] == []
    assert {"jail", "jail: way out", "jail: kill", "keys", "platform"} <= {
        row["check"] for row in report["checks"]
    }
    assert (facts[where]["done"]["code"], report["ok"]) == (0, True)


def test_a_checkout_in_a_home_is_seen_by_the_service_alone(facts: Facts) -> None:
    assert "ProtectHome=tmpfs\nBindReadOnlyPaths=/root/checkout\n" in facts["hidden"]["unit"]
    assert facts["hidden"]["check"]["profile"] == "/root/checkout/config/platforms/example.toml"


def test_it_starts_and_says_ready(facts: Facts) -> None:
    done, show = facts["start"]["done"], facts["start"]["show"]
    assert (done["code"], show["ActiveState"], show["SubState"]) == (0, "active", "running"), done
    assert (show["WatchdogUSec"], show["TimeoutStopUSec"]) == ("8s", "3min 30s")


def test_a_mistake_in_the_configuration_is_told_before_anything_starts(facts: Facts) -> None:
    got = facts["misconfigured"]
    assert (got["done"]["code"], got["seen"]["MainPID"]) == (1, "0")
    _, known, rest = got["log"].partition("QA_FLEET_CONCURENCY: unknown variable; valid ones: ")
    assert known
    assert "QA_FLEET_CONCURRENCY" in rest.splitlines()[0]


def test_jails_hold_under_the_unit_of_a_user(facts: Facts) -> None:
    checks = {row["check"]: row["ok"] for row in facts["own"]["report"]["checks"] if "jail" in row["check"]}
    assert len(checks) > 10
    assert all(checks.values()), facts["own"]["report"]
    assert facts["own"]["directories"] == ["/home/dev/.config/qa-fleet", "/home/dev/.config/qa-fleet"]


def test_it_runs_as_nobody_in_particular(facts: Facts) -> None:
    process = facts["start"]["process"]
    assert "0" not in process["Uid"]
    assert (set(process["CapEff"]), set(process["CapBnd"])) == ({"0" * 16}, {"0" * 16})
    assert (process["NoNewPrivs"], process["Seccomp"]) == (["1"], ["2"])


def test_the_status_line_tells_rung_runs_and_queue(facts: Facts) -> None:
    said = facts["working"]["show"]["StatusText"]
    assert said.startswith("exercise: ")
    assert " runs, " in said
    assert said.endswith(" waiting")
    assert "qa-rig" in {run["persona"] for run in facts["working"]["running"]}


def test_a_second_instance_is_refused(facts: Facts) -> None:
    assert facts["second"]["code"] == 75
    assert "another fleet" in facts["second"]["err"]


def test_a_killed_daemon_comes_back_and_settles_what_it_held(facts: Facts) -> None:
    got = facts["killed"]
    assert (got["show"]["ActiveState"], got["show"]["NRestarts"]) == ("active", "1")
    assert got["held"], "it held nothing when it was killed"
    assert {(row["state"], row["outcome"]) for row in got["rows"]} == {("ended", "crashed")}
    assert (set(got["names"]) - {"released", "failed"}, got["open_effects"], got["keys"]) == (set(), [], [])


def test_a_hang_is_ended_by_the_watchdog_and_it_comes_back(facts: Facts) -> None:
    got = facts["hung"]
    assert (got["show"]["ActiveState"], got["show"]["NRestarts"]) == ("active", "2")
    assert 4 <= got["seconds"] < 60
    assert {(row["state"], row["outcome"]) for row in got["rows"]} == {("ended", "crashed")}
    assert set(got["names"]) - {"released", "failed"} == set()
    assert "Watchdog timeout (limit 8s)!" in facts["journal"]
    assert "Failed with result 'watchdog'" in facts["journal"]
    assert "Fatal Python error: Aborted" in facts["journal"]


def test_stop_drains_within_the_time_out_and_every_run_has_its_footer(facts: Facts) -> None:
    got = facts["stopped"]
    assert (got["show"]["ActiveState"], got["show"]["Result"]) == ("inactive", "success")
    assert got["running"], "nothing was running when it was stopped"
    assert got["seconds"] < 90
    assert (got["unfinished"], got["open"], got["held"], got["open_effects"], got["jails"]) == (
        [],
        [],
        [],
        [],
        [],
    )
    assert got["trajectories"] >= 2


def test_no_process_is_left(facts: Facts) -> None:
    assert facts["empty"]["processes"] == ""


def test_systemd_finds_it_as_closed_as_jails_allow(facts: Facts) -> None:
    got = facts["exposure"]
    assert got["code"] == 0
    assert "Overall exposure level for qa-fleet.service: 2.7 OK" in got["out"]


def test_it_removes_itself(facts: Facts) -> None:
    assert (facts["removal"]["done"]["code"], facts["removal"]["left"]) == (0, False)
