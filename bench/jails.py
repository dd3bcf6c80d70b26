"""Cold and warm calls on both backends, against the bare tools under them.

    python -m bench.jails [--rounds 15] [--json FILE] [--socket unix:///run/docker.sock]

A call is one jail, made or waiting, one line in, one line out, and the jail gone. Its peers in the same run:
bubblewrap with the same interpreter and no jail of ours, and `docker run` as a script would write it, by the
command (`--rm`, no network, hardened, the same mounts). All take turns; only ratios count. Without `--socket`
an engine is started for the run, which needs root. No mark: it reports what the second backend costs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path

from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.docker.engine import Engine
from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.docker.jail import DockerJail, container_shape
from fleet.jail.locate import find_bwrap
from fleet.jail.model import End, Image
from fleet.jail.pool import PooledJail
from tests.dockerd import running_engine

PROBES = Path(__file__).parent.parent / "tests" / "jail" / "probes"
IMAGE = Image(mounts=((PROBES, "probes"),), guest="probes.acts")
LINE = b'{"do": "echo", "text": "x"}\n'
HELLO = ("-I", "-S", "-B", "-c", "print(input())")

Contestant = Callable[[], Awaitable[float]]


def called(jail: PooledJail, *, warm: bool) -> Contestant:
    """Milliseconds of one call; a warm one's pool refills before the clock starts."""

    async def run() -> float:
        if warm:
            await jail.warm()
        started = time.perf_counter()
        outcome = await jail.call(LINE, deadline_s=30)
        elapsed = (time.perf_counter() - started) * 1e3
        assert (outcome.end, outcome.stdout) == (End.EXITED, b"x\n"), outcome
        return elapsed

    return run


def command(words: list[str]) -> Contestant:
    """Milliseconds of one command that answers a line."""

    def spend() -> float:
        started = time.perf_counter()
        done = subprocess.run(words, input=b"x\n", capture_output=True, check=False)
        assert done.stdout == b"x\n", done.stderr
        return (time.perf_counter() - started) * 1e3

    return lambda: asyncio.to_thread(spend)


async def bare(choice: EngineChoice) -> dict[str, Contestant]:
    """The tools themselves, with the interpreter and the mounts of our containers."""
    engine = Engine(choice)
    try:
        image = (await engine.ready()).image
    finally:
        await engine.aclose()
    shape = container_shape(IMAGE, choice, None)
    docker = ["docker", "-H", choice.url(), "run", "--rm", "-i", "--network=none", "--read-only"]
    docker += ["--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp", "--log-driver=none"]
    bwrap = [
        find_bwrap(),
        "--unshare-all",
        "--die-with-parent",
        "--clearenv",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]
    for name in ("bin", "lib", "lib64"):
        bwrap += ["--symlink", f"usr/{name}", f"/{name}"]
    for mount in shape.mounts:
        docker.append(f"--mount=type=bind,src={mount.source},dst={mount.target},readonly")
        bwrap += ["--ro-bind", mount.source, mount.target]
    if shape.library_path:
        docker.append(f"--env=LD_LIBRARY_PATH={shape.library_path}")
        bwrap += ["--setenv", "LD_LIBRARY_PATH", shape.library_path]
    return {
        "bwrap_bare": command([*bwrap, "--", shape.python, *HELLO]),
        "docker_run": command([*docker, f"--entrypoint={shape.python}", image, *HELLO]),
    }


async def measure(rounds: int, choice: EngineChoice) -> dict[str, float]:
    """Medians in milliseconds and their ratios."""
    async with AsyncExitStack() as stack:
        spool = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        contestants = await bare(choice) if shutil.which("docker") else {}
        for name, pool in (("cold", 0), ("warm", 1)):
            for backend in (
                BwrapJail(IMAGE, pool=pool, spool=spool),
                DockerJail(IMAGE, pool=pool, spool=spool, engine=choice),
            ):
                stack.push_async_callback(backend.aclose)
                kind = "docker" if isinstance(backend, DockerJail) else "bwrap"
                contestants[f"{kind}_{name}"] = called(backend, warm=bool(pool))
        taken: dict[str, list[float]] = {name: [] for name in contestants}
        for number in range(rounds + 1):
            for name, run in contestants.items():
                spent = await run()
                if number:  # the first makes the image and fills caches
                    taken[name].append(spent)
    middle = {name: statistics.median(values) for name, values in taken.items()}
    pairs = [("docker_cold", "bwrap_cold"), ("docker_warm", "bwrap_warm"), ("docker_cold", "docker_run")]
    pairs += [("docker_warm", "docker_run"), ("bwrap_cold", "bwrap_bare"), ("bwrap_warm", "bwrap_bare")]
    ratios = {
        f"{one}/{other}": round(middle[one] / middle[other], 2) for one, other in pairs if other in middle
    }
    return {**{f"{name}_ms": round(value, 1) for name, value in middle.items()}, **ratios}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--socket")
    options = parser.parse_args()
    own = running_engine() if options.socket is None else nullcontext()
    with own as engine:
        choice = EngineChoice(socket=engine.socket if engine else options.socket)
        found = asyncio.run(measure(options.rounds, choice))
    text = json.dumps({"jails": found}, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
