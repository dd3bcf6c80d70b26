"""Mark B16: `fleet up` is ready within 1.1 of the time that its libraries take to import.

    python -m bench.daemon [--rounds 7] [--idle 20]

Peers in the same run, each until it says so: a process that imports the libraries of such a daemon (the
very modules that one has imported when it is ready, in their order), and one that imports asyncio. Ours is
the real command on the devnet until it says READY to a service manager, its self-check and its first jails
included. The last daemon is then left alone, and what it burns and holds is measured; a daemon that woke up
in that time for a run would not be idle, so its persona has every kind of trigger but none that fires.
Targets are ratios to the peer, because machines differ. The first round fills caches on both sides:
compiled modules, and which expectations compile; of the first start of all, with neither, there is no mark.
Exit status 1 above a floor.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from fleet.clock import SystemClock
from fleet.devnet.devnet import Devnet
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung

OURS = frozenset({"fleet", "sandbox"})
PEER = """
import contextlib, importlib, sys, time
for name in sys.argv[1:]:
    with contextlib.suppress(ImportError):  # so it was in the daemon: an optional library
        importlib.import_module(name)
print(flush=True)
time.sleep(600)
"""
TARGETS = {"ready_to_libraries": 1.1, "rss_to_libraries": 1.15, "idle_cpu_percent": 0.2}
FLOORS = {"ready_to_libraries": 1.17, "rss_to_libraries": 1.2, "idle_cpu_percent": 0.5}
PATIENCE_S = 30.0
SETTLE_S = 5.0
"""Between READY and the idle part: the first looks of the watches, the pool of jails."""
PERSONA = """+++
name = "qa-idle"
surface = "ux"
tools = ["qa_fetch"]
triggers = [{ every = "24h" }, { cron = "0 0 1 1 *" }, { on = "facets-changed" }, { on = "file:watched" }]
budget = { calls = 1, wall = "1m" }
[[probe]]
id = "look"
severity = "low"
steps = [{ tool = "qa_fetch", args = { url = "{site}/" } }]
expect = "result.ok"
finding = "never seen"
+++
Waits.
"""


@dataclass(frozen=True)
class Place:
    """A state directory on a running devnet, and what a process needs to know of it."""

    state: Path
    personas: Path

    @classmethod
    def make(cls, folder: Path, devnet: Devnet) -> Place:
        made = cls(folder / "state", folder / "personas")
        (made.state / "devnet").mkdir(parents=True)
        made.state.chmod(0o700)
        made.personas.mkdir()
        shutil.copy(devnet.profile, made.state / "devnet")
        shutil.copytree(devnet.keys, made.state / "keys")
        (made.personas / "qa-idle.md").write_text(PERSONA)
        write_dial(made.state, Rung.EXERCISE, "a measurement", "bench", SystemClock())
        return made

    def environment(self, notify: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.state),
            "STATE_DIRECTORY": str(self.state),
            "CONFIGURATION_DIRECTORY": str(self.state),
            "NOTIFY_SOCKET": notify,
            "WATCHDOG_USEC": "30000000",
        }


@dataclass
class Started:
    """A process that is ready, and the milliseconds it took."""

    process: subprocess.Popen[bytes]
    ms: float

    @property
    def rss_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    @property
    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def wakes(self) -> int:
        """How often its main thread went to sleep and woke up again."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)
        if self.process.stdout is not None:
            self.process.stdout.close()


def importing(what: Sequence[str]) -> Started:
    """A bare process, ready once it has its libraries."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", PEER, *what], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n", "a peer did not start"
    return Started(process, (time.perf_counter() - started) * 1e3)


@contextmanager
def manager(folder: Path) -> Iterator[socket.socket]:
    """What a service manager listens on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(folder / "notify"))
        line.settimeout(PATIENCE_S)
        try:
            yield line
        finally:
            (folder / "notify").unlink()


def libraries(place: Place) -> list[str]:
    """The modules that a daemon imports until it is ready, neither its own nor Python's, in their order."""
    started = daemon(place, "-X", "importtime")
    log = (place.state.parent / "up.log").read_text("utf-8", "replace")
    started.end()
    told = [line.rpartition("|")[2].strip() for line in log.splitlines() if line.startswith("import time:")]
    others = OURS | sys.stdlib_module_names | {"imported package"}
    return [name for name in told if name.partition(".")[0] not in others]


def daemon(place: Place, *options: str, words: Sequence[str] = ()) -> Started:
    """`fleet up` with these words, ready once it says so."""
    folder = place.state.parent
    with manager(folder) as line, (folder / "up.log").open("wb") as log:
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *options, "-m", "fleet.cli", "up", "--personas", str(place.personas), *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=place.environment(str(folder / "notify")),
        )
        try:
            while b"READY=1" not in line.recv(4096).split(b"\n"):
                pass
        except TimeoutError:
            process.kill()
            raise SystemExit(f"fleet up did not start:\n{(folder / 'up.log').read_text()}") from None
        return Started(process, (time.perf_counter() - started) * 1e3)


def idle(started: Started, seconds: float) -> dict[str, float]:
    """Percent of one core, and megabytes, of a daemon without requests."""
    time.sleep(SETTLE_S)
    cpu, wakes, at = started.cpu_s, started.wakes, time.perf_counter()
    time.sleep(seconds)
    took = time.perf_counter() - at
    return {
        "idle_cpu_percent": (started.cpu_s - cpu) / took * 100,
        "idle_wakes_per_s": (started.wakes - wakes) / took,
        "idle_rss_mb": started.rss_mb,
    }


def measure(place: Place, rounds: int, seconds: float) -> dict[str, float]:
    """Medians, and the ratios to the peers of the same run."""
    libraries_of_ours = libraries(place)
    contestants: dict[str, Callable[[], Started]] = {
        "ready": lambda: daemon(place),
        "libraries": lambda: importing(libraries_of_ours),
        "asyncio": lambda: importing(["asyncio"]),
    }
    ms: dict[str, list[float]] = {name: [] for name in contestants}
    rss: dict[str, float] = {}
    for number in range(rounds + 1):
        for name, start in contestants.items():
            started = start()
            if number:  # the first round fills caches
                ms[name].append(started.ms)
            rss[name] = started.rss_mb
            started.end()
    found = {f"{name}_ms": statistics.median(values) for name, values in ms.items()}
    resident = daemon(place)
    try:
        found |= idle(resident, seconds)
    finally:
        resident.end()
    found |= {"libraries_rss_mb": rss["libraries"], "asyncio_rss_mb": rss["asyncio"]}
    found["ready_to_libraries"] = statistics.median(
        ours / peer for ours, peer in zip(ms["ready"], ms["libraries"], strict=True)
    )
    found["rss_to_libraries"] = found["idle_rss_mb"] / rss["libraries"]
    return {name: round(value, 2) for name, value in found.items()}


async def run(rounds: int, seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with Devnet(folder / "devnet", keys=folder / "keys") as devnet:
            place = Place.make(folder, devnet)
            return await anyio.to_thread.run_sync(measure, place, rounds, seconds)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--idle", type=float, default=20.0, help="seconds")
    options = parser.parse_args()
    found = anyio.run(run, options.rounds, options.idle)
    print(json.dumps({"daemon": found, "targets": TARGETS, "floors": FLOORS}, indent=2))
    return 0 if all(found[name] <= floor for name, floor in FLOORS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
