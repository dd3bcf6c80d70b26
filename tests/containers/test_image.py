"""The images at a real engine, DOCKER_HOST's: `make image`, then `make image-test`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.files import ROOT

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
USER, CODE, STATE = 10_001, Path("/opt/qa-fleet"), Path("/srv/qa-fleet")
SOCKET = Path(os.environ.get("DOCKER_HOST", "unix:///run/docker.sock").removeprefix("unix://"))
JAIL = '{ backend = "docker", image = "qa-fleet-jail:0.1.0" }'
DEVNET_AND_FLEET = ("-c", "fleet devnet up && exec fleet up")


def docker(*words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *words], capture_output=True, text=True, timeout=timeout)


@pytest.fixture
def service() -> Iterator[str]:
    """The name of a daemon in a container, on its own devnet; removed with its volume."""
    name = f"qa-fleet-test-{uuid.uuid4().hex[:8]}"
    words = (*WALL, *OWN, *FILTER, *PROC, "--entrypoint", "/bin/sh", IMAGE, *DEVNET_AND_FLEET)
    try:
        started = docker("run", "--detach", "--init", "--name", name, "--health-interval", "2s", *words)
        assert started.returncode == 0, started.stderr
        yield name
    finally:
        docker("rm", "--force", "--volumes", name)


def healthy(name: str) -> None:
    """Wait until its health check says so."""
    ends = time.monotonic() + 120
    state = ""
    while state != "healthy" and time.monotonic() < ends:
        time.sleep(1)
        state = docker("inspect", "--format", "{{.State.Health.Status}}", name).stdout.strip()
    assert state == "healthy", docker("logs", name).stderr[-2000:]


def jails(state: Path) -> set[str]:
    """The containers, running or not, that the fleet of this state made beside its own."""
    shown = '{{.ID}} {{.Label "qa-fleet.spool"}}'
    listed = docker("ps", "--all", "--no-trunc", "--filter", "label=qa-fleet.spool", "--format", shown)
    assert listed.returncode == 0, listed.stderr
    return {line.split()[0] for line in listed.stdout.splitlines() if f":{state}/" in line}


@pytest.fixture
def state() -> Iterator[Path]:
    """What way 2 of docs/containers.md needs on the host: its folder for the state, and the image's code."""
    if os.geteuid() != 0:
        pytest.skip("gives a folder of the host to the image's user: root")
    if there := [str(path) for path in (CODE, STATE) if path.exists()]:
        pytest.skip(f"this machine has its own {', '.join(there)}")
    STATE.mkdir(mode=0o700)
    os.chown(STATE, USER, USER)
    made = docker("create", IMAGE).stdout.strip()
    try:
        assert docker("cp", f"{made}:{CODE}", str(CODE.parent)).returncode == 0
        yield STATE
    finally:
        docker("rm", "--force", "--volumes", made, *jails(STATE))
        shutil.rmtree(STATE)
        shutil.rmtree(CODE, ignore_errors=True)


def beside(state: Path) -> tuple[str, ...]:
    """The flags of way 2."""
    settings = (f"STATE_DIRECTORY={state}", f"QA_FLEET_JAIL={JAIL}")
    shared = (f"{state}:{state}", f"{SOCKET}:/run/docker.sock")
    return (
        *(*WALL, *OWN, "--user", f"{USER}:{SOCKET.stat().st_gid}"),
        *(word for one in settings for word in ("--env", one)),
        *(word for one in shared for word in ("--volume", one)),
    )


def test_a_container_with_default_flags_is_told_why_no_jail_works() -> None:
    done = docker("run", "--rm", *WALL, *OWN, *CHECK)
    assert done.returncode == 4
    assert "a seccomp filter denies user namespaces" in done.stderr


def test_a_demo_with_default_flags_says_why_and_what_to_do() -> None:
    done = docker("run", "--rm", *WALL, *OWN, IMAGE, "demo")
    assert (done.returncode, done.stdout) == (4, "")
    assert "no user namespace may be made here" in done.stderr
    assert "systempaths=unconfined" in done.stderr
    assert 'backend = "docker"' in done.stderr
    assert "docs/containers.md" in done.stderr


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
    healthy(service)
    assert docker("exec", service, *PROBE, "/readyz").returncode == 0
    assert docker("exec", service, *PROBE, "/nowhere").returncode == 1
    assert docker("stop", "--time", "210", service).returncode == 0
    assert docker("inspect", "--format", "{{.State.ExitCode}}", service).stdout.strip() == "0"


def test_by_the_hosts_engine_to_a_finished_demo(state: Path) -> None:
    done = docker("run", "--rm", *beside(state), IMAGE, "demo", timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "21 of 21 seeded defects found" in done.stdout
    assert "0 false" in done.stdout
    assert jails(state) == set()


def test_a_killed_fleet_beside_its_jails_leaves_none_after_its_next_start(state: Path) -> None:
    """It cannot see its jails: only engine and labels know them."""
    name = f"qa-fleet-test-{uuid.uuid4().hex[:8]}"
    words = ("--health-interval", "2s", "--entrypoint", "/bin/sh", IMAGE, *DEVNET_AND_FLEET)
    try:
        started = docker("run", "--detach", "--init", "--name", name, *beside(state), *words)
        assert started.returncode == 0, started.stderr
        healthy(name)
        assert docker("exec", "--detach", name, "fleet", "run", "qa-smoke").returncode == 0
        ends = time.monotonic() + 60
        while not (waiting := jails(state)) and time.monotonic() < ends:
            time.sleep(0.2)
        assert waiting
        assert docker("kill", name).returncode == 0
        assert jails(state) & waiting
        assert docker("start", name).returncode == 0
        healthy(name)
        assert jails(state) & waiting == set()
        assert docker("stop", "--time", "210", name).returncode == 0
        assert jails(state) == set()
    finally:
        docker("rm", "--force", "--volumes", name)


@pytest.mark.parametrize("name", ["fleet", "engine-fleet"])
def test_compose_runs_the_service(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """compose.yaml as it is, but for a devnet in the container, and no network, since that needs none."""
    if docker("compose", "version").returncode:
        pytest.skip("no docker compose")
    monkeypatch.setenv("DOCKER_SOCKET", str(SOCKET))
    monkeypatch.setenv("DOCKER_GID", str(SOCKET.stat().st_gid))
    if name == "engine-fleet":
        request.getfixturevalue("state")
    changed = {
        "entrypoint": ["/bin/sh"],
        "command": list(DEVNET_AND_FLEET),
        "network_mode": "none",
        "healthcheck": {"interval": "2s"},
    }
    (tmp_path / "devnet.yaml").write_text(json.dumps({"services": {name: changed}}))
    project = f"qa-fleet-test-{uuid.uuid4().hex[:8]}"
    files = ("--file", str(ROOT / "compose.yaml"), "--file", str(tmp_path / "devnet.yaml"))
    compose = ("compose", "--project-name", project, "--profile", "engine", *files)
    container = f"{project}-{name}-1"
    try:
        up = docker(*compose, "up", "--detach", "--no-build", "--wait", "--wait-timeout", "150", name)
        assert up.returncode == 0, up.stderr + docker("logs", container).stderr[-2000:]
        assert docker("exec", container, *PROBE, "/readyz").returncode == 0
        doctor = docker("exec", container, "fleet", "check", "machine", "--json")
        rows = {row["check"]: row for row in json.loads(doctor.stdout)["checks"]}
        backend = "docker" if name == "engine-fleet" else "bwrap"
        assert (rows["jail"]["ok"], rows["jail"]["seen"]) == (True, f"{backend}, standard")
        assert docker(*compose, "stop", name).returncode == 0
        assert docker("inspect", "--format", "{{.State.ExitCode}}", container).stdout.strip() == "0"
        assert jails(STATE) == set()
    finally:
        docker(*compose, "down", "--volumes")
