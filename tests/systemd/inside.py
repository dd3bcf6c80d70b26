"""Runs as root inside the booted container, with the system's Python alone: acts, writes down what it saw.

It judges nothing: `facts.json` is for the tests outside. Every step is recorded, also when one fails.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.systemd import hands
from tests.systemd.hands import FLEET, STATE, UNIT

OUT = Path("/var/lib/qatest")
FACTS: dict[str, Any] = {}

DEVNET = f"""[Service]
User=qa-fleet
StateDirectory=qa-fleet
StateDirectoryMode=0700
WorkingDirectory=/opt/qa-fleet
ExecStart={FLEET} devnet up --foreground
TimeoutStopSec=30
"""
PYTHON = "/opt/qa-fleet/.venv/bin/python"
HOME = "/root/checkout"
RENDER = f"""
from pathlib import Path
from fleet.cli.operate.service import TEMPLATE, render
here = Path({HOME!r})
print(render(TEMPLATE.read_text(), root=here, prefix=here / ".venv", base=Path("/usr"), user=False))
"""
AT_HOME = f"exec {HOME}/.venv/bin/python -m fleet.cli"
HIDDEN = f"""[Service]
Type=oneshot
Restart=no
WatchdogSec=0
RuntimeDirectory=
ExecStartPre=
ExecStartPre=/bin/sh -c '{AT_HOME} check config --platform example --json >$STATE_DIRECTORY/check.json'
ExecStart=
ExecStart=/bin/sh -c '{AT_HOME} check machine --json >$STATE_DIRECTORY/doctor.json'
"""
OWN = f"""[Service]
Type=oneshot
Restart=no
WatchdogSec=0
ExecStartPre=
ExecStart=
ExecStart=-/bin/sh -c 'echo $STATE_DIRECTORY $CONFIGURATION_DIRECTORY >/home/dev/directories'
ExecStart=-/bin/sh -c 'exec {FLEET} check machine --json >/home/dev/doctor.json'
"""
FASTER = """[Service]
WatchdogSec=8
RestartSec=1
"""
DOCTOR = f"""[Service]
Type=oneshot
Restart=no
WatchdogSec=0
RuntimeDirectory=
ExecStartPre=
ExecStart=
ExecStart={FLEET} check machine --json
StandardOutput=file:{OUT}/doctor.json
"""


def main() -> None:
    """Every step in its order; a step that fails is recorded and ends the rest."""
    OUT.mkdir(exist_ok=True)
    began = time.monotonic()
    try:
        for step in STEPS:
            at = time.monotonic()
            try:
                FACTS[step.__name__] = step() or {}
            finally:
                FACTS.setdefault("seconds", {})[step.__name__] = round(time.monotonic() - at, 1)
                _save()
    except BaseException:
        FACTS["failed"] = traceback.format_exc()
    FACTS["journal"], FACTS["devnet_journal"] = hands.journal(UNIT), hands.journal("qa-devnet")
    FACTS["seconds"]["all"] = round(time.monotonic() - began, 1)
    _save()


def install() -> dict[str, Any]:
    """The operator's way in: write the unit, make the user."""
    done = hands.run(FLEET, "service", "install", "--system")
    users = hands.run("systemd-sysusers", "/etc/sysusers.d/qa-fleet.conf")
    show = hands.run(FLEET, "service", "show", "--json")
    unit = Path("/etc/systemd/system", UNIT)
    return {
        "done": done,
        "users": users,
        "show": json.loads(show["out"]),
        "mode": oct(unit.stat().st_mode & 0o777),
    }


def devnet() -> dict[str, Any]:
    """The platform under test, as the same user; then its keys move into the credential store."""
    hands.unit("qa-devnet.service", DEVNET)
    hands.run("systemctl", "daemon-reload")
    hands.run("systemctl", "start", "qa-devnet")
    hands.until(lambda: (STATE / "devnet" / "devnet.json").exists(), 60, "devnet")
    store = Path("/etc/credstore")
    store.mkdir(mode=0o700, exist_ok=True)
    for name in ("identity", "sponsor"):
        key = store / f"qa-fleet.{name}"
        shutil.move(str(STATE / "keys" / name), key)
        os.chown(key, 0, 0)
        key.chmod(0o600)
    raised = hands.fleet("dial", "exercise", "--reason", "the bundled devnet only")
    return {"raised": raised}


def doctor() -> dict[str, Any]:
    """`fleet check machine` under the very unit of the daemon, every fence of it in force."""
    shutil.copy(Path("/etc/systemd/system", UNIT), "/etc/systemd/system/qa-doctor.service")
    hands.drop_in("qa-doctor.service", DOCTOR)
    hands.run("systemctl", "daemon-reload")
    done = hands.run("systemctl", "start", "qa-doctor")
    text = hands.content(OUT / "doctor.json")
    return {"done": done, "report": json.loads(text or "{}"), "log": hands.journal("qa-doctor")}


def hidden() -> dict[str, Any]:
    """The same for a checkout in root's home, where nobody else may walk: it is bound into an empty home."""
    Path(HOME).mkdir(mode=0o700, exist_ok=True)
    hands.run("mount", "--bind", "/opt/qa-fleet", HOME)
    unit = hands.run(PYTHON, "-c", RENDER)["out"]
    hands.unit("qa-hidden.service", unit)
    hands.drop_in("qa-hidden.service", HIDDEN)
    hands.run("systemctl", "daemon-reload")
    done = hands.run("systemctl", "start", "qa-hidden")
    texts = [(STATE / name).read_text() for name in ("check.json", "doctor.json")]
    return {
        "done": done,
        "check": json.loads(texts[0]),
        "report": json.loads(texts[1]),
        "unit": unit,
    }


def own() -> dict[str, Any]:
    """The unit of an ordinary user, under a manager of their own: the jail part of `fleet check machine`."""
    remount = hands.run("mount", "-o", "remount,bind,rw", "/proc/sys")  # the container's alone is read-only
    hands.run("userdel", "dev")  # of an earlier boot
    hands.run("useradd", "--create-home", "--uid", "1500", "dev")
    runtime = "XDG_RUNTIME_DIR=/run/user/1500"
    hands.drop_in("user@1500.service", f"[Service]\nEnvironment={runtime}\n")
    dev = ("runuser", "-u", "dev", "--", "env", "HOME=/home/dev", runtime)
    done = hands.run(*dev, FLEET, "service", "install", "--user")
    units = Path("/home/dev/.config/systemd/user")
    folder = units / f"{UNIT}.d"
    folder.mkdir()
    (folder / "test.conf").write_text(OWN)
    hands.run("systemctl", "daemon-reload")
    manager = hands.run("systemctl", "start", "user@1500")
    start = hands.run(*dev, "systemctl", "--user", "start", "qa-fleet")
    text = hands.content(Path("/home/dev/doctor.json"))
    log = hands.run("journalctl", "-b", "_UID=1500", "-o", "cat", "--no-pager")["out"]
    directories = hands.content(Path("/home/dev/directories")).split()
    hands.run("systemctl", "stop", "user@1500")
    return {
        "remount": remount,
        "done": done,
        "manager": manager,
        "start": start,
        "report": json.loads(text or "{}"),
        "directories": directories,
        "log": log,
    }


def misconfigured() -> dict[str, Any]:
    """A misspelt variable in the machine's own fleet.env."""
    settings = Path("/etc/qa-fleet/fleet.env")
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("QA_FLEET_CONCURENCY=1\n")
    done = hands.run("systemctl", "start", UNIT)
    seen = hands.show()
    hands.run("systemctl", "stop", UNIT)
    settings.write_text("QA_FLEET_CONCURRENCY=3\n")
    return {
        "done": done,
        "seen": seen,
        "log": hands.journal(UNIT),
    }


def start() -> dict[str, Any]:
    """`systemctl start` returns at READY."""
    hands.drop_in(UNIT, FASTER, "faster")
    hands.run("systemctl", "daemon-reload")
    done = hands.run("systemctl", "start", UNIT)
    return {"done": done, "show": hands.show(), "process": hands.process(hands.pid())}


def working() -> dict[str, Any]:
    """A persona is dropped in while it runs; a run is under way, and the status line says so."""
    shutil.copy("/opt/qatest/tests/systemd/qa-rig.md", "/opt/qa-fleet/personas/qa-rig.md")
    hands.until(lambda: bool(hands.held()) and ": 0 runs" not in hands.show()["StatusText"], 120, "a run")
    return {"show": hands.show(), "running": hands.runs("running")}


def second() -> dict[str, Any]:
    """Another daemon over the same state directory."""
    return hands.fleet("up", timeout=60)


def killed() -> dict[str, Any]:
    """kill -9 in mid-run; systemd starts it again and it settles what was open."""
    hands.until(lambda: bool(hands.held()), 120, "a run that holds a name")
    pid, held, open_runs = hands.pid(), hands.held(), hands.runs("running")
    os.kill(pid, signal.SIGKILL)
    hands.until(lambda: hands.restarted(pid), 120, "a restart")
    after = hands.show()
    ids = [run["run_id"] for run in open_runs]
    hands.until(lambda: hands.settled(ids), 120, "settled runs")
    rows = [hands.row(run) for run in ids]
    return {
        "show": after,
        "rows": rows,
        "held": held,
        "names": hands.names(ids),
        "open_effects": hands.open_effects(ids),
        "keys": hands.keys(ids),
    }


def hung() -> dict[str, Any]:
    """SIGSTOP: nobody feeds the watchdog."""
    hands.until(lambda: bool(hands.held()), 120, "a run that holds a name")
    pid, ids = hands.pid(), [run["run_id"] for run in hands.runs("running")]
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    hands.until(lambda: hands.restarted(pid), 120, "a restart after the hang")
    seconds, show = round(time.monotonic() - began, 1), hands.show()
    hands.until(lambda: hands.settled(ids), 120, "settled runs")
    return {
        "seconds": seconds,
        "show": show,
        "rows": [hands.row(run) for run in ids],
        "names": hands.names(ids),
    }


def stopped() -> dict[str, Any]:
    """`systemctl stop` in mid-run: drained within the time-out, every footer written."""
    hands.until(lambda: bool(hands.held()), 120, "a run")
    running = [run["run_id"] for run in hands.runs("running")]
    began = time.monotonic()
    done = hands.run("systemctl", "stop", UNIT, timeout=150)
    seconds = round(time.monotonic() - began, 1)
    unfinished = [str(path) for path in STATE.glob("runs/*/trajectory.jsonl") if not hands.has_footer(path)]
    return {
        "done": done,
        "seconds": seconds,
        "show": hands.show(),
        "running": running,
        "trajectories": len(list(STATE.glob("runs/*/trajectory.jsonl"))),
        "unfinished": unfinished,
        "open": hands.runs("running") + hands.runs("settling"),
        "held": hands.held(),
        "open_effects": hands.open_effects(None),
        "jails": [str(path) for path in STATE.glob("jails/*.jail")],
    }


def empty() -> dict[str, Any]:
    """Nothing of the service's user is left once the platform under test is gone too."""
    done = hands.run("systemctl", "stop", "qa-devnet")
    return {
        "done": done,
        "processes": hands.run("ps", "-u", "qa-fleet", "-o", "pid,args", "--no-headers")["out"],
    }


def exposure() -> dict[str, Any]:
    """What systemd itself says of the unit as it is loaded, before the drop-ins of these tests."""
    return hands.run("systemd-analyze", "security", "--no-pager", "--threshold=27", UNIT)


def removal() -> dict[str, Any]:
    """The way out."""
    return {
        "done": hands.run(FLEET, "service", "uninstall", "--system"),
        "left": os.path.exists(f"/etc/systemd/system/{UNIT}"),
    }


STEPS: tuple[Callable[[], dict[str, Any] | None], ...] = (
    install,
    devnet,
    doctor,
    hidden,
    misconfigured,
    start,
    working,
    second,
    killed,
    hung,
    stopped,
    empty,
    exposure,
    removal,
    own,
)


def _save() -> None:
    (OUT / "facts.json").write_text(json.dumps(FACTS))


if __name__ == "__main__":
    main()
