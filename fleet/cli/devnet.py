"""`fleet devnet up|down|defects`: the bundled chain and platform as a background process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import anyio
import typer

from fleet.cli.console import DryRun, Json, make_app, note, put, put_rows, run, state
from fleet.devnet.defects import DEFECTS, chosen
from fleet.devnet.devnet import Devnet
from fleet.devnet.surfaces import SEEDED
from fleet.devnet.surfaces import surfaces as chosen_surfaces
from fleet.errors import FleetError
from fleet.files import write_atomic
from fleet.jail.process import proc_stat

app = make_app(group=True)

UP_WAIT_S = 30.0
DOWN_WAIT_S = 40.0
PORTS = "ports.json"
"""Ports of chain and platform, kept beside the chain."""


@app.callback()
def _group() -> None:
    """Start, stop or describe the bundled local chain and platform."""


@app.command()
def up(
    clean: Annotated[bool, typer.Option("--clean", help="Run without the seeded defects.")] = False,
    defects: Annotated[str, typer.Option(help="Comma-separated ids of seeded defects, or all.")] = "all",
    surfaces: Annotated[
        str,
        typer.Option(help="Also serve: mcp, agent, payments, registry, posture, or all.", metavar="NAMES"),
    ] = "",
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay in the foreground until Ctrl-C.")
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Start the devnet in the background and print its addresses, the same as the last time.

    The chain keeps its state.
    """
    seeded, served = frozenset() if clean else chosen(defects), chosen_surfaces(surfaces)
    folder = state() / "devnet"
    if dry_run:
        plan = {"folder": str(folder), "running": _running(folder), "defects": sorted(seeded)}
        plan["surfaces"] = sorted(served)
        put(plan, as_json=as_json, text=lambda: print("\n".join(f"{key}  {plan[key]}" for key in plan)))
        return
    if (pid := _running(folder)) is not None:
        note(f"already up (pid {pid})")
    elif foreground:
        run(lambda: _serve(folder, seeded, served))
        return
    else:
        _spawn(folder, seeded, served)
    data = _record(folder) or {}
    put(data, as_json=as_json, text=lambda: print(f"chain {data['chain']}  platform {data['platform']}"))


@app.command()
def down(dry_run: DryRun = False, as_json: Json = False) -> None:
    """Stop the devnet; the chain's state is kept for the next `up`."""
    folder = state() / "devnet"
    pid = _running(folder)
    if pid is not None and not dry_run:
        began = _start(pid)
        os.kill(pid, signal.SIGTERM)
        _until(lambda: _start(pid) != began, DOWN_WAIT_S, "the devnet did not stop")
    said = {"ended": pid if not dry_run else None, "running": pid if dry_run else None}
    words = (
        "the devnet is not running" if pid is None else f"{'would stop' if dry_run else 'stopped'} pid {pid}"
    )
    put(said, as_json=as_json, text=lambda: print(words))


@app.command()
def defects(as_json: Json = False) -> None:
    """List the seeded defects: what each is, which persona finds it, which real finding it models."""
    data = [defect.model_dump() for defect in DEFECTS]
    columns = ("id", "surface", "severity", "rung", "probe", "title")
    put_rows(data, columns, as_json=as_json)
    if not as_json:
        for name, ids in SEEDED.items():
            note(f"with `devnet up --surfaces {name}`: {', '.join(ids)}")


async def _serve(folder: Path, seeded: frozenset[str], served: frozenset[str]) -> None:
    keys, ports = state() / "keys", kept_ports(folder)
    async with Devnet(folder, keys=keys, defects=seeded, surfaces=served, ports=ports) as devnet:
        used = [urlsplit(url).port for url in (devnet.chain.url, devnet.url)]
        write_atomic(folder / PORTS, json.dumps(used).encode())
        record = {
            "pid": os.getpid(),
            "start": _start(os.getpid()),
            "chain": devnet.chain.url,
            "platform": devnet.url,
            "profile": str(devnet.profile),
            "defects": sorted(seeded),
            "surfaces": sorted(served),
        }
        path = folder / "devnet.json"
        path.write_text(json.dumps(record), "utf-8")
        try:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    break
        finally:
            path.unlink(missing_ok=True)


def kept_ports(folder: Path) -> tuple[int, int]:
    """The ports of the last time, so that what was configured then still holds; 0 (any) for a taken one."""
    try:
        chain, web = json.loads((folder / PORTS).read_text("utf-8"))
        return _free(int(chain)), _free(int(web))
    except (OSError, ValueError, TypeError):
        return 0, 0


def _free(port: int) -> int:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return port
    except (OSError, OverflowError):
        return 0


def _spawn(folder: Path, seeded: frozenset[str], served: frozenset[str]) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = "none" if not seeded else ",".join(sorted(seeded))
    option = ["--clean"] if not seeded else ["--defects", words]
    option += ["--surfaces", ",".join(sorted(served))]
    with (folder / "devnet.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "fleet.cli", "devnet", "up", "--foreground", *option],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def settled() -> bool:
        return _record(folder) is not None or process.poll() is not None

    _until(settled, UP_WAIT_S, "the devnet did not start")
    if process.poll() is not None:
        words = (folder / "devnet.log").read_text("utf-8", "replace").strip()[-400:]
        raise FleetError(f"the devnet did not start: {words}", remedy=f"see {folder / 'devnet.log'}")


def _record(folder: Path) -> dict[str, Any] | None:
    try:
        record: dict[str, Any] = json.loads((folder / "devnet.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return record


def _running(folder: Path) -> int | None:
    """The pid of the devnet's process; its start time detects a reused pid."""
    record = _record(folder)
    if record is None:
        return None
    pid = int(record["pid"])
    return pid if _start(pid) == record["start"] else None


def _start(pid: int) -> int:
    stat = proc_stat(pid)
    return stat.start if stat and stat.state not in "ZX" else 0


def _until(done: Callable[[], bool], seconds: float, complaint: str) -> None:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise FleetError(complaint, remedy="see devnet/devnet.log in the state directory")
        time.sleep(0.05)
