"""`config/jail-check.sh`, in namespaces of its own where a jail really cannot be made."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.files import ROOT

SCRIPT = ROOT / "config/jail-check.sh"
NO_SPACES = "echo 0 > /proc/sys/user/max_user_namespaces"
COVERED = "mount -t tmpfs none /proc/fs"
READ_ONLY = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys"
pytestmark = pytest.mark.jail


def check(first: str = "true", *words: str, **more: str) -> tuple[int, str]:
    """Exit status and words of the script, after a command as root of fresh user and mount namespaces."""
    inner = f'{first} || exit 99; exec sh "$0" "$@"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", inner, str(SCRIPT), *words],
        capture_output=True,
        text=True,
        timeout=20,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]} | more,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_says_nothing_where_a_jail_can_be_made() -> None:
    assert check() == (0, "")


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (NO_SPACES, "user namespaces are switched off (user.max_user_namespaces=0)"),
        (COVERED, "parts of /proc are masked, as in a container"),
        (READ_ONLY, "/proc/sys is read-only here, as in a container"),
    ],
)
def test_names_the_reason_both_remedies_and_the_page(first: str, reason: str) -> None:
    code, said = check(first)
    assert code == 4
    assert reason in said
    assert "docs/containers.md" in said
    assert "config/seccomp.json" in said
    assert """QA_FLEET_JAIL='{ backend = "docker" }'""" in said


def test_names_ubuntus_restriction(tmp_path: Path) -> None:
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/apparmor_restrict_unprivileged_userns").write_text("1\n")
    code, said = check(NO_SPACES, str(tmp_path))
    assert code == 4
    assert "AppArmor denies user namespaces" in said
    assert "Ubuntu" in said


def test_docker_as_the_backend_needs_the_socket_alone(tmp_path: Path) -> None:
    chosen = {"QA_FLEET_JAIL": '{ backend = "docker" }', "DOCKER_HOST": f"unix://{tmp_path}/e.sock"}
    code, said = check(NO_SPACES, **chosen)
    assert code == 4
    assert f"{tmp_path}/e.sock is not a socket that this user may write to" in said
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(tmp_path / "e.sock"))
        assert check(NO_SPACES, **chosen) == (0, "")


def test_reads_the_backend_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "fleet.toml").write_text('[model]\nbackend = "x"\n[jail]\nbackend = "docker"\n')
    code, said = check(CONFIGURATION_DIRECTORY=str(tmp_path), DOCKER_HOST=f"unix://{tmp_path}/none")
    assert code == 4
    assert "[jail] backend is docker" in said


def test_make_demo_says_so_before_it_installs_anything(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "sh",
            "-c",
            f'{NO_SPACES}; make demo VENV="$0"',
            str(tmp_path / "v"),
        ],
        capture_output=True,
        text=True,
        timeout=20,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
    )
    assert done.returncode == 2  # make's own; it names the script's 4
    assert "user namespaces are switched off" in done.stderr
    assert "Error 4" in done.stderr
    assert not (tmp_path / "v").exists()


def test_a_demo_without_make_says_so_before_it_starts_a_chain(tmp_path: Path) -> None:
    """As in a container with its usual options, whose entry point is `fleet`."""
    user = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--keep-caps")
    script = f'{NO_SPACES}; exec setpriv --inh-caps -all --ambient-caps -all "$@"'
    done = subprocess.run(
        [*user, "sh", "-c", script, "sh", sys.executable, "-m", "fleet.cli", "demo"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "STATE_DIRECTORY": str(tmp_path / "state")},
    )
    assert (done.returncode, done.stdout) == (4, ""), done.stderr
    assert "no more namespaces may be made here" in done.stderr
    assert 'backend = "docker"' in done.stderr
    assert "docs/" in done.stderr
    assert not (tmp_path / "state" / "demo").exists()
