"""The images at a real engine, DOCKER_HOST's: `make image`, then `make image-test`."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections.abc import Iterator

import pytest

from fleet.config import ROOT

pytestmark = [
    pytest.mark.skipif("IMAGE_TEST" not in os.environ, reason="needs the images: make image image-test"),
    pytest.mark.timeout(600),
]
IMAGE = "qa-fleet:0.1.0"
WALL = ("--network", "none", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL")
OWN = ("--security-opt", "no-new-privileges")
FILTER = ("--security-opt", f"seccomp={ROOT / 'config/seccomp.json'}")
PROC = ("--security-opt", "systempaths=unconfined")
CHECK = ("--entrypoint", "/bin/sh", IMAGE, "/opt/qa-fleet/config/jail-check.sh")
PROBE = ("/usr/bin/python3", "/opt/qa-fleet/config/probe.py")


def docker(*words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *words], capture_output=True, text=True, timeout=timeout)


@pytest.fixture
def service() -> Iterator[str]:
    """The name of a daemon in a container, on its own devnet; removed with its volume."""
    name = f"qa-fleet-test-{uuid.uuid4().hex[:8]}"
    script = "fleet devnet up && exec fleet up"
    words = (*WALL, *OWN, *FILTER, *PROC, "--entrypoint", "/bin/sh", IMAGE, "-c", script)
    try:
        started = docker("run", "--detach", "--init", "--name", name, "--health-interval", "2s", *words)
        assert started.returncode == 0, started.stderr
        yield name
    finally:
        docker("rm", "--force", "--volumes", name)


def test_a_container_with_default_flags_is_told_why_no_jail_works() -> None:
    done = docker("run", "--rm", *WALL, *OWN, *CHECK)
    assert done.returncode == 4
    assert "a seccomp filter denies user namespaces" in done.stderr


def test_each_of_the_two_flags_is_needed_and_they_are_enough() -> None:
    without_proc = docker("run", "--rm", *WALL, *OWN, *FILTER, *CHECK)
    assert without_proc.returncode == 4
    assert "/proc/sys is read-only here" in without_proc.stderr
    assert docker("run", "--rm", *WALL, *OWN, *PROC, *CHECK).returncode == 4
    both = docker("run", "--rm", *WALL, *OWN, *FILTER, *PROC, *CHECK)
    assert (both.returncode, both.stderr) == (0, "")


def test_the_image_is_no_root_and_has_no_build_tools() -> None:
    script = "id -u; command -v gcc cc make pip npm node; cd /opt/qa-fleet/.venv/bin; ls pip* mypy* pytest*"
    done = docker("run", "--rm", *WALL, *OWN, "--entrypoint", "/bin/sh", IMAGE, "-c", script)
    assert done.stdout.split() == ["10001"]


def test_the_filter_refuses_what_it_says() -> None:
    script = (
        "import ctypes, socket\n"
        "call = ctypes.CDLL(None, use_errno=True).syscall\n"
        "def asked(*words):\n"
        "    return ctypes.get_errno() if call(*words) == -1 else 0\n"
        "print(asked(435, 0, 0), asked(425, 1, 0), asked(250, 0, 0))\n"
        "print(asked(272, 0x80), asked(272, 0x10000000))\n"
        "try:\n    socket.socket(40)\nexcept OSError as e:\n    print(e.errno)\n"
    )
    words = ("--entrypoint", "/usr/bin/python3", IMAGE, "-c", script)
    done = docker("run", "--rm", *WALL, *OWN, *FILTER, *PROC, *words)
    # clone3, io_uring_setup, keyctl, a time namespace; a user namespace is granted; AF_VSOCK
    assert done.stdout.split() == ["38", "1", "1", "1", "0", "1"], done.stderr


def test_docker_run_to_a_finished_demo_as_no_root() -> None:
    done = docker("run", "--rm", *WALL, *OWN, *FILTER, *PROC, IMAGE, "demo", timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "21 of 21 seeded defects found" in done.stdout
    assert "0 false" in done.stdout
    assert "0 jails left" in done.stdout


def test_the_service_is_healthy_ready_and_drains(service: str) -> None:
    ends = time.monotonic() + 120
    state = ""
    while state != "healthy" and time.monotonic() < ends:
        time.sleep(1)
        state = docker("inspect", "--format", "{{.State.Health.Status}}", service).stdout.strip()
    assert state == "healthy", docker("logs", service).stderr[-2000:]
    assert docker("exec", service, *PROBE, "/readyz").returncode == 0
    assert docker("exec", service, *PROBE, "/nowhere").returncode == 1
    assert docker("stop", "--time", "210", service).returncode == 0
    assert docker("inspect", "--format", "{{.State.ExitCode}}", service).stdout.strip() == "0"
