"""Runs as root inside the booted container, with the system's Python alone: acts, writes down what it saw.

It judges nothing: `facts.json` is for the tests outside. Every step is recorded, also when one fails.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

FLEET = "/opt/qa-fleet/.venv/bin/fleet"
STATE = Path("/var/lib/qa-fleet")
OUT = Path("/var/lib/qatest")
UNIT = "qa-fleet.service"
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
from fleet.cli.unit import TEMPLATE, render
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
ExecStartPre=/bin/sh -c '{AT_HOME} config check --platform example --json >$STATE_DIRECTORY/check.json'
ExecStart=
ExecStart=/bin/sh -c '{AT_HOME} doctor --json >$STATE_DIRECTORY/doctor.json'
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
ExecStart={FLEET} doctor --json
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
    FACTS["journal"] = _run("journalctl", "-b", "-u", UNIT, "-o", "short-monotonic", "--no-pager")["out"]
    FACTS["devnet_journal"] = _run("journalctl", "-b", "-u", "qa-devnet", "-o", "cat", "--no-pager")["out"][
        -3000:
    ]
    FACTS["seconds"]["all"] = round(time.monotonic() - began, 1)
    _save()


def install() -> dict[str, Any]:
    """The operator's way in: write the unit, make the user."""
    done = _run(FLEET, "service", "install", "--system")
    users = _run("systemd-sysusers", "/etc/sysusers.d/qa-fleet.conf")
    show = _run(FLEET, "service", "show", "--json")
    unit = Path("/etc/systemd/system", UNIT)
    return {
        "done": done,
        "users": users,
        "show": json.loads(show["out"]),
        "mode": oct(unit.stat().st_mode & 0o777),
    }


def devnet() -> dict[str, Any]:
    """The platform under test, as the same user; then its keys move into the credential store."""
    _unit("qa-devnet.service", DEVNET)
    _run("systemctl", "daemon-reload")
    _run("systemctl", "start", "qa-devnet")
    _until(lambda: (STATE / "devnet" / "devnet.json").exists(), 60, "devnet")
    store = Path("/etc/credstore")
    store.mkdir(mode=0o700, exist_ok=True)
    for name in ("identity", "sponsor"):
        key = store / f"qa-fleet.{name}"
        shutil.move(str(STATE / "keys" / name), key)
        os.chown(key, 0, 0)
        key.chmod(0o600)
    raised = _fleet("dial", "exercise", "--reason", "the bundled devnet only")
    return {"raised": raised}


def doctor() -> dict[str, Any]:
    """`fleet doctor` under the very unit of the daemon, every fence of it in force."""
    shutil.copy(Path("/etc/systemd/system", UNIT), "/etc/systemd/system/qa-doctor.service")
    _drop_in("qa-doctor.service", DOCTOR)
    _run("systemctl", "daemon-reload")
    done = _run("systemctl", "start", "qa-doctor")
    text = (OUT / "doctor.json").read_text() if (OUT / "doctor.json").exists() else ""
    log = _run("journalctl", "-b", "-u", "qa-doctor", "-o", "cat", "--no-pager")["out"]
    return {"done": done, "report": json.loads(text or "{}"), "log": log[-2000:]}


def hidden() -> dict[str, Any]:
    """The same for a checkout in root's home, where nobody else may walk: it is bound into an empty home."""
    Path(HOME).mkdir(mode=0o700, exist_ok=True)
    _run("mount", "--bind", "/opt/qa-fleet", HOME)
    unit = _run(PYTHON, "-c", RENDER)["out"]
    _unit("qa-hidden.service", unit)
    _drop_in("qa-hidden.service", HIDDEN)
    _run("systemctl", "daemon-reload")
    done = _run("systemctl", "start", "qa-hidden")
    texts = [(STATE / name).read_text() for name in ("check.json", "doctor.json")]
    log = _run("journalctl", "-b", "-u", "qa-hidden", "-o", "cat", "--no-pager")["out"]
    return {
        "done": done,
        "check": json.loads(texts[0]),
        "report": json.loads(texts[1]),
        "unit": unit,
        "log": log,
    }


def start() -> dict[str, Any]:
    """`systemctl start` returns at READY."""
    _drop_in(UNIT, FASTER, "faster")
    _run("systemctl", "daemon-reload")
    done = _run("systemctl", "start", UNIT)
    return {"done": done, "show": _show(), "process": _process(_pid())}


def working() -> dict[str, Any]:
    """A persona is dropped in while it runs; a run is under way, and the status line says so."""
    shutil.copy("/opt/qatest/qa-rig.md", "/opt/qa-fleet/personas/qa-rig.md")
    _until(lambda: bool(_held()) and ": 0 runs" not in _show()["StatusText"], 120, "a run")
    return {"show": _show(), "running": _runs("running")}


def second() -> dict[str, Any]:
    """Another daemon over the same state directory."""
    return _fleet("up", timeout=60)


def killed() -> dict[str, Any]:
    """kill -9 in mid-run; systemd starts it again and it settles what was open."""
    _until(lambda: bool(_held()), 120, "a run that holds a name")
    pid, held, open_runs = _pid(), _held(), _runs("running")
    os.kill(pid, signal.SIGKILL)
    _until(lambda: _restarted(pid), 120, "a restart")
    after = _show()
    ids = [run["run_id"] for run in open_runs]
    _until(lambda: all(_row(run)["state"] not in ("running", "settling") for run in ids), 120, "settled runs")
    rows = [_row(run) for run in ids]
    return {
        "show": after, "rows": rows, "held": held, "names": _names(ids),
        "open_effects": _open_effects(ids), "keys": _keys(ids),
    }  # fmt: skip


def hung() -> dict[str, Any]:
    """SIGSTOP: nobody feeds the watchdog."""
    pid = _pid()
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    _until(lambda: _restarted(pid), 120, "a restart after the hang")
    return {"seconds": round(time.monotonic() - began, 1), "show": _show()}


def stopped() -> dict[str, Any]:
    """`systemctl stop` in mid-run: drained within the time-out, every footer written."""
    _until(lambda: bool(_held()), 120, "a run")
    running = [run["run_id"] for run in _runs("running")]
    began = time.monotonic()
    done = _run("systemctl", "stop", UNIT, timeout=150)
    seconds = round(time.monotonic() - began, 1)
    unfinished = [str(path) for path in STATE.glob("runs/*/trajectory.jsonl") if not _has_footer(path)]
    return {
        "done": done, "seconds": seconds, "show": _show(), "running": running,
        "trajectories": len(list(STATE.glob("runs/*/trajectory.jsonl"))), "unfinished": unfinished,
        "open": _runs("running") + _runs("settling"), "held": _held(), "open_effects": _open_effects(None),
        "jails": [str(path) for path in STATE.glob("jails/*.jail")],
    }  # fmt: skip


def empty() -> dict[str, Any]:
    """Nothing of the service's user is left once the platform under test is gone too."""
    done = _run("systemctl", "stop", "qa-devnet")
    return {"done": done, "processes": _run("ps", "-u", "qa-fleet", "-o", "pid,args", "--no-headers")["out"]}


def exposure() -> dict[str, Any]:
    """What systemd itself says of the unit as it is loaded, before the drop-ins of these tests."""
    return _run("systemd-analyze", "security", "--no-pager", "--threshold=27", UNIT)


def removal() -> dict[str, Any]:
    """The way out."""
    return {
        "done": _run(FLEET, "service", "uninstall", "--system"),
        "left": os.path.exists(f"/etc/systemd/system/{UNIT}"),
    }


STEPS: tuple[Callable[[], dict[str, Any] | None], ...] = (
    install, devnet, doctor, hidden, start, working, second, killed, hung, stopped, empty, exposure, removal,
)  # fmt: skip


def _run(*words: str, timeout: float = 120, env: dict[str, str] | None = None) -> dict[str, Any]:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, env=env
        )
    except subprocess.TimeoutExpired:
        return {"code": None, "out": "", "err": f"no end after {timeout} s"}
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


def _fleet(*words: str, timeout: float = 120) -> dict[str, Any]:
    """A command as the service's user, over the service's state."""
    return _run(
        "runuser", "-u", "qa-fleet", "--", "env", f"STATE_DIRECTORY={STATE}", FLEET, *words, timeout=timeout
    )


def _unit(name: str, text: str) -> None:
    Path("/etc/systemd/system", name).write_text(text)


def _drop_in(unit: str, text: str, name: str = "test") -> None:
    folder = Path(f"/etc/systemd/system/{unit}.d")
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.conf").write_text(text)


def _show() -> dict[str, str]:
    names = (
        "ActiveState,SubState,StatusText,NRestarts,WatchdogUSec,Result,MainPID,TimeoutStopUSec,ExecMainStatus"
    )
    lines = _run("systemctl", "show", UNIT, "-p", names)["out"].splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _pid() -> int:
    return int(_show()["MainPID"])


def _process(pid: int) -> dict[str, Any]:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
    )
    names = ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
    return {name: status[name].split() for name in names}


def _restarted(old: int) -> bool:
    show = _show()
    return show["ActiveState"] == "active" and int(show["MainPID"]) not in (0, old)


def _query(sql: str, *values: str) -> list[dict[str, Any]]:
    if not (STATE / "fleet.db").exists():
        return []
    with sqlite3.connect(STATE / "fleet.db", timeout=10) as base:
        base.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in base.execute(sql, values)]
        except sqlite3.OperationalError:  # the tables are not there yet
            return []


def _runs(state: str) -> list[dict[str, Any]]:
    return _query("select run_id, persona, state, outcome, detail from runs where state = ?", state)


def _row(run: str) -> dict[str, Any]:
    return _query("select run_id, persona, state, outcome, detail from runs where run_id = ?", run)[0]


def _open_effects(runs: list[str] | None) -> list[dict[str, Any]]:
    rows = _query(
        "select run_id, kind, ref, state from effects where state not in ('done', 'released', 'failed')"
    )
    return [row for row in rows if runs is None or row["run_id"] in runs]


def _held() -> list[dict[str, Any]]:
    """Names that runs hold right now."""
    return _query("select run_id, ref, state from effects where kind = 'name' and state in ('open', 'done')")


def _names(runs: list[str]) -> list[str]:
    """What became of the names of these runs."""
    rows = _query("select run_id, state from effects where kind = 'name'")
    return sorted(row["state"] for row in rows if row["run_id"] in runs)


def _keys(runs: list[str]) -> list[str]:
    return [str(path) for run in runs for path in STATE.glob(f"runs/{run}/keys/*")]


def _has_footer(path: Path) -> bool:
    lines = path.read_text("utf-8", "replace").splitlines()
    return bool(lines) and json.loads(lines[-1]).get("type") == "run.ended"


def _until(done: Callable[[], bool], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s; {_show()}")
        time.sleep(0.2)


def _save() -> None:
    (OUT / "facts.json").write_text(json.dumps(FACTS))


if __name__ == "__main__":
    main()
