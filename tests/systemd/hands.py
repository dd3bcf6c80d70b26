"""What the driver inside the container sees and touches systemd, the journal and processes with."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FLEET = "/opt/qa-fleet/.venv/bin/fleet"
STATE = Path("/var/lib/qa-fleet")
UNIT = "qa-fleet.service"


def run(*words: str, timeout: float = 120, env: dict[str, str] | None = None) -> dict[str, Any]:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, env=env
        )
    except subprocess.TimeoutExpired:
        return {"code": None, "out": "", "err": f"no end after {timeout} s"}
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


def fleet(*words: str, timeout: float = 120) -> dict[str, Any]:
    """A command as the service's user, over the service's state."""
    return run(
        "runuser", "-u", "qa-fleet", "--", "env", f"STATE_DIRECTORY={STATE}", FLEET, *words, timeout=timeout
    )


def unit(name: str, text: str) -> None:
    Path("/etc/systemd/system", name).write_text(text)


def journal(unit: str) -> str:
    """What this boot's journal has of a unit."""
    return str(run("journalctl", "-b", "-u", unit, "-o", "short-monotonic", "--no-pager")["out"])


def drop_in(unit: str, text: str, name: str = "test") -> None:
    folder = Path(f"/etc/systemd/system/{unit}.d")
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.conf").write_text(text)


def content(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def show() -> dict[str, str]:
    names = (
        "ActiveState,SubState,StatusText,NRestarts,WatchdogUSec,Result,MainPID,TimeoutStopUSec,ExecMainStatus"
    )
    lines = run("systemctl", "show", UNIT, "-p", names)["out"].splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def pid() -> int:
    return int(show()["MainPID"])


def process(pid: int) -> dict[str, Any]:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
    )
    names = ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
    return {name: status[name].split() for name in names}


def restarted(old: int) -> bool:
    now = show()
    return now["ActiveState"] == "active" and int(now["MainPID"]) not in (0, old)


def query(sql: str, *values: str) -> list[dict[str, Any]]:
    if not (STATE / "fleet.db").exists():
        return []
    with sqlite3.connect(STATE / "fleet.db", timeout=10) as base:
        base.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in base.execute(sql, values)]
        except sqlite3.OperationalError:  # the tables are not there yet
            return []


def runs(state: str) -> list[dict[str, Any]]:
    return query("select run_id, persona, state, outcome, detail from runs where state = ?", state)


def row(run: str) -> dict[str, Any]:
    return query("select run_id, persona, state, outcome, detail from runs where run_id = ?", run)[0]


def settled(ids: list[str]) -> bool:
    return all(row(run_id)["state"] not in ("running", "settling") for run_id in ids)


def open_effects(runs: list[str] | None) -> list[dict[str, Any]]:
    rows = query(
        "select run_id, kind, ref, state from effects where state not in ('done', 'released', 'failed')"
    )
    return [row for row in rows if runs is None or row["run_id"] in runs]


def held() -> list[dict[str, Any]]:
    """Names that runs hold right now."""
    return query("select run_id, ref, state from effects where kind = 'name' and state in ('open', 'done')")


def names(runs: list[str]) -> list[str]:
    """What became of the names of these runs."""
    rows = query("select run_id, state from effects where kind = 'name'")
    return sorted(row["state"] for row in rows if row["run_id"] in runs)


def keys(runs: list[str]) -> list[str]:
    return [str(path) for run in runs for path in STATE.glob(f"runs/{run}/keys/*")]


def has_footer(path: Path) -> bool:
    lines = path.read_text("utf-8", "replace").splitlines()
    return bool(lines) and json.loads(lines[-1]).get("type") == "footer"


def until(done: Callable[[], bool], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s; {show()}")
        time.sleep(0.2)
